"""`search`, and what runs the simulations."""

import functools

import jax
import jax.numpy as jnp
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
