"""Stochastic MuZero against mctx's."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.compat import mctx as front
from tests.compat import pairs

A, C = 4, 3


def stochastic_fns(lib):
    """Tables again: an action leads to an afterstate, an outcome from there to the next state. Both use the key."""

    def decision_fn(world, key, action, state):
        game = jnp.arange(len(state))
        after = world.successor[game, state, jnp.clip(action, 0, A - 1)]
        noise = jax.random.normal(key, state.shape, world.value.dtype)
        return lib.DecisionRecurrentFnOutput(
            chance_logits=world.logits[game, after, :C] + noise[:, None] * jnp.arange(C, dtype=noise.dtype)[None],
            afterstate_value=world.value[game, after],
        ), {"after": after}

    def chance_fn(world, key, outcome, afterstate):
        state, outcome = afterstate["after"], jnp.clip(outcome, 0, C - 1)
        game = jnp.arange(len(state))
        following = world.successor[game, state, outcome]
        noise = jax.random.normal(key, state.shape, world.value.dtype)
        return lib.ChanceRecurrentFnOutput(
            action_logits=world.logits[game, following],
            value=world.value[game, following] + noise,
            reward=world.reward[game, state, outcome],
            discount=world.discount[game, state, outcome],
        ), following

    return decision_fn, chance_fn


@pytest.mark.parametrize(
    ("options", "fast"),
    [
        ({}, True),
        pytest.param({"max_depth": 3, "temperature": 0.5}, True, marks=pytest.mark.slow),
        pytest.param({"qtransform": lambda lib: lib.qtransform_completed_by_mix_value}, True, marks=pytest.mark.slow),
        pytest.param(
            {"qtransform": lambda lib: functools.partial(lib.qtransform_by_min_max, min_value=-3, max_value=3)},
            True,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"qtransform": lambda lib: lambda tree, node: tree.qvalues(node) / tree.num_actions, "max_depth": 5},
            False,
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.parametrize("masked", [True, pytest.param(False, marks=[pytest.mark.slow, pytest.mark.exhaustive])])
def test_trees_are_mctx_trees(x64, options, fast, masked):
    world, invalid = pairs.make(16, num_actions=A)

    def call(lib, world, invalid):
        chosen = {name: value(lib) if callable(value) else value for name, value in options.items()}
        return lib.stochastic_muzero_policy(
            world,
            jax.random.key(0),
            pairs.root(lib, world),
            *stochastic_fns(lib),
            40,
            invalid_actions=invalid if masked else None,
            **chosen,
        )

    with pairs.native_searches() as calls:
        pairs.assert_same_outputs(*pairs.both(call, world, invalid))
    assert bool(calls) == fast


@pytest.mark.slow
def test_a_chance_without_choice_changes_nothing():
    """With one possible outcome the search is MuZero's, every step taking two simulations."""
    logits = jnp.array([[-1.0, 0.0, 2.0, 3.0], [0.0, 2.0, 5.0, -4.0]])
    invalid = jnp.array([[0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]])
    root = front.RootFnOutput(prior_logits=logits, value=jnp.array([1.0, 0.0]), embedding=jnp.zeros([2, 4]))
    zero, flat = jnp.zeros(2), jnp.zeros((2, 4))

    def recurrent_fn(params, key, action, embedding):
        return front.RecurrentFnOutput(reward=zero, discount=zero, prior_logits=flat, value=zero), embedding

    def decision_fn(params, key, action, embedding):
        chance_logits = jnp.full((2, 5), -jnp.inf).at[:, 0].set(1.0)
        return front.DecisionRecurrentFnOutput(chance_logits=chance_logits, afterstate_value=zero), (action, embedding)

    def chance_fn(params, key, outcome, afterstate):
        return front.ChanceRecurrentFnOutput(action_logits=flat, value=zero, reward=zero, discount=zero), afterstate[1]

    options = dict(invalid_actions=invalid, dirichlet_fraction=0.0)
    plain = front.muzero_policy((), jax.random.PRNGKey(0), root, recurrent_fn, 10, **options)
    out = front.stochastic_muzero_policy((), jax.random.PRNGKey(0), root, decision_fn, chance_fn, 20, **options)
    np.testing.assert_array_equal(out.action, plain.action)
    np.testing.assert_allclose(out.action_weights, plain.action_weights)
