"""Othello: the moves that win at once, found for all squares together."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.games.directions import SQUARE_NEIGHBOURS
from jaxzero.types import State

__all__ = ["decisive"]

SIZE, FURTHEST = 8, 7


def decisive(state: State) -> Bool[Array, "65"]:
    """The legal moves of pgx's Othello that end the game and win it, as `Game.decisive` requires.

    Such a move turns the other side's last stones, as happens in openings where one side has few; or it fills the
    board; or it is the second of two passes. The turned stones are counted for all squares together, instead of taking
    65 steps.
    """
    own, other = (state._x.board.reshape(SIZE, SIZE) * sign > 0 for sign in (1, -1))
    empty = ~(own | other)
    turned = jnp.where(empty, _turned(own, other), 0)
    mine, theirs = jnp.sum(own) + 1 + turned, jnp.sum(other) - turned
    over = (theirs == 0) | (jnp.sum(empty) == 1)
    squares = (turned > 0) & over & (mine > theirs)
    second_pass = ~jnp.any(turned > 0) & state._x.passed & (jnp.sum(own) > jnp.sum(other))
    return jnp.append(squares.ravel(), second_pass) & ~(state.terminated | state.truncated)


def _turned(own: Bool[Array, "8 8"], other: Bool[Array, "8 8"]) -> Int[Array, "8 8"]:
    """How many stones of the other side a stone on each square would turn, whether the square is empty or not."""
    own, other = (jnp.pad(x, FURTHEST) for x in (own, other))
    total = jnp.zeros((SIZE, SIZE), jnp.int32)
    for down, right in SQUARE_NEIGHBOURS:
        line = jnp.ones((SIZE, SIZE), jnp.bool_)  # nothing but stones of the other side so far
        for distance in range(1, FURTHEST):
            line &= _seen(other, distance * down, distance * right)
            closed = line & _seen(own, (distance + 1) * down, (distance + 1) * right)
            total += jnp.where(closed, distance, 0)
    return total


def _seen(padded: Bool[Array, "22 22"], down: int, right: int) -> Bool[Array, "8 8"]:
    """For each square, the one that lies `down` and `right` of it."""
    top, left = FURTHEST + down, FURTHEST + right
    return padded[top : top + SIZE, left : left + SIZE]
