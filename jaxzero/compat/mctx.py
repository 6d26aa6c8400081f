"""mctx's public interface on top of jaxzero's search: `from jaxzero.compat import mctx` is the whole migration.

The names, arguments, defaults, results and the use of random keys are those of mctx 0.0.71
(github.com/google-deepmind/mctx), its peculiarities included: Dirichlet noise falls on all actions and is masked
afterwards, only the root has a mask, a root without a valid action takes action 0, and at `max_depth` a node is
evaluated anew and overwritten. The trees are the same trees, node for node. What differs:

* It is faster: choices are remembered at the nodes. The policies with the Q transforms below, and `search` with the
  action selectors below, run on jaxzero's search; a Q transform of your own too, if it reads no more than the row of
  its node. Any other selector is asked at every level of every walk, as in mctx. `search_tree` works its arrays out
  when they are read.
* Equal scores: the lowest action wins. mctx adds random numbers of up to 1e-7 to the scores of PUCT, which also
  reverses some choices between scores that are that close.

Where mctx has no defined result, with NaN or infinity from the model, jaxzero's search takes uniform logits and zeros
in their place. Records made by mctx itself are accepted.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.compat.mctx_root import act_by_visits, mask_invalid, noisy, with_logits
from jaxzero.compat.mctx_rules import qvalues_at_roots
from jaxzero.compat.mctx_search import search
from jaxzero.compat.mctx_search_tree import SearchTree
from jaxzero.compat.mctx_selection import (
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    masked_argmax,
    muzero_action_selection,
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from jaxzero.compat.mctx_stochastic import stochastic_muzero_policy
from jaxzero.compat.mctx_tree import (
    ChanceRecurrentFnOutput,
    DecisionRecurrentFnOutput,
    GumbelMuZeroExtraData,
    PolicyOutput,
    RecurrentFnOutput,
    RootFnOutput,
    SearchSummary,
    Tree,
)
from jaxzero.mcts.gumbel import LOWEST

__all__ = [
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "GumbelMuZeroExtraData",
    "InteriorActionSelectionFn",
    "LoopFn",
    "PolicyOutput",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootActionSelectionFn",
    "RootFnOutput",
    "SearchSummary",
    "SearchTree",
    "Tree",
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_policy",
    "gumbel_muzero_root_action_selection",
    "muzero_action_selection",
    "muzero_policy",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "search",
    "stochastic_muzero_policy",
]

RecurrentState = Any
RecurrentFn = Callable[[Any, Array, Array, RecurrentState], tuple[RecurrentFnOutput, RecurrentState]]
RootActionSelectionFn = Callable[[Array, Tree, Array], Array]
InteriorActionSelectionFn = Callable[[Array, Tree, Array, Array], Array]
LoopFn = Callable[[int, int, Callable[[Any, Any], Any], tuple[Array, Any]], tuple[Array, Any]]


def muzero_policy(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Array | None = None,
    max_depth: int | None = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
    *,
    qtransform: Callable = qtransform_by_parent_and_siblings,
    dirichlet_fraction: Any = 0.25,
    dirichlet_alpha: Any = 0.3,
    pb_c_init: Any = 1.25,
    pb_c_base: Any = 19652,
    temperature: Any = 1.0,
) -> PolicyOutput:
    """MuZero's search: PUCT with Dirichlet noise at the root; the action is drawn by visits.

    Schrittwieser et al. 2019, appendix B.

    Args:
        params: handed to `recurrent_fn`.
        rng_key: one key for the whole batch.
        root: prior logits `[B, A]`, value `[B]` and embedding `[B, ...]`.
        recurrent_fn: `(params, rng_key, action [B], embedding) -> (RecurrentFnOutput, embedding)`.
        num_simulations: how many.
        invalid_actions: `[B, A]`, non-zero where an action may not be taken at the root.
        max_depth: how many edges below the root a walk may go.
        loop_fn: runs the simulations; same interface as `jax.lax.fori_loop`.
        qtransform: `(tree, node_index) -> [A]`, what the actions are worth on the scale [0, 1].
        dirichlet_fraction: share of the noise in the root's prior.
        dirichlet_alpha: its concentration.
        pb_c_init: c₁ of PUCT.
        pb_c_base: c₂ of PUCT.
        temperature: actions are drawn by visits^(1/temperature); 0: the most visited.
    """
    rng_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    logits = noisy(dirichlet_key, root.prior_logits, dirichlet_fraction, dirichlet_alpha)
    root = with_logits(root, mask_invalid(logits, invalid_actions))
    select = functools.partial(muzero_action_selection, pb_c_base=pb_c_base, pb_c_init=pb_c_init, qtransform=qtransform)
    tree = search(
        params,
        search_key,
        root=root,
        recurrent_fn=recurrent_fn,
        num_simulations=num_simulations,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        loop_fn=loop_fn,
    )
    return act_by_visits(rng_key, tree, temperature)


def gumbel_muzero_policy(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    recurrent_fn: RecurrentFn,
    num_simulations: int,
    invalid_actions: Array | None = None,
    max_depth: int | None = None,
    loop_fn: LoopFn = jax.lax.fori_loop,
    *,
    qtransform: Callable = qtransform_completed_by_mix_value,
    max_num_considered_actions: int = 16,
    gumbel_scale: Any = 1.0,
) -> PolicyOutput:
    """Gumbel search: sequential halving at the root; the improved policy is the training target.

    Danihelka et al. 2022. `search_tree.extra_data.root_gumbel` holds the draws.

    Args:
        params: handed to `recurrent_fn`.
        rng_key: one key for the whole batch.
        root: prior logits `[B, A]`, value `[B]` and embedding `[B, ...]`.
        recurrent_fn: `(params, rng_key, action [B], embedding) -> (RecurrentFnOutput, embedding)`.
        num_simulations: how many.
        invalid_actions: `[B, A]`, non-zero where an action may not be taken at the root.
        max_depth: how many edges below the root a walk may go.
        loop_fn: runs the simulations; same interface as `jax.lax.fori_loop`.
        qtransform: `(tree, node_index) -> [A]`, completed and scaled Q-values.
        max_num_considered_actions: how many actions the halving begins with.
        gumbel_scale: 1 to explore, 0 to play for strength.
    """
    logits = mask_invalid(root.prior_logits, invalid_actions)
    rng_key, gumbel_key = jax.random.split(rng_key)
    gumbel = gumbel_scale * jax.random.gumbel(gumbel_key, shape=logits.shape, dtype=logits.dtype)
    select = functools.partial(
        gumbel_muzero_root_action_selection,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        qtransform=qtransform,
    )
    tree = search(
        params,
        rng_key,
        root=with_logits(root, logits),
        recurrent_fn=recurrent_fn,
        num_simulations=num_simulations,
        root_action_selection_fn=select,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        loop_fn=loop_fn,
        interior_action_selection_fn=functools.partial(gumbel_muzero_interior_action_selection, qtransform=qtransform),
        extra_data=GumbelMuZeroExtraData(root_gumbel=gumbel),
    )
    visits, qvalues = tree.summary().visit_counts, qvalues_at_roots(tree, qtransform)
    score = jnp.maximum(LOWEST, gumbel + logits - jnp.max(logits, -1, keepdims=True) + qvalues)
    most_visited = jnp.where(visits == jnp.max(visits, -1, keepdims=True), score, -jnp.inf)
    return PolicyOutput(
        action=masked_argmax(most_visited, tree.root_invalid_actions),
        search_tree=tree,
        action_weights=jax.nn.softmax(mask_invalid(logits + qvalues, invalid_actions)),
    )
