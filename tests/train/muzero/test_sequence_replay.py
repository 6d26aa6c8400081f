"""Rings of steps against plain lists of everything that was written, and how windows are drawn from them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.train.muzero import sequence_replay as replay
from jaxzero.train.muzero.sequence_replay import Sequences, Starts, Transition

add = jax.jit(replay.add)
sample = jax.jit(replay.sample, static_argnums=(2, 3))
reprioritise = jax.jit(replay.reprioritise)


def numbered(environments, begin, length):
    """Steps `begin ...` of each environment; every field tells which."""
    ring = np.arange(environments)[:, None] * np.ones((1, length), np.int64)
    time = begin + np.arange(length) * np.ones((environments, 1), np.int64)
    two = np.stack([ring, time], -1)
    fields = dict(observation=two, legal=two % 2 == 1, action=time, reward=100 * ring + time, policy=two, value=-time)
    flags = dict(terminated=time % 2 == 1, last=time % 3 == 1, random=time % 5 == 1)
    types = dict(observation=np.uint8, legal=bool, action=np.int32)
    return Transition(**{name: jnp.asarray(x, types.get(name, np.float32)) for name, x in fields.items()}, **flags)


def rings(environments=4, length=12, written=0, chunk=4, prioritised=False):
    found = replay.new_sequences(of_one(), environments, length, prioritised)
    for begin in range(0, written, chunk):
        found = add(found, numbered(environments, begin, chunk))
    return found


def of_one():
    return jax.tree.map(lambda x: x[0, 0], numbered(1, 0, 1))


def keys(parts, seed=0):
    return jax.random.split(jax.random.key(seed), parts)


def by_start(starts):
    """How often each (ring, time) was drawn."""
    found, times = np.unique(np.stack([starts.ring, starts.time]), axis=1, return_counts=True)
    return dict(zip(map(tuple, found.T.tolist()), times.tolist()))


def chi_square(counts, expected):
    return sum((counts.get(start, 0) - n) ** 2 / n for start, n in expected.items())


def test_windows_are_what_was_written_however_often_the_rings_have_turned():
    environments, room, chunk, length = 3, 12, 4, 5
    found, everything = rings(environments, room), numbered(environments, 0, 20 * chunk)
    look = jax.jit(lambda r, k: (s := sample(r, k, 120, length), replay.window(r, r.steps, s, length)))
    for begin in range(0, 20 * chunk, chunk):
        found = add(found, numbered(environments, begin, chunk))
        written = begin + chunk
        assert found.written.tolist() == [written] * environments and replay.capacity(found) == room
        if written < length:
            continue
        starts, windows = jax.tree.map(np.asarray, look(found, keys(1, begin)))
        oldest = max(0, written - room)
        assert set(starts.time) == set(range(oldest, written - length + 1))  # all of them, and none across the head
        assert set(starts.ring) == set(range(environments)) and (starts.weight == 1).all()
        at = starts.time[:, None] + np.arange(length)
        want = jax.tree.map(lambda x: np.asarray(x)[starts.ring[:, None], at], everything)
        jax.tree.map(np.testing.assert_array_equal, windows, want)
    assert written > 6 * room


def test_actions_that_are_always_legal_are_not_stored():
    bare = of_one()._replace(legal=None)
    found = add(replay.new_sequences(bare, 2, 4), numbered(2, 0, 4)._replace(legal=None))
    starts = Starts(jnp.array([1]), jnp.array([2]), jnp.ones(1))
    window = replay.window(found, found.steps, starts, 2)
    assert window.legal is None and window.reward.tolist() == [[102, 103]]


@pytest.mark.parametrize("written", [8, 44])
def test_every_start_is_drawn_equally_often(written):
    length, n, parts = 5, 40_000, 2
    found = rings(written=written)
    oldest = max(0, written - 12)
    cells = [(ring, time) for ring in range(4) for time in range(oldest, written - length + 1)]
    counts = by_start(sample(found, keys(parts, written), n, length))
    assert set(counts) == set(cells)
    of_part = [sum(k for (ring, _), k in counts.items() if ring // 2 == part) for part in range(parts)]
    assert of_part == [n // parts] * parts
    most = {16: 42.6, 32: 67.6}[len(cells)]  # 14 and 30 degrees: 1e-4
    assert chi_square(counts, dict.fromkeys(cells, n / len(cells))) < most


def prioritised(written=20, seed=0):
    """Rings in which every step has a priority of its own; and the priorities by ring and time."""
    found, rng = rings(written=written, prioritised=True), np.random.default_rng(seed)
    of = {(ring, time): rng.exponential() + 0.05 for ring in range(4) for time in range(written - 12, written)}
    ring, time = (jnp.array(x) for x in zip(*of))
    return reprioritise(found, Starts(ring, time, jnp.ones(len(of))), jnp.array(list(of.values()))), of


@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (0.6, 0.4), (0.0, 1.0)])
def test_starts_are_drawn_in_proportion_to_a_power_of_their_priority_and_weighted_by_formula(alpha, beta):
    found, of = prioritised()
    length, n, parts = 5, 40_000, 2
    starts = jax.tree.map(np.asarray, sample(found, keys(parts), n, length, alpha, beta))
    cells = {start: p**alpha for start, p in of.items() if start[1] <= 20 - length}
    total = [sum(p for (ring, _), p in cells.items() if ring // 2 == part) for part in range(parts)]
    chance = {start: p / total[start[0] // 2] for start, p in cells.items()}
    counts = by_start(starts)
    assert set(counts) == set(cells) and len(cells) == 32
    assert chi_square(counts, {start: p * n / parts for start, p in chance.items()}) < 67.6  # 30 degrees: 1e-4
    candidates = len(cells) / parts
    weight = np.array([(1 / (candidates * chance[start])) ** beta for start in zip(starts.ring, starts.time)])
    weight = weight.reshape(parts, -1)
    np.testing.assert_allclose(starts.weight, (weight / weight.max(1, keepdims=True)).ravel(), rtol=1e-4)


@pytest.mark.parametrize("written", [8, 12, 20, 24])
def test_by_priority_too_no_window_crosses_the_write_head_or_what_is_not_yet_written(written):
    found = rings(written=written, prioritised=True)
    drawn = by_start(sample(found, keys(2), 2000, 5))
    oldest = max(0, written - 12)
    assert set(drawn) == {(ring, time) for ring in range(4) for time in range(oldest, written - 5 + 1)}


def test_nor_does_one_where_sums_of_many_priorities_are_rounded():
    many, room, length = 1 << 14, 7, 6  # in every ring two places that windows begin at, and five that none does
    found = rings(many, room, 7, chunk=7, prioritised=True)
    priority = np.random.default_rng(0).exponential(size=(many, room)).astype(np.float32)
    starts = jax.jit(lambda k: sample(found._replace(priority=jnp.array(priority)), k, 1 << 20, length))(keys(1))
    assert set(np.unique(starts.time)) == {0, 1}
    assert float(starts.weight.min()) > 1e-8 and float(starts.weight.max()) == 1


def test_new_steps_have_the_highest_priority_of_their_ring_and_seen_ones_what_they_are_given():
    found = rings(written=8, prioritised=True)
    np.testing.assert_array_equal(found.priority[:, :8], 1)  # there was none before
    np.testing.assert_array_equal(found.priority[:, 8:], 0)
    starts = Starts(jnp.array([0, 1, 1, 2]), jnp.array([3, 0, 7, 5]), jnp.ones(4))
    found = reprioritise(found, starts, jnp.array([4.0, 0.0, 0.5, 0.25]))
    want = np.where(np.arange(12) < 8, 1.0, 0.0) * np.ones((4, 1))
    want[[0, 1, 1, 2], [3, 0, 7, 5]] = 4.0, 1e-6, 0.5, 0.25  # never 0: it could be drawn no more
    np.testing.assert_allclose(found.priority, want)
    found = add(add(found, numbered(4, 8, 4)), numbered(4, 12, 4))  # the second over steps 0 ... 3
    want[:, 8:], want[:, :4] = [[4], [1], [1], [1]], [[4], [1], [1], [1]]
    np.testing.assert_allclose(found.priority, want)
    late = Starts(jnp.array([3]), jnp.array([13]), jnp.ones(1))  # in the place of step 1
    want[3, 1] = 0.75
    np.testing.assert_allclose(reprioritise(found, late, jnp.array([0.75])).priority, want)
    plain = rings(written=8)
    assert replay.reprioritise(plain, starts, jnp.ones(4)) is plain


@pytest.mark.parametrize("by_priority", [False, True])
def test_each_part_draws_from_its_own_rings_whichever_device_has_it(by_priority):
    found = prioritised()[0] if by_priority else rings(written=20)
    whole = sample(found, keys(4), 400, 5, 0.5, 0.5)
    assert whole.ring.reshape(4, 100).tolist() == [[part] * 100 for part in range(4)]
    for device in (0, 1):
        mine = slice(2 * device, 2 * device + 2)
        half = Sequences(*jax.tree.map(lambda x, mine=mine: x[mine], tuple(found)))
        starts = sample(half, keys(4)[mine], 200, 5, 0.5, 0.5)
        among = slice(200 * device, 200 * device + 200)
        np.testing.assert_array_equal(starts.ring + 2 * device, whole.ring[among])
        np.testing.assert_array_equal(starts.time, whole.time[among])
        np.testing.assert_array_equal(starts.weight, whole.weight[among])
        np.testing.assert_array_equal(
            replay.window(half, half.steps.reward, starts, 5), replay.window(found, found.steps.reward, whole, 5)[among]
        )


def test_errors_name_the_numbers():
    for environments, length in ((0, 4), (4, 0)):
        with pytest.raises(ValueError, match=f"environments={environments}, length={length}"):
            replay.new_sequences(of_one(), environments, length)
    with pytest.raises(ValueError, match="5 steps at a time .* rings of 12 steps: use rings of 10 or 15 steps"):
        replay.add(rings(), numbered(4, 0, 5))
    with pytest.raises(ValueError, match="16 steps at a time .* rings of 12 steps: use rings of 16 or 16 steps"):
        replay.add(rings(), numbered(4, 0, 16))
    with pytest.raises(AssertionError):
        replay.add(rings(), numbered(4, 0, 4)._replace(observation=jnp.zeros((4, 4, 2))))  # not uint8
    with pytest.raises(ValueError, match="windows of 13 steps from rings of 12 steps"):
        replay.sample(rings(), keys(1), 4, 13)
    for n, parts in ((5, 2), (6, 3)):
        with pytest.raises(ValueError, match=f"n={n} and 4 rings in {parts} parts"):
            replay.sample(rings(), keys(parts), n, 5)


def test_what_begins_anew_does_not_follow_what_was_written():
    steps = Transition(
        observation=jnp.arange(8.0).reshape(2, 4),
        legal=None,
        action=jnp.zeros((2, 4), jnp.int32),
        reward=jnp.ones((2, 4)),
        terminated=jnp.array([[False] * 4, [False, False, False, True]]),
        last=jnp.zeros((2, 4), bool),
        random=jnp.ones((2, 4), bool),
        policy=jnp.ones((2, 4, 1)),
        value=jnp.ones((2, 4)),
    )
    empty = replay.new_sequences(jax.tree.map(lambda x: x[0, 0], steps), 2, 8)
    jax.tree.map(np.testing.assert_array_equal, replay.cut_at_head(empty), empty)
    found = replay.cut_at_head(replay.add(empty, steps)).steps
    assert found.last.tolist() == [[False, False, False, True] + [False] * 4, [False] * 8]
    assert found.reward[:, 3].tolist() == [0.0, 1.0] and found.random[:, 3].tolist() == [False, True]
