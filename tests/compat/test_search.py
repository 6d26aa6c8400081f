"""`search`, and what runs the simulations."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs


@pytest.mark.slow
def test_mctx_selectors_given_to_search_keep_unmasked_priors(x64):
    """The policies mask the prior at the root; `search` by itself masks the choice only."""
    world, invalid = pairs.make(12, num_actions=4)

    def call(lib, world, invalid):
        select = functools.partial(lib.muzero_action_selection, pb_c_init=2.0)
        return lib.search(
            world,
            jax.random.key(5),
            root=pairs.root(lib, world),
            recurrent_fn=pairs.step(lib),
            root_action_selection_fn=functools.partial(select, depth=0),
            interior_action_selection_fn=select,
            num_simulations=25,
            invalid_actions=invalid,
        )

    pairs.assert_same_trees(*pairs.both(call, world, invalid))


def python_loop(start, stop, body, state):
    for i in range(start, stop):
        state = body(i, state)
    return state


@pytest.mark.slow
def test_another_loop_runs_the_same_simulations():
    world, invalid = pairs.make(3, num_actions=3, dtype=np.float32)
    run = lambda loop: (
        front.muzero_policy(
            world, jax.random.key(0), pairs.root(front, world), pairs.noisy_step(front), 4, invalid, loop_fn=loop
        ).search_tree
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), *map(run, (python_loop, jax.lax.fori_loop)))


def test_a_loop_may_take_its_state_apart():
    """mctx's is a pair, of a key and the tree."""
    world, _ = pairs.make(2, num_actions=3, dtype=np.float32)

    def loop(start, stop, body, state):
        key, tree = state
        for i in range(start, stop):
            key, tree = body(i, (key, tree))
        return key, tree

    search = lambda library: library.muzero_policy(
        world, jax.random.key(0), pairs.root(library, world), pairs.step(library), 3, loop_fn=loop
    )
    assert search(front).search_tree.node_visits[:, 0].tolist() == search(mctx).search_tree.node_visits[:, 0].tolist()


def test_a_mask_of_another_width_is_for_selectors_of_ones_own():
    """mctx's stochastic policy searches trees with edges for chance, under a mask without them."""
    world, _ = pairs.make(2, num_actions=5, dtype=np.float32)
    mask = jnp.array([[0, 1, 0], [1, 0, 0]])

    def select(library, key, tree, node, depth=0):
        allowed = jnp.arange(5) % 3 != 1
        first = jnp.where(depth == 0, jnp.argmin(tree.root_invalid_actions), 3)
        return jnp.where(allowed[first], first, 2).astype(jnp.int32)

    def search(library):
        chosen = functools.partial(select, library)
        return library.search(
            world, jax.random.key(0), root=pairs.root(library, world), recurrent_fn=pairs.step(library),
            root_action_selection_fn=functools.partial(chosen, depth=0), interior_action_selection_fn=chosen,
            num_simulations=4, invalid_actions=mask,
        )  # fmt: skip

    for name in ("node_visits", "children_index", "root_invalid_actions"):
        np.testing.assert_array_equal(getattr(search(front), name), getattr(search(mctx), name))
    with pytest.raises(ValueError, match="invalid_actions has shape .3, 5.; .* it must be .2, 5."):
        front.search(
            world, jax.random.key(0), root=pairs.root(front, world), recurrent_fn=pairs.step(front),
            root_action_selection_fn=select, interior_action_selection_fn=select, num_simulations=4,
            invalid_actions=jnp.zeros((3, 5)),
        )  # fmt: skip


@pytest.mark.slow
def test_the_model_is_called_in_the_body_of_the_loop_itself():
    """Module systems need that: a function that keeps what it sees would leak from a branch or an inner loop."""
    world, _ = pairs.make(2, num_actions=3, dtype=np.float32)
    seen = []

    def recurrent_fn(params, key, action, embedding):
        seen.append(action + 0)
        return pairs.step(front)(params, key, action, embedding)

    front.muzero_policy(
        world, jax.random.key(0), pairs.root(front, world), recurrent_fn, 3, max_depth=2, loop_fn=python_loop
    )
    assert len(seen) == 3 and all(int(x.max()) < 3 for x in seen)


@pytest.mark.slow
def test_no_simulations_leave_the_root():
    world, _ = pairs.make(2, num_actions=4, dtype=np.float32)
    out = jax.jit(
        lambda: front.muzero_policy(world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 0)
    )()
    np.testing.assert_allclose(out.action_weights, 0.25)
    np.testing.assert_array_equal(out.search_tree.node_visits, [[1], [1]])


@pytest.mark.slow
def test_a_traced_depth_limit_is_allowed():
    world, _ = pairs.make(2, num_actions=3, dtype=np.float32)
    run = lambda depth: (
        front.muzero_policy(
            world, jax.random.key(0), pairs.root(front, world), pairs.step(front), 8, max_depth=depth
        ).search_tree
    )
    traced, static = jax.jit(run)(jnp.int32(2)), run(2)
    np.testing.assert_array_equal(traced.children_visits, static.children_visits)
