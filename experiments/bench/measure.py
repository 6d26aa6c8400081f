"""Measuring: interleaved runs and their medians, hardware, tables, and files that are never overwritten."""

import concurrent.futures
import functools
import json
import math
import os
import pathlib
import re
import signal
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from jaxzero.cli.circumstances import circumstances

__all__ = [
    "Keep",
    "Progress",
    "Timing",
    "circumstances",
    "compiled",
    "compiled_together",
    "duration",
    "geometric_mean",
    "interleaved",
    "markdown",
    "measure",
    "save",
    "sentence",
]


class Timing(NamedTuple):
    seconds: float  # the median
    runs: list[float]


def compiled(function: Callable, *args: Any) -> Callable[[], Any]:
    """`function(*args)` compiled ahead of time; a call waits for the result."""
    program = jax.jit(function).lower(*args).compile()
    return lambda: jax.block_until_ready(program(*args))


def compiled_together(programs: dict[str, tuple]) -> dict[str, Callable[[], Any]]:
    """`compiled` for many, each given as `(function, *args)`: traced one by one, compiled all at once."""
    lowered = {name: jax.jit(function).lower(*args) for name, (function, *args) in programs.items()}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        ready = dict(zip(lowered, pool.map(lambda program: program.compile(), lowered.values())))

    def run(name: str) -> Any:
        return jax.block_until_ready(ready[name](*programs[name][1:]))

    return {name: functools.partial(run, name) for name in programs}


def interleaved(
    contestants: dict[str, Callable[[], Any]], budget: float, least: int = 3, most: int = 15, patience: float = math.inf
) -> dict[str, Timing]:
    """Times the contestants in turn, again and again, so that other load on the machine affects all of them alike.

    A first round warms up, and tells how many rounds fit into `budget` seconds. A long first round counts as a
    measurement: the warm-up is then a small part of it, and another round would take minutes. If `least` rounds would
    last longer than `patience` seconds, there are fewer.
    """

    def turn() -> dict[str, float]:
        seconds = {}
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            seconds[name] = time.perf_counter() - start
        return seconds

    first = turn()
    lasted = sum(first.values())
    wanted = min(most, max(least, round(budget / lasted)))
    if least * lasted > patience:
        wanted = max(1, int(patience / lasted))
    rounds = [first] if lasted > 20 or wanted < least else []
    while len(rounds) < wanted:
        rounds.append(turn())
    runs = {name: [seconds[name] for seconds in rounds] for name in contestants}
    return {name: Timing(statistics.median(times), times) for name, times in runs.items()}


def geometric_mean(numbers: Sequence[float]) -> float:
    return statistics.geometric_mean(numbers)


class Progress:
    """Shows what runs, and roughly the time left; `weights` are guesses of the items' relative cost."""

    def __init__(self, weights: Sequence[float]):
        self.left, self.done, self.number, self.start = list(weights), 0.0, 0, time.monotonic()

    def next(self, what: str) -> None:
        """Announces the next item. Call it when the previous item has ended."""
        self.number += 1
        elapsed, total = time.monotonic() - self.start, self.number + len(self.left) - 1
        still = f", about {duration(elapsed / self.done * sum(self.left))} still" if self.done else ""
        print(f"[{self.number}/{total}] {what} ({duration(elapsed)} so far{still})", flush=True)
        self.done += self.left.pop(0)


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def markdown(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table with aligned columns; numbers to three digits."""
    cells = [list(columns)] + [[cell(x) for x in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = ["| " + " | ".join(x.rjust(w) for x, w in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|")
    return "\n".join(lines)


def cell(x: Any) -> str:
    if not isinstance(x, float):
        return str(x)
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.1f}" if abs(x) >= 10 else f"{x:.2f}"


def sentence(results: dict[str, Any]) -> str:
    """Hardware and versions in a line."""
    hardware, versions = results["hardware"], results["versions"]
    return (
        f"{hardware['device']}: {hardware['cpu']}, {hardware['cores_usable']} cores, {hardware['device_kind']}; "
        f"{', '.join(f'{k} {v}' for k, v in versions.items())}"
    )


Keep = Callable[[dict[str, Any]], None]


def measure(
    parts: dict[str, Callable[[Keep], tuple[dict, str]]], settings: dict, quick: bool, folder: pathlib.Path
) -> None:
    """Runs one part after another, prints each text, and writes all results to a file.

    Ctrl-C and SIGTERM skip the rest. Whatever ends a part, the rows that it had finished are written.

    Args:
        parts: each is called with `keep`, and returns what is written to the file, and a text to print. A part that
            may take long calls `keep(found)` once, before its first row, and adds the rows to the lists in `found`.
        settings: what the figures depend on, without paths of this machine.
        quick: the run is in miniature.
        folder: where the file goes.
    """
    results, kept = circumstances() | {"settings": settings}, {}
    load, interrupted = [os.getloadavg()[0]], False
    print(f"{sentence(results)}; load {load[0]:.1f}")
    if quick:
        print("Everything in miniature: the figures only show that the experiment works.")
    before = signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        for name, part in parts.items():
            print(f"\n# {name}", flush=True)
            results[name], text = part(functools.partial(kept.__setitem__, name))
            load.append(os.getloadavg()[0])
            results["load"] = [round(x, 2) for x in load]
            print(f"\n{text}\n\nLoad of the machine: {load[-2]:.1f} before, {load[-1]:.1f} after.", flush=True)
    except KeyboardInterrupt:
        interrupted = True
        print(f"\nInterrupted in {name}.")
    finally:  # what was measured before is not lost, whatever a part raises
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        for name, found in kept.items():
            if name not in results and any(found.values()):
                results[name] = found | {"complete": False}
        if any(name in results for name in parts):
            print(f"\nWritten to {save(results, folder)}")
        signal.signal(signal.SIGTERM, before)
    sys.exit(130 if interrupted else 0)


def _as_ctrl_c(*_: Any) -> None:
    raise KeyboardInterrupt


def save(results: dict[str, Any], folder: pathlib.Path, name: str | None = None) -> pathlib.Path:
    """Writes `<name>-<date>.json`, named by the device unless a name is given; a number is added where that exists."""
    if name is None:
        hardware = results["hardware"]
        cpu = hardware["device"] == "cpu"
        name = (
            f"cpu {hardware['cpu']} {hardware['cores_usable']} cores"
            if cpu
            else f"{hardware['device']} {hardware['device_kind']}"
        )
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") + "-" + results["date"][:10]
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = folder / (f"{slug}.json" if number == 1 else f"{slug}-{number}.json")
        try:
            with path.open("x") as file:
                json.dump(results, file, indent=1)
            return path
        except FileExistsError:
            number += 1
