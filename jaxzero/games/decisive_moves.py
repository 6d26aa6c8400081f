"""Moves that win at once, found by trying each."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.games.game import Game, check_game
from jaxzero.types import State

__all__ = ["WIN", "decisive_by_trying"]

WIN = 1 - 1e-4  # what the winner is paid at least: 1, up to rounding


def decisive_by_trying(game: Game) -> Callable[[State], Bool[Array, "A"]]:
    """A function for `Game.decisive` that takes a step with each action: A steps for each position it is asked about.

    It is for games whose steps are cheap beside a network and that have few actions. Others may know a shorter way.

    Args:
        game: for two players, without chance; the winner is paid 1.

    Raises:
        ValueError: something else than a game; another number of players; steps that are drawn.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> game = game._replace(decisive=decisive_by_trying(game))
    >>> state = game.init(jax.random.key(0))
    >>> for action in (0, 3, 1, 4):  # both have two in a row
    ...     state = game.step(state, action, jax.random.key(0))
    >>> jnp.flatnonzero(game.decisive(state)).tolist()
    [2]
    """
    check_game("decisive_by_trying", game)
    if game.num_players != 2:
        raise ValueError(
            f"decisive_by_trying: {game.id} has {game.num_players} player(s), and this is for two. Leave it out."
        )
    if game.outcomes is not None or depends_on_key(game.step, jax.eval_shape(game.init, jax.random.key(0))):
        raise ValueError(
            f"decisive_by_trying: steps of {game.id} are random, so no move surely wins at once. Leave it out."
        )

    def decisive(state: State) -> Bool[Array, "A"]:
        mover = game.to_play(state)

        def wins(action: Array) -> Bool[Array, ""]:
            after = game.step(state, action, jax.random.key(0))
            return game.terminal(after) & (game.rewards(after)[mover] >= WIN)

        return jax.vmap(wins)(jnp.arange(game.num_actions)) & game.legal(state)

    return decisive
