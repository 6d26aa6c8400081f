// The board: tiles that slide, merge and appear. Rules are the server's; what is worked out here is only what to show.

const SIDE = 4;
// The cells of each line, from the side that tiles move to; by action: left, up, right, down.
const LINES = [
  (line, i) => line * SIDE + i,
  (line, i) => i * SIDE + line,
  (line, i) => line * SIDE + SIDE - 1 - i,
  (line, i) => (SIDE - 1 - i) * SIDE + line,
];

// Where each tile goes: [{ from, to }] and the cells that a merged tile comes to.
function slides(cells, action) {
  const paths = [], merged = new Set(), after = Array(cells.length).fill(0);
  for (let line = 0; line < SIDE; line++) {
    let next = 0, open = false; // the next free place, and whether the tile before it can still merge
    for (let i = 0; i < SIDE; i++) {
      const from = LINES[action](line, i), exponent = cells[from];
      if (!exponent) continue;
      const last = next > 0 ? LINES[action](line, next - 1) : -1;
      if (open && after[last] === exponent) {
        after[last]++;
        merged.add(last);
        paths.push({ from, to: last });
        open = false;
      } else {
        const to = LINES[action](line, next++);
        after[to] = exponent;
        paths.push({ from, to });
        open = true;
      }
    }
  }
  return { paths, merged, after };
}

function tile(exponent, cell) {
  const element = document.createElement("div"), face = document.createElement("div");
  const number = exponent ? String(2 ** exponent) : "";
  element.className = "tile";
  element.style.left = `${25 * (cell % SIDE)}%`;
  element.style.top = `${25 * Math.floor(cell / SIDE)}%`;
  face.className = `face of-${Math.min(exponent, 12)} digits-${Math.min(number.length, 6)}`;
  face.textContent = number;
  element.append(face);
  return element;
}

const pop = (element, from, ms) => element.firstChild.animate([{ transform: `scale(${from})` }, { transform: "none" }], { duration: ms, easing: "ease-out" });

export function board(element) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let latest = 0;
  const [below, layer] = [0, 1].map(() => document.createElement("div"));
  below.className = layer.className = "layer";
  element.append(below, layer);
  for (let cell = 0; cell < SIDE * SIDE; cell++) below.append(tile(0, cell));

  function lay(cells) {
    const found = cells.map((exponent, cell) => (exponent ? tile(exponent, cell) : null));
    layer.replaceChildren(...found.filter((one) => one !== null));
    latest++;
    return found;
  }

  // From the cells before a move to those after it, in so many milliseconds.
  function slide(before, action, cells, ms) {
    const { paths, merged, after } = slides(before, action);
    if (ms < 30 || still.matches) return lay(cells);
    const moving = lay(before), mine = latest;
    for (const { from, to } of paths) {
      const x = (to % SIDE) - (from % SIDE), y = Math.floor(to / SIDE) - Math.floor(from / SIDE);
      const goal = { transform: `translate(${100 * x}%, ${100 * y}%)` };
      if (x || y) moving[from].animate([{ transform: "none" }, goal], { duration: ms, easing: "ease-in-out", fill: "forwards" });
    }
    setTimeout(() => {
      if (mine !== latest) return; // another move has come
      for (const [cell, one] of lay(cells).entries()) {
        if (merged.has(cell)) pop(one, 1.15, ms);
        else if (one && !after[cell]) pop(one, 0.2, ms);
      }
    }, ms);
  }

  function describe(cells) {
    const rows = [0, 1, 2, 3].map((row) => cells.slice(SIDE * row, SIDE * row + SIDE).map((exponent) => (exponent ? 2 ** exponent : "empty")).join(" "));
    element.setAttribute("aria-label", `The board, row by row: ${rows.join("; ")}`);
  }

  return {
    rest: (cells) => { describe(cells); lay(cells); },
    slide: (before, action, cells, ms) => { describe(cells); slide(before, action, cells, ms); },
  };
}

// Swipes: calls `swiped(action)` for each.
export function swipes(element, swiped) {
  const LEAST = 24; // pixels
  let start = null;
  element.addEventListener("pointerdown", (event) => { start = { x: event.clientX, y: event.clientY }; element.setPointerCapture(event.pointerId); });
  element.addEventListener("pointercancel", () => { start = null; });
  element.addEventListener("pointermove", (event) => {
    if (start === null) return;
    const x = event.clientX - start.x, y = event.clientY - start.y;
    if (Math.max(Math.abs(x), Math.abs(y)) < LEAST) return;
    start = null; // one move, however far it goes
    swiped(Math.abs(x) > Math.abs(y) ? (x < 0 ? 0 : 2) : y < 0 ? 1 : 3);
  });
  element.addEventListener("pointerup", () => { start = null; });
}
