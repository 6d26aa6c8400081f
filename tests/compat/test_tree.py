"""The returned tree is mctx's record: both libraries run, and whatever a program does with a tree is compared."""

import dataclasses

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs


@pytest.fixture(scope="module")
def trees():
    """The same search by mctx and by the front, called without `jit`."""
    world, invalid = pairs.make(3, num_actions=3, dtype=np.float32)
    return [
        lib.muzero_policy(
            world, jax.random.key(0), pairs.root(lib, world), pairs.step(lib), 9, invalid, max_depth=2
        ).search_tree
        for lib in (mctx, front)
    ]


def assert_same(theirs, ours):
    assert jax.tree.structure(theirs) == jax.tree.structure(ours)
    for a, b in zip(jax.tree.leaves(theirs), jax.tree.leaves(ours), strict=True):
        assert type(a) is type(b) and np.shape(a) == np.shape(b) and jnp.result_type(a) == jnp.result_type(b)
        np.testing.assert_allclose(a, b, atol=1e-5)


OPERATIONS = {
    "itself": lambda tree: tree,
    "replace": lambda tree: tree.replace(node_values=tree.node_values + 1),
    "asdict": lambda tree: dataclasses.asdict(tree),
    "to_tuple": lambda tree: tree.to_tuple(),
    "items": lambda tree: dict(tree.items()),
    "item access": lambda tree: [tree["children_visits"], tree["extra_data"]],
    "some nodes": lambda tree: jax.tree.map(lambda x: x[:, :3], tree),
    "one game": lambda tree: jax.tree.map(lambda x: x[1], tree),
    "stacked": lambda tree: jax.tree.map(lambda *x: jnp.stack(x), tree, tree),
    "device_get": jax.device_get,
    "summary": lambda tree: tree.summary(),
    "qvalues": lambda tree: [
        tree.qvalues(jnp.array([0, 2, 5])),
        jax.tree.map(lambda x: x[1], tree).qvalues(2),
        tree.num_actions,
        tree.num_simulations,
    ],
    "through jit": lambda tree: jax.jit(lambda tree: tree.replace(extra_data=tree.node_visits))(tree),
    "a transform": lambda tree: jax.vmap(front.qtransform_completed_by_mix_value, (0, None))(tree, 0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_on_the_tree_give_what_they_give_on_mctx_tree(trees, name):
    theirs, ours = map(OPERATIONS[name], trees)
    assert_same(theirs, ours)


def test_the_tree_is_mctx_tree(trees):
    assert isinstance(trees[1], mctx.Tree) and front.Tree is mctx.Tree
    assert [x.name for x in dataclasses.fields(trees[1])] == [x.name for x in dataclasses.fields(trees[0])]
    assert list(trees[1].keys()) == list(trees[0].keys())
    assert all(isinstance(x, np.ndarray) for x in jax.tree.leaves(jax.device_get(trees[1])))
    with pytest.raises(dataclasses.FrozenInstanceError):
        trees[1].node_values = 0


def test_the_tree_hangs_together(trees):
    tree = jax.device_get(trees[1])
    children, visits = tree.children_index, tree.node_visits
    for game, node, action in zip(*np.nonzero(children >= 0)):
        child = children[game, node, action]
        assert tree.parents[game, child] == node and tree.action_from_parent[game, child] == action
        assert tree.children_visits[game, node, action] == visits[game, child]
    assert (children >= 0).sum() == (visits > 0).sum() - 3
    unused = visits == 0
    assert unused.any()
    for name in ("raw_values", "embeddings", "children_prior_logits", "node_values"):
        assert not getattr(tree, name)[unused].any(), name


def scatters(with_tree, reads):
    """How often the compiled policy names an array of the children of all nodes."""
    world, _ = pairs.make(3, num_actions=5, dtype=np.float32)

    @jax.jit
    def run(world):
        out = front.gumbel_muzero_policy(
            world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 9, with_tree=with_tree
        )
        return out if reads else (out.action, out.action_weights)

    return jax.jit(run).lower(world).compile().as_text().count("s32[3,10,5]")


def test_a_tree_that_nobody_reads_is_not_made():
    assert scatters(True, reads=True) > 0
    assert scatters(True, reads=False) == 0 == scatters(False, reads=True)


def test_the_tree_can_be_left_out():
    world, _ = pairs.make(3, num_actions=3, dtype=np.float32)
    out = jax.eval_shape(
        lambda: front.muzero_policy(
            world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 4, with_tree=False
        )
    )
    assert out.search_tree is None and out.action.shape == (3,)
