"""Batches of random playouts: their random bits, and how many run side by side."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32

from jaxzero.types import Keys, State

__all__ = ["in_tiles", "scramble", "seeds_of"]

Playout = Callable[[Keys, State, int | None], Float[Array, "L P"]]


def seeds_of(keys: Keys) -> UInt32[Array, "L"]:
    """One word of random bits per key."""
    return jax.vmap(lambda key: jax.random.bits(key, dtype=jnp.uint32))(keys)


def scramble(seed: UInt32[Array, "L"], count: Int[Array, ""]) -> UInt32[Array, "L"]:
    """Random bits of step `count`: a counter, hashed by lowbias32 (C. Wellons, hash-prospector, 2018).

    At small batches playouts are bound by the number of kernels, and threefry on a CPU is a loop of them.
    """
    x = seed + count.astype(jnp.uint32) * jnp.uint32(0x9E3779B9)
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def in_tiles(playout: Playout, size: int) -> Playout:
    """The same playouts: on a CPU in groups of at most `size` lanes, one after the other; elsewhere all at once.

    For playouts of many small kernels. XLA's CPU backend splits a large kernel among threads, and waits for them. With
    1,024 lanes of 9×9 Go, groups of 64, which it does not split, play three times as many per second. A group ends with
    its own longest playout. The returns of a lane do not depend on the groups.
    """

    def tiled(keys: Keys, state: State, max_steps: int | None = None) -> Float[Array, "L P"]:
        lanes = keys.shape[0]
        if lanes <= size:
            return playout(keys, state, max_steps)
        tiles = -(-lanes // size)
        index = jnp.minimum(jnp.arange(tiles * -(-lanes // tiles)), lanes - 1).reshape(tiles, -1)

        def groups(keys: Keys, state: State) -> Float[Array, "L P"]:
            some = lambda at: (keys[at], jax.tree.map(lambda x: x[at], state))
            paid = jax.lax.map(lambda at: playout(*some(at), max_steps), index)
            return paid.reshape(-1, paid.shape[-1])[:lanes]

        return jax.lax.platform_dependent(
            keys, state, cpu=groups, default=lambda keys, state: playout(keys, state, max_steps)
        )

    return tiled
