"""Stochastic MuZero for the mctx front: decision nodes, which have A actions, and chance nodes, which have C outcomes.

As in mctx, a node of either kind has A + C edges, the actions first, and closes those of the other kind; a
`recurrent_fn` made of the user's two functions asks both and takes the answer that fits the node.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.compat.mctx._src.action_selection import muzero_action_selection
from jaxzero.compat.mctx._src.base import PolicyOutput, RecurrentFnOutput, RootFnOutput, StochasticRecurrentState
from jaxzero.compat.mctx._src.qtransforms import qtransform_by_parent_and_siblings
from jaxzero.compat.mctx._src.search import run_search
from jaxzero.compat.mctx._src.tree import Tree
from jaxzero.compat.mctx.checks import as_count, as_pair, check_key, check_root
from jaxzero.compat.mctx.eager import compiled_once
from jaxzero.compat.mctx.native.rules import native_qvalues
from jaxzero.compat.mctx.native.search import Games, NativeRules, allowed_at_root, is_native, search_natively
from jaxzero.compat.mctx.native.tree import as_tree, edges_of, summary
from jaxzero.compat.mctx.root import act_by_visits, noisy_logits
from jaxzero.search.selection_rules import muzero_puct, probabilities
from jaxzero.types import EdgeView, Rule

__all__ = ["stochastic_muzero_policy"]


@compiled_once
def stochastic_muzero_policy(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    decision_recurrent_fn: Callable,
    chance_recurrent_fn: Callable,
    num_simulations: int,
    invalid_actions: Array | None = None,
    max_depth: int | None = None,
    loop_fn: Callable = jax.lax.fori_loop,
    *,
    qtransform: Callable = qtransform_by_parent_and_siblings,
    dirichlet_fraction: Any = 0.25,
    dirichlet_alpha: Any = 0.3,
    pb_c_init: Any = 1.25,
    pb_c_base: Any = 19652,
    temperature: Any = 1.0,
    with_tree: bool = True,
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
        with_tree: see `muzero_policy`.
    """
    num_simulations = as_count("num_simulations", num_simulations, least=0)
    check_key(rng_key)
    check_root(root, invalid_actions)
    rng_key, dirichlet_key, search_key = jax.random.split(rng_key, 3)
    logits = noisy_logits(dirichlet_key, root.prior_logits, invalid_actions, dirichlet_alpha, dirichlet_fraction)
    batch, num_actions = logits.shape
    answer = decision_recurrent_fn(params, rng_key, jnp.zeros(batch, jnp.int32), root.embedding)
    output, afterstate = as_pair("decision_recurrent_fn", answer, "DecisionRecurrentFnOutput", "chance_logits")
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
    if known and is_native(root, max_depth):
        allowed = allowed_at_root(jnp.pad(invalid, ((0, 0), (0, num_edges - num_actions)), constant_values=1))
        games = Games(root.prior_logits, root.value, invalid, allowed, None, num_simulations)
        found = search_natively(
            params,
            search_key,
            root,
            recurrent_fn,
            rules(muzero_puct(pb_c_init, pb_c_base, known), num_actions),
            games,
            max_depth,
            loop_fn,
            open_edges(num_actions, num_edges),
        )
    else:
        select = selector(
            functools.partial(muzero_action_selection, pb_c_base=pb_c_base, pb_c_init=pb_c_init, qtransform=qtransform),
            num_actions,
        )
        found = run_search(
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
        found = take_edges(found, num_actions)
    weights = summary(found).visit_probs
    action = act_by_visits(rng_key, weights, temperature)
    return PolicyOutput(action=action, action_weights=weights, search_tree=as_tree(found) if with_tree else None)


def either_node(decision_fn: Callable, chance_fn: Callable, num_actions: int) -> Callable:
    """A `recurrent_fn` over A + C edges."""

    def recurrent_fn(params: Any, key: Array, edge: Int[Array, "B"], state: StochasticRecurrentState) -> tuple:
        decided, afterstate = decision_fn(params, key, edge, state.state_embedding)
        answer = chance_fn(params, key, edge - num_actions, state.afterstate_embedding)
        happened, after = as_pair("chance_recurrent_fn", answer, "ChanceRecurrentFnOutput", "action_logits")
        value, outcomes = decided.afterstate_value, decided.chance_logits.shape[-1]
        to_chance = RecurrentFnOutput(
            prior_logits=jnp.pad(decided.chance_logits, ((0, 0), (num_actions, 0)), constant_values=-jnp.inf),
            value=value,
            reward=jnp.zeros_like(value),
            discount=jnp.ones_like(value),
        )
        to_decision = RecurrentFnOutput(
            prior_logits=jnp.pad(happened.action_logits, ((0, 0), (0, outcomes)), constant_values=-jnp.inf),
            value=happened.value,
            reward=happened.reward,
            discount=happened.discount,
        )
        was_decision = state.is_decision_node

        def pick(x: Array, y: Array) -> Array:
            return jnp.where(was_decision.reshape((-1,) + (1,) * (x.ndim - 1)), x, y)

        new_state = StochasticRecurrentState(
            state_embedding=after, afterstate_embedding=afterstate, is_decision_node=jnp.logical_not(was_decision)
        )
        return jax.tree.map(pick, to_chance, to_decision), new_state

    return recurrent_fn


def open_edges(num_actions: int, num_edges: int) -> Callable[[StochasticRecurrentState], Bool[Array, "B W"]]:
    """Which edges a node has, by its embedding."""
    return lambda state: (jnp.arange(num_edges) < num_actions)[None] == state.is_decision_node[:, None]


def rules(decision: Rule, num_actions: int) -> NativeRules:
    """Decision nodes follow the given rule; chance nodes visit outcomes in proportion to their probability P.

    Antonoglou et al. 2022, "Planning in stochastic environments with a learned model".
    """
    actions, outcomes = slice(num_actions), slice(num_actions, None)

    def score(view: EdgeView) -> Array:
        is_decision = jnp.any(~jnp.isneginf(view.prior[..., actions]), -1, keepdims=True)
        of_actions, chance = edges_of(view, actions), edges_of(view, outcomes)
        return jnp.concatenate(
            [
                jnp.where(is_decision, decision.score(of_actions), -jnp.inf),
                jnp.where(is_decision, -jnp.inf, chance.prior / (chance.visits + 1)),
            ],
            -1,
        )

    rule = Rule(
        prepare=probabilities, score=score
    )  # not `by_prior`: the kind of a node can only be seen from all of its edges
    return NativeRules(rule, rule, raw_prior=False)


def selector(decision_selector: Callable, num_actions: int) -> Callable:
    """The same choice as a selector on mctx's trees, for the plain path."""

    def select(key: Array, tree: Tree, node_index: Array, depth: Array) -> Int[Array, ""]:
        probs = jax.nn.softmax(tree.children_prior_logits[node_index, num_actions:])
        outcome = jnp.argmax(probs / (tree.children_visits[node_index, num_actions:] + 1), -1)
        action = decision_selector(key, take_edges(tree, num_actions), node_index, depth)
        return jnp.where(tree.embeddings.is_decision_node[node_index], action, outcome + num_actions).astype(jnp.int32)

    return select


EDGES = (
    "children_index",
    "children_prior_logits",
    "children_visits",
    "children_rewards",
    "children_discounts",
    "children_values",
    "root_invalid_actions",
)


def take_edges(tree: Tree, num_actions: int) -> Tree:
    """The tree with the edges of the actions only."""
    return tree.replace(**{name: getattr(tree, name)[..., :num_actions] for name in EDGES})
