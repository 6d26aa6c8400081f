// The search tree, a page of its own in a frame. It is asked for when nothing has changed for a while.

import { byId } from "./words.js";

const CALM = 300; // milliseconds
let shown = null, timer = null;

// on: whether it is wanted; calm: whether the engine is idle.
export function showTree(view, on, calm) {
  document.body.classList.toggle("with-tree", on);
  byId("tree").hidden = !on;
  const now = `/games/${view.id}/tree?${view.version}-${view.search?.visits ?? 0}`;
  byId("tree").classList.toggle("old", shown !== now);
  clearTimeout(timer);
  if (on && calm && shown !== now) timer = setTimeout(() => load(now), CALM);
}

// The next tree in a new frame, for a new address of the old one would be a step of "back"; the old one stays until then.
function load(address) {
  const next = document.createElement("iframe"), before = [...byId("tree").querySelectorAll("iframe")];
  shown = address;
  next.title = "Search tree of this position";
  next.setAttribute("sandbox", "allow-scripts");
  next.classList.add("coming");
  next.addEventListener("load", () => {
    before.forEach((frame) => frame.remove());
    next.classList.remove("coming");
    byId("tree").querySelector("p").hidden = true; // what it says would show through a tree that is old
    byId("tree").classList.toggle("old", shown !== address);
  });
  next.src = address;
  byId("tree").append(next);
}
