"""Whole episodes, played once from their beginning, to measure a policy and to record an episode."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.environments.environment import within_bounds
from jaxzero.train.muzero.acting import select
from jaxzero.types import Keys, Params, State

__all__ = ["Episodes", "play_episodes", "record_episode"]


class Episodes(NamedTuple):
    """Results of episodes, one entry each.

    Attributes:
        returned: the sum of the rewards, not discounted.
        length: steps.
        ended: whether the episode came to its end; else it was abandoned after `longest` steps.
    """

    returned: Float[Array, "n"]
    length: Int[Array, "n"]
    ended: Bool[Array, "n"]


def play_episodes(environment: Any, policy: Callable, params: Params, keys: Keys, longest: int) -> Episodes:
    """Plays an episode for each key, all in lock-step until the last one is over.

    Args:
        environment: a `jaxzero.environments.Environment` of one player.
        policy: `(params, keys, state) -> PolicyOutput`.
        params: for the policy.
        keys: one per episode.
        longest: steps after which an episode is abandoned.

    >>> from types import SimpleNamespace
    >>> from jaxzero.environments import cartpole
    >>> right = lambda params, keys, state: SimpleNamespace(action=jnp.ones(len(keys), jnp.int32))
    >>> found = play_episodes(cartpole(), right, None, jax.random.split(jax.random.key(0), 3), longest=100)
    >>> found.returned.tolist(), found.length.tolist(), found.ended.tolist()
    ([9.0, 10.0, 10.0], [9, 10, 10], [True, True, True])
    """
    keys, k_reset = jax.vmap(jax.random.split, out_axes=1)(keys)
    count = len(keys)

    def step(carry: tuple) -> tuple:
        keys, state, found, number = carry
        keys, k_search, k_step = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(keys)
        action = within_bounds(environment, policy(params, k_search, state).action)
        after, outcome = jax.vmap(environment.step)(state, action, k_step)
        going = ~found.ended
        found = Episodes(
            found.returned + jnp.where(going, outcome.reward, 0.0),
            found.length + going,
            found.ended | outcome.terminated | outcome.truncated,
        )
        return keys, select(going, after, state), found, number + 1

    def unfinished(carry: tuple) -> Array:
        return ~jnp.all(carry[2].ended) & (carry[3] < longest)

    nothing = Episodes(jnp.zeros(count), jnp.zeros(count, jnp.int32), jnp.zeros(count, jnp.bool_))
    start = keys, jax.vmap(environment.reset)(k_reset), nothing, jnp.int32(0)
    return jax.lax.while_loop(unfinished, step, start)[2]


def record_episode(environment: Any, policy: Callable, params: Params, key: Any, steps: int) -> tuple[State, dict]:
    """The states of one episode `[steps, ...]`, and by step: action, reward, value, and whether it was over before.

    Args:
        environment: of one player.
        policy: likewise.
        params: likewise.
        key: of the episode.
        steps: how many are recorded. Once the episode is over, its last state but one is repeated.

    >>> from types import SimpleNamespace
    >>> from jaxzero.environments import cartpole
    >>> right = lambda params, keys, state: SimpleNamespace(action=jnp.ones(1, jnp.int32), value=jnp.zeros(1))
    >>> states, told = record_episode(cartpole(), right, None, jax.random.key(0), steps=20)
    >>> states.motion.shape, told["reward"].shape, int((~told["over"]).sum())
    ((20, 4), (20,), 10)
    """
    key, k_reset = jax.random.split(key)
    state = jax.tree.map(lambda x: x[None], environment.reset(k_reset))

    def step(carry: tuple, key: Any) -> tuple:
        state, over = carry
        k_search, k_step = jax.random.split(key)
        out = policy(params, k_search[None], state)
        action = within_bounds(environment, out.action)
        after, outcome = jax.vmap(environment.step)(state, action, k_step[None])
        ends = over | outcome.terminated | outcome.truncated
        told = dict(action=action, reward=outcome.reward, value=out.value, over=over)
        return (select(ends, state, after), ends), (state, told)

    _, (states, told) = jax.lax.scan(step, (state, jnp.zeros(1, jnp.bool_)), jax.random.split(key, steps))
    first = lambda x: x[:, 0]
    return jax.tree.map(first, states), jax.tree.map(first, told)
