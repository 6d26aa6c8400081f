"""A dense layer that can multiply in bfloat16 and sums in float32, which is fast on processors with matrix units."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float

__all__ = ["Dense"]


class Dense(nnx.Linear):
    """x W + b; with `dtype=jnp.bfloat16` inputs and weights are rounded first, and sums stay float32.

    XLA uses a CPU's matrix units (AMX) where factors are bfloat16 and their sums float32. If sums are rounded, too, it
    is no faster than float32 there (experiments/bench/README.md, "bfloat16.py"). Gradients are also products of rounded
    factors, summed in float32; those of the bias are rounded at the end.
    """

    def __call__(self, x: Float[Array, "... I"], beside: Float[Array, "... J"] | None = None) -> Float[Array, "... O"]:
        """The outputs, in float32 if the inputs are.

        Args:
            x: the inputs.
            beside: a few more inputs, whose weights are the last rows of the kernel. Concatenating them to x would copy
                x.

        Raises:
            ValueError: more inputs, or fewer, than the kernel has rows.
        """
        kernel, bias, inputs = self.kernel[...], self.bias[...], x.shape[-1]
        given = inputs + (0 if beside is None else beside.shape[-1])
        if given != kernel.shape[0]:
            raise ValueError(f"Dense: {given} inputs for a layer of {kernel.shape[0]}: give {kernel.shape[0]}.")
        dtype = None if self.dtype is None else jnp.dtype(self.dtype)
        plain = dtype is None or dtype == jnp.dtype(jnp.float32)
        product = jnp.matmul if plain else partial(_rounded_product, dtype)
        sums = product(x, kernel[:inputs])
        if beside is not None:
            sums = sums + product(beside, kernel[inputs:])
        bias = bias if dtype is None else _rounded(bias, dtype)
        return sums + bias.astype(sums.dtype).reshape((1,) * (sums.ndim - 1) + (-1,))


def _rounded(x: Array, dtype: jnp.dtype) -> Array:
    """Rounds x to the type and back. XLA may drop two successive conversions, but not this operation."""
    kind = jnp.finfo(dtype)
    return jax.lax.reduce_precision(x, kind.nexp, kind.nmant)


def _rounded_product(dtype: jnp.dtype, x: Float[Array, "... I"], kernel: Float[Array, "I O"]) -> Float[Array, "... O"]:
    rows = _product(dtype, x.reshape(-1, x.shape[-1]), kernel)
    return rows.reshape(*x.shape[:-1], -1)


def _summed(dtype: jnp.dtype, a: Array, b: Array, over: tuple[int, int]) -> Float[Array, "N O"]:
    contracted = (((over[0],), (over[1],)), ((), ()))
    sums = jnp.promote_types(dtype, jnp.float32)
    return jax.lax.dot_general(a.astype(dtype), b.astype(dtype), contracted, preferred_element_type=sums)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _product(dtype: jnp.dtype, x: Float[Array, "N I"], kernel: Float[Array, "I O"]) -> Float[Array, "N O"]:
    return _summed(dtype, x, kernel, (1, 0))


def _product_forward(dtype: jnp.dtype, x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _product(dtype, x, kernel), (x, kernel)


def _kernel_slope(dtype: jnp.dtype, x: Float[Array, "N I"], slope: Float[Array, "N O"]) -> Float[Array, "I O"]:
    return _summed(dtype, x, slope, (0, 0))


def _kernel_slope_on_cpu(dtype: jnp.dtype, x: Float[Array, "N I"], slope: Float[Array, "N O"]) -> Float[Array, "I O"]:
    """XLA's matrix units sum along rows, so x is transposed first: in all a third of the time of `_kernel_slope`."""
    turned = with_layout_constraint(x.astype(dtype).T, Layout(major_to_minor=(0, 1)))
    return _summed(dtype, turned, slope, (1, 0))


def _product_backward(
    dtype: jnp.dtype, saved: tuple[Array, Array], slope: Float[Array, "N O"]
) -> tuple[Float[Array, "N I"], Float[Array, "I O"]]:
    x, kernel = saved
    on_cpu, elsewhere = partial(_kernel_slope_on_cpu, dtype), partial(_kernel_slope, dtype)
    of_kernel = jax.lax.platform_dependent(x, slope, cpu=on_cpu, default=elsewhere)
    return _summed(dtype, slope, kernel, (1, 1)).astype(x.dtype), of_kernel.astype(kernel.dtype)


_product.defvjp(_product_forward, _product_backward)
