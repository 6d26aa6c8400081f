"""A dense layer that may multiply in bfloat16 and sums in float32: fast on processors with units for such products."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float

__all__ = ["Dense"]


class Dense(nnx.Linear):
    """x W + b in float32; with `dtype=jnp.bfloat16` inputs and weights are rounded first, and sums stay float32.

    XLA uses a CPU's matrix units (AMX) where factors are bfloat16 and their sums float32. Sums that are rounded, too,
    are no faster than float32 there (experiments/README.md, "bfloat16.py").
    """

    def __call__(self, x: Float[Array, "... I"], beside: Float[Array, "... J"] | None = None) -> Float[Array, "... O"]:
        """Float32 in any case.

        Args:
            x: the inputs.
            beside: a few more, that stand behind them. To put them into one array would copy the others.
        """
        read = lambda weights: weights if self.dtype is None else weights.astype(self.dtype).astype(jnp.float32)
        kernel, inputs = self.kernel[...], x.shape[-1]
        if self.dtype is None or self.dtype == jnp.float32:
            sums = x @ kernel[:inputs]
        else:
            sums = _product(self.dtype, x.reshape(-1, inputs), kernel[:inputs]).reshape(*x.shape[:-1], -1)
        if beside is not None:
            sums = sums + beside @ read(kernel[inputs:])
        return sums + read(self.bias[...])


def _summed(dtype: jnp.dtype, a: Array, b: Array, over: tuple[int, int]) -> Float[Array, "N O"]:
    contracted = (((over[0],), (over[1],)), ((), ()))
    return jax.lax.dot_general(a.astype(dtype), b.astype(dtype), contracted, preferred_element_type=jnp.float32)


@partial(jax.custom_vjp, nondiff_argnums=0)
def _product(dtype: jnp.dtype, x: Float[Array, "N I"], kernel: Float[Array, "I O"]) -> Float[Array, "N O"]:
    return _summed(dtype, x, kernel, (1, 0))


def _product_forward(dtype: jnp.dtype, x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return _product(dtype, x, kernel), (x, kernel)


def _kernel_slope(dtype: jnp.dtype, x: Float[Array, "N I"], slope: Float[Array, "N O"]) -> Float[Array, "I O"]:
    return _summed(dtype, x, slope, (0, 0))


def _kernel_slope_on_cpu(dtype: jnp.dtype, x: Float[Array, "N I"], slope: Float[Array, "N O"]) -> Float[Array, "I O"]:
    """XLA's matrix units sum along rows, so x is turned first: a third of the time, the turning counted in."""
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
