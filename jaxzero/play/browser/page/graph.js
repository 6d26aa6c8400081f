// The points of the first player, or their value, by ply: a line that can be clicked, with the present ply and the mistakes marked.

import { tag } from "./ground.js";
import { byId, firstOf } from "./words.js";

const EDGE = 6; // pixels around the drawing, so that no dot is cut
let drawn = "";

export function showGraph(about, view, go) {
  const box = byId("graph"), { width, height } = box.getBoundingClientRect();
  const known = view.line.map((id) => view.plies[id].first), at = view.line.indexOf(view.now);
  const now = JSON.stringify([view.line, at, known, view.line.map((id) => view.plies[id].mark), width, height]);
  if (drawn === now || width === 0) return;
  drawn = now;
  const last = Math.max(view.line.length - 1, 1);
  const x = (ply) => EDGE + ((width - 2 * EDGE) * ply) / last, y = (share) => EDGE + (height - 2 * EDGE) * (1 - share);
  const points = known.map((share, ply) => ({ share, ply, mark: view.plies[view.line[ply]].mark })).filter(({ share }) => share !== null);
  const path = points.map(({ share, ply }, i) => `${i ? "L" : "M"}${x(ply)} ${y(share)}`).join("");
  const sheet = tag("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
    tag("path", { d: `M${EDGE} ${y(0.5)}H${width - EDGE}`, class: "middle" }),
    tag("path", { d: `M${x(at)} 0V${height}`, class: "present" }),
    ...(points.length > 1 ? [tag("path", { d: `${path}L${x(points.at(-1).ply)} ${y(0)}L${x(points[0].ply)} ${y(0)}Z`, class: "area" })] : []),
    tag("path", { d: path, class: "points" }),
    ...points.map(({ share, ply, mark }) => tag("circle", { cx: x(ply), cy: y(share), r: mark ? 4.5 : 2, class: mark ?? "dot" })),
  );
  sheet.addEventListener("click", (event) => {
    const ply = Math.round(((event.clientX - sheet.getBoundingClientRect().left - EDGE) / (width - 2 * EDGE)) * last);
    go(view.line[Math.min(Math.max(ply, 0), view.line.length - 1)]);
  });
  box.replaceChildren(sheet);
  const here = known[at] === null ? "not known" : firstOf(about, known[at]);
  box.setAttribute("aria-label", `${about.shares ? "Points of" : "Value for"} ${about.sides[0]} by move. Here, after move ${at} of ${view.line.length - 1}: ${here}.`);
}
