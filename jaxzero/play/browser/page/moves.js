// The moves: the game, variations in brackets where they part from it, and steps from one position to the next.

import { MARKS, byId, colour } from "./words.js";

let drawn = "", buttons = new Map();

// The moves in the order of the list: after a move come its alternatives, each to its end, then the answer to it.
function listed({ plies, game }) {
  const children = plies.map(() => []), onGame = new Set(), found = [];
  plies.forEach((ply, id) => { if (ply.parent >= 0) children[ply.parent].push(id); });
  for (let at = game; at >= 0; at = plies[at].parent) onGame.add(at);
  const follow = (from, number, depth) => {
    for (let at = from; children[at].length; number++) {
      const main = children[at].find((id) => onGame.has(id)) ?? children[at][0];
      found.push({ id: main, number, depth, opens: 0, closes: 0 });
      for (const other of children[at].filter((id) => id !== main)) {
        found.push({ id: other, number, depth: depth + 1, opens: 1, closes: 0 });
        follow(other, number + 1, depth + 1);
        found.at(-1).closes += 1;
      }
      at = main;
    }
  };
  follow(0, 1, 0);
  return found;
}

function item(view, { id, number, depth, opens, closes }, go) {
  const item = document.createElement("li"), button = document.createElement("button"), badge = document.createElement("span");
  const { name, mover } = view.plies[id];
  badge.className = "badge";
  badge.textContent = number;
  badge.style.background = colour(mover);
  badge.style.color = colour(mover, "-ink");
  button.type = "button";
  button.className = "ply";
  button.append(badge, ` ${name}`, document.createElement("b"));
  button.addEventListener("click", () => go(id));
  item.className = depth ? "variation" : "";
  item.append("(".repeat(opens), button, ")".repeat(closes));
  buttons.set(id, { button, said: `${number}. ${name}${depth ? ", in a variation" : ""}` });
  return item;
}

export function showMoves(view, go) {
  const list = byId("moves"), structure = JSON.stringify([view.id, view.game, view.plies.map((ply) => [ply.parent, ply.name])]);
  if (drawn !== structure) {
    const focused = [...buttons].find(([, { button }]) => button === document.activeElement)?.[0];
    drawn = structure;
    buttons = new Map();
    list.replaceChildren(...listed(view).map((one) => item(view, one, go)));
    buttons.get(focused)?.button.focus({ preventScroll: true });
  }
  const first = buttons.keys().next().value;
  for (const [id, { button, said }] of buttons) {
    const { mark } = view.plies[id], here = id === view.now;
    button.tabIndex = here || (view.now === 0 && id === first) ? 0 : -1; // one stop on the way of the tabulator
    button.querySelector("b").textContent = mark ? MARKS[mark] : "";
    button.querySelector("b").className = mark ?? "";
    button.setAttribute("aria-label", said + (mark ? `, ${mark}` : ""));
    if (here) button.setAttribute("aria-current", "step");
    else button.removeAttribute("aria-current");
  }
  const at = buttons.get(view.now)?.button;
  if (list.contains(document.activeElement)) at?.focus({ preventScroll: true });
  if (at === undefined) list.scrollTop = 0;
  else if (at.offsetTop < list.scrollTop || at.offsetTop + at.offsetHeight > list.scrollTop + list.clientHeight)
    list.scrollTop = at.offsetTop - (list.clientHeight - at.offsetHeight) / 2; // not scrollIntoView: the page stays
}

// Where a step leads: "first", "previous", "next" or "last" of the line; undefined: nowhere.
export function target({ line, now }, step) {
  const at = line.indexOf(now);
  return { first: at > 0 ? line[0] : undefined, previous: line[at - 1], next: line[at + 1], last: at < line.length - 1 ? line.at(-1) : undefined }[step];
}
