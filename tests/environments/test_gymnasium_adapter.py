"""Gymnasium's environments in a batch against single ones of the same seeds: no observation is lost."""

import sys

import numpy as np
import pytest

from jaxzero.environments.gymnasium_adapter import from_gymnasium

gymnasium = pytest.importorskip("gymnasium")

BATCH, STEPS = 3, 60


def single(seed, actions, **options):
    """One environment, begun anew where it ends: (observation now, reward, terminated, truncated, led to) a step."""
    env = gymnasium.make("CartPole-v1", **options)
    env.reset(seed=seed)
    for action in actions:
        led_to, reward, terminated, truncated, _ = env.step(action)
        now = env.reset()[0] if terminated or truncated else led_to
        yield now, reward, terminated, truncated and not terminated, led_to


@pytest.mark.parametrize("limit", [500, 12])
def test_a_batch_is_single_environments_begun_anew(limit):
    environment = from_gymnasium("CartPole-v1", BATCH, seed=5, max_episode_steps=limit)
    actions = np.random.default_rng(0).integers(0, 2, (STEPS, BATCH))
    environment.reset()
    seeds = np.random.SeedSequence(5).generate_state(BATCH).tolist()
    ours = [environment.step(action) for action in actions]
    for i in range(BATCH):
        theirs = list(single(seeds[i], actions[:, i], max_episode_steps=limit))
        for field, values in zip(ours[0]._fields, zip(*theirs)):
            assert np.array_equal([getattr(step, field)[i] for step in ours], values), field
    ended = np.array([step.terminated | step.truncated for step in ours])
    assert ended.any(axis=0).all() and any(step.truncated.any() for step in ours) == (limit == 12)


class Reused(gymnasium.Env):
    """An environment of three steps that hands out the same array every time."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)
    seen = None

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.seen = np.zeros(1) if self.seen is None else self.seen
        self.seen[:] = 0
        return self.seen, {}

    def step(self, action):
        self.seen += 1
        return self.seen, 1.0, bool(self.seen[0] == 3), bool(self.seen[0] == 3), {}


@pytest.fixture
def reused():
    gymnasium.register("Reused-v0", Reused, max_episode_steps=50, disable_env_checker=True)
    yield "Reused-v0"
    del gymnasium.registry["Reused-v0"]


def test_the_last_observation_survives_an_environment_that_reuses_its_array(reused):
    environment = from_gymnasium(reused, 2)
    first = environment.reset()
    steps = [environment.step(np.zeros(2, int)) for _ in range(4)]
    assert [step.final_observations[0, 0] for step in steps] == [1, 2, 3, 1] and first[0, 0] == 0
    assert [step.observations[0, 0] for step in steps] == [1, 2, 0, 1]
    assert [bool(step.terminated[0]) for step in steps] == [False, False, True, False]
    assert not any(step.truncated.any() for step in steps)  # both: terminated
    assert first.dtype == np.float32 and steps[0].rewards.dtype == np.float32


def test_a_second_reset_begins_elsewhere_and_a_seed_repeats():
    one, other = (from_gymnasium("CartPole-v1", 2, seed=3) for _ in range(2))
    start = one.reset()
    assert np.array_equal(start, other.reset()) and not np.array_equal(start[0], start[1])
    again = one.reset()
    assert not np.array_equal(start, again) and np.array_equal(again, other.reset())


def test_what_it_says_of_itself():
    environment = from_gymnasium("Acrobot-v1", 1, discount=0.99)
    assert (environment.id, environment.num_envs, environment.num_actions) == ("Acrobot-v1", 1, 3)
    assert (environment.observation_shape, environment.discount) == ((6,), 0.99)
    assert (environment.longest, environment.solved) == (500, -100)
    environment.close()


@pytest.mark.parametrize("name, said", [
    ("CartPole-v9", "no such environment.*pprint_registry"),
    ("no_such_module:CartPole-v1", "no such environment.*no_such_module"),
    ("Pendulum-v1", "its actions are Box.*Discrete.*TransformAction"),
    ("FrozenLake-v1", "its observations are Discrete.*Box"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(name, said):
    with pytest.raises(ValueError, match=rf"(?s)from_gymnasium\('{name}'\): {said}"):
        from_gymnasium(name, 2)


def test_wrong_arguments_and_a_missing_package(monkeypatch):
    with pytest.raises(ValueError, match="num_envs=0.*give 1 or more"):
        from_gymnasium("CartPole-v1", 0)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ModuleNotFoundError, match=r"needs gymnasium: pip install '\.\[gymnasium\]'"):
        from_gymnasium("CartPole-v1", 1)
