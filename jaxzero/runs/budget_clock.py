"""The clock of a run's budget: it stands still while programs are compiled."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from jaxzero.runs.progress_display import announced

__all__ = ["Clock", "compiled_together", "compiled_when_called", "first_call_for_free"]


class Clock:
    """Minutes since the beginning of a run, without those spent paused.

    Args:
        minutes: where the clock starts, for a run that goes on.
    """

    def __init__(self, minutes: float = 0.0):
        self._began = time.monotonic() - 60 * minutes

    def minutes(self) -> float:
        """What it shows."""
        return (time.monotonic() - self._began) / 60

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """While inside, it stands still."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._began += time.monotonic() - began


def compiled_when_called(what: str, jitted: Any, clock: Clock, announce: Callable = announced) -> Callable:
    """The program of `jitted`, compiled for the arguments of its first call: announced, and with the clock paused.

    Args:
        what: the announcement, like "Compiling self-play".
        jitted: what `jax.jit` returned; called with arguments of the same shapes always.
        clock: paused while it compiles.
        announce: a context manager, called with `what`.
    """
    found: list[Callable] = []

    def program(*args: Any) -> Any:
        if not found:
            with clock.paused(), announce(what):
                found.append(jitted.lower(*args).compile())
        return found[0](*args)

    return program


def compiled_together(programs: Mapping[str, tuple[Any, tuple]], clock: Clock, announce: Callable) -> dict[str, Any]:
    """The programs by name, compiled in parallel threads with the clock paused: XLA releases Python's lock.

    Args:
        programs: what `jax.jit` returned, and the arguments that it will be called with, or their shapes.
        clock: paused while they compile.
        announce: a context manager, called with what is done.
    """
    pool = ThreadPoolExecutor(len(programs))
    try:
        with clock.paused(), announce(f"Compiling {', '.join(programs)}"):
            # Traced one after the other; each is handed to a thread as soon as it is traced.
            compiling = {
                name: pool.submit(lambda lowered: lowered.compile(), jitted.lower(*args))
                for name, (jitted, args) in programs.items()
            }
            return {name: one.result() for name, one in compiling.items()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # Ctrl-C does not wait for running compilations


def first_call_for_free(what: str, function: Callable, clock: Clock, announce: Callable = announced) -> Callable:
    """`function` with its first call, which compiles, announced and not counted by the clock."""
    called: list[bool] = []

    def call(*args: Any) -> Any:
        if called:
            return function(*args)
        called.append(True)
        with clock.paused(), announce(what):
            return function(*args)

    return call
