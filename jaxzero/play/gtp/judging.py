"""Commands that look at the board: its score, which stones are alive (sections 4.3 and 6.3.4), a picture (6.3.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from jaxzero.play import scoring
from jaxzero.play.notation import drawn, names, stones

if TYPE_CHECKING:
    from jaxzero.play.gtp.session import Session

__all__ = ["COMMANDS", "OF_GO", "chains"]


def _final_score(session: Session, words: list[str]) -> str:
    engine = session.engine
    return scoring.final_score(engine.game, engine.position(), engine.first, session.komi)


def _final_status_list(session: Session, words: list[str]) -> str:
    """The stones of a status, a chain per line.

    All stones on the board are alive, and none is dead or in seki. These are the rules that this program plays and
    learns by: area is counted as the board stands (Tromp and Taylor), and a player who considers a stone dead has to
    capture it before passing. `final_score` counts the same way. An opponent who would agree on dead stones has to
    play on until they are captured: `gnugo --chinese-rules --capture-all-dead` does.
    """
    status = words[0].lower() if words else ""
    if status not in ("alive", "seki", "dead"):
        raise ValueError("syntax error: give alive, seki or dead")
    if status != "alive":
        return ""
    engine = session.engine
    called = names(engine.game)
    board = stones(engine.game, engine.position(), engine.first)
    return "\n".join(" ".join(called[point] for point in chain) for chain in chains(board))


def chains(board: np.ndarray) -> list[list[int]]:
    """The chains on a board, each as the numbers of its points in rising order.

    Args:
        board: int `[rows, columns]`: 0 empty, 1 black, 2 white.

    >>> chains(np.array([[1, 0, 2], [1, 2, 2]]))
    [[0, 3], [2, 4, 5]]
    """
    columns = board.shape[1]
    number = lambda region: sorted(row * columns + column for row, column in region)
    return [number(region) for region, _ in scoring.regions(board) if board[region[0]]]


def _showboard(session: Session, words: list[str]) -> str:
    engine = session.engine
    last = engine.moves[-1] if engine.moves else None
    turn = "the game is over" if engine.over() else f"{('black (X)', 'white (O)')[engine.to_move()]} to move"
    return "\n".join(["", *drawn(engine.game, engine.position(), engine.first, last), turn])


OF_GO = {"final_status_list": _final_status_list}
COMMANDS = {"final_score": _final_score, "showboard": _showboard}
