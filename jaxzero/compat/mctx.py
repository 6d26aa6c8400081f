"""mctx's public interface on top of jaxzero's search: `from jaxzero.compat import mctx` is the whole migration.

The names, arguments, defaults, results and the use of random keys are those of mctx 0.0.71 (github.com/google-deepmind/mctx),
its peculiarities included: Dirichlet noise falls on all actions and is masked afterwards, only the root has a mask, a
root without a valid action takes action 0, and at `max_depth` a node is evaluated anew and overwritten. The trees are the
same trees, node for node. What differs:

* It is faster: choices are remembered at the nodes. The policies with the Q transforms below, and `search` with the
  action selectors below, run on jaxzero's search; a Q transform of your own too, if it reads no more than the row of its
  node. Any other selector is asked at every level of every walk, as in mctx. `search_tree` works its arrays out when they
  are read.
* Equal scores: the lowest action wins. mctx adds random numbers of up to 1e-7 to the scores of PUCT, which also reverses
  some choices between scores that are that close.

Where mctx has no defined result, with NaN or infinity from the model, uniform logits and zeros take their place.
Records made by mctx itself are accepted.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.compat.mctx_rules import Games, native_qvalues, qvalues_at_roots
from jaxzero.compat.mctx_search import allowed_at_root, search, search_natively
from jaxzero.compat.mctx_selection import (
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    masked_argmax,
    muzero_action_selection,
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from jaxzero.compat.mctx_stochastic import either_node, open_edges, rules, selector, take_edges
from jaxzero.compat.mctx_tree import (
    ChanceRecurrentFnOutput,
    DecisionRecurrentFnOutput,
    GumbelMuZeroExtraData,
    PolicyOutput,
    RecurrentFnOutput,
    RootFnOutput,
    SearchSummary,
    SearchTree,
    StochasticRecurrentState,
    Tree,
)
from jaxzero.mcts.gumbel import LOWEST
from jaxzero.mcts.rules import muzero_puct

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
    logits = _noisy(dirichlet_key, root.prior_logits, dirichlet_fraction, dirichlet_alpha)
    root = _with_logits(root, _mask_invalid(logits, invalid_actions))
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
    return _act_by_visits(rng_key, tree, temperature)


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
    logits = _mask_invalid(root.prior_logits, invalid_actions)
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
        root=_with_logits(root, logits),
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
        action_weights=jax.nn.softmax(_mask_invalid(logits + qvalues, invalid_actions)),
    )


def stochastic_muzero_policy(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    decision_recurrent_fn: Callable,
    chance_recurrent_fn: Callable,
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
    """MuZero's search through decision nodes and chance nodes in turn.

    Antonoglou et al. 2022, "Planning in stochastic environments with a learned model".

    Args:
        params: handed to the two functions.
        rng_key: one key for the whole batch.
        root: prior logits `[B, A]`, value `[B]` and embedding `[B, ...]`; a decision node.
        decision_recurrent_fn: `(params, rng_key, action [B], embedding) -> (DecisionRecurrentFnOutput, afterstate)`.
        chance_recurrent_fn: `(params, rng_key, outcome [B], afterstate) -> (ChanceRecurrentFnOutput, embedding)`.
        num_simulations: how many; a step of the environment takes two.
        invalid_actions: `[B, A]`, non-zero where an action may not be taken at the root.
        max_depth: how many edges below the root a walk may go.
        loop_fn: runs the simulations; same interface as `jax.lax.fori_loop`.
        qtransform: `(tree, node_index) -> [A]`, what the actions of a decision node are worth.
        dirichlet_fraction: see `muzero_policy`.
        dirichlet_alpha: see `muzero_policy`.
        pb_c_init: see `muzero_policy`.
        pb_c_base: see `muzero_policy`.
        temperature: see `muzero_policy`.
    """
    rng_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    logits = _mask_invalid(
        _noisy(dirichlet_key, root.prior_logits, dirichlet_fraction, dirichlet_alpha), invalid_actions
    )
    batch, num_actions = logits.shape
    output, afterstate = decision_recurrent_fn(params, rng_key, jnp.zeros(batch, jnp.int32), root.embedding)
    num_edges = num_actions + output.chance_logits.shape[-1]
    root = RootFnOutput(
        prior_logits=jnp.pad(logits, ((0, 0), (0, num_edges - num_actions)), constant_values=-jnp.inf),
        value=root.value,
        embedding=StochasticRecurrentState(
            state_embedding=root.embedding, afterstate_embedding=afterstate, is_decision_node=jnp.ones(batch, bool)
        ),
    )
    recurrent_fn = either_node(decision_recurrent_fn, chance_recurrent_fn, num_actions)
    invalid = jnp.zeros_like(logits) if invalid_actions is None else jnp.asarray(invalid_actions)
    known = native_qvalues(qtransform, lambda view: view.prior)
    if known and not isinstance(max_depth, jax.core.Tracer):
        allowed = allowed_at_root(jnp.pad(invalid, ((0, 0), (0, num_edges - num_actions)), constant_values=1))
        games = Games(root.prior_logits, root.value, invalid, allowed, None, num_simulations)
        tree = search_natively(
            params,
            search_key,
            root,
            recurrent_fn,
            rules(muzero_puct(pb_c_init, pb_c_base, known), num_actions),
            games,
            num_simulations,
            max_depth,
            loop_fn,
            open_edges(num_actions, num_edges),
        )
    else:
        select = selector(
            functools.partial(muzero_action_selection, pb_c_base=pb_c_base, pb_c_init=pb_c_init, qtransform=qtransform),
            num_actions,
        )
        tree = search(
            params,
            search_key,
            root=root,
            recurrent_fn=recurrent_fn,
            num_simulations=num_simulations,
            root_action_selection_fn=functools.partial(select, depth=0),
            interior_action_selection_fn=select,
            max_depth=max_depth,
            invalid_actions=invalid,
            loop_fn=loop_fn,
        )
        tree = take_edges(tree, num_actions)
    return _act_by_visits(rng_key, tree, temperature)


def _with_logits(root: Any, logits: Array) -> RootFnOutput:
    return RootFnOutput(prior_logits=logits, value=root.value, embedding=root.embedding)


def _noisy(key: Array, logits: Array, fraction: Any, alpha: Any) -> Float[Array, "B A"]:
    """The logits of a policy mixed with Dirichlet noise over all actions."""
    batch, num_actions = logits.shape
    alpha = jnp.full([num_actions], jnp.asarray(alpha, jnp.result_type(float)))
    noise = jax.random.dirichlet(key, alpha, (batch,))
    return _log((1 - fraction) * jax.nn.softmax(logits) + fraction * noise)


def _log(probs: Array) -> Array:
    return jnp.log(jnp.maximum(probs, jnp.finfo(probs.dtype).tiny))


def _mask_invalid(logits: Array, invalid: Array | None) -> Float[Array, "B A"]:
    """The logits with invalid actions at the lowest finite number: uniform, not NaN, where none is valid."""
    if invalid is None:
        return logits
    if jnp.shape(invalid) != logits.shape:
        raise ValueError(
            f"invalid_actions has shape {jnp.shape(invalid)}; by root.prior_logits it must be {logits.shape}."
        )
    return jnp.where(invalid, jnp.finfo(logits.dtype).min, logits - jnp.max(logits, -1, keepdims=True))


def _act_by_visits(key: Array, tree: Tree | SearchTree, temperature: Any) -> PolicyOutput:
    weights = tree.summary().visit_probs
    logits = _log(weights)
    tiny = jnp.finfo(logits.dtype).tiny
    logits = (logits - jnp.max(logits, -1, keepdims=True)) / jnp.maximum(tiny, temperature)
    return PolicyOutput(action=jax.random.categorical(key, logits), action_weights=weights, search_tree=tree)
