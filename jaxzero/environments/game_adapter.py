"""A game as an environment, whose rules the learner does not know."""

from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxzero.environments.environment import Environment, Outcome
from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.games.game import Game, check_game
from jaxzero.types import State

__all__ = ["from_game"]

RULES = "a search that knows the rules can play it: models.perfect(game, network), or --model rules"


def from_game(game: Game, discount: float = 1.0, observation_dtype: Any = jnp.float32) -> Environment:
    """A game as an environment: for one player, or for two who alternate.

    A step's reward is what the game pays its mover for it; where the game ends by a limit, the episode is truncated. A
    search with a learned model assumes that two players alternate, and that their rewards add up to 0. That is checked
    here, in some 2,000 plies of random play.

    Args:
        game: of one player, with or without chance; or of two without chance.
        discount: γ per step; published for board games: 1.
        observation_dtype: of observations. For a game that shows only 0 and 1, jnp.uint8 or jnp.bool_ take a quarter of
            the memory.

    Raises:
        ValueError: more than two players; two with chance; two who do not alternate, or whose
            rewards do not add up to 0.

    >>> from jaxzero import games
    >>> environment = from_game(games.from_pgx("tic_tac_toe"))
    >>> state, outcome = environment.step(environment.reset(jax.random.key(0)), 4, jax.random.key(1))
    >>> environment.num_players, int(environment.legal(state).sum()), bool(outcome.terminated)
    (2, 8, False)
    """
    check_game("from_game", game)
    chance = depends_on_key(game.step, jax.eval_shape(game.init, jax.random.key(0)))
    _check_players(game, chance)

    def step(state: State, action: Int[Array, ""], key: chex.PRNGKey) -> tuple[State, Outcome]:
        mover = game.to_play(state)
        after = game.step(state, action, key)
        truncated = jnp.bool_(False) if game.truncated is None else game.truncated(after)
        return after, Outcome(game.rewards(after)[mover], game.terminal(after) & ~truncated, truncated)

    return Environment(
        id=game.id,
        num_actions=game.num_actions,
        observation_shape=game.observation_shape,
        reset=game.init,
        step=step,
        observe=lambda state: game.observe(state).astype(observation_dtype),
        legal=game.legal,
        num_players=game.num_players,
        discount=discount,
        chance=chance,
        symmetries=game.symmetries,
        game=game,
        draw=game.draw,
    )


def _check_players(game: Game, chance: bool) -> None:
    who = f"from_game({game.id})"
    if game.num_players > 2:
        raise ValueError(f"{who}: it has {game.num_players} players, but an environment has one or two; {RULES}.")
    if game.num_players == 1:
        return
    if chance:
        raise ValueError(
            f"{who}: its step uses its key, but a learned model for two players has no chance nodes; {RULES}, with "
            "Game.outcomes where its chances can be listed."
        )
    alternates, sums_to_zero = _tried(game)
    if not alternates:
        raise ValueError(
            f"{who}: after some moves the same player moves again, but a learned model assumes that two players "
            f"alternate; {RULES}. Or add a pass action to the game."
        )
    if not sums_to_zero:
        raise ValueError(f"{who}: the rewards of its two players do not add up to 0 in every step; {RULES}.")


def _tried(game: Game, batch: int = 8, plies: int = 256) -> tuple[bool, bool]:
    """Whether the players of random games alternate, and whether their rewards add up to 0."""

    def ply(state: State, key: chex.PRNGKey) -> tuple[State, tuple[Array, Array]]:
        draw, move, new = jax.random.split(key, 3)
        action = jnp.argmax(jnp.where(game.legal(state), jax.random.gumbel(draw, (game.num_actions,)), -jnp.inf))
        after = game.step(state, action, move)
        over = game.terminal(after)
        cut = jnp.bool_(False) if game.truncated is None else game.truncated(after)  # its value is still used
        alternates = (over & ~cut) | (game.to_play(after) != game.to_play(state))
        zero = jnp.abs(game.rewards(after).sum()) < 1e-5
        return jax.tree.map(lambda x, y: jnp.where(over, x, y), game.init(new), after), (alternates, zero)

    def lane(key: chex.PRNGKey) -> tuple[Array, Array]:
        first, rest = jax.random.split(key)
        seen = jax.lax.scan(ply, game.init(first), jax.random.split(rest, plies))[1]
        return jax.tree.map(jnp.all, seen)

    seen = jax.jit(jax.vmap(lane))(jax.random.split(jax.random.key(0), batch))
    alternates, zero = (bool(np.all(x)) for x in seen)
    return alternates, zero
