"""Random bits for playouts, which draw more often than anything else."""

import jax.numpy as jnp
from jaxtyping import Array, Int, UInt32

__all__ = ["scramble"]


def scramble(seed: UInt32[Array, "L"], count: Int[Array, ""]) -> UInt32[Array, "L"]:
    """Random bits of step `count`: a counter, hashed by lowbias32 (C. Wellons, hash-prospector, 2018).

    At small batches playouts are bound by the number of kernels, and threefry on a CPU is a loop of them.
    """
    x = seed + count.astype(jnp.uint32) * jnp.uint32(0x9E3779B9)
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)
