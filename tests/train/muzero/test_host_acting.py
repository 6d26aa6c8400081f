"""Acting on the host against a world in NumPy that writes down what is done in it."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.environments.gymnasium_adapter import HostEnvironment, HostStep
from jaxzero.train.move_selection import exploring
from jaxzero.train.muzero.host_acting import blank_host_transition, host_acting, host_episodes
from jaxzero.train.muzero.sequence_replay import add, new_sequences
from jaxzero.types import PolicyOutput

COUNT = 3


class World:
    """Environment i counts its steps; even ones end by their rules, odd ones are cut, after 2 + (i + episode) % 4.

    Attributes:
        log: of each step: seen, action, reward, terminated, truncated.
        resets: how often all began anew.
    """

    def __init__(self, odd_pay=0.0):
        self.log, self.resets, self.episode, self.odd_pay = [], 0, np.zeros(COUNT, int), odd_pay

    def seen(self):
        return np.stack([np.arange(COUNT), self.episode, self.time], 1).astype(np.float32)

    def reset(self):
        self.resets, self.time, self.episode = self.resets + 1, np.zeros(COUNT, int), self.episode + 1
        return self.seen()

    def step(self, actions):
        before, self.time = self.seen(), self.time + 1
        paid = np.float32(self.time * 3 - 5 + actions)
        paid = np.where((self.time == 2) & (np.arange(COUNT) == 2), np.float32(self.odd_pay) + paid, paid)
        over, odd = self.time >= 2 + (np.arange(COUNT) + self.episode) % 4, np.arange(COUNT) % 2 == 1
        self.log.append((before, actions, paid, over & ~odd, over & odd))
        led = self.seen()
        self.episode, self.time = self.episode + over, np.where(over, 0, self.time)
        return HostStep(self.seen(), paid, over & ~odd, over & odd, led)

    def environment(self):
        return HostEnvironment("world", COUNT, 4, (3,), 0.9, None, None, self.reset, self.step, lambda: None)


def policy(params, keys, state):
    """Action = time mod 4; weights lean on it; the value tells time; a status where time is 1."""
    (seen,) = state
    time = seen[:, 2].astype(jnp.int32)
    weights = 0.1 + 0.6 * jax.nn.one_hot(time % 4, 4)
    info = types.SimpleNamespace(status=jnp.where(time == 1, 2, 0))
    return PolicyOutput(action=time % 4, action_weights=weights, value=seen[:, 2] / 8 + params, tree=None, info=info)


def acted(world, steps=5, chunks=4, choose=exploring(), start=None):
    environment = world.environment()
    begin, act = host_acting(environment, policy, choose, steps=steps)
    now = begin(jax.random.key(0), COUNT) if start is None else start
    records, stats = [], []
    for _ in range(chunks):
        now, record, told = act(0.5, now)
        records.append(jax.tree.map(np.asarray, record))
        stats.append(jax.tree.map(lambda x: float(x[0]), told))
    return now, jax.tree.map(lambda *x: np.concatenate(x, 1), *records), stats


def test_rows_are_what_the_environments_wrote_down():
    world = World()
    _, record, _ = acted(world)
    seen, actions, paid, terminated, truncated = (np.stack(x, 1) for x in zip(*world.log))
    assert world.resets == 1 and len(world.log) == 20 and terminated.any() and truncated.any()
    np.testing.assert_array_equal(record.observation, seen)
    np.testing.assert_array_equal(record.action, actions)
    np.testing.assert_array_equal(record.action, seen[..., 2] % 4)
    np.testing.assert_array_equal(record.reward, np.where(truncated, 0, paid))  # no step follows a last state
    np.testing.assert_array_equal(record.terminated, terminated)
    np.testing.assert_array_equal(record.last, truncated)
    np.testing.assert_allclose(record.value, seen[..., 2] / 8 + 0.5)
    assert record.legal is None and not record.random.any()
    assert record.policy.shape == (COUNT, 20, 4) and (record.policy.argmax(-1) == actions).all()


def test_stats_are_sums_over_the_episodes_that_ended_in_the_chunk():
    world = World()
    _, _, stats = acted(world)
    running, age = np.zeros(COUNT), np.zeros(COUNT, int)
    for chunk, told in enumerate(stats):
        returns, lengths = [], []
        for seen, _, paid, terminated, truncated in world.log[5 * chunk : 5 * chunk + 5]:
            running, age = running + paid, age + 1
            over = terminated | truncated
            returns, lengths = returns + running[over].tolist(), lengths + age[over].tolist()
            running, age = np.where(over, 0, running), np.where(over, 0, age)
        rows = [row[0] for row in world.log[5 * chunk : 5 * chunk + 5]]
        assert told.steps == 15 and told.episodes == len(returns) and told.length == sum(lengths)
        assert told.returned == pytest.approx(sum(returns))
        assert told.squared == pytest.approx(sum(x**2 for x in returns))
        assert told.first_wins == sum(x > 0 for x in returns) and told.draws == sum(x == 0 for x in returns)
        assert told.bad == sum((seen[:, 2] == 1).sum() for seen in rows)
        assert told.distinct == len({tuple(x) for seen in rows for x in seen.tolist()})
        assert told.entropy == pytest.approx(-15 * (0.7 * np.log(0.7) + 0.3 * np.log(0.1)), rel=1e-5)
    assert sum(told.episodes for told in stats) > 12


@pytest.mark.parametrize("odd_pay", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_not_finite_are_counted_and_recorded_as_none(odd_pay):
    world = World(odd_pay)
    now, record, stats = acted(world)
    paid = np.stack([row[2] for row in world.log], 1)
    odd = ~np.isfinite(paid)
    assert odd.any() and not record.reward[odd].any() and np.isfinite(record.reward).all()
    assert np.isfinite(np.asarray(now.paid)).all()
    second = np.stack([row[0][:, 2] for row in world.log], 1) == 1
    assert sum(told.bad for told in stats) == (odd | second).sum()


def test_random_actions_are_marked_but_not_in_last_states():
    world = World()
    _, record, _ = acted(world, steps=100, chunks=1, choose=exploring(random_rate=0.5))
    taken, by_policy = ~record.last, record.observation[..., 2] % 4
    assert abs(record.random[taken].mean() - 0.5) < 4.5 * np.sqrt(0.25 / taken.sum())
    assert record.last.sum() > 15 and not record.random[record.last].any()
    np.testing.assert_array_equal(record.action[taken & ~record.random], by_policy[taken & ~record.random])
    np.testing.assert_array_equal(record.action, np.stack([row[1] for row in world.log], 1))


def test_a_run_that_goes_on_begins_its_episodes_anew():
    """Its environments are others, of a new process: nothing of the episodes of before may be counted."""
    now, _, _ = acted(World(), steps=1, chunks=1)
    assert np.asarray(now.age).all() and np.asarray(now.paid).all()
    world = World()
    after, record, (told,) = acted(world, steps=4, chunks=1, start=now)
    assert world.resets == 1 and record.observation[:, 0, 2].tolist() == [0, 0, 0]
    over = np.stack([row[3] | row[4] for row in world.log])
    assert over.sum(0).tolist() == [1, 1, 0] and told.length == 3 + 4  # 2 + (i + 1) % 4 steps, of the first two
    assert told.returned == sum(row[2][0] for row in world.log[:3]) + sum(row[2][1] for row in world.log)
    kept, old = (jax.random.key_data(x.keys) for x in (after, now))
    assert (kept != old).any(), "keys go on"


def test_rows_fit_into_the_replay():
    world = World()
    blank = blank_host_transition(world.environment())
    _, record, _ = acted(World(), chunks=1)
    rings = add(new_sequences(blank, COUNT, 10), jax.tree.map(jnp.asarray, record))  # types are compared there
    np.testing.assert_array_equal(rings.steps.observation[:, :5], record.observation)
    of = lambda tree, axes: [(x.shape[axes:], x.dtype) for x in jax.tree.leaves(tree)]
    assert of(record, 2) == of(blank, 0)


@pytest.mark.parametrize("longest, episodes", [(100, 7), (3, 7), (100, 2)])
def test_episodes_on_the_host_are_whole_ones_of_all_environments_alike(longest, episodes):
    world = World()
    found = host_episodes(world.environment(), lambda seen: np.zeros(COUNT, int), episodes, longest)
    rounds = -(-episodes // COUNT)
    assert world.resets == rounds and len(found.returned) == episodes
    begun = [t for t, row in enumerate(world.log) if (row[0][:, 2] == 0).all()]
    want = []
    for start in begun[:rounds]:
        for i in range(COUNT):
            paid, length, ended = 0.0, 0, False
            for _, _, reward, terminated, truncated in world.log[start : start + longest]:
                paid, length, ended = paid + reward[i], length + 1, bool(terminated[i] or truncated[i])
                if ended:
                    break
            want.append((paid, length, ended))
    returned, length, ended = zip(*want[:episodes])
    np.testing.assert_allclose(found.returned, returned)
    assert found.length.tolist() == list(length) and found.ended.tolist() == list(ended)
    assert all(found.ended) == (longest == 100) and max(found.length) <= longest
