// What is drawn over the stones: what the search thinks of the moves, the expected play, the hint and the last move.
// One language for all games: points are large figures, the number of a ply is a badge in the colour of who moves.

import { centre, circle, stone, tag, text } from "./ground.js";
import { colour } from "./words.js";

const NUMBERED = 8; // moves of the expected play that are numbered on the board
const VALUED = 12; // moves whose points are written on it, and the least part of the visits that is worth writing for
const LEAST = 0.01;
const FIGURE = 0.38, BADGE = 0.19; // the size of points, and the radius of a ply's number

// shown: { search, line }: what is wanted on the board.
export function overlay(about, view, shown) {
  const [moves, numbers] = view.search ? thoughts(about, view, shown) : [[], []];
  return [...lastMark(about, view), ...moves, ...hint(about, view), ...numbers]; // no ring hides a number
}

const figure = (about, one) => (about.shares ? Math.round(100 * one.share) : `${one.value < 0 ? "−" : ""}${Math.abs(one.value).toFixed(1)}`);

function thoughts(about, view, shown) {
  const { kind } = about, { candidates, line, mover, visits } = view.search;
  const best = candidates[0], most = Math.max(...candidates.map((one) => one.visits));
  const parts = [], numbers = [], written = new Set();
  for (const [order, one] of (shown.search ? candidates : []).entries()) {
    const place = view.places[one.action];
    if (!place) continue;
    const [x, y] = centre(kind, ...place), part = one.visits / most;
    parts.push(circle(x, y, Math.max(0.07, 0.44 * Math.sqrt(part)), { fill: `var(--mark, ${colour(mover)})`, "fill-opacity": 0.22 + 0.33 * part }));
    if (one === best) parts.push(circle(x, y, 0.46, { class: "best" }));
    if (one !== best && (order >= VALUED || one.visits < LEAST * visits)) continue;
    written.add(place.join());
    parts.push(text(x, y, FIGURE, figure(about, one), { class: "halo", "font-weight": one === best ? 700 : 500 }));
  }
  const seen = new Set();
  for (const [ply, step] of (shown.line ? line.slice(0, NUMBERED) : []).entries()) {
    if (!step.place || seen.has(step.place.join())) continue;
    seen.add(step.place.join());
    const [x, y] = centre(kind, ...step.place);
    if (!written.has(step.place.join())) numbers.push(tag("g", { opacity: 0.4 }, ...stone(kind, x, y, step.player)));
    numbers.push(...badge(x + 0.31, y - 0.31, ply + 1, step.player));
  }
  return [parts, numbers];
}

const badge = (x, y, number, player) => [
  circle(x, y, BADGE, { fill: colour(player), stroke: colour(player, "-rim"), "stroke-width": 0.03 }),
  text(x, y, 0.26, number, { fill: colour(player, "-ink"), "font-weight": 600, class: "number" }),
];

function hint(about, view) {
  const place = view.hint === null ? null : view.places[view.hint];
  if (!place) return [];
  const [x, y] = centre(about.kind, ...place);
  return [circle(x, y, 0.46, { class: "hint", fill: "none", "stroke-width": 0.08, "stroke-dasharray": "0.18 0.1" })];
}

function lastMark(about, view) {
  if (!view.last) return [];
  const [x, y] = centre(about.kind, ...view.last), who = view.stones[view.last[0] * about.columns + view.last[1]];
  if (about.kind === "tic_tac_toe") return [tag("rect", { x: x - 0.44, y: y - 0.44, width: 0.88, height: 0.88, rx: 0.08, class: "last" })];
  return [circle(x, y, 0.13, { fill: who ? colour(who - 1, "-ink") : "var(--figure)" })];
}
