"""Half precision in, half precision out: types, actions and whole trees are mctx's, rounded alike at every step."""

import functools

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs
from tests.compat.test_stochastic import A, stochastic_fns

GAMES = 512  # in each type; for each policy
EXACT = {"xla_allow_excess_precision": False}  # else XLA keeps more digits where it fuses operations, here and there


def search(policy, lib, world, invalid):
    model = stochastic_fns(lib) if policy == "stochastic_muzero_policy" else [pairs.step(lib)]
    root = pairs.root(lib, world)
    return getattr(lib, policy)(world, jax.random.key(1), root, *model, 16, invalid_actions=invalid)


@functools.cache
def results(policy, dtype):
    world, invalid = pairs.make(GAMES, num_actions=A, dtype=np.float32)
    world = jax.tree.map(lambda x: x.astype(dtype) if x.dtype == jnp.float32 else x, world)
    run = [jax.jit(functools.partial(search, policy, lib)) for lib in (mctx, front)]
    return [jax.device_get(f.lower(world, invalid).compile(EXACT)(world, invalid)) for f in run]


POLICIES = ["muzero_policy", "gumbel_muzero_policy", "stochastic_muzero_policy"]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.slow
def test_actions_and_types_are_mctx(policy, dtype):
    theirs, ours = results(policy, dtype)
    types = [jax.tree.map(lambda x: (x.dtype, x.shape), out) for out in (theirs, ours)]
    assert types[0] == types[1]
    assert theirs.search_tree.node_values.dtype == dtype
    np.testing.assert_array_equal(ours.action, theirs.action)
    same = pairs.same_games(theirs.search_tree, ours.search_tree)
    assert same.mean() == 1, np.flatnonzero(~same)
    np.testing.assert_array_equal(ours.search_tree.node_values, theirs.search_tree.node_values)


@pytest.mark.parametrize("value", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("logits", [jnp.float32, jnp.float16])
def test_types_of_mixed_precision_are_mctx(value, logits):
    def run(lib):
        def model(params, key, action, embedding):
            return lib.RecurrentFnOutput(
                reward=jnp.zeros(2), discount=jnp.ones(2, value), value=jnp.ones(2), prior_logits=jnp.ones((2, 3))
            ), embedding

        root = lib.RootFnOutput(
            prior_logits=jnp.zeros((2, 3), logits), value=jnp.zeros(2, value), embedding=jnp.zeros(2, jnp.int8)
        )
        return lib.gumbel_muzero_policy((), jax.random.key(0), root, model, 4)

    theirs, ours = (jax.eval_shape(functools.partial(run, lib)) for lib in (mctx, front))
    assert theirs == ours
