"""One step of the optimiser by hand, and minibatches that are not finite."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxzero.train.parameter_update import LearnerOfTwoAverages, learning_rate, parameter_update, playing_params

PARAMS = {"w": jnp.float32([[0.1, -0.2], [0.3, 0.4]]), "b": jnp.float32([0.2, -0.1])}
GRADIENTS = {"w": jnp.float32([[1.0, -2.0], [0.0, 2.0]]), "b": jnp.float32([-4.0, 0.0])}  # of length 5
FINE = jnp.float32(1)


def test_one_step_of_adamw_by_hand():
    begin, apply = parameter_update(weight_decay=0.5, clip_norm=1e9)
    state, norm, bad = apply(begin(PARAMS), GRADIENTS, FINE, 0.01)  # Adam's first step: lr * sign(gradient)
    assert float(norm) == 5 and int(bad) == 0 and [int(x) for x in state[3:6]] == [1, 0, 0]
    want = {"w": PARAMS["w"] - 0.01 * (jnp.sign(GRADIENTS["w"]) + 0.5 * PARAMS["w"]),
            "b": PARAMS["b"] - 0.01 * jnp.sign(GRADIENTS["b"])}  # biases are not decayed  # fmt: skip
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), state.params, want)
    later, _, _ = apply(begin(PARAMS)._replace(steps=jnp.int32(2000)), GRADIENTS, FINE, 0.01)
    for after, decay in ((state, 1 / 10), (later, 0.99)):  # warming up; and when it is warm
        mixed = decay * PARAMS["w"] + (1 - decay) * after.params["w"]
        np.testing.assert_allclose(after.average["w"], mixed, rtol=1e-6)


def test_what_plays_is_the_average_or_a_shorter_one():
    begin, apply = parameter_update(average_decay=0.9)
    state, _, _ = apply(begin(PARAMS), GRADIENTS, FINE, 0.01)
    assert not isinstance(state, LearnerOfTwoAverages) and playing_params(state) is state.average
    begin, apply = parameter_update(average_decay=0.9, playing_decay=0.25)
    state, _, _ = apply(begin(PARAMS)._replace(steps=jnp.int32(2000)), GRADIENTS, FINE, 0.01)
    for average, decay in ((state.average, 0.9), (playing_params(state), 0.25)):
        mixed = decay * PARAMS["w"] + (1 - decay) * state.params["w"]
        np.testing.assert_allclose(average["w"], mixed, rtol=1e-6)
    with pytest.raises(ValueError, match=r"playing_decay=0.95 must be in \[0, average_decay=0.9\]"):
        parameter_update(average_decay=0.9, playing_decay=0.95)


@pytest.mark.parametrize("clip_norm, factor", [(0.5, 0.1), (4.9, 0.98), (5.1, 1.0)])
def test_gradients_are_shortened_to_the_clip_norm(clip_norm, factor):
    begin, apply = parameter_update(clip_norm=clip_norm)
    state, norm, _ = apply(begin(PARAMS), GRADIENTS, FINE, 0.01)
    momentum = optax.tree_utils.tree_get(state.opt_state, "mu")  # after one step a tenth of the gradient
    jax.tree.map(lambda m, g: np.testing.assert_allclose(10 * m, factor * g, rtol=1e-5), momentum, GRADIENTS)
    assert float(norm) == 5, "as it was"


def test_a_learning_rate_of_zero_changes_no_parameter():
    begin, apply = parameter_update(weight_decay=0.5)
    state, _, _ = apply(begin(PARAMS), GRADIENTS, FINE, 0.0)
    jax.tree.map(np.testing.assert_array_equal, state.params, PARAMS)


@pytest.mark.parametrize("where", ["loss", "gradient", "overflow", "parameters"])
def test_a_minibatch_that_is_not_finite_changes_nothing_and_is_counted(where):
    begin, apply = parameter_update(playing_decay=0.5)
    apply = jax.jit(apply)
    good, _, _ = apply(begin(PARAMS), GRADIENTS, FINE, 0.01)
    loss = jnp.float32(np.inf if where == "loss" else 1)
    gradients = GRADIENTS | {
        "gradient": {"b": jnp.float32([np.nan, 0])},
        "overflow": {"w": jnp.full((2, 2), 3e38)},
    }.get(where, {})
    rate = np.float32(3e38) if where == "parameters" else 0.01
    once, _, bad = apply(good, gradients, loss, rate)
    twice, _, _ = apply(once, gradients, loss, rate)
    jax.tree.map(np.testing.assert_array_equal, (twice[:3], twice.recent), (good[:3], good.recent))
    assert int(bad) == 1 and [int(x) for x in twice[3:6]] == [3, 2, 2]
    mended, _, bad = apply(twice, GRADIENTS, FINE, 0.01)
    assert int(bad) == 0 and [int(x) for x in mended[3:6]] == [4, 2, 0]
    assert np.abs(mended.params["w"] - good.params["w"]).max() > 0


def test_the_learning_rate_warms_up_stays_and_falls_with_the_minibatches():
    learn = types.SimpleNamespace(learning_rate=0.8, warmup=4, hold=16)
    rates = [learning_rate(learn, done) for done in (0, 1, 3, 15, 63, 255)]
    np.testing.assert_allclose(rates, [0.2, 0.4, 0.8, 0.8, 0.4, 0.2])
    assert learning_rate(types.SimpleNamespace(learning_rate=0.8, warmup=0, hold=16), 0) == 0.8
