"""`search` with selectors of one's own."""

import jax
import jax.numpy as jnp
import pytest

from tests.compat import pairs


def random_selectors(lib):
    """Selectors that use all they are given: the key, the tree, the depth, the mask and the extra data."""

    def interior(key, tree, node, depth):
        best = lib.muzero_action_selection(key, tree, node, depth, qtransform=lib.qtransform_completed_by_mix_value)
        other = jax.random.randint(key, (), 0, tree.num_actions)
        return jnp.where(jax.random.bernoulli(key, 0.1 * jnp.minimum(depth, 3.0)), other, best).astype(jnp.int32)

    def root(key, tree, node):
        tried = tree.node_visits[node] % 3 == tree.extra_data["offset"]
        other = jnp.argmax(jax.random.normal(key, (tree.num_actions,)) - 9 * tree.root_invalid_actions)
        return jnp.where(tried, other, interior(key, tree, node, 0)).astype(jnp.int32)

    return root, interior


@pytest.mark.parametrize("max_depth", [pytest.param(None, marks=pytest.mark.slow), 3])
def test_selectors_of_ones_own_search_as_in_mctx(x64, max_depth):
    world, invalid = pairs.make(12, num_actions=4)

    def call(lib, world, invalid):
        root, interior = random_selectors(lib)
        return lib.search(
            world,
            jax.random.key(5),
            root=pairs.root(lib, world),
            recurrent_fn=pairs.noisy_step(lib),
            root_action_selection_fn=root,
            interior_action_selection_fn=interior,
            num_simulations=25,
            max_depth=max_depth,
            invalid_actions=invalid,
            extra_data={"offset": jnp.arange(12) % 3},
        )

    pairs.assert_same_trees(*pairs.both(call, world, invalid))
