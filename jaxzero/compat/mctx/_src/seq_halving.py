"""mctx's `seq_halving`: which actions of the root sequential halving considers (Karnin, Koren and Somekh 2013)."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.root.gumbel import LOWEST, halving_schedule

__all__ = ["get_sequence_of_considered_visits", "get_table_of_considered_visits", "score_considered"]


def score_considered(
    considered_visit: Int[Array, "..."],
    gumbel: Float[Array, "... A"],
    logits: Float[Array, "... A"],
    normalized_qvalues: Float[Array, "... A"],
    visit_counts: Int[Array, "... A"],
) -> Float[Array, "... A"]:
    """Gumbel + logits + Q of the actions that have `considered_visit` visits; −inf for the others."""
    logits = logits - jnp.max(logits, -1, keepdims=True)
    penalty = jnp.where(visit_counts == considered_visit, 0, -jnp.inf)
    return jnp.maximum(LOWEST, gumbel + logits + normalized_qvalues) + penalty


def get_sequence_of_considered_visits(max_num_considered_actions: int, num_simulations: int) -> tuple[int, ...]:
    """For each simulation, how many visits an action must have to be considered."""
    return halving_schedule(max_num_considered_actions, num_simulations)


def get_table_of_considered_visits(
    max_num_considered_actions: int, num_simulations: int
) -> tuple[tuple[int, ...], ...]:
    """The sequences for 0 to `max_num_considered_actions` actions."""
    return tuple(halving_schedule(most, num_simulations) for most in range(max_num_considered_actions + 1))
