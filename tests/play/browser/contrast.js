// Of all text that is seen, what has a contrast below 4.5 : 1 with what is behind it; in the drawing, with its rim or disc.
() => {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => numbers(colour).slice(0, 3).map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = getComputedStyle(element).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0.99) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  const check = (said, ink, ground) => { if (contrast(ink, ground) < 4.5) found.push([said, ink, ground, contrast(ink, ground)]); };
  for (const element of document.querySelectorAll("body *:not(svg *):not(option)")) {
    const said = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (said && element.checkVisibility()) check(said, getComputedStyle(element).color, behind(element));
  }
  const grounds = { // of what is drawn
    ".halo": (one) => getComputedStyle(one).stroke, ".number": (one) => getComputedStyle(one.previousSibling).fill,
    ".label": () => behind(document.body),
  };
  for (const [drawn, ground] of Object.entries(grounds))
    for (const one of document.querySelectorAll(drawn)) check(one.textContent, getComputedStyle(one).fill, ground(one));
  return found;
}
