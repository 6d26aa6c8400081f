"""Environments, whose rules the search does not know: jaxzero's own, gymnax's, Gymnasium's, pgx's, and games."""

from jaxzero.environments.by_name import by_name, no_such_name
from jaxzero.environments.cartpole import cartpole
from jaxzero.environments.environment import Bounds, Environment, Outcome
from jaxzero.environments.environment_checks import check_steps
from jaxzero.environments.environment_game import to_game, to_position, without_limit
from jaxzero.environments.episode_checks import check_episodes
from jaxzero.environments.game_adapter import from_game
from jaxzero.environments.gymnasium_adapter import HostEnvironment, from_gymnasium
from jaxzero.environments.gymnax_adapter import from_gymnax
from jaxzero.environments.pendulum import pendulum
from jaxzero.environments.pgx_single_player import from_pgx

__all__ = [
    "Bounds",
    "Environment",
    "HostEnvironment",
    "Outcome",
    "by_name",
    "cartpole",
    "check_episodes",
    "check_steps",
    "from_game",
    "from_gymnasium",
    "from_gymnax",
    "from_pgx",
    "no_such_name",
    "pendulum",
    "to_game",
    "to_position",
    "without_limit",
]
