// The search of the position: the bar, the table of moves, and the buttons of moves that are on no square.

import { byId, colour, count, expectedOf, firstOf, lastMove, named, percent, visits, visitsOf, worth, write } from "./words.js";

export function showBar(about, view) {
  byId("bar").hidden = about.sides.length !== 2; // of more players only the one to move is told about
  if (byId("bar").hidden) return;
  const known = view.over ? view.result : (view.search ?? view.said?.search)?.first;
  const share = known ?? 0.5;
  for (const [player, part] of [["first", share], ["second", 1 - share]].entries()) {
    const [name, mine] = part, element = byId(`bar-${name}`);
    element.style.flexGrow = Math.max(mine, 0.001);
    element.style.background = colour(player);
    element.style.color = colour(player, "-ink");
    element.textContent = mine >= 0.25 ? `${about.sides[player]} ${known === undefined ? "" : firstOf(about, mine)}` : "";
  }
  const what = about.shares ? "Points expected" : "Value";
  const said = known === undefined ? "Nothing has been searched yet" : `${what}: ${about.sides[0]} ${firstOf(about, share)}, ${about.sides[1]} ${firstOf(about, 1 - share)}`;
  byId("bar").classList.toggle("unknown", known === undefined);
  byId("bar").setAttribute("aria-label", said);
  byId("bar").title = said;
}

export function showBeside(about, view, yours, shown) {
  const buttons = byId("beside").children;
  for (const [i, action] of about.beside.entries()) {
    const found = view.search?.candidates.find((one) => one.action === action);
    const hinted = view.hint === action ? " (hint)" : "";
    buttons[i].textContent = about.names[action] + (found && shown ? ` · ${worth(about, found)}, ${visits(found.visits)}` : "") + hinted;
    buttons[i].disabled = !yours || !view.legal.includes(action);
    buttons[i].hidden = about.kind === "list" && !view.legal.includes(action); // there may be hundreds
  }
}

export function showSearch(about, view, shown) {
  const { search } = view, has = shown && search !== null;
  write("now", search === null
    ? view.over ? "The game is over." : "This position has not been searched yet."
    : `${about.sides[search.mover]} to move: ${expectedOf(about, search)}, ${visitsOf(search)}.`);
  write("line", search === null ? "" : `Expected play: ${named(search.line)}`);
  byId("candidates").hidden = byId("legend").hidden = !has;
  const priors = has && search.candidates.some((one) => one.prior > 0);
  byId("prior").hidden = !priors;
  const rows = (has ? search.candidates : []).map((one) => {
    const row = document.createElement("tr");
    const values = [about.names[one.action], count(one.visits), worth(about, one), ...(priors ? [percent(one.prior)] : [])];
    for (const value of values) row.insertCell().textContent = value;
    row.cells[2].className = "large";
    return row;
  });
  byId("candidates").tBodies[0].replaceChildren(...rows);
  write("why", has ? why(about, search.candidates) : "");
  write("said", lastMove(about, view));
}

// Why the first of the moves is recommended, where another one's points, or its value, are higher.
function why(about, [best, ...others]) {
  const shown = (one) => Math.round(100 * (about.shares ? one.share : one.value));
  const higher = others.find((one) => shown(one) > shown(best));
  if (higher === undefined || others.some((one) => one.visits > best.visits)) return "";
  const rests = about.shares ? ["points", "rest"] : ["value", "rests"];
  return `The most visited move is recommended: the ${rests[0]} of ${about.names[higher.action]} ${rests[1]} on ${visits(higher.visits)} only.`;
}
