"""Commands that make moves, take them back, think about them, and say how long (sections 6.3.3 to 6.3.5).

A colour may move out of turn, and after two passes: in Go that makes no pass, ko forbids nothing, and the game goes on.
In other games players take turns.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from jaxzero.play.gtp import clock
from jaxzero.play.gtp.lines import COLOURS, action_of, colour_of, integer, number
from jaxzero.play.notation import names

if TYPE_CHECKING:
    from jaxzero.play.gtp.session import Session

__all__ = ["COMMANDS", "play"]


def play(session: Session, words: list[str]) -> str:
    """The command `play`: a move of a colour, even if that colour moved last.

    Raises:
        ValueError: a syntax error, or an illegal move.
    """
    colour, engine = colour_of(words), session.engine
    action = action_of(words[1] if len(words) > 1 else "", names(engine.game))
    try:
        engine.turn_to(colour)
    except ValueError as error:
        raise ValueError(f"illegal move: {error}") from error
    if action is None or not engine.legal()[action]:
        raise ValueError("illegal move")
    engine.play(action)
    return ""


def _undo(session: Session, words: list[str]) -> str:
    if not session.started or len(session.engine.moves) <= session.settled:
        raise ValueError("cannot undo")
    session.engine.undo()
    return ""


# ----------------------------------------------------------------------------------------------------------- thinking
def _genmove(session: Session, words: list[str]) -> str:
    colour = colour_of(words)
    session.engine.turn_to(colour)
    engine = session.ready()
    began = time.monotonic()
    action = _decided(session, colour)
    if action is None:
        engine.turn_back()
        return "resign"
    engine.play(action)
    session.clocks[colour] = clock.spent(session.clocks[colour], time.monotonic() - began)
    session.meanwhile = "pondering" if session.ponders else ""
    return names(engine.game)[action]


def _reg_genmove(session: Session, words: list[str]) -> str:
    colour = colour_of(words)
    session.engine.turn_to(colour)
    engine = session.ready()
    action = _decided(session, colour)
    engine.turn_back()
    return "resign" if action is None else names(engine.game)[action]


def _decided(session: Session, colour: int) -> int | None:
    """The move to make, or None to resign."""
    from jaxzero.play.analysis import hopeless  # imports jax: a front end that only asks for the name must not wait

    limits = session.seconds, clock.share(session.clocks[colour])
    seconds = [limit for limit in limits if limit is not None]
    simulations = session.simulations if session.simulations or seconds else 1000
    action = session.engine.think(simulations, min(seconds, default=None))
    return None if hopeless(session.engine.report(1), session.resign) else action


def _analyze(session: Session, words: list[str]) -> str:
    """Leela Zero's `lz-analyze [colour] [centiseconds]`, which front ends use; not in the specification."""
    colour = colour_of(words) if words and words[0].lower() in COLOURS else session.engine.to_move()
    numbers = [word for word in words if word.isascii() and word.isdigit()]
    if session.engine.over():
        raise ValueError("the game is over")
    session.engine.turn_to(colour)
    session.ready()
    session.every = max(1, min(integer(numbers, 0, "centiseconds"), 100_000) if numbers else 100) / 100
    session.meanwhile = "analysis"
    return ""


# --------------------------------------------------------------------------------------------------------------- time
def _time_settings(session: Session, words: list[str]) -> str:
    main, byo_time, byo_stones = (number(words, i, "a number of seconds or stones") for i in range(3))
    if min(main, byo_time, byo_stones) < 0 or byo_stones != int(byo_stones):
        raise ValueError("syntax error: give main time, overtime and stones: numbers from 0, the last one whole")
    session.ready()  # no clock should run while the search is compiled
    session.time = clock.started(main, byo_time, int(byo_stones))
    session.clocks = [session.time, session.time]
    return ""


def _time_left(session: Session, words: list[str]) -> str:
    colour = colour_of(words)
    left, stones = number(words, 1, "a number of seconds"), integer(words, 2, "a number of stones")
    if stones < 0:
        raise ValueError("syntax error: give a number of stones from 0")
    known = session.clocks[colour]
    session.clocks[colour] = known._replace(main=known.main or 0, left=max(left, 0.0), stones=stones)
    return ""


COMMANDS = {
    "play": play,
    "undo": _undo,
    "genmove": _genmove,
    "reg_genmove": _reg_genmove,
    "analyze": _analyze,
    "lz-analyze": _analyze,
    "time_settings": _time_settings,
    "time_left": _time_left,
}
