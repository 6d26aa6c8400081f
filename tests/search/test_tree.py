"""A new tree, and what a tree refuses to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from tests import worlds


def planted(capacity=4, layout=jz.Layout(), players=2, actions=4):
    world = worlds.make(range(2), "continuous", num_players=players, num_actions=actions)
    return jz.search.plant(*worlds.model.root(world, None, jnp.zeros(2, int)), jz.puct(), capacity, layout), world


@pytest.mark.parametrize("players", [2, 3])
def test_a_new_tree_holds_its_root(players):
    tree, world = planted(players=players)
    assert tree.capacity == 4 and tree.num_edges == 4 and tree.num_players == (3 if players == 3 else 1)
    assert tree.visits.tolist() == [[1, 0, 0, 0]] * 2 and tree.size.tolist() == [1, 1]
    np.testing.assert_array_equal(tree.value[:, 0], world.value[:, 0].reshape(2, -1))
    np.testing.assert_array_equal(tree.raw_value[:, 0], world.value[:, 0].reshape(2, -1))
    assert tree.state[:, 0].tolist() == [0, 0] and not tree.status.any()


@pytest.mark.parametrize(
    "layout, capacity, advice",
    [(jz.COMPACT, 2**15, "Layout(index=jnp.int32)"), (jz.Layout(), 2**24 + 1, "fewer simulations")],
)
def test_a_layout_that_cannot_number_the_nodes_is_refused(layout, capacity, advice):
    with pytest.raises(ValueError) as error:
        jax.eval_shape(lambda: planted(capacity, layout)[0])
    assert str(capacity) in str(error.value) and advice in str(error.value)
    assert str(2**15 - 1 if layout is jz.COMPACT else 2**24) in str(error.value)


@pytest.mark.parametrize(
    "layout, capacity, index",
    [(jz.COMPACT, 2**15 - 1, "int16"), (jz.Layout(), 2**15 - 1, "int16"), (jz.Layout(), 2**15, "int32")],
)
def test_indices_take_as_little_memory_as_they_can(layout, capacity, index):
    assert jax.eval_shape(lambda: planted(capacity, layout, actions=20)[0]).later_children.dtype == index
