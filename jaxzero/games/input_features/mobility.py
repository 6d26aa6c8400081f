"""Input features of Othello: the moves that either player has, and the stones that nobody can turn any more."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

__all__ = ["mobility_features", "stones_turned"]

DIRECTIONS = tuple(step for step in itertools.product((-1, 0, 1), repeat=2) if step != (0, 0))
AXES = (0, 1), (1, 0), (1, 1), (1, -1)  # (rows, columns)


def mobility_features(observation: Float[Array, "B n n F"]) -> Float[Array, "B n n 6"]:
    """Mobility and stability, for observations whose first two planes are the stones of who moves, and of the other.

    By these programs have long judged positions of Othello (Rosenbloom 1982, "A World-Championship-Level Othello
    Program"). Both depend on whole lines of the board, of which a network of windows sees four squares at a time.

    A stone counts as stable if in each of the four directions its line is full, or ends beside it, or goes on with a
    stable stone of its colour. No such stone is ever turned. Others may be safe, too; and a stone that needs a chain of
    2 n or more others to be held counts as unstable.

    Returns:
        Three planes of the mover, and three of the other: 1 where a move is possible; how many stones it turns, divided
        by n; 1 for stable stones.

    >>> board = jnp.float32([[0, 2, 1, 0], [0, 1, 2, 0], [0, 2, 1, 0], [1, 1, 0, 0]])
    >>> planes = mobility_features(jnp.stack([board == 1, board == 2], -1)[None])
    >>> for row in range(4):  # stones that the mover would turn; its stable ones
    ...     print((4 * planes[0, row, :, 1]).astype(int).tolist(), planes[0, row, :, 2].astype(int).tolist())
    [1, 0, 0, 2] [0, 0, 0, 0]
    [0, 0, 0, 1] [0, 0, 0, 0]
    [1, 0, 0, 0] [0, 0, 0, 0]
    [0, 0, 0, 0] [1, 1, 0, 0]
    """
    size = observation.shape[1]
    own = jnp.moveaxis(observation[..., :2] > 0, 0, -1)  # the batch last: so that a CPU works on whole vectors
    others = own[:, :, ::-1]
    turned = jnp.where(own | others, 0, stones_turned(own, others))
    stable = _stable(own, (own | others)[:, :, 0])
    planes = jnp.stack([turned > 0, turned / size, stable], 3)  # [n, n, players, planes, B]
    planes = jnp.moveaxis(planes.reshape(size, size, 6, -1), -1, 0)
    return planes.astype(jnp.promote_types(observation.dtype, jnp.bfloat16))


def stones_turned(own: Bool[Array, "n n ..."], others: Bool[Array, "n n ..."]) -> Int[Array, "n n ..."]:
    """How many of the others' stones a stone on each square would turn, whether the square is empty or not.

    >>> row = jnp.array([[0, 2, 2, 1, 2, 0]] + [[0] * 6] * 5)
    >>> stones_turned(row == 1, row == 2)[0].tolist()
    [2, 1, 0, 0, 0, 1]
    """
    furthest = len(own) - 1
    own, others = (_padded(x, furthest, False) for x in (own, others))
    seen = lambda padded, down, right: _seen(padded, furthest, down, right)
    total = 0
    for down, right in DIRECTIONS:
        line = True  # nothing but stones of the others so far
        for distance in range(1, furthest):
            line = line & seen(others, distance * down, distance * right)
            closed = line & seen(own, (distance + 1) * down, (distance + 1) * right)
            total = total + jnp.where(closed, jnp.int16(distance), jnp.int16(0))
    return total.astype(jnp.int32)


def _padded(board: Array, rim: int, beyond: bool) -> Array:
    return jnp.pad(board, [(rim, rim)] * 2 + [(0, 0)] * (board.ndim - 2), constant_values=beyond)


def _seen(padded: Array, rim: int, down: int, right: int) -> Array:
    """What lies so many squares further down and right of each square."""
    size, top, left = len(padded) - 2 * rim, rim + down, rim + right
    return padded[top : top + size, left : left + size]


@functools.cache
def _lines(size: int) -> Bool[np.ndarray, "4 nn nn"]:
    """Whether two squares are on one line of each axis."""
    row, column = np.divmod(np.arange(size * size), size)
    made = np.stack([x[:, None] == x for x in (row, column, row - column, row + column)])
    made.flags.writeable = False  # it is kept for the next call
    return made


def _stable(own: Bool[Array, "n n 2 B"], taken: Bool[Array, "n n B"]) -> Bool[Array, "n n 2 B"]:
    """The stable stones of both players, as `mobility_features` defines them."""
    size = len(own)
    empty = (~taken).reshape(size * size, -1).astype(jnp.float32)
    full = jnp.einsum("alm,mb->alb", jnp.asarray(_lines(size), jnp.float32), empty) == 0
    full = full.reshape(len(AXES), size, size, 1, -1)

    def more(_: int, stable: Array) -> Array:
        around = _padded(stable, 1, True)
        beside = lambda down, right: _seen(around, 1, down, right) | _seen(around, 1, -down, -right)
        held = [line | beside(*axis) for line, axis in zip(full, AXES, strict=True)]
        return own & functools.reduce(jnp.logical_and, held)

    return jax.lax.fori_loop(0, 2 * size, more, jnp.zeros_like(own))
