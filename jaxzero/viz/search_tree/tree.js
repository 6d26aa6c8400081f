"use strict";
// Shows the search trees in the element "data"; jaxzero/viz/search_tree/tree_json.py says what their fields mean.

const DATA = JSON.parse(document.getElementById("data").textContent);
const FEW = 8; // children of a node that are shown before the others are asked for
const GAP = { x: 42, y: 12 };
const place = (id) => document.getElementById(id);

let its; // the game that is shown
let below, byEdge, peak; // of every node: the nodes below, the best first; the edge to it; what fills a bar below it
let open, whole; // nodes whose children are shown; those of which all are
let chosen = 0, zoom = 1, visible = [];

// ------------------------------------------------------------------------------------------------------------- numbers
const size = (x) => (x < 10 ? x.toFixed(2) : x < 1000 ? x.toFixed(1) : x.toExponential(2));
const signed = (x) => (typeof x === "string" ? x : Math.abs(x) < 0.005 ? "0.00" : (x < 0 ? "−" : "+") + size(Math.abs(x)));
const percent = (x) =>
  x === null ? "–" : typeof x === "string" ? x : x > 0 && x < 0.005 ? "<1%" : `${Math.round(100 * x)}%`;
const whole_number = (x) => x.toLocaleString("en");
const proven = (lower, upper) => lower !== undefined && lower === upper;
const total = (node) => node.edges.reduce((sum, e) => sum + e[1], node.rest ? node.rest[1] : 0);
const share = (node, edge) => (total(node) ? edge[1] / total(node) : 0);
const shares = (node, edge) => [["prior", typeof edge[3] === "number" ? edge[3] : 0], ["share", share(node, edge)]];
const longest = (node) => Math.max(1e-9, ...node.edges.flatMap((edge) => shares(node, edge).map(([, part]) => part)));

// --------------------------------------------------------------------------------------------------------- elements
function make(name, attributes = {}, ...inside) {
  const inSvg = ["svg", "g", "rect", "circle", "path", "text", "title"].includes(name);
  const element = inSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

function board(node, holder, attributes = {}) {
  holder.innerHTML = its.ground + node.board; // drawn by the function that whoever made the page gave
  for (const [key, value] of Object.entries(attributes)) holder.firstElementChild.setAttribute(key, value);
  return holder;
}

// ------------------------------------------------------------------------------------------------------------ the tree
function load(number) {
  its = DATA.games[number];
  below = its.nodes.map(() => []);
  byEdge = its.nodes.map(() => null);
  its.nodes.forEach((node) => node.edges.forEach((e) => { if (e[4] !== null) byEdge[e[4]] = e; }));
  its.nodes.forEach((node, i) => { if (i) below[node.up][node.line ? "unshift" : "push"](i); });
  peak = its.nodes.map(longest);
  open = new Set();
  whole = new Set();
  for (let i = 0, depth = 0; i !== undefined && depth < DATA.open; depth++) {
    open.add(i);
    i = below[i].find((child) => its.nodes[child].line);
  }
  chosen = 0;
  place("count").textContent =
    `${whole_number(its.nodes.length)} of ${whole_number(its.total)} nodes are drawn` +
    (its.nodes.length < its.total ? ", those with the most visits" : "") + (its.graph ? "; ↩: the same position as another" : "");
  place("line").replaceChildren(make("span", { class: "quiet" }, "Principal variation: "));
  place("line").append(its.line.length ? make("b", {}, its.line.join("  ")) : "none yet");
}

// Every node stands in the row of its first child, so the principal variation is straight; a column is filled from the
// top, so nothing overlaps, and as children of different nodes keep their order, no lines cross.
function layout() {
  const free = [], spots = [];
  function put(i, depth, row) {
    row = Math.max(row, free[depth] || 0);
    const all = open.has(i) ? below[i] : [];
    const shown = whole.has(i) || all.length <= FEW + 1 ? all : all.slice(0, FEW);
    const spot = { i, depth, more: 0 };
    spots.push(spot);
    shown.forEach((child, nth) => {
      const at = put(child, depth + 1, nth ? (free[depth + 1] || 0) : row);
      if (!nth) row = at;
    });
    if (shown.length < all.length) {
      const at = free[depth + 1];
      free[depth + 1] = at + 1;
      spots.push({ i, depth: depth + 1, row: at, more: all.length - shown.length });
    }
    spot.row = row;
    free[depth] = row + 1;
    return row;
  }
  put(0, 0, 0);
  return spots;
}

function show(focus = false) {
  const picture = its.drawn, height = picture ? 66 : 52, width = picture ? 182 : 138;
  const spots = layout(), at = new Map();
  for (const spot of spots) {
    spot.x = 14 + spot.depth * (width + GAP.x);
    spot.y = 12 + spot.row * (height + GAP.y);
    if (!spot.more) at.set(spot.i, spot);
  }
  const far = Math.max(...spots.map((s) => s.x)) + width + 40, deep = Math.max(...spots.map((s) => s.y)) + height + 14;
  const svg = make("svg", { width: far * zoom, height: deep * zoom, viewBox: `0 0 ${far} ${deep}`, role: "tree",
    "aria-label": "search tree" });
  for (const spot of spots) if (spot.more || spot.i) svg.append(edge(spot, at, width, height));
  for (const spot of spots) svg.append(spot.more ? stub(spot, height) : box(spot, width, height, picture));
  visible = spots;
  place("tree").replaceChildren(svg);
  about();
  if (focus) {
    const element = svg.querySelector(".chosen");
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function edge(spot, at, width, height) {
  const from = at.get(spot.more ? spot.i : its.nodes[spot.i].up);
  const x = from.x + width, y = from.y + height / 2, to = spot.y + height / 2, middle = x + GAP.x / 2;
  const part = spot.more ? 0 : share(its.nodes[from.i], byEdge[spot.i]);
  const line = !spot.more && its.nodes[spot.i].line;
  return make("path", { class: line ? "edge line" : "edge", "stroke-width": (1 + 5 * part).toFixed(2),
    d: `M${x} ${y}C${middle} ${y} ${middle} ${to} ${spot.x} ${to}` });
}

function box({ i, x, y, depth }, width, height, picture) {
  const node = its.nodes[i], e = byEdge[i], left = picture ? height + 2 : 10, right = width - 10;
  const kinds = ["node", node.line && "line", node.terminal && "over", node.chance && "chance", i === chosen && "chosen"];
  const group = make("g", { class: kinds.filter(Boolean).join(" "), transform: `translate(${x} ${y})`, role: "treeitem",
    "data-node": i, tabindex: i === chosen ? 0 : -1, "aria-level": depth + 1, "aria-selected": i === chosen });
  group.append(make("rect", { class: "box", width, height, rx: 7 }));
  if (its.drawn) group.append(board(node, make("g"), { x: 5, y: 5, width: height - 10, height: height - 10 }));
  const words = e ? e[0] : "root";
  const text = (kind, x, y, said, anchor = "start") => {
    const element = make("text", { class: kind, x, y, "text-anchor": anchor }, said);
    group.append(element);
  };
  const room = picture ? 9 : 10;
  text("name", left, 17, words.length > room ? words.slice(0, room - 1) + "…" : words);
  text("small", right, 17, e ? `N ${whole_number(e[1])}` : `N ${whole_number(node.visits)}`, "end");
  if (e) {
    text("small", left, 33, `Q ${signed(e[2])}` + (proven(e[5], e[6]) ? " ✓" : ""));
    text("small", right, 33, `P ${percent(e[3])}`, "end");
    const long = right - left, above = its.nodes[node.up];
    shares(above, e).forEach(([kind, part], nth) => {
      const bar = { x: left, y: height - 14 + 6 * nth, height: 4, rx: 2 };
      group.append(make("rect", { class: "ground", ...bar, width: long }));
      group.append(make("rect", { class: kind, ...bar, width: ((long * part) / peak[node.up]).toFixed(1) }));
    });
  } else {
    const value = (node.value.length > 1 ? "" : "value ") + node.value.map(signed).join(" ");
    const mark = node.bounds && proven(...node.bounds) ? " ✓" : "";
    text("small", left, 33, (value.length > 17 ? value.slice(0, 16) + "…" : value) + mark);
  }
  group.append(make("title", {}, path(i)));
  if (below[i].length) {
    group.setAttribute("aria-expanded", open.has(i));
    const turn = make("g", { class: "turn", transform: `translate(${width} ${height / 2})`, "data-turn": i });
    turn.append(make("circle", { r: 8 }), make("text", { y: 4 }, open.has(i) ? "−" : "+"));
    group.append(turn);
  } else if (node.same >= 0) {
    group.append(make("text", { class: "small", x: width + 4, y: height / 2 + 4 }, "↩"));
  }
  return group;
}

function stub({ i, x, y, more }, height) {
  const group = make("g", { class: "node", transform: `translate(${x} ${y})`, "data-more": i, tabindex: -1 });
  group.append(make("rect", { class: "box", y: height / 2 - 12, width: 104, height: 24, rx: 12 }));
  group.append(make("text", { class: "more", x: 52, y: height / 2 + 4.5, "text-anchor": "middle" }, `${more} more …`));
  return group;
}

// --------------------------------------------------------------------------------------------------------- the details
function path(i) {
  const words = [];
  for (; i > 0; i = its.nodes[i].up) words.unshift(byEdge[i][0]);
  return ["root", ...words].join(" › ");
}

function about() {
  const node = its.nodes[chosen], facts = make("dl"), aside = place("about");
  const fact = (name, ...said) => facts.append(make("dt", {}, name), make("dd", {}, ...said));
  const mover = node.mover < 0 ? "the player to move" : `${DATA.players[node.mover] ?? `player ${node.mover}`}, who moves`;
  const whose = node.value.length > 1 ? DATA.players.join(", ") || "by player" : node.chance ? "for the player before" : `for ${mover}`;
  fact("Visits", whole_number(node.visits), make("span", { class: "quiet" }, " its own evaluation included"));
  if (node.terminal) fact("Terminal", "the game is over here");
  if (node.chance) fact("Chance", "moves here; the prior is its probabilities");
  if (!node.terminal) fact("Value", node.value.map(signed).join("  "), make("span", { class: "quiet" }, ` ${whose}`));
  if (!node.terminal) fact("Model's", node.raw.map(signed).join("  "), make("span", { class: "quiet" }, " at first sight"));
  if (node.bounds && !node.terminal) {
    const [lower, upper] = node.bounds;
    fact("Proven", proven(lower, upper) ? `✓ worth ${signed(lower)}` : `between ${signed(lower)} and ${signed(upper)}`);
  }
  aside.replaceChildren(make("h2", {}, path(chosen)));
  if (its.drawn) aside.append(board(node, make("div", { class: "board" })));
  aside.append(facts);
  if (node.same >= 0) {
    const go = make("button", {}, "Go to it");
    go.onclick = () => choose(node.same);
    aside.append(make("p", {}, `The same position as ${path(node.same)}, where its edges are. `, go));
  } else if (node.edges.length) aside.append(table(node));
}

function table(node) {
  const head = make("tr"), body = make("tbody");
  for (const name of [node.chance ? "Outcome" : "Action", "N", "Q", "P", "P, N"]) head.append(make("th", {}, name));
  for (const e of node.edges) {
    const row = make("tr", e[4] === null ? {} : { class: "there", "data-node": e[4] });
    const bars = make("div", { class: "bars" });
    for (const [kind, part] of shares(node, e))
      bars.append(make("i", { class: kind, style: `width:${((100 * part) / peak[chosen]).toFixed(1)}%` }));
    const q = e[1] ? signed(e[2]) + (proven(e[5], e[6]) ? " ✓" : "") : "–";
    const name = e[4] === null ? e[0] : make("button", { type: "button" }, e[0]); // for keys; a click reaches the row
    const cells = [name, whole_number(e[1]), q, percent(e[3])].map((said) => make("td", {}, said));
    cells[0].title = e[0];
    row.append(...cells, make("td", {}, bars));
    if (e[4] !== null) row.onclick = () => choose(e[4]);
    body.append(row);
  }
  if (node.rest) {
    const [count, visits, prior] = node.rest;
    body.append(make("tr", {}, make("td", { class: "quiet" }, `${count} others`), make("td", {}, whole_number(visits)),
      make("td"), make("td", {}, percent(prior)), make("td")));
  }
  return make("table", {}, make("thead", {}, head), body);
}

// ------------------------------------------------------------------------------------------------------- what one does
function choose(i) {
  for (let up = its.nodes[i].up; up >= 0; up = its.nodes[up].up) open.add(up);
  for (let at = i; at > 0; at = its.nodes[at].up)
    if (!below[its.nodes[at].up].slice(0, FEW).includes(at)) whole.add(its.nodes[at].up);
  chosen = i;
  show(true);
}

function turn(i) {
  open.has(i) ? open.delete(i) : open.add(i);
  chosen = i;
  show(true);
}

function reveal(i) {
  whole.add(i);
  choose(below[i][FEW]);
}

function clicked(event) {
  const [mark, more, node] = ["data-turn", "data-more", "data-node"].map((name) => event.target.closest(`[${name}]`));
  if (mark) turn(+mark.dataset.turn);
  else if (more) reveal(+more.dataset.more);
  else if (node) {
    const i = +node.dataset.node, closed = below[i].length && !open.has(i);
    closed || (i === chosen && below[i].length) ? turn(i) : choose(i);
  }
}

function pressed(event) {
  const here = visible.find((spot) => !spot.more && spot.i === chosen);
  const beside = visible.filter((spot) => spot.depth === here.depth).sort((a, b) => a.row - b.row);
  const step = (by) => {
    const next = beside[beside.indexOf(here) + by];
    if (next) next.more ? reveal(next.i) : choose(next.i);
  };
  const does = {
    Enter: () => below[chosen].length && turn(chosen),
    " ": () => below[chosen].length && turn(chosen),
    ArrowRight: () => below[chosen].length && (open.has(chosen) ? choose(below[chosen][0]) : turn(chosen)),
    ArrowLeft: () => (open.has(chosen) && below[chosen].length ? turn(chosen) : chosen && choose(its.nodes[chosen].up)),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Home: () => choose(0),
    "+": () => scale(1.25),
    "-": () => scale(0.8),
  }[event.key];
  const elsewhere = event.target.closest(["Enter", " "].includes(event.key) ? "select, button" : "select");
  if (!does || elsewhere || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  does();
}

function scale(by) {
  zoom = Math.min(2.5, Math.max(0.3, zoom * by));
  show(true);
}

function controls() {
  const button = (words, does, about) => {
    const made = make("button", { type: "button", title: about }, words);
    made.onclick = does;
    return made;
  };
  const key = (kind, words) => make("span", { class: "key" }, make("i", { class: kind }), words);
  place("tools").append(
    button("Open all", () => { its.nodes.forEach((_, i) => open.add(i)); show(); }, "Show every node that is drawn"),
    button("As at first", () => { load(DATA.games.indexOf(its)); show(); }, "The principal variation only"),
    button("−", () => scale(0.8), "Smaller"), button("+", () => scale(1.25), "Larger"),
    key("prior", "prior P"), key("share", "share of the visits N"),
    make("span", { class: "key" }, "Q: mean return for the player who chooses; ✓ proven"));
  if (DATA.games.length > 1) {
    const select = make("select", { "aria-label": "game of the batch" });
    DATA.games.forEach((game, i) => select.append(make("option", { value: i }, `game ${game.game}`)));
    select.onchange = () => { load(+select.value); show(); };
    place("game").append(select);
  } else place("game").textContent = `game ${its.game}`;
}

function dragging(field) {
  let from = null;
  field.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest(".node") === null)
      from = [event.clientX + field.scrollLeft, event.clientY + field.scrollTop];
  });
  window.addEventListener("pointermove", (event) => {
    if (from === null) return;
    field.classList.add("held");
    field.scrollTo(from[0] - event.clientX, from[1] - event.clientY);
  });
  window.addEventListener("pointerup", () => { from = null; field.classList.remove("held"); });
}

load(0);
controls();
place("tree").addEventListener("click", clicked);
document.addEventListener("keydown", pressed);
dragging(place("tree"));
show();
