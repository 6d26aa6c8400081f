"""Layers: their initial parameters, and normalisations where there is next to nothing to normalise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.nets.layers import NORMALISATIONS, Layer, convolution, initial_params, largest, layer_norm, min_max


def test_kernels_keep_the_size_of_what_goes_through():
    layers = {"wide": Layer((900, 300)), "conv": {"half": Layer((3, 3, 50, 80), scale=0.5)}, "zero": Layer((4, 2), 0.0)}
    params = initial_params(layers, jax.random.key(3))
    assert abs(float(params["wide"]["kernel"].std()) * 30 - 1) < 0.01
    assert abs(float(params["conv"]["half"]["kernel"].std()) * 450**0.5 - 0.5) < 0.01
    assert not params["zero"]["kernel"].any()
    assert params["conv"]["half"]["bias"].shape == (80,) and not params["conv"]["half"]["bias"].any()
    assert (
        abs(np.corrcoef(params["wide"]["kernel"].ravel()[:36000], params["conv"]["half"]["kernel"].ravel())[0, 1])
        < 0.03
    )


def test_planes_are_normalised_as_documented():
    planes = np.random.default_rng(0).normal(3.0, 5.0, (2, 4, 5, 3)).astype(np.float32)
    whole = np.asarray(layer_norm(planes)).reshape(2, -1)
    np.testing.assert_allclose([whole.mean(1), whole.std(1)], [[0, 0], [1, 1]], atol=1e-5)
    channels = np.asarray(min_max(planes)).transpose(0, 3, 1, 2).reshape(6, -1)
    np.testing.assert_allclose([channels.min(1), channels.max(1)], [[0] * 6, [1] * 6], atol=1e-6)


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_equal_numbers_are_normalised_safely(name):
    """Neither noise blown up, nor an infinite gradient."""
    equal = jnp.full((2, 8), 7.0).at[1, 3].add(1e-6)
    assert abs(NORMALISATIONS[name](equal)).max() < 2e-3
    slope = jax.grad(lambda x: jnp.sum(NORMALISATIONS[name](x) * jnp.arange(8.0)))(equal)
    assert jnp.isfinite(slope).all() and abs(slope).max() < 5000


def test_the_gradient_of_the_largest_is_that_which_jax_derives():
    """Where none are equal. Of equal ones the first has it: an example in the docstring."""
    x, weight = np.random.default_rng(1).normal(size=(3, 5, 4)).astype(np.float32), np.arange(12.0).reshape(3, 4)
    derived = lambda x: x.max(1)
    ours, theirs = (jax.grad(lambda x, f=f: jnp.sum(weight * f(x) ** 2))(x) for f in (largest, derived))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert (largest(x) == x.max(1)).all()


def test_the_gradients_of_a_convolution_are_those_that_jax_derives():
    rng = np.random.default_rng(0)
    params = {"kernel": rng.normal(size=(3, 3, 2, 4)).astype(np.float32), "bias": np.zeros(4, np.float32)}
    x, weight = rng.normal(size=(5, 3, 4, 2)).astype(np.float32), rng.normal(size=(5, 3, 4, 4)).astype(np.float32)

    def derived(params, x):
        kernel, order = params["kernel"], ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=order) + params["bias"]

    slopes = lambda f: jax.grad(lambda params, x: jnp.sum(weight * f(params, x) ** 2), (0, 1))(params, x)
    ours, theirs = slopes(convolution), slopes(derived)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-3)


def test_only_cpus_take_the_backward_pass_of_our_own():
    """Others take XLA's convolutions: three of them, where the own one has two and a matrix product."""
    params, x = {"kernel": jnp.ones((3, 3, 2, 4)), "bias": jnp.zeros(4)}, jnp.ones((5, 3, 4, 2))
    slopes = jax.jit(jax.grad(lambda params, x: jnp.sum(convolution(params, x) ** 2), (0, 1)))
    lowered = lambda platform: slopes.trace(params, x).lower(lowering_platforms=(platform,)).as_text()
    count = lambda platform: tuple(lowered(platform).count(f"stablehlo.{op}") for op in ("convolution", "dot_general"))
    assert (count("cpu"), count("cuda"), count("tpu")) == ((2, 1), (3, 0), (3, 0))
