"""Pendulum: the same motion as gymnax's and Gymnasium's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.environments import Bounds, check_episodes, check_steps, pendulum


def of_gymnax(angle, speed, torque):
    """Angle, speed and reward after a step of gymnax's."""
    gymnax = pytest.importorskip("gymnax")
    env, params = gymnax.make("Pendulum-v1")
    _, state = env.reset_env(jax.random.key(0), params)
    state = state.replace(theta=angle, theta_dot=speed)
    _, after, reward, *_ = env.step_env(jax.random.key(1), state, torque, params)
    return after.theta, after.theta_dot, reward


def test_a_thousand_steps_are_those_of_gymnax():
    environment = pendulum(longest=10_000)
    torque = jax.random.uniform(jax.random.key(0), (1000, 1), minval=-3.0, maxval=3.0)  # beyond the bounds, too

    def step(state, torque):
        theirs = of_gymnax(state.angle, state.speed, torque)
        after, outcome = environment.step(state, torque, jax.random.key(0))
        return after, (after.angle, after.speed, outcome.reward, *theirs)

    start = environment.reset(jax.random.key(3))
    ours = jax.jit(lambda start: jax.lax.scan(step, start, torque)[1])(start)
    for mine, theirs in zip(ours[:3], ours[3:]):
        np.testing.assert_allclose(mine, jnp.ravel(theirs), rtol=1e-5, atol=1e-5)


def test_an_episode_is_cut_and_never_terminated():
    environment = pendulum(longest=3)
    state, ends = environment.reset(jax.random.key(0)), []
    for i in range(3):
        state, outcome = environment.step(state, jnp.zeros(1), jax.random.key(i))
        ends.append((bool(outcome.terminated), bool(outcome.truncated)))
    assert ends == [(False, False), (False, False), (False, True)] and "<svg" in environment.draw(state)


def test_it_keeps_the_contract():
    check_steps(pendulum())
    check_episodes(pendulum(longest=20), jax.random.key(0), num_steps=50, batch=4)
    with pytest.raises(ValueError, match="longest=0"):
        pendulum(longest=0)


@pytest.mark.parametrize("changed, said", [
    (dict(bounds=Bounds((1.0,), (1.0,))), "low below high"),
    (dict(bounds=Bounds((), ())), "give finite numbers, one for each coordinate"),
    (dict(bounds=Bounds((0.0,), (float("inf"),))), "give finite numbers, one for each coordinate"),
    (dict(legal=lambda state: jnp.ones(20, bool)), "need num_players=1 and legal=None"),
    (dict(num_players=2), "need num_players=1 and legal=None"),
])  # fmt: skip
def test_records_of_continuous_actions_that_mean_nothing_are_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        check_steps(pendulum()._replace(**changed))
