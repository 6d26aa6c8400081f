"""Acting in environments that live on the host: the search is jitted, the steps are not.

Slower than `acting`, because each step waits for the host; but most existing environments are of this kind. They keep
their own states, which no checkpoint holds, so a resumed run begins its episodes anew.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.train.muzero.acting import ActingStats, summed
from jaxzero.train.muzero.episodes import Episodes
from jaxzero.train.muzero.sequence_replay import Transition
from jaxzero.types import Keys, Params

__all__ = ["HostActing", "blank_host_transition", "host_acting", "host_episodes"]


class HostActing(NamedTuple):
    """What is known of the environments between two chunks, one entry each.

    Attributes:
        age: steps since the beginning of the episode.
        paid: rewards of the episode so far.
        keys: PRNG keys.
    """

    age: Int[Array, "B"]
    paid: Float[Array, "B"]
    keys: Keys


def blank_host_transition(environment: Any) -> Transition:
    """The shapes and types of one row of the replay; begins the environments' episodes."""
    shape = lambda dtype, *dims: jax.ShapeDtypeStruct(dims, dtype)
    number, flag = shape(jnp.float32), shape(jnp.bool_)
    seen = jax.dtypes.canonicalize_dtype(environment.reset().dtype)
    policy = shape(jnp.float32, environment.num_actions)
    observation = shape(seen, *environment.observation_shape)
    return Transition(observation, None, shape(jnp.int32), number, flag, flag, flag, policy, number)


def host_acting(
    environment: Any, policy: Callable, choose: Callable, *, steps: int
) -> tuple[Callable[..., HostActing], Callable[..., tuple[HostActing, Transition, ActingStats]]]:
    """Acting as two functions, as in `acting`; `act` must not be jitted.

    The last step of an episode that is cut is taken, but not recorded as a step. Its state is recorded as the last one,
    with reward 0, because the state after it is no longer available at the next search.

    Args:
        environment: a `jaxzero.environments.HostEnvironment`.
        policy: `(params, keys, (observation,)) -> PolicyOutput`.
        choose: see `jaxzero.train.move_selection.exploring`.
        steps: T.
    """
    count = environment.num_envs
    seen: list[np.ndarray] = []  # the current observations; the environments keep their states themselves

    def begin(key: chex.PRNGKey, environments: int) -> HostActing:
        seen.clear()
        return HostActing(jnp.zeros(count, jnp.int32), jnp.zeros(count), jax.random.split(key, environments))

    def stack(*parts: Any) -> Array:
        """What is on the host is transferred once."""
        return jnp.asarray(np.stack(parts)) if isinstance(parts[0], np.ndarray | np.generic) else jnp.stack(parts)

    @jax.jit
    def think(params: Params, keys: Keys, observation: Array, age: Array) -> tuple:
        keys, k_search, k_choose = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(keys)
        out = policy(params, k_search, (observation,))
        action, trace = choose(k_choose, age, out, jnp.ones_like(out.action_weights, jnp.bool_))
        entropy = -jnp.sum(jax.scipy.special.xlogy(out.action_weights, out.action_weights))
        return keys, action, trace == 0, out.action_weights, out.value, entropy, out.info.status != 0

    def act(params: Params, now: HostActing) -> tuple[HostActing, Transition, ActingStats]:
        if not seen:  # a resumed run: its earlier episodes are gone
            seen.append(environment.reset())
            now = now._replace(age=jnp.zeros_like(now.age), paid=jnp.zeros_like(now.paid))
        age, paid, keys = np.array(now.age), np.array(now.paid), now.keys
        rows, told = [], []
        for _ in range(steps):
            keys, action, random, weights, value, entropy, bad = think(params, keys, seen[0], age)
            found = environment.step(np.asarray(action))
            reward = np.nan_to_num(found.rewards, posinf=0.0, neginf=0.0)
            bad = np.asarray(bad) | ~np.isfinite(found.rewards)
            row = Transition(
                observation=seen[0],
                legal=None,
                action=action,
                reward=np.where(found.truncated, np.float32(0), reward),
                terminated=found.terminated,
                last=found.truncated,
                random=random & ~found.truncated,
                policy=weights,
                value=value,
            )
            rows.append(row)
            over, paid, age = found.terminated | found.truncated, paid + reward, age + 1
            ended = over, np.where(over, paid, 0), np.where(over, age, 0), over & (paid > 0)
            told.append(((entropy, np.float32(0)), bad, ended, over & (paid == 0)))
            paid, age, seen[0] = np.where(over, 0, paid).astype(np.float32), np.where(over, 0, age), found.observations
        record = jax.tree.map(lambda *parts: stack(*parts).swapaxes(0, 1), *rows)
        record = record._replace(action=record.action.astype(jnp.int32))
        now = HostActing(jnp.asarray(age, jnp.int32), jnp.asarray(paid), keys)
        stats = summed(record, jax.tree.map(stack, *told))
        return now, record, stats._replace(steps=jnp.array([count * steps]))

    return begin, act


def host_episodes(environment: Any, act: Callable, episodes: int, longest: int) -> Episodes:
    """Plays `episodes` episodes with the actions `act(observations)`.

    All environments begin together, and begin anew when the last one is done. If instead the first episodes to end
    counted, short ones would be overrepresented.

    Args:
        environment: a `HostEnvironment`, which is reset.
        act: `observations [B, ...] -> actions [B]`.
        episodes: how many.
        longest: steps after which an episode is abandoned.
    """
    count = environment.num_envs
    found: list[Episodes] = []
    for _ in range(-(-episodes // count)):
        seen, paid, age, ended = environment.reset(), np.zeros(count), np.zeros(count, int), np.zeros(count, bool)
        while not ended.all() and age.max() < longest:
            step = environment.step(np.asarray(act(seen)))
            seen, paid, age = step.observations, paid + np.where(ended, 0, step.rewards), age + ~ended
            ended = ended | step.terminated | step.truncated
        found.append(Episodes(paid, age, ended))
    return Episodes(*(np.concatenate(x)[:episodes] for x in zip(*found)))
