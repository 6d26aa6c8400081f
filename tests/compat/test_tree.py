"""The search tree: mctx's attributes on whatever axes it has, inside and outside of `jit`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs


@pytest.fixture(scope="module")
def tree():
    world, invalid = pairs.make(3, num_actions=3, dtype=np.float32)
    return jax.jit(
        lambda: (
            front.muzero_policy(
                world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 9, invalid, max_depth=2
            ).search_tree
        )
    )()


@pytest.fixture(scope="module")
def dense(tree):
    return jax.jit(lambda tree: tree.dense())(tree)


def test_a_tree_passes_through_jit_and_map(tree, dense):
    assert isinstance(tree, front.SearchTree)
    game = jax.tree.map(lambda x: x[1], tree)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), tree, tree)
    game_dense, stacked_dense = jax.jit(lambda *trees: [tree.dense() for tree in trees])(game, stacked)
    check = functools.partial(jax.tree.map, np.testing.assert_array_equal)
    check(game_dense, jax.tree.map(lambda x: x[1], dense))
    check(stacked_dense, jax.tree.map(lambda x: jnp.stack([x, x]), dense))
    check(game.children_visits, dense.children_visits[1])  # outside of `jit`, too
    assert game.num_actions == tree.num_actions == dense.num_actions == 3
    assert game.num_simulations == tree.num_simulations == dense.num_simulations == 9


def test_values_and_summary_are_those_of_the_dense_tree(tree, dense):

    @jax.jit
    def read(tree):
        game = jax.tree.map(lambda x: x[1], tree)
        transformed = jax.vmap(front.qtransform_completed_by_mix_value, (0, None))(tree, 0)
        return tree.qvalues(jnp.array([0, 2, 5])), game.qvalues(2), transformed, tree.summary()

    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), read(tree), read(dense))
    np.testing.assert_array_equal(tree.summary().visit_counts.sum(-1), 9)
    with pytest.raises(AssertionError):
        tree.qvalues(0)  # of which game?


def test_the_tree_hangs_together(dense):
    children, visits = np.asarray(dense.children_index), np.asarray(dense.node_visits)
    for game, node, action in zip(*np.nonzero(children >= 0)):
        child = children[game, node, action]
        assert dense.parents[game, child] == node and dense.action_from_parent[game, child] == action
        assert dense.children_visits[game, node, action] == visits[game, child]
    assert (children >= 0).sum() == (visits > 0).sum() - 3
    unused = visits == 0
    assert unused.any()
    for name in ("raw_values", "embeddings", "children_prior_logits", "node_values"):
        assert not np.asarray(getattr(dense, name))[unused].any(), name


def test_replace_gives_a_dense_tree(tree, dense):
    changed = tree.replace(node_values=dense.node_values + 1)
    assert isinstance(changed, front.Tree)
    np.testing.assert_array_equal(changed.summary().value, dense.summary().value + 1)
