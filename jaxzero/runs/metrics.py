"""Metrics of a run: JSON lines, and TensorBoard events.

<folder>/metrics.jsonl            one object per line, with its `step`
<folder>/tensorboard/             open with `tensorboard --logdir <folder>`
"""

import contextlib
import json
import math
import os
import pathlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from jaxzero.runs import run_folder as folders

__all__ = ["read", "writing"]

Write = Callable[[int, dict[str, float]], None]


@contextlib.contextmanager
def writing(folder: str | os.PathLike, step: int, say: Callable[[str], Any] = print) -> Iterator[Write]:
    """Open the metrics of a run that continues after `step`: gives `write(step, values)`.

    Lines of later steps, written between the last checkpoint and a kill, are dropped first, because those steps are
    about to be repeated. A damaged file is copied to another name, its sound lines are kept, and `say` reports it. If
    TensorBoard's events cannot be written, there is a warning, and the run goes on without them.

    Raises:
        OSError: metrics.jsonl cannot be written, for instance because the disk is full.
    """
    folder = pathlib.Path(folder)
    file = folder / "metrics.jsonl"
    sound, damaged = _parsed(file)
    kept = [line for line in sound if line["step"] <= step]
    with _named(file):
        if damaged or (step and not kept):
            aside = folders.keep_aside(file)
            lost = f"has {damaged} damaged lines, which are dropped" if damaged else "is empty or missing"
            say(f"{file} {lost}; the run continues." + (f" The old file is now {aside}." if aside else ""))
        folders.write_whole(file, "".join(json.dumps(line) + "\n" for line in kept))
    with _board(folder / "tensorboard", step) as show, _appending(file) as lines:

        def write(step: int, values: dict[str, float]) -> None:
            with _named(file):
                lines.write(json.dumps({"step": step, **values}) + "\n")
                lines.flush()
            show(step, values)

        yield write


@contextlib.contextmanager
def _appending(file: pathlib.Path) -> Iterator[TextIO]:
    """The open file. Closing it writes what a full disk had no room for: that error was reported before."""
    lines = file.open("a")
    try:
        yield lines
    finally:
        with contextlib.suppress(OSError):
            lines.close()


@contextlib.contextmanager
def _named(file: pathlib.Path) -> Iterator[None]:
    """Within, errors name the file and what to do."""
    try:
        yield
    except OSError as error:
        says = f"{error.strerror}. Once it can be written, the same command continues from the last checkpoint"
        raise OSError(error.errno, says, str(file)) from error


@contextlib.contextmanager
def _board(folder: pathlib.Path, step: int) -> Iterator[Write]:
    """Writes events for TensorBoard, which forgets earlier events of later steps.

    They are written at once: tensorboardX's own writer hands them to a thread, and hangs if a full disk ended it.
    """
    from tensorboardX.event_file_writer import EventsWriter
    from tensorboardX.proto import event_pb2
    from tensorboardX.proto.summary_pb2 import Summary

    writers = []

    def add(**fields) -> None:
        try:
            for writer in writers:
                writer.write_event(event_pb2.Event(wall_time=time.time(), **fields))
                writer.flush()
        except OSError as error:
            writers.clear()
            warnings.warn(f"No more events for TensorBoard in {folder}: {error.strerror}.", stacklevel=2)

    def show(step: int, values: dict[str, float]) -> None:
        add(step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=x) for tag, x in values.items()]))

    try:
        folder.mkdir(exist_ok=True)
        writers.append(EventsWriter(str(folder / "events")))
    except OSError as error:
        warnings.warn(f"No events for TensorBoard in {folder}: {error.strerror}.", stacklevel=2)
    add(step=step + 1, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))
    yield show
    for writer in writers:
        with contextlib.suppress(OSError):
            writer.close()


def read(folder: str | os.PathLike) -> list[dict[str, float]]:
    """The lines of a run's metrics: names to finite numbers or not, `step` among them. Damaged lines are left out."""
    return _parsed(pathlib.Path(folder) / "metrics.jsonl")[0]


def _parsed(file: pathlib.Path) -> tuple[list[dict[str, float]], int]:
    """The sound lines, and how many are damaged; a last line that a kill cut short is neither."""
    text = file.read_bytes() if file.exists() else b""
    whole, _, rest = text.rpartition(b"\n")
    lines = [line for line in whole.split(b"\n") if line] + ([rest] if _numbers(rest) else [])
    sound = [numbers for line in lines if (numbers := _numbers(line))]
    return sound, len(lines) - len(sound)


def _numbers(line: bytes) -> dict[str, float] | None:
    """One line's numbers; None where it is damaged."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or len(found) < 2:  # a step, and something about it
        return None
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in found.values())
    steps = isinstance(found.get("step"), int) and found["step"] >= 0
    return found if numbers and steps and math.isfinite(found.get("minutes", 0.0)) else None
