"""Input features of Othello: mobility (the moves of both players) and stability (stones that nobody can turn)."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt

from jaxzero.games.directions import AXES, SQUARE_NEIGHBOURS

__all__ = ["mobility_features"]

WIDEST = 32  # a row is a word, with a bit for each square


def mobility_features(observation: Float[Array, "B n n F"]) -> Float[Array, "B n n 4"]:
    """Mobility and stability, for observations whose first two planes are the mover's stones and the other player's.

    Programs have long evaluated positions of Othello by these two (Rosenbloom 1982, "A World-Championship-Level Othello
    Program"). Both depend on whole lines of the board, of which a network of windows sees four squares at a time.

    A stone counts as stable if in each of the four directions its line is full, or ends beside it, or has a stable
    stone of its colour next to it. No such stone is ever turned. Other stones may be safe, too; and a stone whose
    stability depends on a chain of 2 n or more others counts as unstable.

    Returns:
        Four planes, 1 or 0: where the mover can move, and where its stones are stable; the same for the other player.

    Raises:
        ValueError: a board that is not square, or has more than 32 squares in a row.

    >>> board = jnp.float32([[0, 2, 1, 0], [0, 1, 2, 0], [0, 2, 1, 0], [1, 1, 0, 0]])
    >>> planes = mobility_features(jnp.stack([board == 1, board == 2], -1)[None]).astype(int)
    >>> for row in range(4):  # moves of the mover; its stable stones
    ...     print(planes[0, row, :, 0].tolist(), planes[0, row, :, 1].tolist())
    [1, 0, 0, 1] [0, 0, 0, 0]
    [0, 0, 0, 1] [0, 0, 0, 0]
    [1, 0, 0, 0] [0, 0, 0, 0]
    [0, 0, 0, 0] [1, 1, 0, 0]
    """
    size, columns = observation.shape[1:3]
    if size != columns or size > WIDEST:
        raise ValueError(
            f"mobility_features: a board of {size} x {columns} squares: give a square one, at most {WIDEST} x {WIDEST}."
        )
    word = jnp.uint8 if size <= 8 else jnp.uint32
    stones = jnp.moveaxis(observation[..., :2] > 0, (0, 2), (-1, 0))  # [columns, rows, players, B]
    own = functools.reduce(jnp.bitwise_or, [row.astype(word) << column for column, row in enumerate(stones)])
    others, taken = own[:, ::-1], own[:, :1] | own[:, 1:]
    found = jnp.stack([_moves(own, others, ~taken), _stable(own, taken)], 2)  # [rows, players, planes, B]
    planes = jnp.stack([found >> column & 1 for column in range(size)], 1).reshape(size, size, 4, -1)
    return jnp.moveaxis(planes, -1, 0).astype(jnp.promote_types(observation.dtype, jnp.bfloat16))


def _next(rows: UInt[Array, "n K B"], direction: tuple[int, int], beyond: bool = False) -> UInt[Array, "n K B"]:
    """For each square the bit of the next one in that direction; beyond the board all bits are set, or none."""
    down, right = direction
    size, edge = len(rows), jnp.full_like(rows[:1], -1 if beyond else 0)
    rows = jnp.concatenate([edge, rows, edge])[1 + down :][:size]
    if right > 0:
        return rows >> 1 | jnp.array(beyond << size - 1, rows.dtype)
    return rows << 1 | beyond if right < 0 else rows  # the caller masks what leaves the board


def _moves(own: UInt[Array, "n 2 B"], others: UInt[Array, "n 2 B"], empty: UInt[Array, "n 1 B"]) -> Array:
    """The empty squares with one of the others' stones beside, then more of them, then an own stone."""

    def longer(_: int, runs: tuple[Array, ...]) -> tuple[Array, ...]:
        """For each direction: the others' stones from which a run of their stones leads to an own stone."""
        return tuple(others & _next(run | own, way) for run, way in zip(runs, SQUARE_NEIGHBOURS, strict=True))

    runs = jax.lax.fori_loop(0, len(own) - 2, longer, (jnp.zeros_like(own),) * len(SQUARE_NEIGHBOURS))
    return empty & functools.reduce(
        jnp.bitwise_or, [_next(run, way) for run, way in zip(runs, SQUARE_NEIGHBOURS, strict=True)]
    )


def _stable(own: UInt[Array, "n 2 B"], taken: UInt[Array, "n 1 B"]) -> UInt[Array, "n 2 B"]:
    """The stable stones of both players, as `mobility_features` defines them."""
    size = len(own)

    def further(_: int, filled: tuple[Array, ...]) -> tuple[Array, ...]:
        """For each direction: the stones behind which all squares are taken, looking one square further each time."""
        return tuple(taken & _next(rows, way, True) for rows, way in zip(filled, SQUARE_NEIGHBOURS, strict=True))

    filled = jax.lax.fori_loop(0, size, further, (taken,) * len(SQUARE_NEIGHBOURS))
    full = [one & other for one, other in zip(filled[: len(AXES)], filled[len(AXES) :], strict=True)]

    def more(_: int, stable: Array) -> Array:
        beside = lambda down, right: _next(stable, (down, right), True) | _next(stable, (-down, -right), True)
        return own & functools.reduce(jnp.bitwise_and, [line | beside(*axis) for line, axis in zip(full, AXES)])

    return jax.lax.fori_loop(0, 2 * size, more, jnp.zeros_like(own))
