"""mctx's `qtransforms`: what the actions of a node are worth, `(tree, node_index) -> [A]`, on the tree of one game.

Each operation comes in mctx's order, so that half precision rounds alike. jaxzero's search knows these functions and
uses `jaxzero.search.qvalues` in their place, see `jaxzero.compat.mctx.native.rules`.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.compat.mctx._src.tree import Tree

__all__ = ["qtransform_by_min_max", "qtransform_by_parent_and_siblings", "qtransform_completed_by_mix_value"]


def qtransform_by_min_max(tree: Tree, node_index: Array, *, min_value: Any, max_value: Any) -> Float[Array, "A"]:
    """(q − min)/(max − min) with given bounds; 0 for an unvisited action."""
    visited = tree.children_visits[node_index] > 0
    value = jnp.where(visited, tree.qvalues(node_index), min_value)
    return (value - min_value) / (max_value - min_value)


def qtransform_by_parent_and_siblings(tree: Tree, node_index: Array, *, epsilon: Any = 1e-8) -> Float[Array, "A"]:
    """Rescaled to [0, 1] by the least and the greatest of the node's and its children's values.

    Schrittwieser et al. 2019, appendix B, equation 5, with bounds of the node instead of the whole tree.
    """
    qvalues, visited = tree.qvalues(node_index), tree.children_visits[node_index] > 0
    node_value = tree.node_values[node_index]
    known = jnp.where(visited, qvalues, node_value)
    least = jnp.minimum(node_value, jnp.min(known, -1))
    greatest = jnp.maximum(node_value, jnp.max(known, -1))
    return (jnp.where(visited, qvalues, least) - least) / jnp.maximum(greatest - least, epsilon)


def qtransform_completed_by_mix_value(
    tree: Tree,
    node_index: Array,
    *,
    value_scale: Any = 0.1,
    maxvisit_init: Any = 50.0,
    rescale_values: bool = True,
    use_mixed_value: bool = True,
    epsilon: Any = 1e-8,
) -> Float[Array, "A"]:
    """(maxvisit_init + max N) · value_scale · q, with the mixed value for unvisited actions.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel", appendix D.
    """
    qvalues, visits = tree.qvalues(node_index), tree.children_visits[node_index]
    value = tree.raw_values[node_index]
    if use_mixed_value:
        probs = jax.nn.softmax(tree.children_prior_logits[node_index])
        value = _compute_mixed_value(value, qvalues, visits, probs)
    completed = _complete_qvalues(qvalues, visit_counts=visits, value=value)
    if rescale_values:
        completed = _rescale_qvalues(completed, epsilon)
    return (maxvisit_init + jnp.max(visits, -1)) * value_scale * completed


def _rescale_qvalues(qvalues: Float[Array, "A"], epsilon: Any) -> Float[Array, "A"]:
    """The Q-values mapped to [0, 1]."""
    least, greatest = jnp.min(qvalues, -1, keepdims=True), jnp.max(qvalues, -1, keepdims=True)
    return (qvalues - least) / jnp.maximum(greatest - least, epsilon)


def _complete_qvalues(
    qvalues: Float[Array, "A"], *, visit_counts: Int[Array, "A"], value: Float[Array, ""]
) -> Float[Array, "A"]:
    """The Q-values, with `value` for unvisited actions."""
    return jnp.where(visit_counts > 0, qvalues, value)


def _compute_mixed_value(
    raw_value: Float[Array, ""],
    qvalues: Float[Array, "A"],
    visit_counts: Int[Array, "A"],
    prior_probs: Float[Array, "A"],
) -> Float[Array, ""]:
    """The network's value mixed with the prior-weighted mean of the visited actions (ibid., equation 33)."""
    visited, total = visit_counts > 0, jnp.sum(visit_counts, -1)
    probs = jnp.maximum(jnp.finfo(prior_probs.dtype).tiny, prior_probs)  # visited actions may have no prior at all
    of_visited = jnp.sum(jnp.where(visited, probs, 0.0), -1)
    mean = jnp.sum(jnp.where(visited, probs * qvalues / jnp.where(visited, of_visited, 1.0), 0.0), -1)
    return (raw_value + total * mean) / (total + 1)
