"""Whole episodes in a world whose returns and lengths are sums that can be written down."""

import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.environments import Environment, Outcome
from jaxzero.train.muzero.episodes import play_episodes, record_episode

LIMIT = 9


class Count(NamedTuple):
    goal: jax.Array
    time: jax.Array


def counting():
    """Ends by its rules after `goal` steps, 1 ... 12, is cut after nine; step t pays 10^a · t, also behind the end."""

    def step(state, action, key):
        after = Count(state.goal, state.time + 1)
        over = after.time >= state.goal
        paid = after.time * jnp.where(action == 1, 10.0, 1.0)
        return after, Outcome(paid, over, ~over & (after.time >= LIMIT))

    return Environment(
        id="counting",
        num_actions=2,
        observation_shape=(2,),
        reset=lambda key: Count(jax.random.randint(key, (), 1, 13), jnp.int32(0)),
        step=step,
        observe=lambda state: jnp.stack([state.goal, state.time]),
    )


def tens_first(params, keys, state):
    """Action 1 in the first two steps; its value tells the time."""
    action = (state.time < params).astype(jnp.int32)
    return types.SimpleNamespace(action=action, value=state.time / 100)


def played(keys, longest=100, tens=2):
    play = jax.jit(lambda keys: play_episodes(counting(), tens_first, tens, keys, longest))
    return jax.tree.map(np.asarray, play(keys))


def goals(keys):
    """How long each episode would be by its rules: its key is split once for the start."""
    return np.array([int(counting().reset(jax.random.split(key)[1]).goal) for key in keys])


KEYS = jax.random.split(jax.random.key(0), 30)


@pytest.mark.parametrize("longest", [100, LIMIT, 4])
def test_returns_and_lengths_are_those_up_to_the_end_and_no_further(longest):
    found, goal = played(KEYS, longest), goals(KEYS)
    length = np.minimum(goal, min(LIMIT, longest))
    assert len(set(goal)) > 8 and goal.min() == 1 and goal.max() == 12
    np.testing.assert_array_equal(found.length, length)
    paid = np.cumsum([t * (10 if t <= 2 else 1) for t in range(1, 13)])
    np.testing.assert_array_equal(found.returned, paid[length - 1])
    np.testing.assert_array_equal(found.ended, (goal <= longest) | (longest >= LIMIT))


def test_an_episode_is_its_own_whatever_is_played_beside_it():
    whole, one = played(KEYS), played(KEYS[7:8])
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(x[7:8], y), whole, one)


def test_a_policy_has_the_parameters_and_a_key_of_its_own_for_each_step():
    def drawn(params, keys, state):
        return types.SimpleNamespace(action=jax.vmap(lambda k: jax.random.bernoulli(k, params))(keys).astype(jnp.int32))

    play = jax.jit(lambda p, keys: play_episodes(counting(), drawn, p, keys, 100).returned)
    least, most = (np.asarray(play(p, KEYS)) for p in (0.0, 1.0))
    half = np.asarray(play(0.5, KEYS))
    assert (most == 10 * least).all() and (least <= half).all() and len(set(half / least)) > 15


@pytest.mark.parametrize("steps", [20, 3])
def test_a_recorded_episode_is_the_states_that_were_acted_in(steps):
    record = jax.jit(lambda key: record_episode(counting(), tens_first, 2, key, steps))
    for key in KEYS[:6]:
        states, told = jax.tree.map(np.asarray, record(key))
        goal = int(counting().reset(jax.random.split(key)[1]).goal)
        there = min(goal, LIMIT, steps)
        assert states.time[:there].tolist() == list(range(there)) and (states.goal == goal).all()
        assert told["over"].tolist() == [t >= min(goal, LIMIT) for t in range(steps)]
        assert told["action"][:there].tolist() == [int(t < 2) for t in range(there)]
        assert told["reward"][:there].tolist() == [(t + 1) * (10 if t < 2 else 1) for t in range(there)]
        np.testing.assert_allclose(told["value"][:there], np.arange(there) / 100)
        assert states.time.max() == there - 1, "the state behind the end is not shown"
