// Playing: asks the server on this machine, shows what it answers. The game's name is in the address behind #, so every
// tab has a game of its own and keeps it when it is loaded again.

import { board, picture } from "./board.js";
import { showGraph } from "./graph.js";
import { showMoves, target } from "./moves.js";
import { showBar, showBeside, showSearch } from "./search.js";
import { ask } from "./server.js";
import { showTree } from "./tree.js";
import { MARKS, byId, count, lossOf, status, tell, watching, write } from "./words.js";

const COMMANDS = ["hint", "undo", "swap", "new", "adopt", "review"];
const SWITCHES = ["search", "line", "tree"];
const STEPS = { first: "Home", previous: "ArrowLeft", next: "ArrowRight", last: "End" }; // and their keys
const LEVELS = { Beginner: 10, Casual: 50, Club: 200, Strong: 800, Deep: 5000 }; // simulations per move
const QUICK = 40, SLOW = 200; // milliseconds between two questions while there is thinking
const TRIES = 3; // of a step, while the game goes on under it

let about = null, view = null, drawn = null, timer = null, wait = QUICK, busy = null, lost = false, limits = Promise.resolve();

// ------------------------------------------------------------------------------------------------------------- the server
function take({ status, said }) {
  const good = status === 200 || status === 201;
  lost = status === 0 || status === 404 || status === 410;
  tell(good ? "" : said.error);
  if (good && (view === null || view.id !== said.id || said.version >= view.version)) view = said;
  return good;
}

// One request at a time: what is asked for meanwhile was meant for what is about to change, and is dropped.
async function alone(request) {
  busy = request();
  try {
    return await busy;
  } finally {
    busy = null;
  }
}

async function change(command, fields = { version: view?.version }) {
  if (busy) return;
  if (view === null || (lost && command === "new")) return begin();
  clearTimeout(timer);
  const good = take(await alone(async () => {
    await limits;
    return ask("POST", `/games/${view.id}/${command}`, fields);
  }));
  wait = QUICK;
  if (good || lost) show();
  else await refresh(true); // it was refused: show what is, and why not
}

// A limit applies to whatever comes next: it drops no request, and later requests wait for it.
function limit(simulations) {
  limits = limits.then(async () => {
    if (take(await ask("POST", `/games/${view.id}/limit`, { simulations })) || lost) show();
    else await refresh(true);
  });
}

// Goes to another position. It is safe to ask again if the engine has moved meanwhile.
async function go(node) {
  if (busy || lost || view === null || node === undefined || node === view.now) return;
  clearTimeout(timer);
  const { id } = view;
  let answer = null;
  for (let i = 0; i < TRIES && (answer === null || answer.status === 409); i++)
    answer = await alone(async () => {
      if (i > 0) take(await ask("GET", `/games/${id}`));
      return ask("POST", `/games/${id}/go`, { version: view.version, node });
    });
  wait = QUICK;
  if (take(answer) || lost) show();
  else await refresh(true);
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

const waiting = () => view !== null && !lost && (view.thinking !== null || (view.engineMoves && view.problem === null));

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
const wanted = (name) => byId(`show-${name}`).checked;
const yours = () => view !== null && !lost && !view.over && !view.engineMoves;

function show() {
  for (const id of ["side", "bar", "switches"]) byId(id).hidden = view === null;
  if (view === null) write("status", "There is no game here.");
  else {
    drawn.draw(view, { search: wanted("search"), line: wanted("line") }, yours());
    document.title = `${about.title} · jaxzero`;
    write("status", status(about, view, lost));
    showBar(about, view);
    showBeside(about, view, yours(), wanted("search"));
    showSearch(about, view, wanted("search"));
    showMoves(view, go);
    showTree(view, about.trees && wanted("tree"), !waiting() && !lost);
    showSettings();
    if (!byId("graph").hidden) showGraph(about, view, go);
  }
  showButtons();
  again();
}

function showSettings() {
  if (document.activeElement !== byId("simulations")) byId("simulations").value = view.simulations ?? "";
  byId("level").value = String(Object.values(LEVELS).find((simulations) => simulations === view.simulations) ?? "");
  byId("who").value = String(view.engineSides.reduce((mask, side) => mask + 2 ** side, 0));
  byId("pause").hidden = !watching(about, view);
  write("pause", view.paused ? "Go on" : "Pause");
  write("enough", view.thinking === null || view.thinking.kind === "move" ? "Move now" : "Enough");
}

function showButtons() {
  const away = view !== null && view.now !== view.game;
  const usable = {
    hint: yours(), undo: view?.canUndo, swap: view && !watching(about, view) && view.engineSides.length > 0, new: true,
    adopt: true, review: view && !view.engineMoves && view.line.length > 1 && view.thinking?.kind !== "review",
  };
  for (const command of COMMANDS) byId(command).disabled = command !== "new" && (lost || !usable[command]);
  byId("enough").disabled = lost || !view?.thinking;
  byId("pause").disabled = lost;
  byId("back").disabled = lost;
  if (!away && ["back", "adopt"].includes(document.activeElement.id)) byId("review").focus();
  for (const id of ["back", "adopt"]) byId(id).hidden = !away;
  for (const step of Object.keys(STEPS)) byId(step).disabled = lost || view === null || target(view, step) === undefined;
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
  if (yours() && view.legal.includes(action)) change("play", { version: view.version, action });
}

// Keys that work everywhere except where one types or selects something; on the board, arrows move over the squares.
function pressed(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=checkbox]), select")) return;
  const step = Object.keys(STEPS).find((name) => STEPS[name] === event.key);
  if (view !== null && step !== undefined) {
    event.preventDefault();
    go(target(view, step));
  } else if (about.kind === "connect_four" && /^[1-9]$/.test(event.key)) play(Number(event.key) - 1);
}

function fillChoices() {
  const all = 2 ** about.sides.length - 1;
  const choices = about.sides.map((side, i) => [`You are ${side}`, all - 2 ** i]);
  choices.push(["Analysis: you play all", 0], ["Watch: engine plays all", all]);
  byId("who").append(...choices.map(([said, mask]) => new Option(said, mask)));
  const levels = Object.entries(LEVELS).map(([name, simulations]) => [`${name} (${count(simulations)})`, simulations]);
  byId("level").append(...[...levels, ["Custom", ""]].map(([said, simulations]) => new Option(said, simulations)));
}

function explain() {
  const paid = about.shares ? "points expected in %, a draw being half a point" : "value: expected return of the player who moves";
  byId("points").title = about.shares ? "Points expected for the player to move, a draw being half a point" : "Expected return of the player who moves";
  byId("points").textContent = about.shares ? "Points" : "Value";
  if (about.kind === "list") byId("legend-title").textContent = "What the figures mean";
  byId("legend-text").textContent = about.kind === "list" ? `${about.shares ? "Points" : "Value"}: ${paid}.`
    : `The larger the disc, the more visits; large figures are the ${paid}; a ring is the best move; small numbers are the expected play.`;
  const classes = about.classes.map(([name, least]) => `${MARKS[name]} ${name} from ${lossOf(about, least)}`);
  byId("bounds").textContent = `Below the best move${about.shares ? ", of 100" : ""}: ${classes.join(", ")}.`;
}

function listen() {
  for (const command of COMMANDS) byId(command).addEventListener("click", () => change(command));
  for (const step of Object.keys(STEPS)) byId(step).addEventListener("click", () => go(target(view, step)));
  byId("back").addEventListener("click", () => go(view.game));
  byId("enough").addEventListener("click", () => change("enough", {}));
  byId("pause").addEventListener("click", () => change(view.paused ? "resume" : "pause"));
  byId("who").addEventListener("change", (event) => change("players", { version: view.version, engine: Number(event.target.value) }));
  byId("limit").addEventListener("submit", (event) => event.preventDefault());
  byId("simulations").addEventListener("change", (event) => {
    const given = event.target.value.trim();
    limit(given === "" ? null : Number(given));
  });
  byId("level").addEventListener("change", (event) => {
    if (!event.target.value) return byId("simulations").focus();
    byId("simulations").value = event.target.value;
    limit(Number(event.target.value));
  });
  addEventListener("keydown", pressed);
  addEventListener("hashchange", () => location.reload());
  new ResizeObserver(() => { if (view !== null) showGraph(about, view, go); }).observe(byId("graph"));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !busy && !lost) refresh(true); });
}

async function start() {
  const { status, said } = await ask("GET", "/about");
  if (status !== 200) return tell(said.error);
  about = said;
  byId("title").textContent = about.title;
  byId("about").textContent = about.about;
  byId("about").title = about.about;
  byId("tree-switch").hidden = !about.trees;
  byId("simulations").max = about.most;
  byId("range").textContent = `from 1 to ${count(about.most)}`;
  byId("graph").hidden = about.sides.length !== 2;
  document.body.classList.add(`look-${about.kind}`);
  drawn = about.kind === "list" ? picture(about) : board(about, play);
  byId("board").append(drawn.element);
  for (const action of about.beside) {
    const button = document.createElement("button");
    button.type = "button";
    button.addEventListener("click", () => play(action));
    byId("beside").append(button);
  }
  fillChoices();
  explain();
  SWITCHES.forEach(remember);
  listen();
  byId("main").hidden = false;
  await (location.hash.length > 1 ? refresh() : begin());
  if (view?.seconds) byId("seconds").textContent = `(empty: no limit), at most ${view.seconds} s`;
}

start();
