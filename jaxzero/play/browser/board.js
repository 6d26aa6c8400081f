// The board: SVG that is made once and then only changed, so that focus stays where it is. A square is one unit.

const NS = "http://www.w3.org/2000/svg";
const INK = "#1f2328";
const BLACK_WHITE = { fills: ["#23272e", "#ffffff"], rims: ["#0d0f12", "#6e7681"], mark: "#1f62ad" };
const BLUE_ORANGE = { fills: ["#2a6fbb", "#f0902b"], rims: ["#184a82", "#b45f06"], mark: null };
export const LOOKS = {
  go: BLACK_WHITE,
  othello: { ...BLACK_WHITE, mark: "#123f75" },
  connect_four: BLUE_ORANGE,
  hex: BLUE_ORANGE,
  tic_tac_toe: { fills: ["#2a6fbb", "#d9780f"], rims: ["#2a6fbb", "#d9780f"], mark: "#57606a" },
  plain: BLACK_WHITE,
  list: BLUE_ORANGE,
};
const NUMBERED = 8; // moves of the expected play that are numbered on the board
const VALUED = 12; // moves whose points are written on it, and the least part of the visits that is worth writing for
const LEAST = 0.01;

export function tag(name, attributes, ...inside) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

const circle = (x, y, r, attributes) => tag("circle", { cx: x, cy: y, r, ...attributes });
const text = (x, y, size, said, attributes) =>
  tag("text", { x, y: y + 0.35 * size, "font-size": size, "text-anchor": "middle", ...attributes }, String(said));
const percent = (share) => Math.round(100 * share);

// Ink that can be read on a colour.
export const inkOn = (fill) => (fill === "#ffffff" || fill === "#f0902b" ? INK : "#ffffff");

export function board(about, play) {
  const { kind, rows, columns } = about;
  const look = LOOKS[kind];
  const sheet = frame(about);
  const cells = [];
  const overlay = tag("g", { "pointer-events": "none" });
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
    ghost.setAttribute("fill", look.fills[seen.view.toMove]);
    ghost.setAttribute("stroke", look.rims[seen.view.toMove]);
  }

  function focus(index) {
    for (const [i, cell] of cells.entries()) cell.group.setAttribute("tabindex", i === index ? 0 : -1);
  }

  function pressed(event, index) {
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
    group.addEventListener("click", () => { focus(index); play(actionOf(index)); });
    group.addEventListener("keydown", (event) => pressed(event, index));
    group.addEventListener("pointerenter", () => hover(index));
    group.addEventListener("pointerleave", () => hover(null));
    group.addEventListener("focus", () => hover(index));
    group.addEventListener("blur", () => hover(null));
    cells.push({ group, stone, drawn: 0 });
    sheet.append(group);
  }
  sheet.append(ghost, overlay);

  function name(index) {
    const row = Math.floor(index / columns), column = index % columns;
    if (kind === "connect_four") return `column ${column + 1}, row ${rows - row}`;
    return about.columnNames.length ? about.names[index] : `row ${row + 1}, column ${column + 1}`;
  }

  // view: as the server tells it; shown: { search, line }: what is wanted on the board; yours: whether you may move.
  function draw(view, shown, yours) {
    seen = { view, yours };
    const last = view.last ? view.last[0] * columns + view.last[1] : -1;
    const says = new Map();
    for (const one of shown.search && view.search ? view.search.candidates : []) {
      const place = view.places[one.action];
      if (place) says.set(place[0] * columns + place[1], `, ${one.visits} visits, ${percent(one.share)} % of the points`);
    }
    for (const [index, cell] of cells.entries()) {
      const who = view.stones[index];
      if (cell.drawn !== who) {
        const [x, y] = centre(kind, Math.floor(index / columns), index % columns);
        cell.stone.replaceChildren(...(who ? stone(kind, x, y, who - 1) : []));
        cell.drawn = who;
      }
      const state = who ? about.sides[who - 1] : "empty";
      const can = open(index);
      set(cell.group, "aria-label", `${name(index)}: ${state}${index === last ? ", the last move" : ""}${says.get(index) ?? ""}`);
      set(cell.group, "aria-disabled", String(!can));
      set(cell.group, "class", can ? "cell open" : "cell");
    }
    hover(null);
    const [moves, numbers] = view.search ? thoughts(view, shown, kind) : [[], []];
    overlay.replaceChildren(...lastMark(view, kind), ...moves, ...hint(view, kind), ...numbers); // no ring hides a number
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

// ------------------------------------------------------------------------------------------------------ what is thought
// The moves that were searched, and the numbers of the expected play.
function thoughts(view, shown, kind) {
  const look = LOOKS[kind], { candidates, line, mover, visits } = view.search;
  const best = candidates[0], colour = look.mark ?? look.fills[mover];
  const most = Math.max(...candidates.map((one) => one.visits));
  const key = (place) => place.join();
  const numbered = new Map();
  for (const [ply, step] of (shown.line ? line.slice(0, NUMBERED) : []).entries())
    if (step.place && !numbered.has(key(step.place))) numbered.set(key(step.place), { ply, ...step });
  const parts = [], numbers = [], written = new Set();
  for (const [order, one] of (shown.search ? candidates : []).entries()) {
    const place = view.places[one.action];
    if (!place) continue;
    const worth = one === best || (order < VALUED && one.visits >= LEAST * visits);
    if (numbered.has(key(place)) && !worth) continue;
    const [x, y] = centre(kind, ...place), part = one.visits / most;
    parts.push(circle(x, y, Math.max(0.07, 0.44 * Math.sqrt(part)), { fill: colour, "fill-opacity": 0.22 + 0.33 * part }));
    if (one === best) parts.push(circle(x, y, 0.46, { fill: "none", stroke: INK, "stroke-width": 0.05 }));
    if (worth) {
      written.add(key(place));
      parts.push(text(x, y, 0.36, percent(one.share), { class: "halo", "font-weight": one === best ? 700 : 500, fill: INK }));
    }
  }
  for (const [where, step] of numbered) {
    const [x, y] = centre(kind, ...step.place), fill = look.fills[step.player], rim = look.rims[step.player];
    const small = written.has(where), r = small ? 0.18 : 0.36;
    const [cx, cy] = small ? [x + 0.32, y - 0.32] : [x, y];
    numbers.push(circle(cx, cy, r, { fill, stroke: rim, "stroke-width": 0.03, opacity: small ? 1 : 0.6 }));
    const ink = small || fill === "#23272e" ? inkOn(fill) : INK;
    numbers.push(text(cx, cy, small ? 0.25 : 0.42, step.ply + 1, { fill: ink, "font-weight": 600 }));
  }
  return [parts, numbers];
}

function hint(view, kind) {
  const place = view.hint === null ? null : view.places[view.hint];
  if (!place) return [];
  const [x, y] = centre(kind, ...place);
  return [circle(x, y, 0.46, { class: "hint", fill: "none", "stroke-width": 0.08, "stroke-dasharray": "0.18 0.1" })];
}

function lastMark(view, kind) {
  if (!view.last) return [];
  const [x, y] = centre(kind, ...view.last), who = view.stones[view.last[0] * columnsOf(view, kind) + view.last[1]];
  if (kind === "tic_tac_toe") return [tag("rect", { x: x - 0.44, y: y - 0.44, width: 0.88, height: 0.88, rx: 0.08, class: "last" })];
  return [circle(x, y, 0.13, { fill: who ? inkOn(LOOKS[kind].fills[who - 1]) : INK })];
}

const columnsOf = (view) => view.columns;

// ---------------------------------------------------------------------------------------------------------- empty boards
function centre(kind, row, column) {
  return kind === "hex" ? [column + 0.5 * row + 0.5, 0.866 * row + 0.58] : [column + 0.5, row + 0.5];
}

function stone(kind, x, y, who) {
  const look = LOOKS[kind];
  if (kind !== "tic_tac_toe") return [circle(x, y, 0.41, { fill: look.fills[who], stroke: look.rims[who], "stroke-width": 0.05 })];
  const way = who === 0 ? `M${x - 0.26} ${y - 0.26}l.52 .52m0 -.52l-.52 .52` : `M${x - 0.28} ${y}a.28 .28 0 1 0 .56 0a.28 .28 0 1 0 -.56 0`;
  return [tag("path", { d: way, fill: "none", stroke: look.fills[who], "stroke-width": 0.13, "stroke-linecap": "round" })];
}

const hexagon = (x, y) => `M${x} ${y - 0.577}l.5 .289v.577l-.5 .289l-.5 -.289v-.577z`;

function hitArea(kind, x, y) {
  const shape = { class: "hit", fill: "transparent" };
  if (kind === "hex") return tag("path", { d: hexagon(x, y), ...shape });
  return tag("rect", { x: x - 0.5, y: y - 0.5, width: 1, height: 1, ...shape });
}

function frame(about) {
  const { kind, rows, columns, columnNames, rowNames } = about;
  const wide = kind === "hex" ? columns + 0.5 * (rows - 1) : columns;
  const high = kind === "hex" ? 0.866 * (rows - 1) + 1.155 : rows;
  const left = rowNames.length ? 0.75 : 0.1, top = rowNames.length ? 0.7 : 0.1, bottom = columnNames.length && !rowNames.length ? 0.5 : 0.1;
  const box = [-left, -top, wide + left + 0.1, high + top + bottom];
  const sheet = tag("svg", {
    viewBox: box.join(" "), role: "group", "aria-label": "Board: arrow keys move over it, Enter plays", class: `board ${kind}`,
  });
  sheet.append(...GROUNDS[kind](rows, columns));
  const label = { class: "label" }, size = Math.min(0.36, 0.042 * columns);
  for (const [column, name] of columnNames.entries()) {
    const [x, y] = rowNames.length ? centre(kind, 0, column) : [column + 0.5, rows + 0.35];
    sheet.append(rowNames.length ? text(kind === "hex" ? x - 0.3 : x, y - 0.83, size, name, label) : text(x, y - 0.03, size, name, label));
  }
  for (const [row, name] of rowNames.entries()) {
    const [x, y] = centre(kind, row, 0);
    sheet.append(text(x - 0.83, y, size, name, label));
  }
  return sheet;
}

const line = (d, stroke, width) => tag("path", { d, fill: "none", stroke, "stroke-width": width, "stroke-linecap": "round", "stroke-linejoin": "round" });
const back = (rows, columns, fill, rx) => tag("rect", { width: columns, height: rows, rx, fill });

function between(rows, columns, margin) {
  let d = "";
  for (let row = 1; row < rows; row++) d += `M${margin} ${row}h${columns - 2 * margin}`;
  for (let column = 1; column < columns; column++) d += `M${column} ${margin}v${rows - 2 * margin}`;
  return d;
}

const squares = (fill, ink, margin, width) => (rows, columns) => [back(rows, columns, fill, 0.08), line(between(rows, columns, margin), ink, width)];

function go(rows, columns) {
  let d = "";
  for (let row = 0; row < rows; row++) d += `M.5 ${row + 0.5}h${columns - 1}`;
  for (let column = 0; column < columns; column++) d += `M${column + 0.5} .5v${rows - 1}`;
  const edge = rows >= 13 ? 3 : 2, middle = (rows - 1) / 2;
  const along = rows < 7 ? [middle] : rows % 2 ? [edge, middle, rows - 1 - edge] : [edge, rows - 1 - edge];
  const stars = along.flatMap((row) => along.map((column) => [row, column]))
    .filter(([row, column]) => Number.isInteger(row) && (rows >= 15 || (row === middle) === (column === middle)));
  return [back(rows, columns, "#f2d9a2", 0.1), line(d, "#7a5a24", 0.035), ...stars.map(([row, column]) => circle(column + 0.5, row + 0.5, 0.09, { fill: "#5e4314" }))];
}

function connectFour(rows, columns) {
  const holes = [];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      holes.push(circle(column + 0.5, row + 0.5, 0.41, { fill: "#ffffff", stroke: "#a3b4cb", "stroke-width": 0.04 }));
  return [back(rows, columns, "#c3cfe0", 0.25), ...holes];
}

function hexagons(rows, columns) {
  let d = "";
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) d += hexagon(...centre("hex", row, column));
  const side = (ends) => "M" + ends.map(([row, column, dx, dy]) => { const [x, y] = centre("hex", row, column); return `${x + dx} ${y + dy}`; }).join("L");
  const across = [...Array(columns).keys()], down = [...Array(rows).keys()];
  const [one, other] = LOOKS.hex.fills;
  return [
    tag("path", { d, fill: "#f3f4f6", stroke: "#9aa4af", "stroke-width": 0.04 }),
    line(side(down.flatMap((row) => [[row, 0, -0.5, -0.29], [row, 0, -0.5, 0.29]])), other, 0.13),
    line(side(down.flatMap((row) => [[row, columns - 1, 0.5, -0.29], [row, columns - 1, 0.5, 0.29]])), other, 0.13),
    line(side(across.flatMap((column) => [[0, column, -0.5, -0.29], [0, column, 0, -0.58]])), one, 0.13),
    line(side(across.flatMap((column) => [[rows - 1, column, 0, 0.58], [rows - 1, column, 0.5, 0.29]])), one, 0.13),
  ];
}

const GROUNDS = {
  go,
  othello: squares("#8fc3a0", "#4f8562", 0, 0.035),
  connect_four: connectFour,
  hex: hexagons,
  tic_tac_toe: squares("#fbfcfe", "#8c959f", 0.08, 0.05),
  plain: squares("#eef1f4", "#9aa4af", 0, 0.035),
};
