// Empty boards, and where things are on them: SVG in which a square is one unit. Colours are named in board.css.

import { colour } from "./words.js";

const NS = "http://www.w3.org/2000/svg";

export function tag(name, attributes, ...inside) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export const circle = (x, y, r, attributes) => tag("circle", { cx: x, cy: y, r, ...attributes });
export const text = (x, y, size, said, attributes) =>
  tag("text", { x, y: y + 0.35 * size, "font-size": size, "text-anchor": "middle", ...attributes }, String(said));

export function centre(kind, row, column) {
  return kind === "hex" ? [column + 0.5 * row + 0.5, 0.866 * row + 0.58] : [column + 0.5, row + 0.5];
}

export function stone(kind, x, y, who) {
  if (kind !== "tic_tac_toe") return [circle(x, y, 0.41, { fill: colour(who), stroke: colour(who, "-rim"), "stroke-width": 0.05, class: "stone" })];
  const way = who === 0 ? `M${x - 0.26} ${y - 0.26}l.52 .52m0 -.52l-.52 .52` : `M${x - 0.28} ${y}a.28 .28 0 1 0 .56 0a.28 .28 0 1 0 -.56 0`;
  return [tag("path", { d: way, fill: "none", stroke: colour(who), "stroke-width": 0.13, "stroke-linecap": "round", class: "stone" })];
}

const hexagon = (x, y) => `M${x} ${y - 0.577}l.5 .289v.577l-.5 .289l-.5 -.289v-.577z`;

export function hitArea(kind, x, y) {
  const shape = { class: "hit", fill: "transparent" };
  if (kind === "hex") return tag("path", { d: hexagon(x, y), ...shape });
  return tag("rect", { x: x - 0.5, y: y - 0.5, width: 1, height: 1, ...shape });
}

export function frame(about) {
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

const squares = (margin, width) => (rows, columns) => [back(rows, columns, "var(--board)", 0.08), line(between(rows, columns, margin), "var(--lines)", width)];

function go(rows, columns) {
  let d = "";
  for (let row = 0; row < rows; row++) d += `M.5 ${row + 0.5}h${columns - 1}`;
  for (let column = 0; column < columns; column++) d += `M${column + 0.5} .5v${rows - 1}`;
  const edge = rows >= 13 ? 3 : 2, middle = (rows - 1) / 2;
  const along = rows < 7 ? [middle] : rows % 2 ? [edge, middle, rows - 1 - edge] : [edge, rows - 1 - edge];
  const stars = along.flatMap((row) => along.map((column) => [row, column]))
    .filter(([row, column]) => Number.isInteger(row) && (rows >= 15 || (row === middle) === (column === middle)));
  return [back(rows, columns, "var(--board)", 0.1), line(d, "var(--lines)", 0.035), ...stars.map(([row, column]) => circle(column + 0.5, row + 0.5, 0.09, { fill: "var(--lines)" }))];
}

function connectFour(rows, columns) {
  const holes = [];
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++)
      holes.push(circle(column + 0.5, row + 0.5, 0.41, { fill: "var(--empty)", stroke: "var(--lines)", "stroke-width": 0.04 }));
  return [back(rows, columns, "var(--board)", 0.25), ...holes];
}

function hexagons(rows, columns) {
  let d = "";
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) d += hexagon(...centre("hex", row, column));
  const side = (ends) => "M" + ends.map(([row, column, dx, dy]) => { const [x, y] = centre("hex", row, column); return `${x + dx} ${y + dy}`; }).join("L");
  const across = [...Array(columns).keys()], down = [...Array(rows).keys()];
  const [one, other] = [colour(0), colour(1)];
  return [
    tag("path", { d, fill: "var(--board)", stroke: "var(--lines)", "stroke-width": 0.04 }),
    line(side(down.flatMap((row) => [[row, 0, -0.5, -0.29], [row, 0, -0.5, 0.29]])), other, 0.13),
    line(side(down.flatMap((row) => [[row, columns - 1, 0.5, -0.29], [row, columns - 1, 0.5, 0.29]])), other, 0.13),
    line(side(across.flatMap((column) => [[0, column, -0.5, -0.29], [0, column, 0, -0.58]])), one, 0.13),
    line(side(across.flatMap((column) => [[rows - 1, column, 0, 0.58], [rows - 1, column, 0.5, 0.29]])), one, 0.13),
  ];
}

const GROUNDS = {
  go,
  othello: squares(0, 0.035),
  connect_four: connectFour,
  hex: hexagons,
  tic_tac_toe: squares(0.08, 0.05),
  plain: squares(0, 0.035),
};
