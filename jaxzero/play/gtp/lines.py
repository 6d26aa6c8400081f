"""GTP lines: parses commands, formats answers and analysis.

Errors begin with the words of the specification ("syntax error"); what follows a colon is for people.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from jaxzero.play.notation import actions_by_name

if TYPE_CHECKING:
    from jaxzero.play.analysis import Report

__all__ = [
    "COLOURS",
    "LONGEST",
    "action_of",
    "analysis_line",
    "colour_of",
    "in_one_line",
    "integer",
    "number",
    "words_of",
]

COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
LONGEST = 10_000  # characters of a line that are read
FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
VERTEX = re.compile(r"[a-hj-z]([1-9]|1[0-9]|2[0-5])|pass")  # section 2.11: up to 25 columns, without I


def words_of(line: str) -> tuple[str, list[str]]:
    r"""The id of a line, "" if it has none, and its words: without comments and control characters.

    Section 3.1, in its order: control characters go first, so that one of them within a word joins its parts.

    >>> words_of("7 play b\tC3 # why not?"), words_of("na\x01me\r"), words_of("# nothing")
    (('7', ['play', 'b', 'C3']), ('', ['name']), ('', []))
    """
    text = "".join(" " if c == "\t" else c for c in line[:LONGEST] if c == "\t" or (c >= " " and c != "\x7f"))
    words = text.split("#", 1)[0].split()
    has_id = bool(words) and words[0].isascii() and words[0].isdigit()
    return (words[0], words[1:]) if has_id else ("", words)


def integer(words: list[str], index: int, what: str) -> int:
    """A whole number among the words.

    Raises:
        ValueError: there is none; `what` says in the message what it should have been.
    """
    word = words[index] if index < len(words) else ""
    if not re.fullmatch(r"-?[0-9]{1,12}", word):
        raise ValueError(f"syntax error: give {what}, a whole number")
    return int(word)


def number(words: list[str], index: int, what: str) -> float:
    """A finite number among the words; errors are those of `integer`."""
    word = words[index] if index < len(words) else ""
    found = float(word) if FLOAT.fullmatch(word) else math.nan  # Python accepts more: 1_0, digits of other scripts
    if not math.isfinite(found):
        raise ValueError(f"syntax error: give {what}")
    return found


def colour_of(words: list[str]) -> int:
    """The colour that a command begins with: 0 is black.

    Raises:
        ValueError: there is none.
    """
    if not words or words[0].lower() not in COLOURS:
        raise ValueError("syntax error: give a colour, black or white")
    return COLOURS[words[0].lower()]


def action_of(word: str, called: tuple[str, ...]) -> int | None:
    """The action that a word names; None: it names a vertex, but none of this board.

    Args:
        word: in letters of either case.
        called: what the actions are called.

    Raises:
        ValueError: it names no vertex and no action.

    >>> action_of("b1", ("A1", "B1", "pass")), action_of("T19", ("A1", "B1", "pass"))
    (1, None)
    """
    actions = actions_by_name(called)
    word = word.lower()
    if word not in actions and not VERTEX.fullmatch(word):
        raise ValueError(f"syntax error: give a move like {called[0]}")
    return actions.get(word)


def in_one_line(error: Exception) -> str:
    r"""Why something was not done, in one line. Errors that are not the controller's begin with "failed".

    >>> in_one_line(ValueError("unacceptable size")), in_one_line(RuntimeError("Out of memory:\n 9 bytes"))
    ('unacceptable size', 'failed: Out of memory: 9 bytes')
    """
    text = " ".join(str(error).split())
    if not isinstance(error, ValueError):
        text = f"failed: {text or type(error).__name__}"
    return text[:500] or "failed"


def analysis_line(report: Report, called: tuple[str, ...]) -> str:
    """An analysis as Leela Zero writes it, which front ends read: win rates and priors in parts of ten thousand."""
    return " ".join(
        f"info move {called[c.action]} visits {c.visits} winrate {round(5000 * (c.value + 1))} "
        f"prior {round(10_000 * c.prior)} order {order} pv {' '.join(called[a] for a in c.line)}"
        for order, c in enumerate(report.candidates)
    )
