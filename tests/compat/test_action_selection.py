"""The Q transforms and selectors as functions of a tree, against mctx's on the same tree."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs


@pytest.fixture(scope="module")
def trees():
    """A tree of the front, and the same as mctx's record; with Gumbel draws."""
    world, invalid = pairs.make(4, num_actions=5, dtype=np.float32)
    run = lambda: front.gumbel_muzero_policy(
        world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 12, invalid
    )
    tree = jax.jit(lambda: run().search_tree)()
    return tree, mctx.Tree(**dict(tree))


FUNCTIONS = [
    ("qtransform_by_min_max", dict(min_value=-1.0, max_value=2.0)),
    ("qtransform_by_parent_and_siblings", {}),
    ("qtransform_completed_by_mix_value", {}),
    (
        "qtransform_completed_by_mix_value",
        dict(use_mixed_value=False, rescale_values=False, value_scale=2.0, maxvisit_init=3.0),
    ),
]


@pytest.mark.parametrize(("name", "options"), FUNCTIONS)
def test_transforms(trees, name, options):
    for node in (0, 1, 12):
        ours, theirs = (
            jax.vmap(functools.partial(getattr(lib, name), **options), (0, None))(tree, node)
            for lib, tree in zip((front, mctx), trees)
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "depth"),
    [
        ("muzero_action_selection", dict(pb_c_init=2.0, pb_c_base=7.0), 0),
        ("muzero_action_selection", {}, 1),
        ("gumbel_muzero_interior_action_selection", {}, 1),
        ("gumbel_muzero_root_action_selection", dict(num_simulations=20, max_num_considered_actions=4), None),
    ],
)
def test_selectors(trees, name, options, depth):
    for node in (0, 1, 5):
        if node and depth is None:
            continue
        ours, theirs = (
            jax.vmap(
                lambda tree, lib=lib: getattr(lib, name)(
                    jax.random.key(0), tree, jnp.int32(node), *(() if depth is None else (depth,)), **options
                )
            )(tree)
            for lib, tree in zip((front, mctx), trees)
        )
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
