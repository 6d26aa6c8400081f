"""The dense layer: float32 as written down, bfloat16 of rounded factors with sums in float32, forward and backward."""

import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxzero import nets
from jaxzero.games import from_pgx
from jaxzero.nets.dense import Dense


def layer(inputs=24, outputs=20, dtype=None):
    made = Dense(inputs, outputs, dtype=dtype, rngs=nnx.Rngs(0))
    made.bias[...] = drawn(outputs)
    return made


def drawn(*shape):
    return jax.random.normal(jax.random.key(sum(shape)), shape)


def rounded(x):
    return np.asarray(x.astype(jnp.bfloat16), np.float64)


def test_in_float32_it_is_a_linear_layer():
    made, x = layer(), drawn(32, 24)
    np.testing.assert_allclose(made(x), np.asarray(x) @ made.kernel[...] + made.bias[...], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("before", [(32,), (4, 8), ()])
def test_in_bfloat16_factors_are_rounded_and_sums_are_not(before):
    made, x = layer(inputs=300, dtype=jnp.bfloat16), drawn(*before, 300)
    expected = rounded(x) @ rounded(made.kernel[...]) + rounded(made.bias[...])
    out = made(x)
    assert out.dtype == jnp.float32 and out.shape == (*before, 20)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert np.abs(expected - rounded(jnp.asarray(expected, jnp.float32))).max() > 1e-3, "rounded sums would differ"


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
def test_what_stands_beside_is_as_if_it_stood_behind(dtype):
    made, x, beside = layer(inputs=27, dtype=dtype), drawn(32, 24), jnp.round(drawn(32, 3))
    together = made(jnp.concatenate([x, beside], -1))
    np.testing.assert_allclose(made(x, beside), together, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("given", [jnp.float32, jnp.bfloat16])
def test_slopes_are_products_of_what_was_rounded(given):
    """Also of weights and inputs that were rounded before: slopes have the type of what they are slopes of."""
    made, x, met = layer(dtype=jnp.bfloat16), drawn(32, 24).astype(given), drawn(32, 20)
    graph, state = nnx.split(made)
    params = nnx.to_pure_dict(state)
    params["kernel"] = params["kernel"].astype(given)
    slopes, of_x = jax.jit(jax.grad(lambda p, x: (nnx.merge(graph, p)(x) * met).sum(), (0, 1)))(params, x)
    chex.assert_trees_all_equal_shapes_and_dtypes((slopes, of_x), (params, x))
    close = dict(rtol=1e-5, atol=1e-4) if given == jnp.float32 else dict(rtol=8e-3, atol=1e-2)
    np.testing.assert_allclose(slopes["kernel"].astype(jnp.float32), rounded(x).T @ rounded(met), **close)
    np.testing.assert_allclose(of_x.astype(jnp.float32), rounded(met) @ rounded(params["kernel"]).T, **close)
    np.testing.assert_allclose(slopes["bias"], np.asarray(met).sum(0), rtol=2**-8)


@pytest.mark.parametrize("dtype, expected", [("float32", jnp.float32), (jnp.float16, jnp.float32)])
def test_other_types_are_read_as_they_are_named(dtype, expected):
    made, x = layer(dtype=dtype), drawn(32, 24)
    read = lambda y: np.asarray(y.astype(dtype), np.float64)
    assert made(x).dtype == expected
    np.testing.assert_allclose(made(x), read(x) @ read(made.kernel[...]) + read(made.bias[...]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
def test_another_number_of_inputs_is_refused(dtype):
    made = layer(inputs=24, dtype=dtype)
    for x, beside in ((drawn(4, 23), None), (drawn(4, 25), None), (drawn(4, 24), drawn(4, 1))):
        with pytest.raises(ValueError, match=r"Dense: 2\d inputs for a layer of 24"):
            made(x, beside)


def test_ranks_are_not_promoted():
    with jax.numpy_rank_promotion("raise"):
        assert layer()(drawn(4, 8, 24)).shape == (4, 8, 20)


def test_it_can_be_mapped_over():
    made, x = layer(dtype=jnp.bfloat16), drawn(3, 32, 24)
    slope = jax.grad(lambda x: made(x).sum())
    np.testing.assert_allclose(jax.vmap(slope)(x), jnp.stack([slope(one) for one in x]), rtol=1e-5, atol=1e-5)


def test_every_large_product_of_learning_has_factors_of_bfloat16_and_sums_of_float32():
    """Two for each layer and one forward, but for the slopes of the observation; the heads are float32."""
    game = from_pgx("tic_tac_toe")
    net, params = nets.mlp(game, hidden=(48, 32), key=jax.random.key(0), dtype=jnp.bfloat16)
    answer = lambda params, seen: sum(x.sum() for x in net(params, seen))
    text = jax.jit(jax.grad(answer)).lower(params, drawn(16, 3, 3, 2)).as_text()
    products = re.findall(
        r"dot_general.*: \(tensor<[\dx]+x(\w+)>, tensor<[\dx]+x(\w+)>\) -> tensor<[\dx]+x(\w+)>", text
    )
    half = [types for types in products if "bf16" in types]
    assert set(half) == {("bf16", "bf16", "f32")}
    assert len(half) >= 5 and all(types == ("f32", "f32", "f32") for types in products if types not in half)
