"""A synthetic world whose network costs almost nothing, for timing searches: positions are hashes.

The logits of a position are logistic draws, of a scale that makes trees as deep as a trained network's (mean depth
5-10 in a few hundred simulations); the value wanders by small steps from move to move and changes its sign with the
player. Everything is drawn from the hash of the actions so far, so mctx and jaxzero see the same world, and a game is
the same alone as in a batch.
"""

from typing import Any

import jax
import jax.numpy as jnp
import mctx

import jaxzero as jz

__all__ = ["model", "recurrent_fn", "root_fn", "roots"]


def scramble(x: jax.Array) -> jax.Array:
    """lowbias32 (C. Wellons, hash-prospector, 2018)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def uniform(bits: jax.Array) -> jax.Array:
    """In [0, 1), of 24 bits: exact in float32."""
    return (bits >> 8).astype(jnp.float32) / (1 << 24)


def logits(bits: jax.Array, num_actions: int) -> jax.Array:
    each = scramble(bits[:, None] + jnp.arange(1, num_actions + 1, dtype=jnp.uint32) * jnp.uint32(0x9E3779B9))
    u = uniform(each) * 0.999998 + 1e-6
    return 2 * jnp.log(u / (1 - u))


def follow(action: jax.Array, state: tuple) -> tuple:
    bits, value = state
    bits = scramble(bits * jnp.uint32(31) + action.astype(jnp.uint32) + 7)
    drift = 0.6 * uniform(scramble(bits ^ jnp.uint32(0xDEADBEEF))) - 0.3
    return bits, jnp.clip(drift - value, -1, 1)


def roots(batch: int) -> tuple:
    """B positions to search from."""
    return scramble(jnp.arange(1, batch + 1, dtype=jnp.uint32)), jnp.zeros(batch)


def model(num_actions: int, library: Any = jz) -> jz.Model:
    """The world for jaxzero, or for another version of it."""

    def describe(state: tuple) -> tuple:
        bits, value = state
        zeros = jnp.zeros_like(value)
        return library.Step(
            prior_logits=logits(bits, num_actions), value=value, reward=zeros, discount=zeros - 1
        ), state

    return library.Model(
        root=lambda params, keys, state: describe(state),
        step=lambda params, keys, action, state: describe(follow(action, state)),
    )


def root_fn(num_actions: int, state: tuple) -> mctx.RootFnOutput:
    """The root for mctx."""
    return mctx.RootFnOutput(prior_logits=logits(state[0], num_actions), value=state[1], embedding=state)


def recurrent_fn(num_actions: int):
    """The world for mctx."""

    def recurrent(params, key, action, state):
        state = bits, value = follow(action, state)
        zeros = jnp.zeros_like(value)
        out = mctx.RecurrentFnOutput(
            reward=zeros, discount=zeros - 1, prior_logits=logits(bits, num_actions), value=value
        )
        return out, state

    return recurrent
