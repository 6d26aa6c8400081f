"""The view of one node that a user's Q transform gets."""

import jax
import jax.numpy as jnp
import pytest

from jaxzero.compat import mctx as front
from jaxzero.compat.mctx.native.custom_qtransform import reads_one_row

LIKE = jnp.zeros((2, 3)), jnp.zeros(2), (jnp.zeros((2, 3)), {"x": jnp.zeros(2)})


@pytest.mark.parametrize(
    "transform",
    [
        front.qtransform_by_parent_and_siblings,
        front.qtransform_completed_by_mix_value,
        lambda tree, node: (
            tree.qvalues(node) + tree.children_visits[node, 0] + tree.extra_data["x"] + tree.root_invalid_actions
        ),
        lambda tree, node: jnp.broadcast_to(tree.node_values[node], (tree.num_actions,)),
    ],
)
def test_a_row_is_enough(transform):
    assert reads_one_row(transform, LIKE)


@pytest.mark.parametrize(
    "transform",
    [
        lambda tree, node: tree.qvalues(node) - jnp.min(tree.node_values),
        lambda tree, node: tree.qvalues(0),
        lambda tree, node: tree.qvalues(node) * node,
        lambda tree, node: tree.qvalues(node) * (node == 0),
        lambda tree, node: tree.qvalues(node) * (0 if node != 0 else 1),
        lambda tree, node: tree.qvalues(node) + tree.node_values[tree.parents[node]],
        lambda tree, node: tree.qvalues(jnp.asarray(node)),
        jax.jit(lambda tree, node: tree.qvalues(node)),
        lambda tree, node: tree.no_such_attribute,
        lambda tree, node: tree.node_values[node],  # not one number per action
    ],
)
def test_a_row_is_not_enough(transform):
    assert not reads_one_row(transform, LIKE)
