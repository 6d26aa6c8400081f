"""Noise on the prior at the root, and how the action is taken."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root import exploration, root_action
from jaxzero.root.summary import Summary
from tests import worlds


def planted(prior, legal, rule=None):
    """Trees of a root only, one per row of prior."""
    prior, legal = jnp.asarray(prior), jnp.asarray(legal)
    zeros = jnp.zeros(len(prior))
    step = jz.Step(jnp.log(jnp.where(legal, prior, 1)), zeros, zeros, zeros, legal=legal)
    return jz.search.plant(step, zeros, jz.puct() if rule is None else rule, 2)


@pytest.mark.slow
@pytest.mark.optimised
def test_noise_falls_on_legal_actions_only():
    games, actions = 256, 4672
    legal = np.zeros((games, actions), bool)
    rng = np.random.default_rng(0)
    for row in legal:
        row[rng.choice(actions, 30, replace=False)] = True
    prior = np.where(legal, rng.uniform(0.5, 1, legal.shape), 0)
    prior /= prior.sum(1, keepdims=True)
    tree = planted(prior, legal)
    keys = jax.random.split(jax.random.key(0), games)
    noisy = np.asarray(exploration.with_dirichlet(tree, keys, 0.3, 0.25).root.prior)
    assert np.isneginf(noisy[~legal]).all() and (noisy[legal] >= 0).all()
    np.testing.assert_allclose(np.where(legal, noisy, 0).sum(1), 1, rtol=1e-5)
    noise = (noisy[legal] - 0.75 * prior[legal]) / 0.25
    noise = noise.reshape(games, 30)
    np.testing.assert_allclose(noise.sum(1), 1, atol=1e-4)  # the share that moved is ε, all of it to legal actions
    # Dirichlet(0.3 × 30): mean 1/30, variance (1/30)(29/30)/(0.3·30 + 1); 7,680 numbers
    assert abs(noise.mean() - 1 / 30) < 1e-4
    assert noise.var() == pytest.approx(29 / 900 / 10, rel=0.1)
    np.testing.assert_allclose(np.where(legal, tree.prior[:, 0], 0), prior, rtol=1e-4)  # the stored prior stays clean


@pytest.mark.slow
def test_noise_of_each_game_is_its_own_and_its_numbers_may_differ():
    prior, legal = np.full((3, 8), 1 / 8), np.ones((3, 8), bool)
    keys = jax.random.split(jax.random.key(1), 3)
    alpha, fraction = jnp.array([0.1, 1.0, 100.0]), jnp.array([1.0, 0.0, 1.0])
    together = exploration.with_dirichlet(planted(prior, legal), keys, alpha, fraction)
    alone = exploration.with_dirichlet(planted(prior[:1], legal[:1]), keys[:1], 0.1, 1.0)
    np.testing.assert_array_equal(together.root.prior[0], alone.root.prior[0])
    np.testing.assert_allclose(together.root.prior[1], 1 / 8, rtol=1e-6)
    assert together.root.prior[0].max() > 0.3 and together.root.prior[2].max() < 0.2


def test_of_the_most_visited_the_best_value_is_played_then_the_lowest_index():
    visits = jnp.array([[1, 1, 1, 0], [2, 3, 3, 0], [0, 0, 0, 0], [1, 1, 1, 0]])
    values = jnp.array([[-0.5, 0.2, 0.2, 0.0], [0.9, -0.3, -0.1, 0.0], [0.0, 0.0, 0.0, 0.0], [-0.9, -0.8, -0.7, 0.0]])
    tree = planted(np.full((4, 4), 0.25), np.ones((4, 4), bool))
    found = Summary(visits, visits / 3, values, values[:, 0])
    assert jz.most_visited(None, tree, found).tolist() == [1, 2, 0, 2]
    keys = jax.random.split(jax.random.key(0), 4)
    assert jz.by_temperature(0.0)(keys, tree, found).tolist() == [1, 2, 0, 2]


def test_tiny_alpha_is_a_one_hot_draw_and_no_nan():
    noise = jax.vmap(exploration.draw_dirichlet, (0, None, None))(
        jax.random.split(jax.random.key(0), 2000), jnp.float32(1e-4), jnp.array([True, True, False, True])
    )
    assert jnp.isfinite(noise).all() and (noise[:, 2] == 0).all()
    np.testing.assert_allclose(noise.sum(1), 1, rtol=1e-5)
    np.testing.assert_allclose((noise > 0.99).mean(0), [1 / 3, 1 / 3, 0, 1 / 3], atol=0.04)


@pytest.mark.parametrize("legal", [[False] * 4, [False, True, False, False]])
def test_noise_where_there_is_hardly_anything_to_choose(legal):
    tree = planted(np.full((1, 4), 0.25), [legal])
    noisy = exploration.with_dirichlet(tree, jax.random.split(jax.random.key(0), 1), 0.3, 0.25).root.prior[0]
    np.testing.assert_allclose(noisy, np.where(legal, 1, -np.inf), rtol=1e-6)


def found(visits, qvalues=None):
    visits = jnp.asarray(visits)
    return Summary(
        visits,
        visits / visits.sum(-1, keepdims=True),
        jnp.zeros(visits.shape) if qvalues is None else jnp.asarray(qvalues),
        jnp.zeros(len(visits)),
    )


def trees(count, legal=(True, True, True, True)):
    return planted(np.full((count, 4), 0.25), np.tile(legal, (count, 1)))


@pytest.mark.parametrize("temperature", [
    0.5, float("inf"), *(pytest.param(t, marks=pytest.mark.slow) for t in (1.0, 2.0))
])  # fmt: skip
def test_actions_are_drawn_in_proportion_to_visits_to_the_power_of_one_over_t(temperature):
    count, visits = 4000, np.array([50, 30, 0, 20])
    keys = jax.random.split(jax.random.key(2), count)
    actions = root_action.by_temperature(temperature)(keys, trees(count), found(np.tile(visits, (count, 1))))
    wanted = np.where(visits > 0, visits ** (1 / temperature), 0)
    wanted = count * wanted / wanted.sum()
    seen = np.bincount(actions, minlength=4)
    assert seen[2] == 0
    chi_square = ((seen - wanted)[wanted > 0] ** 2 / wanted[wanted > 0]).sum()
    assert chi_square < 13.8  # two degrees of freedom, p = 0.001


def test_temperature_zero_and_one_per_game_and_traced():
    keys = jax.random.split(jax.random.key(3), 300)
    temperature = jnp.where(jnp.arange(300) < 100, 0.0, jnp.where(jnp.arange(300) < 200, 1e-3, 1.0))
    visits = np.tile([5, 9, 0, 8], (300, 1))
    act = jax.jit(lambda t: root_action.by_temperature(t)(keys, trees(300), found(visits)))
    actions = np.asarray(act(temperature))
    assert (actions[:200] == 1).all() and set(actions[200:]) == {0, 1, 3}


def test_most_visited_and_best_value():
    tree = trees(2, legal=(True, True, False, True))
    visits, values = [[4, 7, 0, 7], [0, 0, 0, 0]], [[0.5, -0.2, 0.0, -0.1], [0.0] * 4]
    summary = found(visits, values)
    assert root_action.most_visited(None, tree, summary).tolist() == [
        3,
        0,
    ]  # the best of those that tie, then the lowest
    assert root_action.best_value(None, tree, summary).tolist() == [0, 0]
    losing = found([[0, 7, 0, 7]] * 2, [[0.0, -0.2, 0.0, -0.1]] * 2)
    assert root_action.best_value(None, tree, losing).tolist() == [3, 3]  # not an unvisited one, though 0 looks better


def test_an_illegal_action_is_never_taken():
    tree = trees(50, legal=(False, False, True, False))
    summary, keys = jz.summary(tree), jax.random.split(jax.random.key(0), 50)
    for act in (
        root_action.by_temperature(1.0),
        root_action.by_temperature(0.0),
        root_action.most_visited,
        root_action.best_value,
    ):
        assert (act(keys, tree, summary) == 2).all()


def test_the_noise_steers_the_root_only():
    """In a world of two states only, a large tree's interior follows the clean prior."""
    world = worlds.make([0] * 8, "open", num_states=2, num_actions=6)
    policy = jz.alphazero(worlds.model, 60, dirichlet_fraction=1.0, dirichlet_alpha=0.1, act=jz.most_visited)
    out = jax.jit(policy)(world, jax.random.split(jax.random.key(0), 8), jnp.zeros(8, int))
    assert len(set(map(tuple, np.asarray(out.info.summary.visits).tolist()))) > 1
    clean = jz.search.edge_view(out.tree, jnp.zeros(8, int)).prior
    np.testing.assert_array_equal(clean, jnp.broadcast_to(clean[:1], (8, 6)))
