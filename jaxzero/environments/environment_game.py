"""An environment as a game of one player, for a search that knows its rules."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxzero.environments.environment import Environment, Outcome, all_legal, check_environment
from jaxzero.games.game import Game
from jaxzero.types import State

__all__ = ["Position", "to_game", "to_position", "without_limit"]


class Position(NamedTuple):
    """A state of an environment, and what the step there brought."""

    state: State
    outcome: Outcome


def to_game(environment: Environment) -> Game:
    """The environment's rules as a game: the inverse of `from_game`.

    With it, everything that takes a game also takes an environment: `models.perfect` plans with a network in the
    simulator, `models.rollout` with random play.

    Args:
        environment: of one player, with actions that are numbers. If it was made from a game, that game is returned.

    Raises:
        ValueError: something else in place of the environment; continuous actions; two players, and no game that says
            who moves.

    >>> import jaxzero as jz
    >>> from jaxzero import environments, models
    >>> cartpole = environments.cartpole()
    >>> game, keys = to_game(cartpole), jax.random.split(jax.random.key(0), 4)
    >>> out = jax.jit(jz.uct(models.rollout(game, max_steps=20), 40))((), keys, jax.vmap(game.init)(keys))
    >>> out.action.shape
    (4,)
    """
    check_environment("to_game", environment)
    if environment.bounds is not None:
        raise ValueError(f"to_game({environment.id}): its actions are continuous, but those of a game are numbered.")
    if environment.game is not None:
        return environment.game
    if environment.num_players != 1:
        raise ValueError(
            f"to_game({environment.id}): it has {environment.num_players} players, but does not say whose turn it is. "
            "Give the game itself, or an environment of from_game."
        )

    draw = environment.draw

    def step(position: Position, action: Int[Array, ""], key: chex.PRNGKey) -> Position:
        over = position.outcome.terminated | position.outcome.truncated
        after, brought = environment.step(position.state, action, key)
        brought = brought._replace(reward=jnp.asarray(brought.reward, jnp.float32))
        still = Position(position.state, position.outcome._replace(reward=jnp.float32(0)))
        return jax.tree.map(lambda old, new: jnp.where(over, old, new), still, Position(after, brought))

    return Game(
        id=environment.id,
        num_actions=environment.num_actions,
        num_players=1,
        observation_shape=environment.observation_shape,
        init=lambda key: to_position(environment, environment.reset(key)),
        step=step,
        observe=lambda position: environment.observe(position.state),
        legal=lambda position: all_legal(environment, position.state) & ~_over(position),
        to_play=lambda position: jnp.int32(0),
        terminal=_over,
        rewards=lambda position: position.outcome.reward[None],
        truncated=lambda position: position.outcome.truncated & ~position.outcome.terminated,
        symmetries=environment.symmetries,
        draw=None if draw is None else lambda position: draw(position.state),
    )


def without_limit(environment: Environment) -> Environment:
    """The environment without the limit that cuts its episodes, for a search.

    A limit is no rule: what lies beyond it counts, and a search that stopped there would find nothing in the last
    states of an episode. Here the search looks beyond the limit. An environment is stepped as if the episode went on. A
    game with a limit of its own stands still there, and its value is the network's, discounted by γ per step.

    >>> from jaxzero.environments import cartpole
    >>> endless = without_limit(cartpole(longest=3))
    >>> state = endless.reset(jax.random.key(0))
    >>> for i in range(5):
    ...     state, outcome = endless.step(state, i % 2, None)
    >>> bool(outcome.terminated), bool(outcome.truncated)
    (False, False)
    """
    check_environment("without_limit", environment)

    def step(state: State, action: Int[Array, ""], key: chex.PRNGKey) -> tuple[State, Outcome]:
        after, brought = environment.step(state, action, key)
        return after, brought._replace(truncated=jnp.zeros_like(brought.truncated))

    game, limit = environment.game, None if environment.game is None else environment.game.truncated
    if game is not None and limit is not None:
        game = game._replace(
            terminal=lambda state: environment.game.terminal(state) & ~limit(state),
            legal=lambda state: environment.game.legal(state) | limit(state),
            truncated=None,
            decisive=None,
        )
    return environment._replace(step=step, game=game)


def to_position(environment: Environment, state: State) -> State:
    """A state in which an episode goes on, as a position of `to_game(environment)`."""
    if environment.game is not None:
        return state
    return Position(state, Outcome(jnp.float32(0), jnp.bool_(False), jnp.bool_(False)))


def _over(position: Position) -> Array:
    return position.outcome.terminated | position.outcome.truncated
