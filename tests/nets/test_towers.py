"""Residual blocks along rows and columns: line by line in plain numpy, and within both kinds of networks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.nets.layers import initial_params
from jaxzero.nets.muzero.towers import TOWERS, pooled

HEIGHT, WIDTH, CHANNELS, BATCH = 3, 4, 2, 5
LINES = TOWERS["lines"]
BOARD = np.random.default_rng(0).normal(size=(BATCH, HEIGHT, WIDTH, CHANNELS)).astype(np.float32)
GIVEN = np.random.default_rng(1).normal(size=(BATCH, LINES.given(HEIGHT, WIDTH, CHANNELS))).astype(np.float32)


def blocks_of(number):
    params = initial_params(
        {f"block_{i}": LINES.block(HEIGHT, WIDTH, CHANNELS) for i in range(number)}, jax.random.key(2)
    )
    rng = np.random.default_rng(3)
    return jax.tree.map(lambda x: x + np.float32(rng.normal(size=x.shape, scale=0.1)), params)


def line_by_line(params, board, blocks, given):
    """One board: each row and each column through its perceptron, all of them added to the board."""
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    layer = lambda block, name, x: x @ params[block][name]["kernel"] + params[block][name]["bias"]
    added, first, x = given.reshape(HEIGHT + WIDTH, -1), [], board.astype(np.float64)
    for i in range(blocks):
        block, out = f"block_{i}", x.copy()
        for r in range(HEIGHT):
            hidden = np.maximum(layer(block, "rows", x[r].ravel()) + added[r] * (i == 0), 0)
            out[r] += layer(block, "from_rows", hidden).reshape(WIDTH, CHANNELS)
            first += [hidden] if i == 0 else []
        for c in range(WIDTH):
            hidden = np.maximum(layer(block, "columns", x[:, c].ravel()) + added[HEIGHT + c] * (i == 0), 0)
            out[:, c] += layer(block, "from_columns", hidden).reshape(HEIGHT, CHANNELS)
            first += [hidden] if i == 0 else []
        x = out
    return x, np.stack(first)


@pytest.mark.parametrize("blocks", [1, 2])
def test_lines_are_those_of_plain_numpy(blocks):
    params = blocks_of(blocks)
    out, met = LINES.through(params, jnp.asarray(BOARD), blocks, jnp.asarray(GIVEN))
    for board, given, one, hidden in zip(BOARD, GIVEN, out, met):
        expected, first = line_by_line(params, board, blocks, given)
        np.testing.assert_allclose(one, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(hidden, first, rtol=1e-4, atol=1e-5)
    assert pooled(met).shape == (BATCH, 2 * LINES.met(CHANNELS))


def test_a_square_is_seen_along_its_row_and_its_column_only():
    params = blocks_of(1)
    other = BOARD.copy()
    other[:, 1, 2] += 1
    changed = LINES.through(params, other, 1, None)[0] - LINES.through(params, BOARD, 1, None)[0]
    seen = np.zeros((HEIGHT, WIDTH), bool)
    seen[1], seen[:, 2] = True, True
    np.testing.assert_array_equal((abs(np.asarray(changed)) > 1e-6).any((0, 3)), seen)


@pytest.mark.slow
@pytest.mark.parametrize("tower", list(TOWERS))
def test_every_parameter_of_both_kinds_of_networks_learns(tower):
    head = nets.two_hot(bins=5, limit=2.0)
    sizes = dict(value=head, reward=head, channels=2, width=6, tower=tower, key=jax.random.key(0))
    seen, action = jnp.asarray(BOARD), jnp.arange(BATCH) % 3
    learned, own = nets.muzero_planes(BOARD.shape[1:], 3, projection=4, **sizes)
    chance, other = nets.stochastic_planes(BOARD.shape[1:], 3, codes=4, **sizes)

    def said(params):
        state = learned.represent(params[0], seen)
        following = learned.dynamics(params[0], state, action)
        yield from (learned.predict(params[0], following[0]), following[1])
        yield learned.project(params[0], state) * learned.foretell(params[0], following[0])
        after = chance.afterstate(params[1], chance.represent(params[1], seen), action)
        code = jax.nn.softmax(chance.encode(params[1], seen, seen[::-1]))
        state, reward = chance.dynamics(params[1], after, code)
        yield from (
            chance.foresee(params[1], after),
            reward,
            chance.predict(params[1], state),
            chance.reconstruct(params[1], state),
        )

    loss = lambda params: sum(jnp.sum(jnp.sin(x)) for part in said(params) for x in jax.tree.leaves(part))
    rng = np.random.default_rng(4)
    shaken = jax.tree.map(lambda x: x + np.float32(rng.normal(size=x.shape, scale=0.3)), (own, other))
    slopes = jax.grad(loss)(shaken)
    assert all(jnp.isfinite(slope).all() and slope.any() for slope in jax.tree.leaves(slopes))


def test_an_unknown_tower_is_named():
    head = nets.bounded()
    for build in (nets.muzero_planes, nets.stochastic_planes):
        with pytest.raises(ValueError, match=r"_planes\(tower='rows'\): use convolutions or lines"):
            build((3, 4, 2), 3, value=head, reward=head, tower="rows", key=jax.random.key(0))
