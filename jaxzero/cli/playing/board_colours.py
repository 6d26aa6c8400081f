"""The stones of a board in letters, in colour where the terminal has colours."""

import itertools
import os
import re
import sys
from collections.abc import Iterator

from jaxzero.play.browser import board_json
from jaxzero.play.browser.winning_line import winning_stones
from jaxzero.play.engine import Engine
from jaxzero.play.notation import stones

__all__ = ["painted"]

COLOURS, REVERSE, PLAIN = {"X": "\033[1;34m", "O": "\033[1;33m", ".": ""}, "\033[7m", "\033[0m"


def painted(thinker: Engine, lines: list[str]) -> list[str]:
    """The lines of `notation.drawn` with coloured stones, the winning ones in reverse; unchanged without colours.

    Args:
        thinker: the engine whose position was drawn.
        lines: the drawing. Names of columns are in a line of their own, names of rows contain no X and no O.
    """
    if not _in_colour():
        return lines
    board, kind = stones(thinker.game, thinker.position(), thinker.first), board_json.kind(thinker.game)
    won = set(winning_stones(kind, board)) if thinker.over() else set()
    top = 1 if len(lines) > len(board) and kind != "connect_four" else 0  # below the names of the columns
    rows = [_row(line, {column for r, column in won if r == row}) for row, line in enumerate(lines[top:][: len(board)])]
    return [*lines[:top], *rows, *lines[top + len(board) :]]


def _in_colour() -> bool:
    """Whether a terminal with colours shows what is printed, and NO_COLOR does not say that nobody wants them."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _row(line: str, won: set[int]) -> str:
    columns: Iterator[int] = itertools.count()

    def paint(found: re.Match) -> str:
        colour, reverse = COLOURS[found[0]], REVERSE if next(columns) in won else ""
        return f"{colour}{reverse}{found[0]}{PLAIN}" if colour else found[0]

    return re.sub("[.XO]", paint, line)
