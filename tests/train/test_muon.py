"""Muon: nearly orthogonal steps for kernels, Adam's for biases."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxzero.train.muon import muon
from jaxzero.train.parameter_update import parameter_update


def first_step(shape):
    """The direction of the first step along a random gradient, as a matrix `[inputs, outputs]`, and the gradient."""
    slope = {"kernel": jax.random.normal(jax.random.key(0), shape)}
    direction = muon()
    step, _ = direction.update(slope, direction.init(slope), slope)
    flat = lambda x: np.asarray(x["kernel"], np.float64).reshape(-1, shape[-1])
    return flat(step), flat(slope)


@pytest.mark.parametrize("shape", [(8, 8), (20, 6), (6, 20), (3, 3, 4, 5), (3, 3, 2, 32)])
def test_a_kernels_step_is_nearly_the_orthogonal_factor_of_its_gradient(shape):
    step, slope = first_step(shape)
    inputs, outputs = slope.shape
    u, _, v = np.linalg.svd(slope, full_matrices=False)
    wide = max(1.0, outputs / inputs) ** 0.5
    sizes = np.linalg.svd(step / wide, compute_uv=False)
    assert sizes.min() > 0.6 and sizes.max() < 1.3, "the iteration ends near 1, and not at it"
    assert np.sum(u @ v * step / wide) / len(sizes) == pytest.approx(1, abs=0.2), "along the gradient, not against it"


def test_biases_take_adams_step():
    direction, adam = muon(0.4), optax.scale_by_adam(nesterov=True)
    slopes = [{"bias": jnp.array([1.0, -5.0, 0.0])}, {"bias": jnp.array([2.0, 1.0, 0.1])}]
    state, other = direction.init(slopes[0]), adam.init(slopes[0])
    for slope in slopes:
        step, state = direction.update(slope, state, slope)
        expected, other = adam.update(slope, other)
        np.testing.assert_allclose(step["bias"], 0.4 * expected["bias"], rtol=1e-6)


def test_parameters_go_downhill():
    goal = jax.random.normal(jax.random.key(1), (6, 4))
    begin, apply = parameter_update(weight_decay=0.0, average_decay=0.0, clip_norm=10.0, direction=muon())
    loss = lambda params: jnp.mean((params["kernel"] + params["bias"] - goal) ** 2)
    learner = begin({"kernel": jnp.zeros((6, 4)), "bias": jnp.zeros(4)})
    before, step = float(loss(learner.params)), jax.jit(apply)
    for i in range(100):
        now, slope = jax.value_and_grad(loss)(learner.params)
        learner, _, bad = step(learner, slope, now, 0.1 / (1 + i / 10))
        assert not bad
    assert float(loss(learner.average)) < 0.05 * before, "steps keep their size: they circle the goal at a distance"


def test_a_bad_minibatch_leaves_the_momentum_alone():
    begin, apply = parameter_update(direction=muon())
    start = begin({"kernel": jnp.ones((3, 2))})
    after, _, bad = apply(start, {"kernel": jnp.full((3, 2), jnp.nan)}, jnp.float32(1.0), 0.1)
    assert bad == 1
    jax.tree.map(np.testing.assert_array_equal, after.opt_state, start.opt_state)
    np.testing.assert_array_equal(after.params["kernel"], start.params["kernel"])
