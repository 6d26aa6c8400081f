"""N-tuple networks: values as sums of table entries, for boards of small numbers like those of 2048."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.games.game import SQUARE, turn

__all__ = ["FIVE_FOURS", "FOUR_SIXES", "NTuples", "ntuples"]

KINDS = 16  # exponents 0 ... 15; larger ones are read as 15
SIDE = 4

# Cells are numbered row by row. Four tuples of six cells (Yeh et al. 2016, "Multi-Stage Temporal Difference Learning
# for 2048-like Games", figure 4): 67 million weights, 256 MiB.
FOUR_SIXES = ((0, 1, 2, 3, 4, 5), (4, 5, 6, 7, 8, 9), (0, 1, 2, 4, 5, 6), (4, 5, 6, 8, 9, 10))
# Lines and squares of four cells, as in Szubert & Jaśkowski 2014, with weights shared among turns and mirrors: 1.3 MiB.
FIVE_FOURS = ((0, 1, 2, 3), (4, 5, 6, 7), (0, 1, 4, 5), (1, 2, 5, 6), (5, 6, 9, 10))


class NTuples(NamedTuple):
    """An n-tuple network, batched.

    Attributes:
        size: N, how many weights there are.
        count: F, how many weights are summed to a value.
        features: `cells [..., 16] -> int32 [..., F]`, the indices of those weights.
        value: `(weights [N], cells [..., 16]) -> [...]`, their sum.
    """

    size: int
    count: int
    features: Callable[[Int[Array, "... 16"]], Int[Array, "... F"]]
    value: Callable[[Float[Array, "N"], Int[Array, "... 16"]], Float[Array, "..."]]


def ntuples(tuples: tuple[tuple[int, ...], ...] = FIVE_FOURS) -> NTuples:
    """A table of weights for each tuple of cells, read at all turns and mirrors of the board.

    (Szubert & Jaśkowski 2014, "Temporal Difference Learning of N-Tuple Networks for the Game 2048".)

    Args:
        tuples: of cells, numbered row by row, each cell once and at most six; a table has 16^n entries.

    Raises:
        ValueError: no tuples, a cell that there is not, or twice in a tuple, or more than six.

    Example:
        >>> network, boards = ntuples(((0, 1), (0, 1, 4, 5))), jnp.zeros((5, 16), jnp.uint8)
        >>> network.size, network.count, network.features(boards).shape
        (65792, 16, (5, 16))
        >>> network.value(jnp.zeros(network.size), boards).shape  # weights begin at 0
        (5,)
    """
    _check(tuples)
    starts = np.cumsum([0] + [KINDS ** len(cells) for cells in tuples])
    # An index is a sum of digits, one product with this matrix: exact in float32, as all are below 2^24.
    digits, begins = np.zeros((SIDE * SIDE, 0), np.float32), []
    for cells, start in zip(tuples, starts):
        for quarters, mirror in SQUARE:
            at = turn(np.arange(SIDE * SIDE).reshape(SIDE, SIDE), quarters, mirror).ravel()
            column = np.zeros((SIDE * SIDE, 1), np.float32)
            column[at[list(cells)], 0] = [KINDS**i for i in range(len(cells))]
            digits = np.concatenate([digits, column], 1)
            begins.append(start)
    offsets = np.array(begins, np.int32)

    def features(cells: Int[Array, "... 16"]) -> Int[Array, "... F"]:
        shown = jnp.minimum(cells, KINDS - 1).astype(jnp.float32)
        return jnp.matmul(shown, digits, precision="highest").astype(jnp.int32) + offsets

    def value(weights: Float[Array, "N"], cells: Int[Array, "... 16"]) -> Float[Array, "..."]:
        return weights[features(cells)].sum(-1)

    size = int(starts[-1])
    return NTuples(size, len(offsets), features, value)


def _check(tuples: tuple[tuple[int, ...], ...]) -> None:
    if not tuples:
        raise ValueError("ntuples(()): give tuples of cells, like FIVE_FOURS.")
    for cells in tuples:
        right = all(type(cell) is int and 0 <= cell < SIDE * SIDE for cell in cells)
        if not (right and 1 <= len(cells) <= 6 and len(set(cells)) == len(cells)):
            raise ValueError(f"ntuples: {cells!r}: give one to six different cells, each from 0 to 15.")
