"""mctx and its front side by side: one call to both, mctx's random tie-break silenced, and whole trees compared."""

import contextlib
import functools
from unittest import mock

import jax
import jax.numpy as jnp
import mctx
import numpy as np

from jaxzero.compat import mctx as front
from jaxzero.compat.mctx._src import search, stochastic
from jaxzero.compat.mctx.native.search import search_natively
from tests import worlds

INTEGERS = ("node_visits", "parents", "action_from_parent", "children_index", "children_visits")
FLOATS = (
    "node_values",
    "raw_values",
    "children_prior_logits",
    "children_rewards",
    "children_discounts",
    "children_values",
)


def both(call, *args):
    """`call(library, *args)`, jitted, for mctx and for the front; the results as NumPy arrays."""
    with mock.patch.object(jax.random, "uniform", lambda key, shape: jnp.zeros(shape)):
        return [jax.device_get(jax.jit(functools.partial(call, library))(*args)) for library in (mctx, front)]


@contextlib.contextmanager
def native_searches():
    """Counts, in a list, the searches of the front that jaxzero's search does."""
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return search_natively(*args, **kwargs)

    with (
        mock.patch.object(search, "search_natively", counted),
        mock.patch.object(stochastic, "search_natively", counted),
    ):
        yield calls


def same_games(theirs, ours):
    """[B] whether the trees are the same, node for node. Types and shapes are the same for all."""
    same = True
    for name in INTEGERS:
        a, b = getattr(theirs, name), getattr(ours, name)
        assert a.shape == b.shape and a.dtype == b.dtype, name
        same &= (a == b).reshape(len(a), -1).all(1)
    return same


def assert_same_numbers(theirs, ours, games=slice(None)):
    """The floats of trees that are the same otherwise, and what is handed through."""
    for name in FLOATS:
        a, b = getattr(theirs, name), getattr(ours, name)
        assert a.shape == b.shape and a.dtype == b.dtype, name
        np.testing.assert_allclose(b[games], a[games], rtol=1e-5, atol=1e-5, err_msg=name)
    for a, b in zip(
        jax.tree.leaves((theirs.embeddings, theirs.extra_data, theirs.root_invalid_actions)),
        jax.tree.leaves((ours.embeddings, ours.extra_data, ours.root_invalid_actions)),
        strict=True,
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(b[games], a[games])


def assert_same_trees(theirs, ours):
    assert same_games(theirs, ours).all(), np.flatnonzero(~same_games(theirs, ours))
    assert_same_numbers(theirs, ours)


def assert_same_outputs(theirs, ours):
    """Actions, weights and whole trees of two `PolicyOutput`s."""
    assert_same_trees(theirs.search_tree, ours.search_tree)
    assert theirs.action.dtype == ours.action.dtype and theirs.action_weights.dtype == ours.action_weights.dtype
    np.testing.assert_array_equal(ours.action, theirs.action)
    np.testing.assert_allclose(ours.action_weights, theirs.action_weights, rtol=1e-5, atol=1e-5)


def make(games, num_actions, seed=0, dtype=np.float64):
    """Worlds as mctx sees them, and a mask for the roots: none for every fourth game, nothing valid in the last."""
    world = worlds.signed(worlds.make(range(seed, seed + games), "open", num_actions=num_actions, dtype=dtype))
    invalid = np.random.default_rng(seed).random((games, num_actions)) < 0.3
    invalid[::4] = False
    invalid[np.arange(games), np.arange(games) % num_actions] = False
    invalid[-1] |= games > 2
    return jax.tree.map(jnp.asarray, (world, invalid))


def root(library, world):
    state = jnp.arange(len(world.value)) % world.value.shape[1]
    game = jnp.arange(len(state))
    return library.RootFnOutput(prior_logits=world.logits[game, state], value=world.value[game, state], embedding=state)


def step(library):
    """The tables as a `recurrent_fn` of the library."""

    def recurrent_fn(world, key, action, state):
        game = jnp.arange(len(state))
        after = world.successor[game, state, action]
        return library.RecurrentFnOutput(
            reward=world.reward[game, state, action],
            discount=world.discount[game, state, action],
            prior_logits=world.logits[game, after],
            value=world.value[game, after],
        ), after

    return recurrent_fn


def noisy_step(library):
    """The same with something random in the value, the logits, the reward and the discount."""

    def recurrent_fn(world, key, action, state):
        output, after = step(library)(world, key, action, state)
        draw = jax.random.normal(key, output.prior_logits.shape, output.prior_logits.dtype)
        return output.replace(
            value=output.value + 0.3 * draw[:, 0],
            prior_logits=output.prior_logits + draw,
            reward=output.reward + 0.1 * draw[:, 1],
            discount=output.discount * (1 - 0.1 * jnp.abs(draw[:, 0])),
        ), after

    return recurrent_fn
