"""mctx's `action_selection`: how a walk goes on from a node, on the tree of one game.

Each operation comes in mctx's order, so that half precision rounds alike. jaxzero's search knows these functions and
uses its rules in their place, see `jaxzero.compat.mctx.native.rules`.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.compat.mctx._src.qtransforms import qtransform_by_parent_and_siblings, qtransform_completed_by_mix_value
from jaxzero.compat.mctx._src.seq_halving import get_table_of_considered_visits, score_considered
from jaxzero.compat.mctx._src.tree import Tree

try:
    from mctx._src.action_selection import GumbelMuZeroExtraData
except ImportError:
    from jaxzero.compat.mctx.mctx_records import GumbelMuZeroExtraData

__all__ = [
    "GumbelMuZeroExtraData",
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_root_action_selection",
    "masked_argmax",
    "muzero_action_selection",
    "switching_action_selection_wrapper",
]


def switching_action_selection_wrapper(
    root_action_selection_fn: Callable, interior_action_selection_fn: Callable
) -> Callable:
    """One selector `(rng_key, tree, node_index, depth) -> action` out of the root's and the others'."""

    def select(rng_key: Array, tree: Tree, node_index: Array, depth: Array) -> Int[Array, ""]:
        return jax.lax.cond(
            depth == 0,
            lambda: root_action_selection_fn(rng_key, tree, node_index),
            lambda: interior_action_selection_fn(rng_key, tree, node_index, depth),
        )

    return select


def muzero_action_selection(
    rng_key: Array,
    tree: Tree,
    node_index: Array,
    depth: Array,
    *,
    pb_c_init: Any = 1.25,
    pb_c_base: Any = 19652.0,
    qtransform: Callable = qtransform_by_parent_and_siblings,
) -> Int[Array, ""]:
    """PUCT: Q + (c₁ + log((N + c₂ + 1)/c₂)) · √N · P / (1 + n), and a random number below 1e-7 to break ties.

    Schrittwieser et al. 2019, appendix B. The root's mask holds at depth 0.
    """
    visits, node_visits = tree.children_visits[node_index], tree.node_visits[node_index]
    constant = pb_c_init + jnp.log((node_visits + pb_c_base + 1.0) / pb_c_base)
    probs = jax.nn.softmax(tree.children_prior_logits[node_index])
    exploration = jnp.sqrt(node_visits) * constant * probs / (visits + 1)
    noise = 1e-7 * jax.random.uniform(rng_key, (tree.num_actions,))
    scores = qtransform(tree, node_index) + exploration + noise
    return masked_argmax(scores, tree.root_invalid_actions * (depth == 0))


def gumbel_muzero_root_action_selection(
    rng_key: Array,
    tree: Tree,
    node_index: Array,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: Callable = qtransform_completed_by_mix_value,
) -> Int[Array, ""]:
    """Sequential halving with Gumbel (Danihelka et al. 2022, algorithm 2). The key is not used."""
    visits, logits = tree.children_visits[node_index], tree.children_prior_logits[node_index]
    qvalues = qtransform(tree, node_index)
    table = jnp.array(get_table_of_considered_visits(max_num_considered_actions, num_simulations))
    num_valid = jnp.sum(1 - tree.root_invalid_actions, -1).astype(jnp.int32)
    considered = table[jnp.minimum(max_num_considered_actions, num_valid), jnp.sum(visits, -1)]
    scores = score_considered(considered, tree.extra_data.root_gumbel, logits, qvalues, visits)
    return masked_argmax(scores, tree.root_invalid_actions)


def gumbel_muzero_interior_action_selection(
    rng_key: Array,
    tree: Tree,
    node_index: Array,
    depth: Array,
    *,
    qtransform: Callable = qtransform_completed_by_mix_value,
) -> Int[Array, ""]:
    """argmax π′ − n/(1 + Σn) with π′ = softmax(logits + q) (ibid., section 5). The key is not used."""
    visits, logits = tree.children_visits[node_index], tree.children_prior_logits[node_index]
    probs = jax.nn.softmax(logits + qtransform(tree, node_index))
    return jnp.argmax(_prepare_argmax_input(probs, visits), -1).astype(jnp.int32)


def masked_argmax(to_argmax: Float[Array, "... A"], invalid_actions: Array | None) -> Int[Array, "..."]:
    """The valid action of the highest score; 0 if none is valid."""
    if invalid_actions is not None:
        to_argmax = jnp.where(invalid_actions, -jnp.inf, to_argmax)
    return jnp.argmax(to_argmax, -1).astype(jnp.int32)


def _prepare_argmax_input(probs: Float[Array, "A"], visit_counts: Int[Array, "A"]) -> Float[Array, "A"]:
    """π − n/(1 + Σn): its argmax, taken again and again, visits the actions in proportion to π."""
    return probs - visit_counts / (1 + jnp.sum(visit_counts, -1, keepdims=True))
