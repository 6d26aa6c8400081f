"""Moves that win at once, found by trying each."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.games.game import Game, check_game
from jaxzero.types import State

__all__ = ["by_trying"]


def by_trying(game: Game, win: float = 1.0) -> Callable[[State], Bool[Array, "A"]]:
    """A function for `Game.decisive` that takes a step with each action: A steps for each position it is asked about.

    It is for games whose steps are cheap beside a network and that have few actions. Others may know a shorter way.

    Args:
        game: two or more players, nothing left to chance: the steps are given a fixed key.
        win: what the winner is paid.

    Raises:
        ValueError: something else than a game.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> game = game._replace(decisive=by_trying(game))
    >>> state = game.init(jax.random.key(0))
    >>> for action in (0, 3, 1, 4):  # both have two in a row
    ...     state = game.step(state, action, jax.random.key(0))
    >>> jnp.flatnonzero(game.decisive(state)).tolist()
    [2]
    """
    check_game("by_trying", game)

    def decisive(state: State) -> Bool[Array, "A"]:
        mover = game.to_play(state)

        def wins(action: Array) -> Bool[Array, ""]:
            after = game.step(state, action, jax.random.key(0))
            return game.terminal(after) & (game.rewards(after)[mover] >= win)

        return jax.vmap(wins)(jnp.arange(game.num_actions)) & game.legal(state)

    return decisive
