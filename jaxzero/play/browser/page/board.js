// The board: SVG that is made once and then only changed, so that focus stays where it is. A square is one unit.

import { centre, circle, frame, hitArea, stone, tag } from "./ground.js";
import { overlay } from "./overlay.js";
import { colour, visits, worth } from "./words.js";

export function board(about, play) {
  const { kind, rows, columns } = about;
  const sheet = frame(about);
  const cells = [];
  const over = tag("g", { "pointer-events": "none" });
  const ghost = circle(0, 0, 0.4, { class: "ghost", visibility: "hidden", "pointer-events": "none" });
  let seen = null;

  // The action of a square: in Connect Four that of its column.
  const actionOf = (index) => (kind === "connect_four" ? index % columns : index);
  const open = (index) => seen !== null && seen.yours && seen.view.legal.includes(actionOf(index));

  function hover(index) {
    const place = index !== null && open(index) ? seen.view.places[actionOf(index)] : null;
    ghost.setAttribute("visibility", place ? "visible" : "hidden");
    if (!place) return;
    const [x, y] = centre(kind, ...place);
    ghost.setAttribute("cx", x);
    ghost.setAttribute("cy", y);
    ghost.setAttribute("fill", colour(seen.view.toMove));
    ghost.setAttribute("stroke", colour(seen.view.toMove, "-rim"));
  }

  function focus(index) {
    for (const [i, cell] of cells.entries()) cell.group.setAttribute("tabindex", i === index ? 0 : -1);
  }

  function pressed(event, index) {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own, like Alt and Left for "back"
    const row = Math.floor(index / columns), column = index % columns;
    const to = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      if (to[0] < 0 || to[1] < 0 || to[0] >= rows || to[1] >= columns) return;
      const next = to[0] * columns + to[1];
      focus(next);
      cells[next].group.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      play(actionOf(index));
    }
  }

  for (let index = 0; index < rows * columns; index++) {
    const [x, y] = centre(kind, Math.floor(index / columns), index % columns);
    const stone = tag("g", {});
    const group = tag("g", { class: "cell", role: "button", tabindex: index === 0 ? 0 : -1 }, hitArea(kind, x, y), stone);
    group.addEventListener("mousedown", (event) => event.preventDefault()); // else it had the focus, and with it the arrow keys
    group.addEventListener("click", () => { focus(index); play(actionOf(index)); });
    group.addEventListener("keydown", (event) => pressed(event, index));
    group.addEventListener("pointerenter", () => hover(index));
    group.addEventListener("pointerleave", () => hover(null));
    group.addEventListener("focus", () => hover(index));
    group.addEventListener("blur", () => hover(null));
    cells.push({ group, stone, drawn: 0 });
    sheet.append(group);
  }
  sheet.append(ghost, over);

  function name(index) {
    const row = Math.floor(index / columns), column = index % columns;
    if (kind === "connect_four") return `column ${column + 1}, row ${rows - row}`;
    return /^\d+$/.test(about.names[index]) ? `row ${row + 1}, column ${column + 1}` : about.names[index];
  }

  // view: as the server tells it; shown: { search, line }: what is wanted on the board; yours: whether you may move.
  function draw(view, shown, yours) {
    seen = { view, yours };
    const at = ([row, column]) => row * columns + column;
    const last = view.last ? at(view.last) : -1, won = new Set(view.winning.map(at));
    const says = new Map();
    for (const one of shown.search && view.search ? view.search.candidates : []) {
      const place = view.places[one.action];
      if (place) says.set(at(place), `, ${visits(one.visits)}, ${worth(about, one)}${about.shares ? " of the points" : ""}`);
    }
    for (const [index, cell] of cells.entries()) {
      const who = view.stones[index];
      if (cell.drawn !== who) {
        const [x, y] = centre(kind, Math.floor(index / columns), index % columns);
        cell.stone.replaceChildren(...(who ? stone(kind, x, y, who - 1) : []));
        cell.drawn = who;
      }
      const state = who ? about.sides[who - 1] : "empty";
      const can = open(index), lit = won.has(index);
      const more = `${index === last ? ", the last move" : ""}${lit ? ", in the winning line" : ""}${says.get(index) ?? ""}`;
      set(cell.group, "aria-label", `${name(index)}: ${state}${more}`);
      set(cell.group, "aria-disabled", String(!can));
      set(cell.group, "class", `cell${can ? " open" : ""}${lit ? " lit" : won.size ? " dim" : ""}`);
    }
    hover(null);
    over.replaceChildren(...overlay(about, view, shown));
  }
  return { element: sheet, draw };
}

// A game without a board of stones: its own picture, if it draws one. An image runs no scripts.
export function picture(about) {
  const element = document.createElement("img");
  element.alt = `The position of ${about.title}`;
  element.className = "board list";
  element.hidden = true;
  let shown = null;
  function draw(view) {
    if (view.picture === shown) return;
    shown = view.picture;
    element.hidden = shown === null;
    if (shown !== null) element.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(shown)}`;
  }
  return { element, draw };
}

function set(element, key, value) {
  if (element.getAttribute(key) !== value) element.setAttribute(key, value);
}
