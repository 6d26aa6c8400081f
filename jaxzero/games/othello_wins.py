"""Othello: the moves that win at once, all squares together."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.games.input_features.mobility import stones_turned
from jaxzero.types import State

__all__ = ["decisive"]

SIZE = 8


def decisive(state: State) -> Bool[Array, "65"]:
    """The legal moves of pgx's Othello that end the game and win it: what `Game.decisive` promises.

    Such a move turns the last stones of the other side, as happens in openings where one side has few; or it fills the
    board; or it is the second of two passes. The stones that moves turn are counted for all squares together, instead
    of taking 65 steps.
    """
    own, other = (state._x.board.reshape(SIZE, SIZE) * sign > 0 for sign in (1, -1))
    empty = ~(own | other)
    turned = jnp.where(empty, stones_turned(own, other), 0)
    mine, theirs = jnp.sum(own) + 1 + turned, jnp.sum(other) - turned
    over = (theirs == 0) | (jnp.sum(empty) == 1)
    squares = (turned > 0) & over & (mine > theirs)
    second_pass = ~jnp.any(turned > 0) & state._x.passed & (jnp.sum(own) > jnp.sum(other))
    return jnp.append(squares.ravel(), second_pass) & ~(state.terminated | state.truncated)
