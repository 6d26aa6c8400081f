"""Returns against a plain loop, and the cases that have an obvious answer."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.train import value_targets


def plain_returns(rewards, ended, values, trace, discount):
    plies, games, _ = rewards.shape
    g, settled = np.zeros_like(rewards), np.zeros((plies, games), bool)
    for b in range(games):
        for t in reversed(range(plies)):
            last = t == plies - 1
            if last and not ended[t, b]:
                g[t, b], settled[t, b] = values[t, b], trace[t, b] == 0
                continue
            after = 0 if ended[t, b] else discount * g[t + 1, b]
            g[t, b] = (1 - trace[t, b]) * values[t, b] + trace[t, b] * (rewards[t, b] + after)
            settled[t, b] = ended[t, b] or trace[t, b] == 0 or settled[t + 1, b]
    return g, settled


@pytest.mark.parametrize("players", [1, 2, 3])
def test_returns_equal_a_plain_loop(players):
    rng = np.random.default_rng(players)
    rewards = rng.normal(size=(12, 50, players)).astype(np.float32)
    values = rng.normal(size=rewards.shape).astype(np.float32)
    ended = rng.random((12, 50)) < 0.2
    trace = rng.choice([0.0, 0.5, 1.0], size=(12, 50)).astype(np.float32)
    got, settled = jax.jit(value_targets.returns)(rewards, ended, values, trace, 0.9)
    want, want_settled = plain_returns(rewards, ended, values, trace, 0.9)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(settled, want_settled)
    assert 0 < settled.mean() < 1


def test_a_trace_of_one_is_the_outcome():
    rewards = jnp.zeros((5, 1, 2)).at[2, 0].set(jnp.float32([-1, 1]))
    ended = jnp.zeros((5, 1), bool).at[2, 0].set(True)
    noise = jnp.full((5, 1, 2), 0.37)
    g, settled = value_targets.returns(rewards, ended, noise, jnp.ones((5, 1)))
    assert g[:3, 0].tolist() == [[-1, 1]] * 3
    assert settled[:, 0].tolist() == [True] * 3 + [False] * 2
    np.testing.assert_allclose(g[3:], 0.37)


def test_a_random_move_cuts_the_return():
    rewards = jnp.zeros((3, 1, 2)).at[2, 0].set(jnp.float32([1, -1]))
    ended = jnp.array([[False], [False], [True]])
    values = jnp.zeros((3, 1, 2)).at[1, 0].set(jnp.float32([-0.2, 0.2]))
    g, settled = value_targets.returns(rewards, ended, values, jnp.float32([[1], [0], [1]]))
    np.testing.assert_allclose(g[:, 0], [[-0.2, 0.2], [-0.2, 0.2], [1, -1]], rtol=1e-6)
    assert settled.all()


@pytest.mark.parametrize("players", [1, 2, 3])
def test_mover_and_players_are_inverse(players):
    rng = np.random.default_rng(0)
    to_play = jnp.int32(rng.integers(players, size=(4, 5)))
    value = jnp.float32(rng.normal(size=(4, 5) if players < 3 else (4, 5, players)))
    everyone = value_targets.for_players(value, to_play, players)
    assert everyone.shape == (4, 5, players)
    np.testing.assert_array_equal(value_targets.for_mover(everyone, to_play, players), value)
    if players == 2:
        np.testing.assert_array_equal(everyone.sum(-1), 0)


def test_shapes_that_disagree_are_named():
    with pytest.raises(ValueError, match=r"rewards \(3, 2, 2\).*trace \(3,\)"):
        value_targets.returns(jnp.zeros((3, 2, 2)), jnp.zeros((3, 2), bool), jnp.zeros((3, 2, 2)), jnp.zeros(3))
