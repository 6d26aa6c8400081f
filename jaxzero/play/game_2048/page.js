// Playing 2048: asks the server on this machine, shows what it answers. The game's name is in the address behind #, so
// every tab has a game of its own and keeps it when it is loaded again.

import { board, swipes } from "./tiles.js";

const byId = (id) => document.getElementById(id);
const NAMES = ["left", "up", "right", "down"];
const KEYS = { ArrowLeft: 0, ArrowUp: 1, ArrowRight: 2, ArrowDown: 3, a: 0, w: 1, d: 2, s: 3 };
const RATES = [0.5, 1, 2, 4, 8, 16, Infinity]; // moves per second
const SLIDE = 110; // milliseconds
const PATIENCE = 30_000; // milliseconds that an answer may take
const LONG = 400; // milliseconds until it is said that there is no answer yet

let view = null, hint = null, tiles = null, busy = false, lost = false, run = 0, watching = false, coming = null, last = "";

// ------------------------------------------------------------------------------------------------------------- the server
async function ask(method, path, body) {
  const options = method === "GET" ? {} : { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
    return { status: answer.status, said: await answer.json() };
  } catch {
    return { status: 0, said: { error: "The program does not answer. Start it again, and load this page." } };
  }
}

function take({ status, said }) {
  const good = status === 200 || status === 201;
  lost = status === 0 || status === 404;
  tell(good ? "" : said.error);
  return good;
}

// Requests during another request are dropped: they would be meant for another position.
async function change(path, body) {
  if (busy) return false;
  busy = true;
  const late = setTimeout(() => write("status", "Waiting for the program."), LONG);
  const answer = await ask("POST", path, body);
  clearTimeout(late);
  busy = false;
  const good = take(answer), before = view;
  if (good) {
    view = answer.said;
    if (location.hash.slice(1) !== view.id) history.replaceState(null, "", `#${view.id}`);
  } else if (!lost) await refresh(); // it was refused: show what is, and why not
  if (good) last = reached(before);
  show(good ? before : null);
  return good;
}

const command = (name, more = {}) => (view === null ? Promise.resolve(false) : change(`/games/${view.id}/${name}`, { version: view.version, ...more }));

const begin = () => change("/games", {});

async function refresh() {
  const message = byId("message").textContent, id = encodeURIComponent(location.hash.slice(1));
  const answer = await ask("GET", `/games/${id}`);
  if (!take(answer)) return;
  view = answer.said;
  tell(message);
}

// The hint for this position; false after an error, which is shown. Several callers wait for the same answer.
async function knowHint() {
  while (view !== null && view.legal.length && hint?.version !== view.version) {
    coming ??= ask("GET", `/games/${view.id}/hint`).finally(() => { coming = null; });
    const answer = await coming;
    if (answer.status === 409) return false; // the game was over before
    if (answer.status !== 200) return take(answer);
    hint = answer.said;
    if (hint.version > view.version) return false; // another tab has gone on
  }
  return view !== null && view.legal.length > 0;
}

// --------------------------------------------------------------------------------------------------------------- showing
function tell(message) {
  byId("message").textContent = message;
  byId("message").hidden = !message;
}

function write(id, said) {
  if (byId(id).textContent !== said) byId(id).textContent = said;
}

const count = (number) => Math.round(number).toLocaleString("en");
const wanted = () => byId("hint").getAttribute("aria-pressed") === "true";
const delay = () => 1000 / RATES[byId("speed").value];

// A tile that is worth a word, from 2048 on.
function reached(before) {
  const more = before !== null && view.moves === before.moves + 1 && view.largest > before.largest && view.largest >= 2048;
  return more ? `You have made ${count(view.largest)}! Go on as long as you can.` : "";
}

function show(before = null) {
  if (view !== null) {
    const moved = before !== null && before.id === view.id && view.version === before.version + 1 && view.moves === before.moves + 1;
    if (moved) tiles.slide(before.cells, view.action, view.cells, Math.min(SLIDE, watching ? delay() / 2 : SLIDE));
    else tiles.rest(view.cells);
    for (const id of ["score", "largest", "moves"]) write(id, count(view[id]));
    write("result", view.result);
    byId("over").hidden = view.result === "";
    write("status", status());
  }
  controls();
  showHint();
  if (view !== null && !lost && wanted()) knowHint().then(showHint);
}

function status() {
  if (lost) return "This game cannot go on.";
  if (view.result) return "No move is left. Undo, or begin a new game.";
  if (watching) return "It plays by itself; make a move to take over.";
  return last || "Arrow keys, W A S D, a swipe, or these buttons.";
}

function controls() {
  const usable = view !== null && !lost;
  byId("undo").disabled = !usable || !view.canUndo || watching;
  byId("watch").disabled = !usable || !view.legal.length;
  byId("watch").textContent = watching ? "Pause" : "Watch";
  byId("watch").setAttribute("aria-pressed", String(watching));
  byId("hint").disabled = !usable;
  byId("new").disabled = watching;
  for (const [action, name] of NAMES.entries()) byId(name).disabled = !usable || !view.legal.includes(action);
}

// The hint for the position; until it is known, the previous one, which fades if it takes long.
function showHint() {
  const on = wanted() && view !== null && view.legal.length > 0;
  const old = on && hint?.version !== view.version;
  byId("pad").classList.toggle("old", old);
  if (old && hint !== null) return;
  for (const [action, name] of NAMES.entries()) {
    const points = on && !old ? hint.values[action] : null, best = points !== null && action === hint.best;
    const [, value, beside] = byId(name).children;
    value.textContent = points === null ? "" : count(points);
    beside.textContent = points === null ? "" : best ? "best" : behind(points);
    byId(name).classList.toggle("best", best);
    byId(name).setAttribute("aria-label", name + (points === null ? "" : `: ${count(points)} points expected${best ? ", the best move" : ""}`));
  }
  write("why", on && !old ? hint.why || "Points still expected, by move." : "");
}

function behind(points) {
  const less = Math.round(hint.values[hint.best]) - Math.round(points);
  return less === 0 ? "as good" : (less > 0 ? "−" : "+") + count(Math.abs(less));
}

// --------------------------------------------------------------------------------------------------------------- playing
function play(action) {
  if (view === null || lost) return;
  pause();
  if (busy) return;
  if (view.legal.includes(action)) command("move", { action });
  else if (view.legal.length) {
    last = `${NAMES[action][0].toUpperCase()}${NAMES[action].slice(1)} changes nothing: no tile moves or merges that way.`;
    write("status", last);
  }
}

function pause() {
  run++;
  if (!watching) return;
  watching = false;
  show();
}

async function watch() {
  const mine = ++run;
  watching = true;
  last = "";
  show();
  while (mine === run && view.legal.length && !lost) {
    const began = performance.now();
    if (!(await knowHint()) || mine !== run) break;
    if (!(await command("move", { action: hint.best }))) break;
    await new Promise((ready) => setTimeout(ready, Math.max(0, delay() - (performance.now() - began))));
  }
  if (mine === run) pause();
}

// ------------------------------------------------------------------------------------------------------------- beginning
function stored(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(`jaxzero-2048-${name}`, value);
    return localStorage.getItem(`jaxzero-2048-${name}`);
  } catch {
    return null; // then it is forgotten
  }
}

function pressed(event) {
  const action = KEYS[event.key] ?? KEYS[event.key.toLowerCase()];
  if (action === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target === byId("speed") && event.key.startsWith("Arrow")) return; // it is the slider that is meant
  event.preventDefault();
  play(action);
}

function showRate() {
  const rate = RATES[byId("speed").value];
  write("rate", rate === Infinity ? "as fast as possible" : `${rate} a second`);
}

function listen() {
  addEventListener("keydown", pressed);
  swipes(byId("table"), play);
  for (const [action, name] of NAMES.entries()) byId(name).addEventListener("click", () => play(action));
  byId("undo").addEventListener("click", () => { last = ""; command("undo"); });
  byId("new").addEventListener("click", () => { last = ""; lost || view === null ? begin() : command("new"); });
  byId("watch").addEventListener("click", () => (watching ? pause() : watch()));
  byId("hint").setAttribute("aria-pressed", stored("hint") ?? "false");
  byId("hint").addEventListener("click", () => {
    byId("hint").setAttribute("aria-pressed", stored("hint", String(!wanted())) ?? String(!wanted()));
    show();
  });
  byId("speed").value = stored("speed") ?? 2;
  byId("speed").addEventListener("input", () => { stored("speed", byId("speed").value); showRate(); });
  byId("speed").addEventListener("pointerup", () => byId("speed").blur()); // arrow keys are moves again
  addEventListener("hashchange", () => location.reload());
  document.addEventListener("visibilitychange", async () => {
    if (document.hidden || busy || lost || view === null || watching) return;
    await refresh();
    show();
  });
}

async function start() {
  tiles = board(byId("board"));
  listen();
  showRate();
  show();
  byId("main").hidden = false;
  const answer = await ask("GET", "/about");
  if (!take(answer)) return show();
  write("about", answer.said.about);
  if (location.hash.length > 1) await refresh();
  else await begin();
  show();
}

start();
