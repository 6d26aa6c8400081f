// Numbers, players and what is going on, in words.

export const byId = (id) => document.getElementById(id);
export const percent = (share) => `${Math.round(100 * share)} %`;
export const count = (number) => number.toLocaleString("en");
export const visits = (number) => `${count(number)} visit${number === 1 ? "" : "s"}`;
export const visitsOf = (search) => visits(search.visits) + (search.kept ? `, ${count(search.kept)} of them reused` : "");
export const named = (line) => line.map((step) => step.name).join("  ");
export const MARKS = { inaccuracy: "?!", mistake: "?", blunder: "??" };

// Shares of the points; or values, where shares would mislead: with three players, or where some wins pay more.
export const worth = (about, one) => (about.shares ? percent(one.share) : `${one.value < 0 ? "−" : "+"}${Math.abs(one.value).toFixed(2)}`);
export const expectedOf = (about, one) => (about.shares ? `${worth(about, one)} of the points expected` : `value ${worth(about, one)}`);
export const firstOf = (about, first) => worth(about, { share: first, value: 2 * first - 1 });

// What a move lost: points of 100, or as much of a value, which has twice the range.
export const lossOf = (about, points) => (about.shares ? `${Math.round(points)} points` : (points / 50).toFixed(2));

// Colours of players, ply badges and stones: the style sheets know them by these names.
const PLAYERS = ["first", "second", "third", "fourth"];
export const colour = (player, part = "") => `var(--${PLAYERS[player] ?? "other"}${part})`;

// Changes a text only if it differs, so that screen readers do not repeat it.
export function write(id, said) {
  if (byId(id).textContent !== said) byId(id).textContent = said;
}

export function tell(message) {
  byId("message").textContent = message;
  byId("message").hidden = !message;
}

export const watching = (about, view) => view.engineSides.length === about.sides.length;
const article = (mark) => (mark === "inaccuracy" ? "an inaccuracy" : `a ${mark}`);

export function status(about, view, lost) {
  if (lost) return "This game cannot go on.";
  if (view.problem !== null) return view.problem;
  const mover = about.sides[view.toMove], { thinking } = view;
  const hint = view.hint === null ? "" : ` Hint: ${about.names[view.hint]}.`;
  if (thinking?.compiling) return "The engine is compiling its search; this happens only once.";
  if (thinking?.ahead) return `The engine is thinking about ${thinking.ahead === 1 ? "another game" : `${thinking.ahead} other games`} first.`;
  if (thinking?.kind === "review") return `Looking for mistakes: position ${Math.min(thinking.done + 1, thinking.of)} of ${thinking.of}.`;
  if (thinking?.kind === "hint") return view.onGame && view.you !== null ? "The engine is thinking about your move." : "The engine is thinking about this position.";
  if (!view.onGame) return view.over ? `Variation: ${view.outcome}` : `Variation, ${mover} to move.${hint}`;
  if (view.now !== view.game) return `Move ${view.line.indexOf(view.now)} of ${view.line.length - 1}, ${mover} to move.${hint}`;
  if (view.over) return view.you === null ? view.outcome : `${view.outcome} You were ${about.sides[view.you]}.`;
  if (view.paused) return `Paused, ${mover} to move.${hint}`;
  if (view.engineMoves) return `The engine (${mover}) is thinking.`;
  if (view.you === null) return `Analysis, ${mover} to move.${hint}`;
  return `Your turn: you are ${about.sides[view.you]}.${hint}`;
}

// The judgement of the move that led to the position, from when it was made.
export function lastMove(about, view) {
  const { said } = view;
  if (said === null) return "None yet.";
  const found = view.plies[view.now].mark;
  const judged = found === null ? "." : `, ${article(found)}: ${lossOf(about, said.loss)} less than the best move.`;
  const search = said.search === null ? "" : ` Before it: ${expectedOf(about, said.search)}, ${visitsOf(said.search)}. Expected play: ${named(said.search.line)}`;
  return `${about.sides[said.by]} played ${said.name}${judged}${search}`;
}
