"""Layers as functions of their parameters, a kernel and a bias; and the normalisation of embeddings."""

import math
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxzero.types import Params

__all__ = [
    "NORMALISATIONS",
    "Layer",
    "convolution",
    "dense",
    "initial_params",
    "largest",
    "layer_norm",
    "min_max",
    "perceptron",
    "windows_of",
]

MOST = 250_000_000  # parameters: what fits a file of weights in float32


class Layer(NamedTuple):
    """The parameters that a layer has.

    Attributes:
        kernel: its shape; the last axis is the output, the others are summed over.
        scale: of the initial kernel, relative to one that keeps the size of the signal.
    """

    kernel: tuple[int, ...]
    scale: float = 1.0


def initial_params(layers: Any, key: chex.PRNGKey) -> Params:
    """Normal kernels with variance scale² / inputs (LeCun et al. 1998, section 4.6), and biases of zero.

    Args:
        layers: nested dictionaries of `Layer`s.
        key: for the kernels.

    Returns:
        The same dictionaries, with `{"kernel": ..., "bias": ...}` for each layer, in float32.

    Raises:
        ValueError: more parameters than a file of weights has room for.

    Example:
        >>> params = initial_params({"policy": Layer((8, 3), scale=0.0)}, jax.random.key(0))
        >>> params["policy"]["kernel"].shape, float(abs(params["policy"]["kernel"]).max())
        ((8, 3), 0.0)
    """
    flat, shape = jax.tree.flatten(layers, is_leaf=lambda node: isinstance(node, Layer))
    sizes = [math.prod(layer.kernel) for layer in flat]
    if sum(sizes) > MOST:
        raise ValueError(f"initial_params: {sum(sizes):,} parameters: use smaller layers, with up to {MOST:,}.")

    def draw(key: chex.PRNGKey) -> Params:
        # One draw for all: with one for each of twelve layers this takes four times as long to compile.
        numbers = jax.random.normal(key, sum(sizes))
        made, start = [], 0
        for layer, size in zip(flat, sizes):
            factor = layer.scale / math.sqrt(math.prod(layer.kernel[:-1]))
            kernel = factor * numbers[start : start + size].reshape(layer.kernel)
            made.append({"kernel": kernel, "bias": jnp.zeros(layer.kernel[-1])})
            start += size
        return jax.tree.unflatten(shape, made)

    return jax.jit(draw)(key)


def dense(params: Params, x: Float[Array, "... I"]) -> Float[Array, "... O"]:
    """x W + b."""
    return x @ params["kernel"] + params["bias"]


def perceptron(params: Params, x: Float[Array, "... I"]) -> Float[Array, "... O"]:
    """The layers `dense_0`, `dense_1`, ... of the dictionary one after the other, each with a ReLU."""
    for i in range(sum(name.startswith("dense_") for name in params)):
        x = jax.nn.relu(dense(params[f"dense_{i}"], x))
    return x


def windows_of(board: Float[Array, "B H W F"], size: int) -> Float[Array, "B h w K"]:
    """Every window's squares side by side: a convolution as one matrix product, which suits a CPU better."""
    high, wide = board.shape[1] - size + 1, board.shape[2] - size + 1
    shifts = [board[:, i : i + high, j : j + wide] for i in range(size) for j in range(size)]
    return jnp.concatenate(shifts, -1)


def _correlated(kernel: Float[Array, "3 3 C O"], x: Float[Array, "B H W C"]) -> Float[Array, "B H W O"]:
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


_convolved = jax.custom_vjp(_correlated)


def _convolved_forward(kernel: Array, x: Array) -> tuple[Array, tuple[Array, Array]]:
    return _correlated(kernel, x), (kernel, x)


def _slopes_by_product(kernel: Array, x: Array, slope: Float[Array, "B H W O"]) -> tuple[Array, Array]:
    """The gradient of the kernel as one matrix product, that of x as a forward convolution."""
    (height, width), around = x.shape[1:3], jnp.pad(slope, ((0, 0), (1, 1), (1, 1), (0, 0)))
    # The kernel's corner (0, 0) meets a square of x at the output one below and one to the right of it.
    met = [around[:, i : i + height, j : j + width] for i in (2, 1, 0) for j in (2, 1, 0)]
    kernel_slope = jnp.tensordot(x, jnp.concatenate(met, -1), ((0, 1, 2), (0, 1, 2)))  # [C, 9 O]
    kernel_slope = jnp.moveaxis(kernel_slope.reshape(-1, 3, 3, slope.shape[-1]), 0, 2)
    return kernel_slope, _correlated(kernel[::-1, ::-1].swapaxes(2, 3), slope)


def _slopes_by_xla(kernel: Array, x: Array, slope: Float[Array, "B H W O"]) -> tuple[Array, Array]:
    return jax.vjp(_correlated, kernel, x)[1](slope)


def _convolved_backward(saved: tuple[Array, Array], slope: Float[Array, "B H W O"]) -> tuple[Array, Array]:
    return jax.lax.platform_dependent(*saved, slope, cpu=_slopes_by_product, default=_slopes_by_xla)


_convolved.defvjp(_convolved_forward, _convolved_backward)


def convolution(params: Params, x: Float[Array, "B H W C"]) -> Float[Array, "B H W O"]:
    """3x3, channels last, zero padding: XLA's convolution forward, and on a CPU a backward pass of our own.

    XLA's backward pass is a convolution whose windows are whole boards. In a loop on a CPU, where a learner takes its
    steps, it took 7 to 15 times as long as nine matrix products (gradient of four layers, batch 128, 6 x 7 and 10 x 10,
    16 and 32 channels; outside a loop two thirds of their time). One product takes 0.6 to 1.0 of the time of nine.
    Forward, a matrix product over shifted windows took 1.2 to 2 times as long as XLA's own.
    """
    return _convolved(params["kernel"], x) + params["bias"]


@jax.custom_vjp
def largest(x: Float[Array, "B n C"]) -> Float[Array, "B C"]:
    """The maximum over the middle axis. Of several equal numbers, the first gets the gradient.

    The gradient of `jnp.max` looks for the numbers that equal the maximum. XLA may recompute them for that with other
    rounding; then none is equal, and the gradient is 0 / 0. Here the index is kept from the forward pass.

    >>> x = jnp.array([[[1.0], [3.0], [3.0]]])
    >>> largest(x).tolist(), jax.grad(lambda x: largest(x).sum())(x).ravel().tolist()
    ([[3.0]], [0.0, 1.0, 0.0])
    """
    return x.max(1)


def _largest_forward(x: Float[Array, "B n C"]) -> tuple[Float[Array, "B C"], Bool[Array, "B n C"]]:
    return x.max(1), jax.nn.one_hot(x.argmax(1), x.shape[1], dtype=jnp.bool_, axis=1)


def _largest_backward(taken: Bool[Array, "B n C"], slope: Float[Array, "B C"]) -> tuple[Float[Array, "B n C"]]:
    return (jnp.where(taken, slope[:, None], 0),)


largest.defvjp(_largest_forward, _largest_backward)


def layer_norm(x: Float[Array, "B ... C"]) -> Float[Array, "B ... C"]:
    """Mean 0 and variance 1 in each sample, over all axes but the first (Ba et al. 2016, without gain and bias)."""
    axes = tuple(range(1, x.ndim))
    centred = x - jnp.mean(x, axes, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axes, keepdims=True) + 1e-5)


def min_max(x: Float[Array, "B ... C"]) -> Float[Array, "B ... C"]:
    """MuZero's: to [0, 1] in each sample; for planes in each channel (Schrittwieser et al. 2020, appendix G).

    A range below 0.01 counts as 0.01: where all numbers are equal all become 0, and gradients grow at most 100 times.
    """
    over = math.prod(x.shape[1 : max(x.ndim - 1, 2)])
    flat = x.reshape(len(x), over, math.prod(x.shape[1:]) // over)
    low, high = -largest(-flat)[:, None], largest(flat)[:, None]
    return ((flat - low) / jnp.maximum(high - low, 0.01)).reshape(x.shape)


NORMALISATIONS = {"layer": layer_norm, "min_max": min_max}
