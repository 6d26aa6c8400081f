"""gymnax's environments against gymnax itself, over random episodes."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import environments
from jaxzero.environments.gymnax_adapter import from_gymnax

gymnax = pytest.importorskip("gymnax")

MINATAR = [f"{name}-MinAtar" for name in ("Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders")]
# Limits that random play reaches, and gets over.
LIMIT = dict.fromkeys(["CartPole-v1", *MINATAR], 30) | {"Acrobot-v1": 40, "MountainCar-v0": 40}
LIMIT |= {"FrozenLake-misc": 8, "Breakout-MinAtar": 12}
CONTINUOUS = ["Pendulum-v1", "MountainCarContinuous-v0", "Reacher-misc", "PointRobot-misc", "Swimmer-misc"]
LIMIT |= dict.fromkeys(CONTINUOUS, 30)


def shortened(name):
    env, params = gymnax.make(name)
    return env, params.replace(max_steps_in_episode=LIMIT[name])


def drawn(environment, key):
    """A random action."""
    if environment.bounds is None:
        return jax.random.randint(key, (), 0, environment.num_actions)
    low, high = map(jnp.array, environment.bounds)
    return low + (high - low) * jax.random.uniform(key, low.shape)


def ours_and_theirs(name, steps=200, batch=4):
    """Random play by our step and reset, and by gymnax's `step`, which resets itself: arrays [T, B, ...]."""
    env, params = shortened(name)
    environment = from_gymnax(name, params)

    def step(carry, key):
        (ours, theirs), (draw, rest) = carry, jax.random.split(key)
        action = drawn(environment, draw)
        key_step, key_reset = jax.random.split(rest)  # as gymnax splits it
        after, outcome = environment.step(ours, action, key_step)
        over = outcome.terminated | outcome.truncated
        begun = jax.tree.map(lambda x, y: jnp.where(over, x, y), environment.reset(key_reset), after)
        given = action if environment.bounds is None else action.reshape(env.action_space(params).shape)
        seen, theirs, reward, terminated, truncated, info = env.step(rest, theirs, given, params)
        pairs = dict(
            reward=(outcome.reward, jnp.float32(reward).reshape(())),
            terminated=(outcome.terminated, jnp.reshape(terminated, ())),
            truncated=(outcome.truncated, jnp.reshape(truncated & ~terminated, ())),
            last=(environment.observe(after), info["final_observation"]),
            seen=(environment.observe(begun), seen),
        )
        return (begun, theirs), pairs

    def lane(key):
        first, rest = jax.random.split(key)
        start = environment.reset(first)
        return jax.lax.scan(step, (start, start.state), jax.random.split(rest, steps))[1]

    return environment, jax.tree.map(np.asarray, jax.jit(jax.vmap(lane))(jax.random.split(jax.random.key(1), batch)))


@pytest.mark.parametrize(
    "name", ["CartPole-v1", "Acrobot-v1", "MountainCar-v0", "FrozenLake-misc", *MINATAR, *CONTINUOUS]
)
def test_random_episodes_are_gymnaxs(name):
    environment, pairs = ours_and_theirs(name)
    if name == "FrozenLake-misc":  # a number there, and one-hot here
        pairs |= {which: (pairs[which][0].argmax(-1), pairs[which][1]) for which in ("last", "seen")}
    for what, (ours, theirs) in pairs.items():
        np.testing.assert_allclose(ours, theirs, atol=1e-4, err_msg=what)  # states are no longer the same to the bit
    assert pairs["truncated"][0].any()
    if name not in (
        "Acrobot-v1",
        "MountainCar-v0",
        "Freeway-MinAtar",
        *CONTINUOUS,
    ):  # ends that random play does not find
        assert pairs["terminated"][0].any()
    assert (pairs["seen"][0].dtype == bool) == name.endswith("MinAtar")


def test_an_end_at_the_limit_is_terminated_where_the_rules_end_it_too():
    env, params = gymnax.make("CartPole-v1")
    environment = from_gymnax("CartPole-v1", params.replace(max_steps_in_episode=1))
    start = environment.reset(jax.random.key(0))
    falling = start._replace(state=start.state.replace(theta=jnp.float32(0.2), theta_dot=jnp.float32(2)))
    ends = [environment.step(state, jnp.int32(0), jax.random.key(0))[1] for state in (start, falling)]
    assert [(bool(end.terminated), bool(end.truncated)) for end in ends] == [(False, True), (True, False)]


@pytest.mark.parametrize("name, chance", [
    ("CartPole-v1", False), ("MountainCar-v0", False), ("Acrobot-v1", False), ("Breakout-MinAtar", False),
    ("SpaceInvaders-MinAtar", False), ("Asterix-MinAtar", True), ("Freeway-MinAtar", True), ("Seaquest-MinAtar", True),
    ("FrozenLake-misc", True), ("Pendulum-v1", False), ("MountainCarContinuous-v0", False), ("Reacher-misc", False),
])  # fmt: skip
def test_chance_is_told_and_the_functions_fit_the_record(name, chance):
    environment = from_gymnax(name)
    assert environment.chance == chance and environment.id == name
    assert environment.longest == gymnax.make(name)[1].max_steps_in_episode
    environments.check_steps(environment)


def test_acrobot_with_noise_has_chance():
    assert from_gymnax("Acrobot-v1", gymnax.make("Acrobot-v1")[1].replace(torque_noise_max=0.5)).chance


def test_states_have_one_type_from_the_first_on():
    environment = from_gymnax("Breakout-MinAtar")
    state = jax.eval_shape(environment.reset, jax.random.key(0))
    after, _ = jax.eval_shape(environment.step, state, jnp.int32(0), jax.random.key(0))
    assert not any(x.weak_type for x in jax.tree.leaves((state, after)))


def test_actions_beyond_their_bounds_are_cut():
    environment = from_gymnax("Reacher-misc", samples=7)
    assert environment.num_actions == 7 and environment.bounds == ((-1.0, -1.0), (1.0, 1.0))
    state = environment.reset(jax.random.key(0))
    far, near = (environment.step(state, jnp.array([x, -x]), jax.random.key(1)) for x in (9.0, 1.0))
    jax.tree.map(np.testing.assert_array_equal, far, near)


def test_wrong_names_and_actions_without_bounds_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="no such environment. Did you mean 'CartPole-v1'.*Breakout-MinAtar"):
        from_gymnax("cartpole-v1")
    endless = gymnax.environments.spaces.Box(-np.inf, np.inf, (1,))
    with monkeypatch.context() as patched:
        patched.setattr(gymnax.environments.Pendulum, "action_space", lambda self, params=None: endless)
        with pytest.raises(ValueError, match="a search needs finite bounds"):
            from_gymnax("Pendulum-v1")
    monkeypatch.setitem(sys.modules, "gymnax", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs gymnax: pip install '\.\[gymnax\]'"):
        from_gymnax("CartPole-v1")
