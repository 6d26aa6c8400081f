"""The report page of a training run.

This module knows how such a page looks; its content is passed in (by `jaxzero/cli/training/reporting/report.py`).
"""

import html
import json
from collections.abc import Sequence
from typing import NamedTuple

from jaxzero.viz.page import Page, Picture

__all__ = ["Ply", "Record", "Section", "commands", "folded", "framed", "pictures", "report", "stepper", "table"]

MANY = 4  # columns that fit a narrow window
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2430; background: #fff;
  margin: 0 auto; max-width: 72rem; padding: 1rem; }
h1 { font-size: 1.7rem; margin: .5rem 0 0; } h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; }
p { margin: .3rem 0; max-width: 46rem; } .quiet { color: #5b6675; }
nav a { margin-right: 1rem; } a { color: #0b5cad; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0 1rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .8rem .25rem 0; text-align: right; border-bottom: 1px solid #dde3ea; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } caption { text-align: left; font-weight: 600; padding: .3rem 0; }
pre { background: #f3f5f8; padding: .7rem 1rem; overflow-x: auto; border-radius: 6px; font-size: .85rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; } .row svg { max-width: 100%; height: auto; }
.many svg { flex: 1 1 30rem; min-width: 0; max-width: 36rem; }
.game { margin: .5rem 0; } .game svg { max-width: 26rem; width: 100%; height: auto; display: block; }
.words { min-width: 16rem; flex: 1; } iframe { width: 100%; border: 1px solid #dde3ea; border-radius: 6px; }
button, select { font: inherit; padding: .2rem .7rem; margin: 0 .3rem .3rem 0; max-width: 100%; }
.words { box-sizing: border-box; max-width: 100%; white-space: pre-wrap; }
p, nav, h1 { overflow-wrap: anywhere; } summary { cursor: pointer; } .verdict { font-size: 1.15rem; font-weight: 600; }
@media (max-width: 45rem) {
  th, td { white-space: normal; padding-right: .6rem; }
  .many-columns :is(table, caption, tbody) { display: block; } .many-columns thead { display: none; }
  .many-columns tr { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); }
  .many-columns tr { border-bottom: 1px solid #dde3ea; }
  .many-columns td { text-align: left; border: 0; align-self: end; font-size: .88rem; }
  .many-columns td::before { content: attr(data-head); display: block; font-size: .75rem; color: #5b6675; }
}
"""

# A game is a list of [picture, words]; shown is one of them. Nothing is fetched.
SCRIPT = """
for (const box of document.querySelectorAll(".stepper")) {
  const games = JSON.parse(box.querySelector("script").textContent);
  const [pick, board, words, count] = ["select", ".board", ".words", "output"].map(name => box.querySelector(name));
  let ply = 0;
  const show = to => {
    const plies = games[pick.value];
    ply = Math.max(0, Math.min(to, plies.length - 1));
    board.innerHTML = plies[ply][0];
    words.textContent = plies[ply][1];
    count.textContent = `position ${ply + 1} of ${plies.length}`;
  };
  const moves = {first: () => 0, back: () => ply - 1, on: () => ply + 1, last: () => Infinity};
  for (const button of box.querySelectorAll("button")) button.onclick = () => show(moves[button.name]());
  box.onkeydown = event => {
    const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (step && event.target !== pick) { show(ply + step); event.preventDefault(); }
  };
  pick.onchange = () => show(0);
  show(0);
}
"""


class Ply(NamedTuple):
    """A position of a game.

    Attributes:
        picture: the board, with the search's results drawn on it.
        words: text about it, line by line.
    """

    picture: Picture
    words: str


class Record(NamedTuple):
    """A game to step through.

    Attributes:
        title: its name in the list of games.
        plies: its positions, the first one first.
    """

    title: str
    plies: tuple[Ply, ...]


class Section(NamedTuple):
    """A part of the page: a heading, and HTML from the functions below."""

    title: str
    body: str


def report(title: str, lead: Sequence[str], sections: Sequence[Section], verdict: str = "") -> Page:
    """Builds the page.

    Args:
        title: its heading.
        lead: the first paragraphs.
        sections: the parts that follow.
        verdict: a sentence above everything else.

    >>> page = report("A run", ["It learned < everything."], [Section("What next", commands(["make train"]))])
    >>> "It learned &lt; everything." in page.html, "http" in page.html
    (True, False)
    """
    links = " ".join(f'<a href="#part{i}">{html.escape(part.title)}</a>' for i, part in enumerate(sections))
    parts = "\n".join(
        f'<section><h2 id="part{i}">{html.escape(part.title)}</h2>\n{part.body}</section>'
        for i, part in enumerate(sections)
    )
    words = "".join(f"<p>{html.escape(text)}</p>" for text in lead)
    words = f'<p class="verdict">{html.escape(verdict)}</p>{words}' if verdict else words
    return Page(
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style></head>\n<body><h1>{html.escape(title)}</h1>{words}<nav>{links}</nav>\n{parts}\n"
        f"<script>{SCRIPT}</script></body></html>\n",
        900,
    )


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as HTML. In a window that is too narrow for its columns, each cell shows its column's name.

    >>> table("Points", ["against", "points"], [["random", "99 %"]])[:47]
    '<div class="scroll"><table><caption>Points</cap'
    """
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    cell = lambda name, said: f'<td data-head="{html.escape(name)}">{html.escape(said)}</td>'
    body = "".join(f"<tr>{''.join(map(cell, head, row))}</tr>" for row in rows)
    kind = "scroll many-columns" if len(head) > MANY else "scroll"
    return (
        f'<div class="{kind}"><table><caption>{html.escape(caption)}</caption>'
        f"<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(title: str, body: str) -> str:
    """HTML that is shown when its title is clicked.

    >>> folded("All settings", "<p>seed 0</p>")
    '<details><summary>All settings</summary><p>seed 0</p></details>'
    """
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


def pictures(*shown: Picture, note: str = "") -> str:
    """Pictures side by side, as far as there is room, with a note below."""
    said = f'<p class="quiet">{html.escape(note)}</p>' if note else ""
    return f'<div class="row many">{"".join(picture.svg for picture in shown)}</div>{said}'


def framed(page: Page, name: str) -> str:
    """Another page within this one.

    Args:
        page: the page, with its height.
        name: its description, for screen readers.
    """
    source = html.escape(page.html, quote=True)
    return f'<iframe title="{html.escape(name)}" height="{page.height}" srcdoc="{source}"></iframe>'


def commands(lines: Sequence[str]) -> str:
    """Lines to be copied."""
    return f"<pre>{html.escape(chr(10).join(lines))}</pre>"


def stepper(records: Sequence[Record]) -> str:
    """Games to step through, by buttons or by the arrow keys.

    Raises:
        ValueError: no game, or one without a position.
    """
    if not records or not all(record.plies for record in records):
        raise ValueError("stepper: give one game or more, each with its positions.")
    plies = [[[ply.picture.svg, ply.words] for ply in record.plies] for record in records]
    data = json.dumps(plies, separators=(",", ":")).replace("<", "\\u003c")  # no tag can end the script
    options = "".join(f'<option value="{i}">{html.escape(record.title)}</option>' for i, record in enumerate(records))
    names = {"first": "« first", "back": "‹ back", "on": "on ›", "last": "last »"}
    buttons = "".join(f'<button type="button" name="{name}">{text}</button>' for name, text in names.items())
    return (
        f'<div class="stepper" tabindex="0"><script type="application/json">{data}</script>'
        f'<select aria-label="game">{options}</select>{buttons}<output></output>'
        '<div class="row game"><div class="board"></div><pre class="words" aria-live="polite"></pre></div></div>'
    )
