"""What mctx's policies do at the root: noise and mask before a search, an action drawn by visits after it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.compat.mctx_search_tree import SearchTree
from jaxzero.compat.mctx_tree import PolicyOutput, RootFnOutput, Tree

__all__ = ["act_by_visits", "mask_invalid", "noisy", "with_logits"]


def with_logits(root: Any, logits: Array) -> RootFnOutput:
    """The root with other logits; any record with mctx's three fields will do."""
    return RootFnOutput(prior_logits=logits, value=root.value, embedding=root.embedding)


def noisy(key: Array, logits: Array, fraction: Any, alpha: Any) -> Float[Array, "B A"]:
    """The logits of a policy mixed with Dirichlet noise over all actions."""
    batch, num_actions = logits.shape
    alpha = jnp.full([num_actions], jnp.asarray(alpha, jnp.result_type(float)))
    noise = jax.random.dirichlet(key, alpha, (batch,))
    return log_of((1 - fraction) * jax.nn.softmax(logits) + fraction * noise)


def log_of(probs: Array) -> Array:
    return jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))


def mask_invalid(logits: Array, invalid: Array | None) -> Float[Array, "B A"]:
    """The logits with invalid actions at the lowest finite number: uniform, not NaN, where none is valid."""
    if invalid is None:
        return logits
    if jnp.shape(invalid) != logits.shape:
        raise ValueError(
            f"invalid_actions has shape {jnp.shape(invalid)}; by root.prior_logits it must be {logits.shape}."
        )
    return jnp.where(invalid, jnp.finfo(logits.dtype).min, logits - jnp.max(logits, -1, keepdims=True))


def act_by_visits(key: Array, tree: Tree | SearchTree, temperature: Any) -> PolicyOutput:
    """An action drawn with probability proportional to visits^(1/temperature)."""
    weights = tree.summary().visit_probs
    logits = log_of(weights)
    tiny = jnp.finfo(logits.dtype).tiny
    logits = (logits - jnp.max(logits, -1, keepdims=True)) / jnp.maximum(tiny, temperature)
    return PolicyOutput(action=jax.random.categorical(key, logits), action_weights=weights, search_tree=tree)
