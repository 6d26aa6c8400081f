"""Tuning by backend: numbers that change the speed of compiled programs, never their results.

On a CPU, time goes into memory and arithmetic. On a GPU or TPU it goes into the number of dependent steps: every kernel
and every iteration of a loop costs microseconds, whatever it does (notebooks/accelerators.md).
"""

import contextlib
import contextvars
import math
from collections.abc import Iterator
from typing import NamedTuple

import jax

__all__ = ["ACCELERATOR", "CPU", "Machine", "laid_out_for", "machine"]


class Machine(NamedTuple):
    """How programs are laid out for a kind of machine.

    Attributes:
        levels: nodes of a path per loop iteration. More of them need fewer iterations, but waste work where paths end.
        few_games: with fewer games than this the machine waits for kernels, and `levels_of_few` replaces `levels`.
        levels_of_few: nodes of a path per loop iteration, for few games.
        tile: the most games that go up their paths together, so that their trees stay in the cache; None: all.
        few_scores: among at most this many scores, one reduction over pairs finds the best. Among more, several plain
            reductions do, which XLA's CPU backend vectorises.
        go_steps: points by which Go's flood fill advances per loop iteration.
        waits: whether the host waits for the device before it knows if a loop continues or which branch is taken. Then
            an iteration that every loop needs is placed before the loop, and cheap branches are always taken.
        sure_games: with this many games, at least one has a position to evaluate in nearly every simulation. So the
            model is always asked, without a test.
        sure_edges: up to this many edges, all of them are read, without asking how many are in use.
    """

    levels: int
    few_games: int
    levels_of_few: int
    tile: int | None
    few_scores: float
    go_steps: int
    waits: bool
    sure_games: float
    sure_edges: int


CPU = Machine(
    levels=4, few_games=8, levels_of_few=8, tile=64, few_scores=320, go_steps=1, waits=False, sure_games=math.inf,
    sure_edges=0,
)  # fmt: skip
ACCELERATOR = Machine(
    levels=16, few_games=8, levels_of_few=16, tile=None, few_scores=math.inf, go_steps=8, waits=True, sure_games=64,
    sure_edges=2**19,
)  # fmt: skip

_asked_for: contextvars.ContextVar[Machine | None] = contextvars.ContextVar("laid_out_for", default=None)


def machine() -> Machine:
    """The layout of programs that are traced now: that of jax's default backend, unless `laid_out_for` sets another."""
    return _asked_for.get() or (CPU if jax.default_backend() == "cpu" else ACCELERATOR)


@contextlib.contextmanager
def laid_out_for(machine: Machine) -> Iterator[None]:
    """A context in which programs are traced as for this machine; they run anywhere, with the same results.

    For tests, and to compile for a device that is absent. JAX does not retrace a function that it has traced before, so
    build new functions inside the context.

    >>> import jax, jaxzero.backend_tuning
    >>> with jaxzero.backend_tuning.laid_out_for(jaxzero.backend_tuning.ACCELERATOR):
    ...     jaxzero.backend_tuning.machine().levels
    16
    """
    token = _asked_for.set(machine)
    try:
        yield
    finally:
        _asked_for.reset(token)
