"""What runs on jaxzero's search, and what on the plain path; a user's Q transform is the same on both."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs


def local(lib):
    """Everything that one row offers."""

    def transform(tree, node):
        q, visits = tree.qvalues(node), tree.children_visits[node]
        other = tree.children_rewards[node] + tree.children_discounts[node] * tree.children_values[node]
        prior = tree.children_prior_logits[node, :2].sum() + jax.nn.softmax(tree.children_prior_logits[node])
        ours = 0.2 * lib.qtransform_by_parent_and_siblings(tree, node) + 0.1 * (q - other)
        value = (tree.node_values[node] + tree.raw_values[node]) / tree.node_visits[node] / tree.num_actions
        return (
            ours
            + 0.1 * prior
            + 0.1 * value * (visits > 0)
            + 0.1 * tree.root_invalid_actions
            + 0.3 * (visits == 0) * q[::-1]
        )

    return transform


def tree_wide(lib):
    """MuZero's own normalisation: by the least and the greatest value of the whole tree."""

    def transform(tree, node):
        seen = tree.node_visits > 0
        least = jnp.min(jnp.where(seen, tree.node_values, jnp.inf))
        greatest = jnp.max(jnp.where(seen, tree.node_values, -jnp.inf))
        return (tree.qvalues(node) - least) / jnp.maximum(greatest - least, 1e-3) * (tree.children_visits[node] > 0)

    return transform


def by_index(lib):
    """Looks at the value of the index."""
    return lambda tree, node: (
        jnp.where(node == tree.ROOT_INDEX, 0.5, 1.0) * lib.qtransform_by_parent_and_siblings(tree, node)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "transform", "max_depth", "fast"),
    [
        ("gumbel_muzero_policy", local, 3, True),
        ("muzero_policy", local, None, True),
        ("muzero_policy", tree_wide, None, False),
        ("gumbel_muzero_policy", by_index, 3, False),
    ],
)
def test_a_transform_of_ones_own_searches_as_in_mctx(x64, policy, transform, max_depth, fast):
    world, invalid = pairs.make(12, num_actions=4)

    def call(lib, world, invalid):
        return getattr(lib, policy)(
            world,
            jax.random.key(0),
            pairs.root(lib, world),
            pairs.noisy_step(lib),
            25,
            invalid,
            max_depth,
            qtransform=transform(lib),
        )

    with pairs.native_searches() as calls:
        pairs.assert_same_outputs(*pairs.both(call, world, invalid))
    assert bool(calls) == fast


MUZERO, INTERIOR = front.muzero_action_selection, front.gumbel_muzero_interior_action_selection
HALVING = functools.partial(front.gumbel_muzero_root_action_selection, num_simulations=2, max_num_considered_actions=2)
DRAWS = front.GumbelMuZeroExtraData(root_gumbel=jnp.array([[0.0, 1.0, 2.0]]))


@pytest.mark.parametrize(
    ("root", "interior", "extra_data", "fast"),
    [
        (functools.partial(MUZERO, depth=0), MUZERO, None, True),
        (functools.partial(MUZERO, depth=0, pb_c_init=9.0), MUZERO, None, True),
        (functools.partial(MUZERO, depth=1), MUZERO, None, False),
        (HALVING, INTERIOR, DRAWS, True),
        (functools.partial(HALVING, num_simulations=1), INTERIOR, DRAWS, False),
        (HALVING, MUZERO, DRAWS, False),
        (lambda key, tree, node: MUZERO(key, tree, node, 0), MUZERO, None, False),
    ],
)
@pytest.mark.parametrize("compare", [False, pytest.param(True, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_known_selectors_run_on_the_fast_search_and_find_what_the_plain_path_finds(
    root, interior, extra_data, fast, compare
):
    start = front.RootFnOutput(prior_logits=jnp.array([[0.0, 1.0, 1.5]]), value=jnp.zeros(1), embedding=jnp.zeros(1))

    def recurrent_fn(params, key, action, embedding):
        return front.RecurrentFnOutput(
            reward=action / 3, discount=jnp.ones(1), value=embedding / 9, prior_logits=jnp.array([[0.0, 1.0, 1.5]])
        ), embedding + 1

    def run(root):
        return front.search(
            (),
            jax.random.key(0),
            root=start,
            recurrent_fn=recurrent_fn,
            root_action_selection_fn=root,
            interior_action_selection_fn=interior,
            num_simulations=2,
            extra_data=extra_data,
        )

    def plain():
        return run(lambda *args: root(*args))

    with pairs.native_searches() as calls:
        jax.eval_shape(plain)
        assert not calls
        jax.eval_shape(lambda: run(root))
        assert bool(calls) == fast
    if compare:
        np.testing.assert_array_equal(jax.jit(lambda: run(root).children_visits)(), jax.jit(plain)().children_visits)


@pytest.mark.parametrize("options", [
    {"pb_c_init": np.array([0.0, 0.0, 100.0], np.float32)},  # by action, also where there are as many games
    {"pb_c_init": np.array([2.0], np.float32)},
    {"pb_c_init": -1.0},
    {"qtransform": ("qtransform_by_min_max", dict(min_value=1.0, max_value=-1.0))},
])  # fmt: skip
def test_numbers_that_jaxzero_does_not_take_are_taken_as_in_mctx(options):
    world, invalid = pairs.make(3, num_actions=3, dtype=np.float32)

    def call(lib, world, invalid):
        given = dict(options)
        if "qtransform" in given:
            name, numbers = given["qtransform"]
            given["qtransform"] = functools.partial(getattr(lib, name), **numbers)
        given |= dict(dirichlet_fraction=0.0, temperature=0.0)
        return lib.muzero_policy(
            world, jax.random.key(0), pairs.root(lib, world), pairs.step(lib), 8, invalid, **given
        ).search_tree.children_visits

    theirs, ours = pairs.both(call, world, invalid)
    np.testing.assert_array_equal(theirs, ours)
