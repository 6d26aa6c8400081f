"""The games of browser tabs, each with a version, so that of two simultaneous changes one is refused."""

import collections
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, UInt32

from jaxzero.play.browser.http_messages import Refused
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048.session import Look, Session

__all__ = ["Tabs", "change", "hint", "move", "opened", "tabs", "view"]

MOST = 16  # games that are kept


class Kept(NamedTuple):
    """A game of a tab.

    Attributes:
        version: counts the changes.
        session: the game.
    """

    version: int
    session: Session


class Tabs(NamedTuple):
    """All games.

    Attributes:
        kept: the games by their names, which nobody can guess, the last one used at the end. It is mutable.
        numbers: of games, from 0.
        lock: guards both. It is never held for long.
        key: all games follow from it.
        look: rates the moves of a position.
        about: where the ratings come from, in words, for the page.
    """

    kept: collections.OrderedDict[str, Kept]
    numbers: Iterator[int]
    lock: threading.Lock
    key: UInt32[Array, "2"]
    look: Look
    about: str


def tabs(key: UInt32[Array, "2"], look: Look, about: str = "") -> Tabs:
    """A `Tabs` record without games."""
    return Tabs(collections.OrderedDict(), itertools.count(), threading.Lock(), key, look, about)


def opened(found: Tabs) -> dict[str, Any]:
    """A new game; closes the least recently used one if there are too many."""
    id = secrets.token_urlsafe(16)
    with found.lock:
        found.kept[id] = Kept(0, games.begin(np.asarray(jax.random.fold_in(found.key, next(found.numbers)))))
        while len(found.kept) > MOST:
            found.kept.popitem(last=False)
    return view(found, id)


def view(found: Tabs, id: str) -> dict[str, Any]:
    """What is to be shown of a game."""
    version, session = _kept(found, id)
    now = session.now
    return {
        "id": id,
        "version": version,
        "cells": now.cells.tolist(),
        "legal": now.legal,
        "score": now.score,
        "moves": now.moves,
        "largest": games.largest(now),
        "action": now.action,
        "canUndo": bool(session.before),
        "result": "" if now.legal else games.result(now),
    }


def move(found: Tabs, id: str, version: int, action: int) -> dict[str, Any]:
    """A move of the person, or of whoever plays for them."""
    return change(found, id, version, lambda session: games.play(session, action))


def change(found: Tabs, id: str, version: int, act: Callable[[Session], Session]) -> dict[str, Any]:
    """Makes a change that is meant for this version of the game."""
    with found.lock:
        kept = _kept_now(found, id)
        if kept.version != version:
            raise Refused(409, "The game has changed meanwhile. You now see its current position.")
        try:
            found.kept[id] = Kept(version + 1, act(kept.session))
        except ValueError as error:
            raise Refused(409, str(error)) from error
    return view(found, id)


def hint(found: Tabs, id: str) -> dict[str, Any]:
    """The values of a game's moves, and the version that they belong to; no lock is held while they are computed."""
    version, session = _kept(found, id)
    if not session.now.legal:
        raise Refused(409, "The game is over: no move would change anything.")
    said = found.look(session.now)
    values = [value if np.isfinite(value) else None for value in said.values]
    return {"version": version, "values": values, "visits": said.visits, "best": said.best, "why": games.why(said)}


def _kept(found: Tabs, id: str) -> Kept:
    with found.lock:
        return _kept_now(found, id)


def _kept_now(found: Tabs, id: str) -> Kept:
    if id not in found.kept:
        raise Refused(
            404,
            f"There is no such game: the program was restarted, or {MOST} others were used after it. Begin a new one.",
        )
    found.kept.move_to_end(id)
    return found.kept[id]
