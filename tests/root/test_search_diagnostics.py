"""What a search found, in nats and for every player, against the reference's trees and closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jaxzero as jz
from tests import reference as ref
from tests import worlds


def test_kl_is_the_sum():
    rng = np.random.default_rng(0)
    target, prior = (rng.dirichlet(np.full(7, 0.5), 1_000) * (rng.random((1_000, 7)) < 0.8) + 1e-9 for _ in range(2))
    target, prior = (x / x.sum(1, keepdims=True) for x in (target, prior))
    target[:, 0], prior[:, 0] = 0, 0
    target, prior = (x / x.sum(1, keepdims=True) for x in (target, prior))
    expected = (target[:, 1:] * np.log(target[:, 1:] / prior[:, 1:])).sum(1)
    found = jz.root.kl(jnp.asarray(target, jnp.float32), jnp.asarray(prior, jnp.float32))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@given(st.lists(st.floats(1e-3, 1), min_size=2, max_size=6))
def test_kl_of_a_policy_and_itself_is_nothing_and_of_a_sure_move_its_surprise(weights):
    prior = jnp.asarray(weights) / sum(weights)
    assert abs(float(jz.root.kl(prior, prior))) < 1e-6
    sure = jnp.arange(len(weights)) == 1
    np.testing.assert_allclose(jz.root.kl(sure.astype(jnp.float32), prior), -np.log(prior[1]), rtol=1e-5)


def test_kl_is_finite_where_the_prior_is_not():
    assert 50 < float(jz.root.kl(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))) < 100
    assert float(jz.root.kl(jnp.array([0.0, 1.0]), jnp.array([-jnp.inf, 1.0]))) == 0


GAMES, SIMULATIONS = 40, 12


@pytest.mark.parametrize("players", [2, 3])
def test_values_of_every_player_and_the_improvement_are_the_references(players):
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    with worlds.x64():
        world = worlds.make(range(GAMES), kinds, num_players=players, dtype=np.float64)

        @jax.jit
        def run(world):
            tree = worlds.grow(world, jz.puct(), SIMULATIONS)
            shares = jz.summary(tree).visit_probs
            return jz.root.player_values(tree, players), jz.root.policy_improvement(tree, shares), shares

        found, improvement, shares = jax.device_get(run(world))
    assert found.qvalues.shape == (GAMES, 4, players) and found.value.shape == (GAMES, players)
    for game in range(GAMES):
        root = ref.search(worlds.pick(world, game), 0, ref.puct(), None, SIMULATIONS)
        if ref.margin(root) < 1e-9:
            continue
        sign = np.where(np.arange(players) == root.to_play, 1, -1) if players == 2 else 1
        np.testing.assert_allclose(found.value[game], sign * root.value, atol=1e-9)
        for action in range(4):
            child = root.children.get(action)
            worth = 0 * root.value if child is None else child.reward + child.discount * child.value
            np.testing.assert_allclose(found.qvalues[game, action], sign * worth, atol=1e-9)
        if root.children:
            pairs = [(t, p) for t, p in zip(shares[game], ref.priors(root)) if t > 0]
            np.testing.assert_allclose(improvement[game], sum(t * np.log(t / p) for t, p in pairs), atol=1e-7)
        else:
            assert np.isfinite(improvement[game])


@pytest.mark.slow
def test_improvement_of_a_tree_of_logits_and_one_player():
    world = worlds.make(range(6), "solo")
    tree = worlds.grow(world, jz.ucb1(), 8)
    prior = jax.nn.softmax(jnp.where(world.legal[:, 0], world.logits[:, 0], -jnp.inf))
    legal = world.legal[:, 0] / world.legal[:, 0].sum(1, keepdims=True)
    expected = np.where(legal > 0, legal * np.log(np.where(legal > 0, legal / np.maximum(prior, 1e-30), 1)), 0).sum(1)
    np.testing.assert_allclose(jz.root.policy_improvement(tree, jnp.asarray(legal, jnp.float32)), expected, rtol=1e-4)
    alone = jz.root.player_values(tree, 1)
    np.testing.assert_array_equal(alone.value[:, 0], jz.summary(tree).value)
    np.testing.assert_array_equal(alone.qvalues[..., 0], jz.summary(tree).qvalues)
    for players in (0, 3):
        with pytest.raises(ValueError, match=f"num_players={players}.*Use num_players=1 or 2"):
            jz.root.player_values(tree, players)
