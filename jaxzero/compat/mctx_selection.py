"""mctx's Q transforms and action selectors, in terms of jaxzero's rules."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.compat.mctx_tree import Tree
from jaxzero.mcts import qvalues as q
from jaxzero.mcts.gumbel import LOWEST, halving_schedule, improved
from jaxzero.mcts.rules import muzero_puct
from jaxzero.mcts.tree import RootData
from jaxzero.types import EdgeView, Rule

__all__ = [
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_root_action_selection",
    "muzero_action_selection",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
]


def node_view(tree: Tree, node_index: Int[Array, ""]) -> EdgeView:
    """One node of a tree with mctx's attributes, of one game, as a rule sees it."""
    visits = tree.children_visits[node_index]
    return EdgeView(
        game=jnp.zeros((), jnp.int32),
        action=jnp.arange(visits.shape[-1]),
        prior=jax.nn.softmax(tree.children_prior_logits[node_index]),
        visits=visits,
        value=tree.qvalues(node_index),
        reward=tree.children_rewards[node_index],
        discount=tree.children_discounts[node_index],
        child_value=tree.children_values[node_index],
        node_visits=tree.node_visits[node_index],
        node_value=tree.node_values[node_index],
        raw_value=tree.raw_values[node_index],
        unvisited_mass=jnp.zeros((), jnp.float32),  # for rules that do not see every edge; these do
        root=RootData(simulations=jnp.zeros(1, jnp.int32)),  # of a search of one game
    )


# ----------------------------------------------------------------------------------------------------- Q transforms
def qtransform_by_min_max(tree: Tree, node_index: Array, *, min_value: Any, max_value: Any) -> Float[Array, "A"]:
    """(q − min)/(max − min) with given bounds; 0 for an unvisited action. See `jaxzero.mcts.qvalues.by_min_max`."""
    return q.by_min_max(min_value, max_value)(node_view(tree, node_index))


def qtransform_by_parent_and_siblings(tree: Tree, node_index: Array, *, epsilon: Any = 1e-8) -> Float[Array, "A"]:
    """Rescaled by the node's and its children's values. See `jaxzero.mcts.qvalues.by_parent_and_siblings`."""
    return q.by_parent_and_siblings(epsilon)(node_view(tree, node_index))


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
    """Completed by the mixed value, and scaled. See `jaxzero.mcts.qvalues.completed_by_mix_value`."""
    transform = q.completed_by_mix_value(value_scale, maxvisit_init, rescale_values, use_mixed_value, epsilon)
    return transform(node_view(tree, node_index))


# -------------------------------------------------------------------------------------------------- action selectors
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
    """PUCT with MuZero's constant, see `jaxzero.mcts.rules.muzero_puct`; the root's mask holds at depth 0.

    The key is not used: among equal scores the lowest action wins (mctx adds random numbers up to 1e-7).
    """
    rule = muzero_puct(pb_c_init, pb_c_base, lambda _: qtransform(tree, node_index))
    return masked_argmax(rule.score(node_view(tree, node_index)), tree.root_invalid_actions * (depth == 0))


def gumbel_muzero_root_action_selection(
    rng_key: Array,
    tree: Tree,
    node_index: Array,
    *,
    num_simulations: int,
    max_num_considered_actions: int,
    qtransform: Callable = qtransform_completed_by_mix_value,
) -> Int[Array, ""]:
    """Sequential halving with Gumbel, see `jaxzero.mcts.gumbel.gumbel_root`."""
    logits, visits = tree.children_prior_logits[node_index], tree.children_visits[node_index]
    plans = range(max_num_considered_actions + 1)
    table = np.array([halving_schedule(most, num_simulations) for most in plans], np.int32)
    valid = jnp.sum(1 - tree.root_invalid_actions, -1).astype(jnp.int32)
    wanted = jnp.asarray(table)[jnp.minimum(max_num_considered_actions, valid), jnp.sum(visits, -1)]
    score = tree.extra_data.root_gumbel + (logits - jnp.max(logits, -1, keepdims=True)) + qtransform(tree, node_index)
    score = jnp.where(visits == wanted, jnp.maximum(LOWEST, score), -jnp.inf)
    return masked_argmax(score, tree.root_invalid_actions)


def gumbel_muzero_interior_action_selection(
    rng_key: Array,
    tree: Tree,
    node_index: Array,
    depth: Array,
    *,
    qtransform: Callable = qtransform_completed_by_mix_value,
) -> Int[Array, ""]:
    """The deterministic choice below the root, see `jaxzero.mcts.gumbel.gumbel_interior`."""
    view = node_view(tree, node_index)._replace(prior=tree.children_prior_logits[node_index])
    rule = whole_gumbel_interior(lambda _: qtransform(tree, node_index))
    return jnp.argmax(rule.score(view), -1).astype(jnp.int32)


def whole_gumbel_interior(qvalues: q.QValues) -> Rule:
    """`gumbel_interior` for any Q-values: that one wants the same of all unvisited edges, and sees but one of them."""

    def score(view: EdgeView) -> Array:
        visits = view.visits.astype(view.prior.dtype)
        return improved(view, qvalues) - visits / (1 + jnp.sum(visits, -1, keepdims=True))

    return Rule(prepare=lambda logits: logits, score=score)


def masked_argmax(scores: Float[Array, "... A"], invalid: Array) -> Int[Array, "..."]:
    """The valid action of the highest score; 0 if none is valid."""
    return jnp.argmax(jnp.where(invalid, -jnp.inf, scores), -1).astype(jnp.int32)
