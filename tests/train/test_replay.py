"""The ring buffer against a Python list, and the uniformity of its samples."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.train import replay


def rows(values):
    return {"x": jnp.int32(values), "y": jnp.float32(values)[:, None] * jnp.ones((1, 3))}


def one_key(seed):
    return jax.random.split(jax.random.key(seed), 1)


def test_holds_the_newest_rows_like_a_deque():
    rng = np.random.default_rng(0)
    buffer = replay.new_buffer(jax.tree.map(lambda x: x[0], rows([0])), capacity=10)
    oracle, count = collections.deque(maxlen=10), 0
    add = jax.jit(replay.add, donate_argnums=0)
    for _ in range(20):
        values, ready = np.arange(count, count + 7), rng.random(7) < 0.6
        count += 7
        buffer = add(buffer, rows(values), jnp.array(ready))
        oracle.extend(values[ready].tolist())
        assert buffer.size.tolist() == [len(oracle)]
        held = np.asarray(buffer.rows["x"])[0, : len(oracle)]
        assert sorted(held) == sorted(oracle)
        np.testing.assert_array_equal(buffer.rows["y"][..., 2], buffer.rows["x"].astype(jnp.float32))


def test_samples_are_uniform_over_what_is_held():
    buffer = replay.new_buffer({"x": jnp.int32(0)}, capacity=64)
    buffer = replay.add(buffer, {"x": jnp.arange(1, 41)}, jnp.ones(40, bool))
    drawn = np.asarray(replay.sample(buffer, one_key(1), 40_000)["x"])[0]
    counts = np.bincount(drawn, minlength=41)[1:]
    assert counts.sum() == 40_000  # never one of the 24 empty rows
    assert ((counts - 1000.0) ** 2 / 1000).sum() < 80  # chi-square, 39 degrees: p ~ 1e-4


def test_samples_of_the_newest_only_after_the_ring_has_turned():
    buffer = replay.new_buffer({"x": jnp.int32(0)}, capacity=8)
    for start in range(0, 20, 5):
        buffer = replay.add(buffer, {"x": jnp.arange(start, start + 5)}, jnp.ones(5, bool))
    drawn = replay.sample(buffer, one_key(0), 500, newest=3)["x"][0]
    assert set(drawn.tolist()) == {17, 18, 19}
    assert set(replay.sample(buffer, one_key(0), 500, newest=1000)["x"][0].tolist()) == set(range(12, 20))


def test_parts_hold_their_own_rows_and_give_equal_shares():
    buffer = replay.new_buffer({"x": jnp.int32(0)}, capacity=24, parts=4)
    for start in (0, 40, 80):
        ready = (jnp.arange(16) % 2 == 0) | (jnp.arange(16) < 4)
        buffer = replay.add(buffer, {"x": jnp.arange(start, start + 16)}, ready)
    assert replay.capacity(buffer) == 24 and buffer.size.tolist() == [6, 6, 6, 6]
    assert sorted(buffer.rows["x"][0].tolist()) == [42, 43, 80, 81, 82, 83]  # 4 of 4 each time: the newest six
    assert sorted(buffer.rows["x"][3].tolist()) == [12, 14, 52, 54, 92, 94]  # 2 of 4
    keys = jax.random.split(jax.random.key(0), 4)
    drawn = np.asarray(replay.sample(buffer, keys, 400)["x"])
    assert drawn.shape == (4, 100)
    for part, held in zip(drawn, np.asarray(buffer.rows["x"])):
        assert set(part) == set(held)
    newest = np.asarray(replay.sample(buffer, keys, 400, newest=8)["x"])  # two of each
    assert set(newest[1]) == {84, 86} and set(newest[0]) == {82, 83}
    half = replay.Buffer(*jax.tree.map(lambda x: x[2:], tuple(buffer)))  # as one of two devices has it
    np.testing.assert_array_equal(replay.sample(half, keys[2:], 200)["x"], drawn[2:])


def test_errors_name_the_numbers():
    with pytest.raises(ValueError, match="capacity=0"):
        replay.new_buffer({"x": jnp.int32(0)}, 0)
    buffer = replay.new_buffer({"x": jnp.int32(0)}, 4)
    with pytest.raises(ValueError, match="5 rows for a buffer of 4 rows in 1 parts. Use a capacity >= 5"):
        replay.add(buffer, {"x": jnp.arange(5)}, jnp.ones(5, bool))
    with pytest.raises(AssertionError):
        replay.add(buffer, {"x": jnp.zeros((2, 2), jnp.int32)}, jnp.ones(2, bool))
