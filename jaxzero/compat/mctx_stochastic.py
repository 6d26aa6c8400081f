"""Stochastic MuZero for the mctx front: one tree of decision nodes, which have A actions, and chance nodes, which have C outcomes.

As in mctx, a node has A + C edges, the actions first, and closes those of the other kind; a `recurrent_fn` made of the user's two
functions asks both and takes the answer that fits the node.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.compat.mctx_rules import NativeRules
from jaxzero.compat.mctx_tree import RecurrentFnOutput, StochasticRecurrentState, Tree, edges_of
from jaxzero.mcts.rules import probabilities
from jaxzero.types import EdgeView, Rule

__all__ = ["either_node", "open_edges", "rules", "selector", "take_edges"]


def either_node(decision_fn: Callable, chance_fn: Callable, num_actions: int) -> Callable:
    """A `recurrent_fn` over A + C edges."""

    def recurrent_fn(params: Any, key: Array, edge: Int[Array, "B"], state: StochasticRecurrentState) -> tuple:
        decided, afterstate = decision_fn(params, key, edge, state.state_embedding)
        happened, after = chance_fn(params, key, edge - num_actions, state.afterstate_embedding)
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
            state_embedding=after, afterstate_embedding=afterstate, is_decision_node=~was_decision
        )
        return jax.tree.map(pick, to_chance, to_decision), new_state

    return recurrent_fn


def open_edges(num_actions: int, num_edges: int) -> Callable[[StochasticRecurrentState], Bool[Array, "B W"]]:
    """Which edges a node has, by its embedding."""
    return lambda state: (jnp.arange(num_edges) < num_actions) == state.is_decision_node[:, None]


def rules(decision: Rule, num_actions: int) -> NativeRules:
    """Decision nodes go by the rule given; chance nodes spread their visits like the outcomes' probabilities, P/(1 + N).

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
    )  # which kind a node is shows in all of its edges only: not `by_prior`
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
