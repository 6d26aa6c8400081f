"""The policies' steps at the root: noise and mask before a search, an action drawn by visits after it."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = ["act_by_visits", "add_dirichlet_noise", "apply_temperature", "mask_invalid_actions", "noisy_logits"]


def noisy_logits(
    rng_key: Array, logits: Float[Array, "B A"], invalid_actions: Array | None, alpha: Any, fraction: Any
) -> Float[Array, "B A"]:
    """The root's logits with Dirichlet noise over all actions, masked afterwards."""
    probs = add_dirichlet_noise(rng_key, jax.nn.softmax(logits), dirichlet_alpha=alpha, dirichlet_fraction=fraction)
    return mask_invalid_actions(get_logits_from_probs(probs), invalid_actions)


def act_by_visits(rng_key: Array, visit_probs: Float[Array, "B A"], temperature: Any) -> Int[Array, "B"]:
    """An action drawn with probability proportional to visits^(1/temperature)."""
    return jax.random.categorical(rng_key, apply_temperature(get_logits_from_probs(visit_probs), temperature))


def mask_invalid_actions(logits: Float[Array, "B A"], invalid_actions: Array | None) -> Float[Array, "B A"]:
    """The logits with invalid actions at the lowest finite number: uniform, not NaN, where none is valid."""
    if invalid_actions is None:
        return logits
    logits = logits - jnp.max(logits, -1, keepdims=True)
    return jnp.where(invalid_actions, jnp.finfo(logits.dtype).min, logits)


def get_logits_from_probs(probs: Float[Array, "B A"]) -> Float[Array, "B A"]:
    """The logarithms, finite where a probability is 0."""
    return jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))


def add_dirichlet_noise(
    rng_key: Array, probs: Float[Array, "B A"], *, dirichlet_alpha: Any, dirichlet_fraction: Any
) -> Float[Array, "B A"]:
    """The probabilities mixed with Dirichlet noise over all actions."""
    batch, num_actions = probs.shape
    alpha = jnp.full([num_actions], jnp.asarray(dirichlet_alpha, jnp.result_type(float)))
    noise = jax.random.dirichlet(rng_key, alpha, (batch,))
    return (1 - dirichlet_fraction) * probs + dirichlet_fraction * noise


def apply_temperature(logits: Float[Array, "B A"], temperature: Any) -> Float[Array, "B A"]:
    """The logits divided by the temperature; finite even if that is 0."""
    logits = logits - jnp.max(logits, -1, keepdims=True)
    return logits / jnp.maximum(jnp.finfo(logits.dtype).tiny, temperature)
