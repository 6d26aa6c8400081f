"""Progress display and interruption: a live line on a terminal, plain lines elsewhere."""

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from jaxzero.train.devices import cores
from jaxzero.unread_output import discard

__all__ = ["announced", "device", "interruptible", "live", "table", "wait"]

_bars: list[Progress] = []  # the bars that are shown now
console = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120)


def _stop_unread() -> None:
    """Stops a program whose output has no reader any more, as after `| head`: by SIGTERM, so that a run saves."""
    discard(sys.stdout)
    try:
        print("Nobody reads the output any more: stopping, as after SIGTERM.", file=sys.stderr, flush=True)
    except (OSError, ValueError):  # after `2>&1 | head`
        discard(sys.stderr)
    signal.raise_signal(signal.SIGTERM)


console.on_broken_pipe = _stop_unread  # rich would exit at once


def device() -> str:
    """The device in words, e.g. "cpu, 2 cores" or "gpu, 1 x NVIDIA H200"."""
    kind, found = jax.default_backend(), jax.devices()
    return (
        f"cpu, {cores()} core{'s' * (cores() > 1)}"
        if kind == "cpu"
        else f"{kind}, {len(found)} x {found[0].device_kind}"
    )


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], str | None]]:
    """While inside, Ctrl-C and SIGTERM do not stop the program, but are noted: gives `interrupted() -> name or None`.

    A second Ctrl-C acts as usual, for those who cannot wait for the end of a chunk. A second SIGTERM changes nothing:
    some schedulers send several. A signal that came after the last call of `interrupted` is sent again on exit.
    """
    received: list[str] = []
    unanswered: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # signals belong to the main thread
        yield lambda: None
        return
    before = {}

    def note(number, frame):
        unanswered.append(number)
        received.append("Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name)
        if number == signal.SIGINT:
            signal.signal(number, before[number])
            console.print("Stopping as soon as this is done; press Ctrl-C again to stop at once.")

    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, note)

    def interrupted() -> str | None:
        unanswered.clear()
        return received[0] if received else None

    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if unanswered:
            signal.raise_signal(unanswered[0])


def wait(tree: Any, poll: float = 0.02) -> Any:
    """`jax.block_until_ready` that lets Ctrl-C through."""
    for leaf in jax.tree.leaves(tree):
        while not leaf.is_ready():
            time.sleep(poll)
    return tree


@contextlib.contextmanager
def announced(what: str) -> Iterator[None]:
    """Say that something silent and slow begins, and afterwards how long it took."""
    start = time.perf_counter()
    if console.is_terminal and not _bars:  # older versions of rich show one live thing at a time
        with console.status(Text(f"{what} ...")):
            yield
    else:
        console.print(f"{what} ...", markup=False)
        yield
    console.print(f"{what}: {time.perf_counter() - start:.1f} s", markup=False)


@contextlib.contextmanager
def live(every: float = 10.0) -> Iterator[Callable[[float, str], None]]:
    """Gives `show(done, text)`: a bar on a terminal; elsewhere a line at most every so many seconds.

    If these lines have no reader any more, as after `| head`, the process gets SIGTERM.
    """
    if console.is_terminal:
        columns = TextColumn("{task.percentage:3.0f} %"), BarColumn(bar_width=20), TextColumn("{task.description}")
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=1.0)
            _bars.append(bar)
            try:
                yield lambda done, text: bar.update(task, completed=done, description=text)
            finally:
                _bars.pop()
        return
    last = [-every]

    def show(done: float, text: str) -> None:
        if time.monotonic() - last[0] >= every or done >= 1:
            last[0] = time.monotonic()
            try:
                print(f"{done:4.0%}  {text}", flush=True)
            except BrokenPipeError:
                _stop_unread()

    yield show


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table, the first column left-aligned."""
    console.print(f"[italic]{title}[/]")  # not the table's own, which is broken where that is narrow
    made = Table()
    for i, name in enumerate(columns):
        made.add_column(name, justify="right" if i else "left")
    for row in rows:
        made.add_row(*row)
    console.print(made)
