"""Rows go together and come apart, and go where they belong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.search import node_storage as r


@pytest.mark.parametrize("players", [1, 3])
def test_rows_can_be_taken_apart_and_put_together(players):
    rng = np.random.default_rng(0)

    def numbers(*shape):
        return jnp.asarray(rng.normal(size=(2, 5, *shape)), jnp.float32)

    def indices(*shape):
        return jnp.asarray(rng.integers(-1, 2**24, (2, 5, *shape)))

    rows = [
        (r.Stats(numbers(), numbers(), numbers(players)), r.unpack_stats),
        (r.Frontier(indices(), indices(), numbers(), numbers(), indices(3)), r.unpack_frontier),
        (
            r.Facts(
                indices(),
                numbers(),
                indices(),
                numbers(),
                numbers(players),
                indices(),
                indices() % 2 > 0,
                numbers(players),
            ),
            r.unpack_facts,
        ),
    ]
    rows.append((rows[-1][0]._replace(chance=indices() % 2 > 0), r.unpack_facts))
    for row, unpack in rows:
        again = unpack(r.pack(row, jnp.float32))
        jax.tree.map(np.testing.assert_array_equal, tuple(again), tuple(row))


def test_rows_are_taken_from_and_put_to_their_game():
    x = jnp.arange(24.0).reshape(2, 4, 3)
    nodes = jnp.array([[3, 0], [1, 1]])
    np.testing.assert_array_equal(r.take(x, nodes), [[x[0, 3], x[0, 0]], [x[1, 1], x[1, 1]]])
    np.testing.assert_array_equal(r.take(x, nodes[:, 0], columns=slice(1, 3)), [x[0, 3, 1:], x[1, 1, 1:]])
    changed = r.put(x, jnp.array([2, 0]), -jnp.ones((2, 3)))
    assert (changed[0, 2] == -1).all() and (changed[1, 0] == -1).all() and (changed != x).sum() == 6
    column = r.put_column(x, jnp.int32(1), -jnp.ones((2, 3)))
    assert (column[:, 1] == -1).all() and (column != x).sum() == 6


def test_rows_of_a_tile_of_games():
    x = jnp.arange(24.0).reshape(4, 3, 2)
    tile, nodes = r.Tile(jnp.int32(1), 2), jnp.array([1, 2])
    np.testing.assert_array_equal(r.take(x, nodes, tile), [x[1, 1], x[2, 2]])
    changed = r.put(x, nodes, jnp.full((2, 2), -1.0), tile)
    assert (changed[1, 1] == -1).all() and (changed[2, 2] == -1).all() and (changed != x).sum() == 4


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_rows_may_be_of_no_numbers(shape, batch):
    x, one = jnp.zeros((batch, 4, *shape)), jnp.zeros(batch, jnp.int32)
    for nodes in (one, one[:, None]):
        rows = r.take(x, nodes)
        assert rows.shape == (*nodes.shape, *shape) and r.put(x, nodes, rows).shape == x.shape
    assert r.take(x, one[:1], r.Tile(jnp.int32(0), 1)).shape == (1, *shape)
    assert r.put_column(x, jnp.int32(1), x[:, 0]).shape == x.shape


@pytest.mark.parametrize("batch", [1, 3])
def test_entries_are_put_to_their_row(batch):
    x = jnp.arange(24.0)[: batch * 8].reshape(batch, 4, 2)
    changed = r.put_entry(x, jnp.arange(batch) + 1, jnp.ones(batch, jnp.int32), -1.0)
    assert all(changed[game, game + 1, 1] == -1 for game in range(batch)) and (changed != x).sum() == batch
    changed = r.put(x, jnp.full(batch, 3), -jnp.ones((batch, 2)))
    assert (changed[:, 3] == -1).all() and (changed != x).sum() == 2 * batch
