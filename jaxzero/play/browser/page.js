// Playing: asks the server on this machine, shows what it answers. The game's name is in the address behind #, so every
// tab has a game of its own and keeps it when it is loaded again.

import { LOOKS, board, inkOn, picture } from "./board.js";

const byId = (id) => document.getElementById(id);
const COMMANDS = ["hint", "undo", "swap", "new"];
const SWITCHES = ["search", "line", "tree"];
const QUICK = 40, SLOW = 200; // milliseconds between two questions while there is thinking
const CALM = 300; // milliseconds of no change before a tree is asked for
const ROWS = 10; // of the table

let about = null, view = null, drawn = null, timer = null, wait = QUICK, busy = false, lost = false, treeOf = null, treeTimer = null;

// ------------------------------------------------------------------------------------------------------------- the server
async function ask(method, path, body) {
  const options = method === "GET" ? {} : { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, { cache: "no-store", ...options });
    return { status: answer.status, said: await answer.json() };
  } catch {
    return { status: 0, said: { error: "The program does not answer. Start it again, and load this page." } };
  }
}

function take({ status, said }) {
  const good = status === 200 || status === 201;
  lost = status === 0 || status === 404 || status === 410;
  tell(good ? "" : said.error);
  if (good && (view === null || view.id !== said.id || said.version >= view.version)) view = said;
  return good;
}

async function change(command, fields = { version: view?.version }) {
  if (busy) return;
  if (view === null || (lost && command === "new")) return begin();
  busy = true;
  clearTimeout(timer);
  const good = take(await ask("POST", `/games/${view.id}/${command}`, fields));
  busy = false;
  wait = QUICK;
  if (good || lost) show();
  else await refresh(true); // it was refused: show what is, and why not
}

async function begin() {
  if (take(await ask("POST", "/games", {}))) history.replaceState(null, "", `#${view.id}`);
  wait = QUICK;
  show();
}

async function refresh(keepMessage = false) {
  const message = byId("message").textContent;
  const id = location.hash.slice(1);
  if (id) {
    const good = take(await ask("GET", `/games/${encodeURIComponent(id)}`));
    if (good && keepMessage) tell(message);
    show();
  }
}

const waiting = () => view !== null && !lost && (view.thinking !== null || (!view.over && view.toMove !== view.you && view.problem === null));

function again() {
  clearTimeout(timer);
  if (!waiting()) return;
  timer = setTimeout(async () => {
    if (busy) return;
    const answer = await ask("GET", `/games/${view.id}`);
    if (busy) return;
    wait = Math.min(SLOW, wait * 1.5);
    take(answer);
    show();
  }, wait);
}

// --------------------------------------------------------------------------------------------------------------- showing
function tell(message) {
  byId("message").textContent = message;
  byId("message").hidden = !message;
}

const wanted = (name) => byId(`show-${name}`).checked;
const percent = (share) => `${Math.round(100 * share)} %`;
const two = () => about.sides.length === 2; // among more, half of the points is more than an equal share: values are shown
const worth = (one) => (two() ? percent(one.share) : `${one.value < 0 ? "−" : "+"}${Math.abs(one.value).toFixed(2)}`);
const expectedOf = (one) => (two() ? `${worth(one)} of the points expected` : `value ${worth(one)}`);
const count = (number) => number.toLocaleString("en");
const visits = (number) => `${count(number)} visit${number === 1 ? "" : "s"}`;
const visitsOf = (search) => visits(search.visits) + (search.kept ? `, ${count(search.kept)} of them from before` : "");

function show() {
  for (const id of ["side", "bar", "switches"]) byId(id).hidden = view === null;
  if (view === null) write("status", "There is no game here.");
  else {
    const yours = !lost && !view.over && view.toMove === view.you;
    drawn.draw({ ...view, columns: about.columns }, { search: wanted("search"), line: wanted("line") }, yours);
    document.title = `${about.title} · jaxzero`;
    write("status", status());
    showBar();
    showBeside(yours);
    showSearch();
    showMoves();
    showTree();
    if (document.activeElement !== byId("simulations")) byId("simulations").value = view.simulations ?? "";
  }
  const usable = { hint: view && !view.over && view.toMove === view.you, undo: view?.canUndo, swap: view };
  for (const command of COMMANDS) byId(command).disabled = command !== "new" && (lost || !usable[command]);
  byId("enough").disabled = lost || !view?.thinking;
  again();
}

function write(id, said) {
  if (byId(id).textContent !== said) byId(id).textContent = said;
}

function status() {
  if (lost) return "This game cannot go on.";
  if (view.problem !== null) return view.problem;
  const you = about.sides[view.you], engine = about.sides[two() ? 1 - view.you : view.toMove];
  if (view.over) return `${view.outcome} You were ${you}.`;
  if (view.thinking?.compiling) return "The engine gets ready: its search is being compiled, which is done once.";
  if (view.thinking?.ahead) return `The engine is thinking about ${view.thinking.ahead === 1 ? "another game" : `${view.thinking.ahead} other games`} first.`;
  if (view.thinking?.kind === "hint") return "The engine is thinking about your move.";
  if (view.toMove !== view.you) return `The engine (${engine}) is thinking.`;
  const hint = view.hint === null ? "" : ` Hint: ${about.names[view.hint]}.`;
  return `Your turn: you are ${you}.${hint}`;
}

function showBar() {
  byId("bar").hidden = !two(); // of more players only the one to move is told about
  if (byId("bar").hidden) return;
  const known = view.over ? view.result : (view.search ?? view.said?.search)?.first;
  const share = known ?? 0.5, fills = LOOKS[about.kind].fills;
  for (const [player, part] of [["first", share], ["second", 1 - share]].entries()) {
    const [name, mine] = part, element = byId(`bar-${name}`);
    element.style.flexGrow = Math.max(mine, 0.001);
    element.style.background = fills[player];
    element.style.color = inkOn(fills[player]);
    element.textContent = mine >= 0.25 ? `${about.sides[player]} ${known === undefined ? "" : percent(mine)}` : "";
  }
  const said = known === undefined ? "Nothing was searched yet" : `Points expected: ${about.sides[0]} ${percent(share)}, ${about.sides[1]} ${percent(1 - share)}`;
  byId("bar").classList.toggle("unknown", known === undefined);
  byId("bar").setAttribute("aria-label", said);
  byId("bar").title = said;
}

function showBeside(yours) {
  const buttons = byId("beside").children;
  for (const [i, action] of about.beside.entries()) {
    const found = view.search?.candidates.find((one) => one.action === action);
    const hinted = view.hint === action ? " (hint)" : "";
    buttons[i].textContent = about.names[action] + (found && wanted("search") ? ` · ${worth(found)}, ${visits(found.visits)}` : "") + hinted;
    buttons[i].disabled = !yours || !view.legal.includes(action);
    buttons[i].hidden = about.kind === "list" && !view.legal.includes(action); // there may be hundreds
  }
}

const named = (line) => line.map((step) => step.name).join("  ");

function showSearch() {
  const search = view.search, has = wanted("search") && search !== null;
  write("now", search === null
    ? view.over ? "The game is over." : "Nothing was searched in this position yet."
    : `${about.sides[search.mover]} to move: ${expectedOf(search)}, ${visitsOf(search)}.`);
  write("line", search === null ? "" : `Expected play: ${named(search.line)}`);
  byId("candidates").hidden = byId("legend").hidden = !has;
  const priors = has && search.candidates.some((one) => one.prior > 0);
  byId("prior").hidden = !priors;
  const rows = (has ? search.candidates.slice(0, ROWS) : []).map((one) => {
    const row = document.createElement("tr");
    const values = [about.names[one.action], count(one.visits), worth(one), ...(priors ? [percent(one.prior)] : [])];
    for (const value of values) row.insertCell().textContent = value;
    return row;
  });
  byId("candidates").tBodies[0].replaceChildren(...rows);
  write("why", has ? why(search.candidates) : "");
  const said = view.said;
  write("said", said === null ? "None yet." : `${about.sides[said.by]} played ${said.name}. ` + (said.search === null ? "" :
    `${expectedOf(said.search)}, ${visitsOf(said.search)}. Expected play: ${named(said.search.line)}`));
}

// Why the first of the moves is recommended, where another one's points are higher.
function why([best, ...others]) {
  const points = (one) => Math.round(100 * one.share);
  const higher = others.find((one) => points(one) > points(best));
  if (higher === undefined || others.some((one) => one.visits > best.visits)) return "";
  return `The most visited move is recommended: the points of ${about.names[higher.action]} rest on ${visits(higher.visits)} only.`;
}

function showMoves() {
  const list = byId("moves");
  if (list.dataset.moves === view.moves.join()) return;
  list.dataset.moves = view.moves.join();
  list.replaceChildren(...view.moves.map((move, i) => {
    const item = document.createElement("li");
    item.textContent = `${i + 1}. ${move}`;
    return item;
  }));
  list.scrollTop = list.scrollHeight;
}

function showTree() {
  const on = about.trees && wanted("tree");
  document.body.classList.toggle("with-tree", on);
  byId("tree").hidden = !on;
  const now = `/games/${view.id}/tree?${view.version}-${view.search?.visits ?? 0}`;
  byId("tree").classList.toggle("old", treeOf !== now);
  clearTimeout(treeTimer);
  if (on && !waiting() && !lost && treeOf !== now) treeTimer = setTimeout(() => loadTree(now), CALM);
}

// The next tree in a new frame, for a new address of the old one would be a step of "back"; the old one stays until then.
function loadTree(address) {
  const next = document.createElement("iframe"), before = [...byId("tree").querySelectorAll("iframe")];
  treeOf = address;
  next.title = "Search tree of this position";
  next.setAttribute("sandbox", "allow-scripts");
  next.classList.add("coming");
  next.addEventListener("load", () => {
    before.forEach((frame) => frame.remove());
    next.classList.remove("coming");
    byId("tree").classList.toggle("old", treeOf !== address);
  });
  next.src = address;
  byId("tree").append(next);
}

// ------------------------------------------------------------------------------------------------------------- beginning
function remember(name) {
  const box = byId(`show-${name}`);
  try {
    box.checked = JSON.parse(localStorage.getItem(`jaxzero-${name}`)) ?? name !== "tree";
  } catch {
    box.checked = name !== "tree";
  }
  box.addEventListener("change", () => {
    try {
      localStorage.setItem(`jaxzero-${name}`, JSON.stringify(box.checked));
    } catch { /* then it is forgotten */ }
    show();
  });
}

function play(action) {
  if (lost || view === null || view.over || view.toMove !== view.you || !view.legal.includes(action)) return;
  change("play", { version: view.version, action });
}

async function start() {
  const { status, said } = await ask("GET", "/about");
  if (status !== 200) return tell(said.error);
  about = said;
  byId("title").textContent = about.title;
  byId("about").textContent = about.about;
  byId("tree-switch").hidden = !about.trees;
  byId("simulations").max = about.most;
  byId("range").textContent = `from 1 to ${count(about.most)}`;
  byId("points").title = "Points expected for the player to move, a draw being half a point";
  byId("legend").textContent = "On the board: the larger the disc, the more visits; numbers are the points expected in %, a draw being half a point; a ring is the best move; small numbered stones are the expected play.";
  drawn = about.kind === "list" ? picture(about) : board(about, play);
  if (about.kind === "list") byId("legend").textContent = two() ? "Points are those expected for who plays the move, a draw being half a point." : "Value: what is expected to be paid to who plays the move.";
  if (!two()) byId("points").textContent = "Value";
  byId("board").append(drawn.element);
  byId("table").classList.add(about.kind);
  for (const action of about.beside) {
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", () => play(action));
    byId("beside").append(button);
  }
  SWITCHES.forEach(remember);
  for (const command of COMMANDS) byId(command).addEventListener("click", () => change(command));
  byId("enough").addEventListener("click", () => change("enough", {}));
  byId("limit").addEventListener("submit", (event) => event.preventDefault());
  byId("simulations").addEventListener("change", (event) => {
    const given = event.target.value.trim();
    change("limit", { simulations: given === "" ? null : Number(given) });
  });
  addEventListener("hashchange", () => location.reload());
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !busy && !lost) refresh(true); });
  byId("main").hidden = false;
  await (location.hash.length > 1 ? refresh() : begin());
  if (view?.seconds) byId("seconds").textContent = `(empty: no limit), and at most ${view.seconds} s`;
}

start();
