"""Few rows of scores are reduced in another way than many: both ways find the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.backend_tuning import CPU
from jaxzero.search import action_selection
from tests import worlds


def rows(seed, count=4, width=6):
    """Scores full of ties and of -inf, actions in no order, children of which some are missing."""
    rng = np.random.default_rng(seed)
    scores = rng.choice([-np.inf, 0.0, 1.0], (count, width))
    scores[0] = -np.inf
    actions = np.stack([rng.permutation(width) for _ in range(count)])
    return scores.astype(np.float32), actions.astype(np.int32), rng.integers(0, 9, (count, width)).astype(np.int32)


def many(x):
    return jnp.tile(x, (2 * CPU.few_scores, 1))


@pytest.mark.parametrize("seed", range(20))
def test_the_child_under_the_lowest_action_of_the_highest_score(seed):
    scores, actions, children = rows(seed)
    expected = []
    for row in zip(scores, actions, children):
        _, _, child = min(zip(-row[0], row[1], row[2]))
        expected.append(child if child > 0 and row[0].max() > -np.inf else -1)
    assert action_selection.child_of_best(scores, actions, children, 6).tolist() == expected
    found = action_selection.child_of_best(many(scores), many(actions), many(children), 6)
    assert found.reshape(-1, 4).tolist() == [expected] * 2 * CPU.few_scores


@pytest.mark.parametrize("seed", range(20))
def test_the_lowest_index_of_the_highest_score(seed):
    scores, _, _ = rows(seed)
    index, best = action_selection.first_highest(jnp.asarray(scores))
    assert index.tolist() == [-1 if row.max() == -np.inf else int(row.argmax()) for row in scores]
    assert best.tolist() == scores.max(-1).tolist()
    index_of_many, best_of_many = action_selection.first_highest(many(scores))
    assert (index_of_many.reshape(-1, 4) == index).all() and (best_of_many.reshape(-1, 4) == best).all()


@pytest.mark.slow
@pytest.mark.parametrize("by_prior", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_a_score_that_is_not_a_number_means_the_same_alone_and_in_a_batch(by_prior):
    puct = jz.puct()
    rule = puct._replace(score=lambda view: jnp.where(view.action == 0, jnp.nan, puct.score(view)), by_prior=by_prior)
    visits = np.asarray(jz.summary(worlds.grow(worlds.make(range(12), "continuous"), rule, 12)).visits)
    assert by_prior or not visits[:, 0].any()  # such an edge is not followed
    for game in (0, 5):
        alone = worlds.grow(worlds.make([game], "continuous"), rule, 12)
        np.testing.assert_array_equal(jz.summary(alone).visits[0], visits[game])


@pytest.mark.parametrize("by_prior", [True, False])
@pytest.mark.parametrize("score", [lambda view: 0.0, lambda view: view.value.sum(-1), lambda view: view.value[..., :1]])
def test_scores_that_are_not_one_for_each_edge_are_refused(score, by_prior):
    rule = jz.puct()._replace(score=score, by_prior=by_prior)
    with pytest.raises(ValueError, match=r"score of a Rule returned shape \[.*\] for edges of shape "):
        jz.alphazero(worlds.hashed(5), 3, rule=rule)((), jax.random.split(jax.random.key(0), 2), jnp.arange(2))


@pytest.mark.parametrize("by_prior", [True, False])
def test_nan_is_told_of_trees_that_were_searched_before(by_prior):
    keys, states = jax.random.split(jax.random.key(0), 2), jnp.arange(2, dtype=jnp.uint32)

    def run(scale):
        rule = jz.puct()._replace(score=lambda view: scale * jz.puct().score(view), by_prior=by_prior)
        tree = jz.search.plant(*worlds.hashed(5).root((), keys, states), rule, 9)
        tree = jz.search.search((), keys, tree, worlds.hashed(5), rule, 4)
        spoilt = rule._replace(score=lambda view: jnp.nan * rule.score(view))
        return tree.status, jz.search.search((), keys, tree, worlds.hashed(5), rule, 4, root_rule=spoilt).status

    before, after = jax.jit(run)(1.0)
    assert not before.any() and (after == jz.Status.NON_FINITE).all()


def test_a_rule_that_wants_the_mass_and_sees_all_edges_is_shown_it():
    def score(view):
        one = view.unvisited_mass / view.unvisited_mass  # NaN, where it is not shown
        return one[..., None] * jz.puct().score(view)

    rule = jz.puct()._replace(score=score, by_prior=False, mass=lambda prior: prior)
    keys = jax.random.split(jax.random.key(0), 2)
    out = jz.alphazero(worlds.hashed(5), 2, rule=rule)((), keys, jnp.arange(2, dtype=jnp.uint32))
    assert not out.info.status.any()


@pytest.mark.parametrize("by_prior", [True, False])
def test_a_rule_whose_scores_are_no_numbers_is_told(by_prior):
    bound, keys, states = 0.0, jax.random.split(jax.random.key(0), 8), jnp.arange(8, dtype=jnp.uint32)

    def score(view):
        return jnp.where(view.node_value[..., None] > bound, jnp.nan, jz.puct().score(view))

    policy = jax.jit(jz.alphazero(worlds.hashed(5), 3, rule=jz.puct()._replace(score=score, by_prior=by_prior)))
    out = policy((), keys, states)
    value = jax.vmap(lambda s: worlds.hashed(5).root((), None, s[None])[0].value[0])(states)
    assert ((out.info.status & jz.Status.NON_FINITE > 0) == (value > bound)).all() and 0 < (value > bound).sum() < 8
    assert (out.action >= 0).all() and np.isfinite(out.action_weights).all()
