"""Input features of games that a line of stones wins: the squares that complete a line."""

import functools
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from jaxzero.games.directions import AXES

__all__ = ["line_features", "lines"]


@functools.cache
def lines(height: int, width: int, length: int) -> Bool[np.ndarray, "L HW"]:
    """The squares of each line of `length` squares, across, down and diagonally.

    >>> lines(6, 7, 4).shape, lines(3, 3, 3).sum(0).tolist()
    ((69, 42), [3, 2, 3, 2, 4, 2, 3, 2, 3])
    """
    found = []
    for down, right in AXES:
        for row in range(height):
            for column in range(width):
                squares = [(row + i * down, column + i * right) for i in range(length)]
                if all(0 <= r < height and 0 <= c < width for r, c in squares):
                    board = np.zeros((height, width), bool)
                    board[tuple(zip(*squares, strict=True))] = True
                    found.append(board.ravel())
    made = np.array(found, bool).reshape(-1, height * width)
    made.flags.writeable = False  # it is kept for the next call
    return made


def line_features(height: int, width: int, length: int, falling: bool = False) -> Callable[[Array], Array]:
    """`observations -> planes`, for boards whose first two planes are the mover's stones and the other player's.

    A rule-based program for Connect Four looks at the same squares (Allis 1988, "A Knowledge-Based Approach of
    Connect-Four"). A network of windows can learn to see them by itself, but learns more quickly with these planes
    (experiments/strength/what_was_tried/input_features.md).

    Args:
        height: rows of the board.
        width: its columns.
        length: stones that make a line.
        falling: whether stones fall to the last row, or onto another stone.

    Returns:
        A function of a batch of observations. Its planes, 1 or 0: empty squares that complete a line of the mover,
        those that complete one of the other player, and, where stones fall, those where the next stone would land.

    Raises:
        ValueError: no line of this length fits the board; of the function: observations of another board.

    >>> board = jnp.float32([[0, 0, 0], [2, 2, 0], [1, 1, 0]])
    >>> planes = line_features(3, 3, 3, falling=True)(jnp.stack([board == 1, board == 2], -1)[None]).astype(int)
    >>> for i in range(3):
    ...     print(planes[0, ..., i].tolist())
    [[0, 0, 0], [0, 0, 0], [0, 0, 1]]
    [[0, 0, 0], [0, 0, 1], [0, 0, 0]]
    [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    """
    if not 1 <= length <= max(height, width):
        raise ValueError(
            f"line_features({height}, {width}, {length}): no line of {length} squares fits {height} x {width} squares: "
            f"use a length from 1 to {max(height, width)}."
        )
    return functools.partial(_features, height=height, width=width, length=length, falling=falling)


def _features(
    observation: Float[Array, "B H W F"], height: int, width: int, length: int, falling: bool
) -> Float[Array, "B H W G"]:
    if observation.shape[1:3] != (height, width) or observation.shape[3] < 2:
        raise ValueError(
            f"line_features({height}, {width}, {length}): observations must be [batch, {height}, {width}, 2 or more "
            f"planes], not {list(observation.shape)}."
        )
    line = jnp.asarray(lines(height, width, length), jnp.float32)
    stones = jnp.moveaxis(observation[..., :2] > 0, -1, 0).reshape(2, -1, height * width).astype(jnp.float32)
    empty = stones.sum(0) == 0
    count = stones @ line.T
    one_short = (count == length - 1) & (count[::-1] == 0)
    completing = (one_short.astype(jnp.float32) @ line > 0) & empty
    board = empty.reshape(-1, height, width)
    ground = jnp.concatenate([~board[:, 1:], jnp.ones_like(board[:, :1])], 1)
    planes = [*completing.reshape(2, -1, height, width), *([board & ground] if falling else [])]
    return jnp.stack(planes, -1).astype(jnp.promote_types(observation.dtype, jnp.bfloat16))
