"""Measuring within a time budget: parts with many rows, the most important first, as many as fit.

Every part has a share of the time; what it does not use goes to the parts after it. Time left at the end goes to the
rows that did not fit, first those of parts that miss only a few.
"""

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.measure import duration

__all__ = ["Part", "Row", "plan", "run"]

REASON = 300  # characters of a reason that are kept


class Row(NamedTuple):
    """One thing to measure.

    Attributes:
        name: within its part.
        seconds: a guess of its time, compiling included. It is corrected by the times of earlier rows.
        measure: does it.
    """

    name: str
    seconds: float
    measure: Callable[[], dict]


class Part(NamedTuple):
    """What becomes one table.

    Attributes:
        rows: the most important first.
        share: of the time, in any unit.
        brief: one row in a few words, `str.format` given the row.
        table: all rows as text.
        summary: what is stored about all rows, besides the rows.
    """

    rows: list[Row]
    share: float
    brief: str
    table: Callable[[list[dict]], str]
    summary: Callable[[list[dict]], dict] = lambda rows: {}


def until(parts: dict[str, Part], seconds: float) -> dict[str, float]:
    """The end of each part's time, if the parts run one after another."""
    whole, ends, so_far = sum(part.share for part in parts.values()), {}, 0.0
    for name, part in parts.items():
        so_far += part.share / whole * seconds
        ends[name] = so_far
    return ends


def plan(parts: dict[str, Part], seconds: float) -> str:
    """What is going to be measured, in words."""
    whole, lines = sum(part.share for part in parts.values()), []
    for name, part in parts.items():
        first = ", ".join(row.name for row in part.rows[:3])
        more = f" and {len(part.rows) - 3} more" if len(part.rows) > 3 else ""
        minutes, needs = part.share / whole * seconds / 60, sum(row.seconds for row in part.rows) / 60
        lines.append(f"  {name:10} {minutes:4.1f} min, where all its rows take about {needs:4.1f}: {first}{more}")
    return "\n".join(lines)


def run(
    parts: dict[str, Part],
    seconds: float,
    keep: Callable[[dict], Any] = lambda found: None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict, bool]:
    """Measures what fits.

    A row that fails is recorded with the reason, and the others go on. Ctrl-C ends the run; what was measured is kept.

    Args:
        parts: by name.
        seconds: for all of them.
        keep: called with all results after each row.
        clock: seconds.

    Returns:
        For each part its `rows`, those that `failed`, and the names of those `left_out`; and whether it was
        interrupted.
    """
    found = {
        name: {"rows": [], "failed": [], "left_out": [row.name for row in part.rows]} for name, part in parts.items()
    }
    start, guesses = clock(), {name: [0.0, 0.0] for name in parts}  # guessed, taken

    def rows(name: str, end: float) -> None:
        part, mine = parts[name], found[name]
        for row in [row for row in part.rows if row.name in mine["left_out"]]:
            guessed, taken = guesses[name]
            pace = max(taken / guessed, 0.2) if guessed else 1.0
            began = clock()
            if row.seconds * pace > end - (began - start):
                continue
            print(f"{name} {row.name} ({duration(began - start)} so far, {duration(seconds - began + start)} left)")
            _one(row, mine, part.brief)
            mine["left_out"].remove(row.name)
            guesses[name] = [guessed + row.seconds, taken + clock() - began]
            keep(found)

    try:
        for name, end in until(parts, seconds).items():
            rows(name, end)
        for name in sorted(parts, key=lambda name: len(found[name]["left_out"])):
            rows(name, seconds)
    except KeyboardInterrupt:
        return found, True
    return found, False


def _one(row: Row, mine: dict, brief: str) -> None:
    try:
        found = {"row": row.name, **row.measure()}
    except Exception as error:  # out of memory, say: a row is lost, not the run
        lines = f"{type(error).__name__}: {error}".splitlines()
        reason = lines[0][:REASON]
        mine["failed"].append({"row": row.name, "reason": reason})
        print(f"        failed: {reason}", flush=True)
    else:
        mine["rows"].append(found)
        print("        " + brief.format(**found), flush=True)
    gc.collect()  # what the row held on the device
