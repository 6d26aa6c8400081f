"""pgx's games of one player as environments."""

from typing import Any

import jax.numpy as jnp

from jaxzero.environments.environment import Environment
from jaxzero.environments.game_adapter import from_game
from jaxzero.games import pgx_adapter

__all__ = ["from_pgx"]


def from_pgx(name: str, discount: float | None = None, observation_dtype: Any = None) -> Environment:
    """The game of one player that pgx knows by this name: 2048, and MinAtar with its sticky actions.

    Args:
        name: "2048", "minatar-asterix", "minatar-breakout", "minatar-freeway", "minatar-seaquest" or
            "minatar-space_invaders".
        discount: γ per step; None: 0.999 for 2048 (Antonoglou et al. 2022, "Planning in Stochastic Environments with a
            Learned Model"), else 0.997.
        observation_dtype: of observations; None: bool, as all that these show is 0 and 1.

    Raises:
        ImportError: pgx is not installed.
        ValueError: pgx knows no such game, or it has more players.

    >>> environment = from_pgx("2048")
    >>> environment.num_actions, environment.observation_shape, environment.discount, environment.chance
    (4, (4, 4, 31), 0.999, True)
    """
    game = pgx_adapter.from_pgx(name)
    if game.num_players != 1:
        raise ValueError(
            f"from_pgx({name!r}): a game of {game.num_players} players. Write from_game(games.from_pgx({name!r}))."
        )
    if discount is None:
        discount = 0.999 if name == "2048" else 0.997
    return from_game(game, discount, jnp.bool_ if observation_dtype is None else observation_dtype)
