"""Environments by name: jaxzero's own, gymnax's, pgx's, games, and the user's own as `module:attribute`."""

import difflib

import jax.numpy as jnp

from jaxzero.environments.cartpole import cartpole
from jaxzero.environments.environment import Environment
from jaxzero.environments.environment_checks import check_steps
from jaxzero.environments.game_adapter import from_game
from jaxzero.environments.gymnax_adapter import from_gymnax
from jaxzero.environments.pendulum import pendulum
from jaxzero.environments.pgx_single_player import from_pgx
from jaxzero.games.by_name import by_name as game_by_name
from jaxzero.games.by_name import is_own, loaded
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.game import Game
from jaxzero.games.rules_2048 import game_2048

__all__ = ["by_name", "no_such_name"]

GYMNAX, GYMNASIUM = "gymnax:", "gymnasium:"


def by_name(name: str, size: int = 9, komi: float = 7.0) -> Environment:
    """The environment that a command line names.

    Args:
        name: "cartpole" or "pendulum"; "gymnax:NAME", one that gymnax knows; "2048"; "minatar-...", from pgx; an
            environment of your own as "module:attribute", or "folder/file.py:attribute", where the attribute is an
            `Environment`, a `Game`, or a function without arguments that returns one; else a game for two players by
            the names of `games.by_name`.
        size: of the game "go": points on a side.
        komi: of the game "go": white's points for moving second.

    Raises:
        ImportError: gymnax or pgx is needed, and not installed.
        ValueError: no such environment, game, module or attribute, with those that there are; functions that do not fit
            the record, see `check_steps`; a game that is no environment, see `from_game`.

    >>> by_name("cartpole").id, by_name("tic_tac_toe").num_players
    ('cartpole', 2)
    """
    if name == "cartpole":
        return cartpole()
    if name == "pendulum":
        return pendulum()
    if name.startswith(GYMNAX):
        return from_gymnax(name.removeprefix(GYMNAX))
    if name.startswith(GYMNASIUM):
        raise ValueError(
            f"environment {name}: Gymnasium's environments run on the host, with a Python call per step. Use "
            f"from_gymnasium({name.removeprefix(GYMNASIUM)!r}, num_envs, seed)."
        )
    if is_own(name):
        return _own(name)
    if name == "2048":
        return from_game(game_2048(), discount=0.999, observation_dtype=jnp.bool_)  # γ: Antonoglou et al. 2022
    if name.startswith("minatar-"):
        return from_pgx(name)
    try:
        game = game_by_name(name, size, komi)
    except ValueError as error:
        raise ValueError(no_such_name(name, str(error))) from error
    return from_game(game)


def no_such_name(name: str, error: str) -> str:
    """The error message for an unknown name, with the most similar known name.

    Args:
        name: of no environment and no game.
        error: what `games.by_name` says of it, which lists the games.
    """
    nearest = difflib.get_close_matches(name, ["cartpole", "pendulum"], cutoff=0.7)
    if nearest:
        return f"{name}: no such environment or game. Did you mean {nearest[0]!r}?"
    return f"{error} Environments: cartpole, pendulum, gymnax:NAME (like gymnax:Acrobot-v1), gymnasium:NAME."


def _own(name: str) -> Environment:
    found = loaded(name, "environment", (Environment, Game))
    if isinstance(found, Game):
        check_rules(found)
        return from_game(found)
    check_steps(found)
    return found
