"""mctx's `policies`: MuZero's search, and Gumbel MuZero's. Stochastic MuZero's is in a file of its own."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.compat.mctx._src.action_selection import (
    GumbelMuZeroExtraData,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    masked_argmax,
    muzero_action_selection,
)
from jaxzero.compat.mctx._src.base import LoopFn, PolicyOutput, RecurrentFn, RootFnOutput
from jaxzero.compat.mctx._src.qtransforms import qtransform_by_parent_and_siblings, qtransform_completed_by_mix_value
from jaxzero.compat.mctx._src.search import run_search
from jaxzero.compat.mctx._src.seq_halving import score_considered
from jaxzero.compat.mctx._src.stochastic import stochastic_muzero_policy
from jaxzero.compat.mctx.checks import as_count, check_key, check_root
from jaxzero.compat.mctx.eager import compiled_once
from jaxzero.compat.mctx.native.rules import qvalues_at_roots
from jaxzero.compat.mctx.native.tree import as_tree, summary
from jaxzero.compat.mctx.root import act_by_visits, apply_temperature, mask_invalid_actions, noisy_logits

__all__ = ["gumbel_muzero_policy", "muzero_policy", "stochastic_muzero_policy"]

_apply_temperature, _mask_invalid_actions = apply_temperature, mask_invalid_actions  # by mctx's names


@compiled_once
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
    with_tree: bool = True,
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
        with_tree: False leaves the tree out: `search_tree` is None, and takes neither time nor memory.
    """
    num_simulations = as_count("num_simulations", num_simulations, least=0)
    check_key(rng_key)
    check_root(root, invalid_actions)
    rng_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    logits = noisy_logits(dirichlet_key, root.prior_logits, invalid_actions, dirichlet_alpha, dirichlet_fraction)
    select = functools.partial(muzero_action_selection, pb_c_base=pb_c_base, pb_c_init=pb_c_init, qtransform=qtransform)
    found = run_search(
        params,
        search_key,
        root=root.replace(prior_logits=logits),
        recurrent_fn=recurrent_fn,
        num_simulations=num_simulations,
        root_action_selection_fn=functools.partial(select, depth=0),
        interior_action_selection_fn=select,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        loop_fn=loop_fn,
    )
    weights = summary(found).visit_probs
    action = act_by_visits(rng_key, weights, temperature)
    return PolicyOutput(action=action, action_weights=weights, search_tree=as_tree(found) if with_tree else None)


@compiled_once
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
    with_tree: bool = True,
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
        with_tree: see `muzero_policy`.
    """
    num_simulations = as_count("num_simulations", num_simulations, least=1)
    check_key(rng_key)
    check_root(root, invalid_actions)
    logits = mask_invalid_actions(root.prior_logits, invalid_actions)
    rng_key, gumbel_key = jax.random.split(rng_key)
    # Drawn as one row: the same numbers, and a third of the time to compile where actions are few.
    gumbel = gumbel_scale * jax.random.gumbel(gumbel_key, (logits.size,), logits.dtype).reshape(logits.shape)
    select = functools.partial(
        gumbel_muzero_root_action_selection,
        num_simulations=num_simulations,
        max_num_considered_actions=max_num_considered_actions,
        qtransform=qtransform,
    )
    found = run_search(
        params,
        rng_key,
        root=root.replace(prior_logits=logits),
        recurrent_fn=recurrent_fn,
        num_simulations=num_simulations,
        root_action_selection_fn=select,
        interior_action_selection_fn=functools.partial(gumbel_muzero_interior_action_selection, qtransform=qtransform),
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        extra_data=GumbelMuZeroExtraData(root_gumbel=gumbel),
        loop_fn=loop_fn,
    )
    visits, qvalues = summary(found).visit_counts, qvalues_at_roots(found, qtransform)
    scores = score_considered(jnp.max(visits, -1, keepdims=True), gumbel, logits, qvalues, visits)
    return PolicyOutput(
        action=masked_argmax(scores, invalid_actions),
        action_weights=jax.nn.softmax(mask_invalid_actions(logits + qvalues, invalid_actions)),
        search_tree=as_tree(found) if with_tree else None,
    )
