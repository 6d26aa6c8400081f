"""Tuning by backend: numbers that change the speed of compiled programs, never their results.

On a CPU, time goes into memory and arithmetic. On a GPU or TPU it goes into the number of dependent steps: every kernel
and every turn of a loop costs microseconds, whatever it does (notebooks/accelerators.md).
"""

import contextlib
import contextvars
import math
from collections.abc import Iterator
from typing import NamedTuple

import jax

__all__ = ["ACCELERATOR", "CPU", "Machine", "laid_out_for", "machine"]


class Machine(NamedTuple):
    """A layout of programs.

    Attributes:
        levels: nodes of a path that one turn of a loop takes: more are fewer turns, and wasted where paths end.
        few_games: with fewer games the machine waits for kernels, and a turn takes `levels_of_few`.
        levels_of_few: likewise, for them.
        tile: the most games that go up their paths together, so that their trees stay in the cache; None: all.
        few_scores: of no more scores the best is found by one reduction over pairs; of more by several plain ones,
            which XLA's CPU backend vectorises.
        go_steps: points that Go's spreading goes on by in one turn of its loop.
        waits: whether the host waits for the device before it knows if a loop goes on or which branch is taken. Then
            the first turn of a loop that has one in any case stands before it, and cheap branches are always taken.
        sure_games: of so many games one has something to ask in nearly every simulation, so the model is asked without
            looking whether any has.
        sure_edges: so many edges are looked at all, without asking how many of them are in use.
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
    """What programs traced here and now are laid out for: by jax's default backend, unless `laid_out_for` says."""
    return _asked_for.get() or (CPU if jax.default_backend() == "cpu" else ACCELERATOR)


@contextlib.contextmanager
def laid_out_for(machine: Machine) -> Iterator[None]:
    """Within, programs are traced as for this machine; they run anywhere, with the same results.

    For tests, and to compile for a device that is not there. JAX does not trace again what was traced before: give it
    functions made anew.

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
