"""Commands that set up a game: size, komi, handicap (section 6.3.2), and a position from a record (6.3.5).

Handicap stones are no moves: `undo` does not take them back. Handicap and records exist for Go only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxzero.play.gtp import handicap, sgf
from jaxzero.play.gtp.lines import action_of, integer, number
from jaxzero.play.gtp.playing import play
from jaxzero.play.notation import names, stones

if TYPE_CHECKING:
    from jaxzero.play.gtp.session import Session

__all__ = ["COMMANDS", "OF_GO"]

BLACK = 0


def _boardsize(session: Session, words: list[str]) -> str:
    size = integer(words, 0, "a size")
    if size not in session.sizes:
        raise ValueError("unacceptable size")
    session.begin(size, session.komi)
    return ""


def _komi(session: Session, words: list[str]) -> str:
    """Sets any komi: an engine must accept every number. The position stays, and so do the clocks."""
    komi = number(words, 0, "a number of points")
    moves, movers, settled, clocks = [], [], session.settled, session.clocks
    if session.started:
        moves, movers = list(session.engine.moves), list(session.engine.movers)
    session.begin(session.size, komi)
    session.clocks = clocks
    if moves:
        session.engine.go_to(moves, movers)
        session.settled = settled
    return ""


def _clear_board(session: Session, words: list[str]) -> str:
    session.begin(session.size, session.komi)
    return ""


# ----------------------------------------------------------------------------------------------------------- handicap
def _fixed_handicap(session: Session, words: list[str]) -> str:
    return _place(session, handicap.fixed(session.size, integer(words, 0, "a number of stones")))


def _place_free_handicap(session: Session, words: list[str]) -> str:
    return _place(session, handicap.free(session.size, integer(words, 0, "a number of stones")))


def _set_free_handicap(session: Session, words: list[str]) -> str:
    size = session.size
    called = names(session.engine.game)
    actions = [action_of(word, called) for word in words]
    on_board = {action for action in actions if action is not None and action < size * size}
    if len(on_board) != len(actions) or not 2 <= len(actions) < size * size:
        raise ValueError("bad vertex list")
    _put(session, [action for action in actions if action is not None])
    return ""


def _place(session: Session, points: list[handicap.Point]) -> str:
    actions = [(session.size - 1 - row) * session.size + column for column, row in points]
    _put(session, actions)
    called = names(session.engine.game)
    return " ".join(called[action] for action in actions)


def _put(session: Session, actions: list[int]) -> None:
    """Black stones on an empty board, and white to move."""
    engine = session.engine
    if np.any(stones(engine.game, engine.position(), engine.first)):
        raise ValueError("board not empty")
    for action in actions:
        engine.turn_to(BLACK)
        engine.play(action)
    session.settled = len(engine.moves)


# ------------------------------------------------------------------------------------------------------------ records
def _loadsgf(session: Session, words: list[str]) -> str:
    if not words:
        raise ValueError("syntax error: give the name of a file")
    until = integer(words, 1, "the number of a move") if len(words) > 1 else None
    try:
        with open(words[0], encoding="utf-8", errors="replace") as file:
            record = sgf.read(file.read(1_000_000))
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot load file: {error}") from error
    if record.size not in session.sizes:
        raise ValueError(f"cannot load file: a board of {record.size} is an unacceptable size")
    session.begin(record.size, session.komi if record.komi is None else record.komi)
    most = len(record.moves) if until is None else until - 1
    for ply, (colour, name) in enumerate(sgf.moves_of(record, session.engine.game, most), 1):
        try:
            play(session, [colour, name])
        except ValueError as error:
            raise ValueError(f"cannot load file: move {ply}, {name}: {error}") from error
    session.settled = len(record.setup)
    return ""


OF_GO = {
    "fixed_handicap": _fixed_handicap,
    "place_free_handicap": _place_free_handicap,
    "set_free_handicap": _set_free_handicap,
    "loadsgf": _loadsgf,
}
COMMANDS = {"boardsize": _boardsize, "komi": _komi, "clear_board": _clear_board}
