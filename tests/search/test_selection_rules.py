"""Rules against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.search import qvalues as q
from jaxzero.search import selection_rules
from jaxzero.search.tree import RootData
from jaxzero.types import Rule
from tests.worlds import edges

PRIOR = np.array([0.5, 0.25, 0.125, 0.125])
SEEN = edges(prior=PRIOR, visits=[3, 1, 0, 0], value=[0.4, -0.2, 0, 0], node_visits=5, node_value=0.1)


def test_puct_is_the_formula():
    expected = np.array([0.4, -0.2, 0, 0]) + 1.5 * PRIOR * 2 / np.array([4, 2, 1, 1])
    np.testing.assert_allclose(selection_rules.puct(1.5).score(SEEN), expected, rtol=1e-6)


def test_puct_of_a_fresh_node_is_its_prior():
    fresh = edges(prior=[0.2, 0.5, 0.3])
    np.testing.assert_allclose(selection_rules.puct(2.0).score(fresh), [0.4, 1.0, 0.6], rtol=1e-6)


def test_muzero_puct_is_the_formula():
    c = 1.3 + np.log((5 + 100 + 1) / 100)
    expected = np.array([0.4, -0.2, 0, 0]) + c * PRIOR * np.sqrt(5) / np.array([4, 2, 1, 1])
    np.testing.assert_allclose(selection_rules.muzero_puct(1.3, 100.0, q.raw()).score(SEEN), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "rule, bonus",
    [
        (selection_rules.ucb1(0.7), lambda n: 0.7 * np.sqrt(np.log(5) / n)),
        (selection_rules.ucb1_uctk(0.7), lambda n: 0.7 * np.sqrt(np.log(5) / (5 * n))),
    ],
    ids=["ucb1", "ucb1_uctk"],
)
def test_ucb1_is_the_formula_on_win_rates(rule, bonus):
    np.testing.assert_allclose(rule.score(SEEN)[:2], [0.7 + bonus(3), 0.4 + bonus(1)], rtol=1e-6)


@pytest.mark.parametrize("rule", [selection_rules.ucb1(), selection_rules.ucb1_uctk()], ids=["ucb1", "ucb1_uctk"])
def test_ucb1_tries_everything_first_and_by_logit(rule):
    lowest = float(np.finfo(np.float32).min) / 4  # what the search makes of a logit of −inf where it is legal
    logits = [-1e-4, 0.0, -3e-4, -2e-4, -5.0, -1e9, -1e31, lowest]  # close ones, and what a user meant to be a mask
    view = edges(prior=[*logits, -0.1], visits=[0] * 8 + [1], value=[0] * 8 + [1e6], node_visits=2)
    scores = rule.score(view)
    assert np.argsort(-scores, stable=True).tolist() == [1, 0, 3, 2, 4, 5, 6, 7, 8] and np.isfinite(scores).all()


def test_probabilities_are_a_softmax_over_what_is_legal():
    logits = jnp.array([[0.0, -1.0, -jnp.inf, -2.0], [-jnp.inf] * 4])
    prior = selection_rules.probabilities(logits)
    weights = np.exp([0, -1, -2])
    np.testing.assert_allclose(prior[0, jnp.array([0, 1, 3])], weights / weights.sum(), rtol=1e-6)
    assert np.isneginf(prior[0, 2]) and np.isneginf(prior[1]).all()


@pytest.mark.parametrize(
    "build", [selection_rules.puct, selection_rules.ucb1, selection_rules.ucb1_uctk, selection_rules.muzero_puct]
)
def test_constants_may_be_traced_and_one_per_game(build):
    root = RootData(simulations=jnp.zeros(2, jnp.int32))
    two = jax.tree.map(lambda x: jnp.stack([x, x]), SEEN)._replace(game=jnp.arange(2), root=root)
    both = jax.jit(lambda c: build(c).score(two))(jnp.array([0.5, 2.0]))
    many = jax.tree.map(lambda x: jnp.stack([x] * 3, 1), two)._replace(game=two.game, root=root)  # three nodes of each
    of_many = build(jnp.array([0.5, 2.0])).score(many)
    for game, c in enumerate((0.5, 2.0)):
        np.testing.assert_allclose(both[game], build(c).score(SEEN), rtol=1e-6)
        np.testing.assert_allclose(of_many[game, 2], build(c).score(SEEN), rtol=1e-6)


def test_a_constant_that_is_neither_one_number_nor_one_per_game_is_refused():
    with pytest.raises(ValueError, match=r"shape \(3,\).* 1 games: give a number"):
        selection_rules.puct(jnp.ones(3)).score(SEEN)


def test_the_root_prior_takes_the_place_of_the_stored_one():
    in_force = jnp.array([[0.1, 0.2, 0.3, 0.4]])
    view = jax.tree.map(lambda x: x[None], SEEN)
    rule = selection_rules.with_root_prior(selection_rules.puct(1.5))
    assert isinstance(rule, Rule)
    noisy = view._replace(root=RootData(simulations=jnp.zeros(1, int), prior=in_force))
    np.testing.assert_allclose(
        rule.score(noisy), selection_rules.puct(1.5).score(view._replace(prior=in_force)), rtol=1e-6
    )
    some = jax.tree.map(lambda x: x[:, ::-1] if x.ndim == 2 else x, view)  # shown in another order, as candidates are
    noisy = some._replace(root=noisy.root)
    expected = selection_rules.puct(1.5).score(some._replace(prior=in_force[:, ::-1]))
    np.testing.assert_allclose(rule.score(noisy), expected, rtol=1e-6)


def test_an_illegal_edge_stays_illegal_whatever_is_in_force():
    view = edges(prior=[-np.inf, 0.0])
    view = jax.tree.map(lambda x: x[None], view)
    view = view._replace(root=RootData(simulations=jnp.zeros(1, int), prior=jnp.array([[-jnp.inf, 1.0]])))
    scores = selection_rules.with_root_prior(selection_rules.puct()).score(view)
    assert jnp.isfinite(scores[0, 1]) and not jnp.isnan(scores).any()
