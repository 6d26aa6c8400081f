"""The tree's rows, and what a tree refuses to be."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.mcts import tree as t
from tests import worlds


def planted(capacity=4, layout=jz.Layout(), players=2):
    world = worlds.make(range(2), "continuous", num_players=players)
    return jz.plant(*worlds.model.root(world, None, jnp.zeros(2, int)), jz.puct(), capacity, layout), world


@pytest.mark.parametrize("players", [1, 3])
def test_rows_can_be_taken_apart_and_put_together(players):
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return jnp.asarray(rng.normal(size=(2, 5, *shape)), jnp.float32)

    def indices(*shape):
        return jnp.asarray(rng.integers(-1, 2**24, (2, 5, *shape)))

    rows = [
        (t.Stats(numbers(), numbers(), numbers(players)), t.unpack_stats),
        (t.Frontier(indices(), indices(), numbers(), numbers(), indices(3)), t.unpack_frontier),
        (
            t.Facts(
                indices(),
                numbers(),
                indices(),
                numbers(),
                numbers(players),
                indices(),
                indices() % 2 > 0,
                numbers(players),
            ),
            t.unpack_facts,
        ),
    ]
    for row, unpack in rows:
        again = unpack(t.pack(row, jnp.float32))
        jax.tree.map(np.testing.assert_array_equal, tuple(again), tuple(row))


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
    assert jax.eval_shape(lambda: planted(capacity, layout)[0]).later_children.dtype == index


def test_rows_are_taken_from_and_put_to_their_game():
    x = jnp.arange(24.0).reshape(2, 4, 3)
    nodes = jnp.array([[3, 0], [1, 1]])
    np.testing.assert_array_equal(t.take(x, nodes), [[x[0, 3], x[0, 0]], [x[1, 1], x[1, 1]]])
    np.testing.assert_array_equal(t.take(x, nodes[:, 0], columns=slice(1, 3)), [x[0, 3, 1:], x[1, 1, 1:]])
    changed = t.put(x, jnp.array([2, 0]), -jnp.ones((2, 3)))
    assert (changed[0, 2] == -1).all() and (changed[1, 0] == -1).all() and (changed != x).sum() == 6
    column = t.put_column(x, jnp.int32(1), -jnp.ones((2, 3)))
    assert (column[:, 1] == -1).all() and (column != x).sum() == 6


def test_rows_of_a_tile_of_games():
    x = jnp.arange(24.0).reshape(4, 3, 2)
    tile, nodes = t.Tile(jnp.int32(1), 2), jnp.array([1, 2])
    np.testing.assert_array_equal(t.take(x, nodes, tile), [x[1, 1], x[2, 2]])
    changed = t.put(x, nodes, jnp.full((2, 2), -1.0), tile)
    assert (changed[1, 1] == -1).all() and (changed[2, 2] == -1).all() and (changed != x).sum() == 4


@pytest.mark.parametrize("batch", [1, 3])
def test_entries_are_put_to_their_row(batch):
    x = jnp.arange(24.0)[: batch * 8].reshape(batch, 4, 2)
    changed = t.put_entry(x, jnp.arange(batch) + 1, jnp.ones(batch, jnp.int32), -1.0)
    assert all(changed[game, game + 1, 1] == -1 for game in range(batch)) and (changed != x).sum() == batch
    changed = t.put(x, jnp.full(batch, 3), -jnp.ones((batch, 2)))
    assert (changed[:, 3] == -1).all() and (changed != x).sum() == 2 * batch
