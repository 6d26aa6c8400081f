"""CartPole against Gymnasium's and gymnax's, from the same states and by the same actions."""

import functools
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import environments
from jaxzero.environments.cartpole import CartPoleState

STEPS = 1000


@functools.cache
def played() -> dict[str, np.ndarray]:
    """Random play, begun anew where an episode ends: arrays [T, ...]."""
    environment = environments.cartpole()

    def step(state, key):
        draw, new = jax.random.split(key)
        action = jax.random.randint(draw, (), 0, 2)
        after, outcome = environment.step(state, action, key)
        over = outcome.terminated | outcome.truncated
        following = jax.tree.map(lambda x, y: jnp.where(over, x, y), environment.reset(new), after)
        return following, dict(
            before=state.motion, time=state.time, action=action, after=environment.observe(after), **outcome._asdict()
        )

    keys = jax.random.split(jax.random.key(0), STEPS)
    return jax.tree.map(np.asarray, jax.jit(lambda: jax.lax.scan(step, environment.reset(keys[0]), keys)[1])())


def test_random_play_has_many_episodes_and_begins_each_near_the_middle():
    found = played()
    assert found["terminated"].sum() > 30 and not found["truncated"].any() and (found["reward"] == 1).all()
    starts = found["before"][found["time"] == 0]
    assert np.abs(starts).max() <= 0.05 and (starts.std(axis=0) > 0.02).all()


def test_it_is_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    env, found = gymnasium.make("CartPole-v1").unwrapped, played()
    for t in range(STEPS):
        if found["time"][t] == 0:
            env.reset()
            env.state = found["before"][t].astype(np.float64)
        seen, reward, terminated, _, _ = env.step(int(found["action"][t]))
        np.testing.assert_allclose(found["after"][t], seen, atol=1e-5)
        assert (reward, terminated) == (found["reward"][t], found["terminated"][t])


def test_it_is_gymnaxs():
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("CartPole-v1")
    found = played()

    def step(state, at):
        start = state.replace(time=0, **dict(zip(("x", "x_dot", "theta", "theta_dot"), at["before"])))
        state = jax.tree.map(lambda x, y: jnp.where(at["time"] == 0, x, y), start, state)
        seen, after, reward, terminated, _ = env.step_env(jax.random.key(0), state, at["action"], params)
        return after, (seen, reward, terminated)

    first = jax.tree.map(jnp.asarray, env.reset_env(jax.random.key(0), params)[1])
    seen, reward, terminated = jax.jit(lambda: jax.lax.scan(step, first, found)[1])()
    np.testing.assert_allclose(found["after"], seen, atol=1e-5)
    assert np.array_equal(reward, found["reward"]) and np.array_equal(terminated, found["terminated"])


@pytest.mark.parametrize("motion, time, flags", [
    ([0, 0, 0, 0], 0, (False, False)),
    ([2.399, 10, 0, 0], 0, (True, False)),
    ([-2.399, -10, 0, 0], 0, (True, False)),
    ([0, 0, 0.209, 1], 0, (True, False)),  # 12 degrees are 0.2094
    ([0, 0, 0.209, 0], 0, (False, False)),
    ([0, 0, 0, 0], 498, (False, False)),
    ([0, 0, 0, 0], 499, (False, True)),
    ([0, 0, -0.209, -1], 499, (True, False)),  # both: terminated
])  # fmt: skip
def test_ends(motion, time, flags):
    state = CartPoleState(jnp.float32(motion), jnp.int32(time))
    _, outcome = environments.cartpole().step(state, jnp.int32(0), jax.random.key(0))
    assert (bool(outcome.terminated), bool(outcome.truncated)) == flags


def test_the_pole_leans_in_the_picture_as_in_the_state():
    environment = environments.cartpole()
    for x, theta in [(1.0, 0.1), (-2.0, -0.2)]:
        picture = environment.draw(CartPoleState(jnp.float32([x, 0, theta, 0]), jnp.int32(0)))
        ElementTree.fromstring(picture)
        assert f"translate({100 * x:.1f} 0)" in picture and f"rotate({np.degrees(theta):.1f})" in picture


def test_what_it_says_of_itself():
    environment = environments.cartpole(longest=200, discount=0.99)
    assert (environment.longest, environment.discount, environment.solved) == (200, 0.99, 475)
    assert not environment.chance and environment.num_players == 1
    environments.check_steps(environment)
    with pytest.raises(ValueError, match=r"longest=0.*longest=500"):
        environments.cartpole(longest=0)
