"""How programs are laid out for the kind of machine they run on: numbers that change how fast they are, nothing else.

On a CPU memory and arithmetic are what time goes into; on a GPU or TPU it is how many steps depend on each other, for
every kernel and every turn of a loop costs microseconds, whatever it does (notebooks/accelerators.md).
"""

import contextlib
import contextvars
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
    """

    levels: int
    few_games: int
    levels_of_few: int
    tile: int | None
    few_scores: float
    go_steps: int


CPU = Machine(levels=4, few_games=8, levels_of_few=8, tile=64, few_scores=320, go_steps=1)
ACCELERATOR = Machine(levels=8, few_games=8, levels_of_few=8, tile=None, few_scores=float("inf"), go_steps=8)

_asked_for: contextvars.ContextVar[Machine | None] = contextvars.ContextVar("laid_out_for", default=None)


def machine() -> Machine:
    """What programs traced here and now are laid out for: by jax's default backend, unless `laid_out_for` says."""
    return _asked_for.get() or (CPU if jax.default_backend() == "cpu" else ACCELERATOR)


@contextlib.contextmanager
def laid_out_for(machine: Machine) -> Iterator[None]:
    """Within, programs are traced as for this machine; they run anywhere, with the same results.

    For tests, and to compile for a device that is not there. JAX does not trace again what was traced before: give it
    functions made anew.

    >>> import jax, jaxzero.machine
    >>> with jaxzero.machine.laid_out_for(jaxzero.machine.ACCELERATOR):
    ...     jaxzero.machine.machine().levels
    8
    """
    token = _asked_for.set(machine)
    try:
        yield
    finally:
        _asked_for.reset(token)
