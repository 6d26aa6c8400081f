"""mctx's records, for where mctx is not installed: what goes in, what comes out, and the tree as dense arrays."""

from typing import Any, ClassVar, Generic, TypeVar

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

__all__ = [
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "GumbelMuZeroExtraData",
    "PolicyOutput",
    "RecurrentFnOutput",
    "RootFnOutput",
    "SearchSummary",
    "StochasticRecurrentState",
    "Tree",
    "infer_batch_size",
    "summarise",
]

T = TypeVar("T")


@chex.dataclass(frozen=True)
class RootFnOutput:
    """What the user says of the root.

    Attributes:
        prior_logits: `[B, num_actions]` policy logits.
        value: `[B]` value of the state.
        embedding: `[B, ...]` what `recurrent_fn` is given, any pytree.
    """

    prior_logits: Array
    value: Array
    embedding: Any


@chex.dataclass(frozen=True)
class RecurrentFnOutput:
    """What a `recurrent_fn` says of a transition and the state after it.

    Attributes:
        reward: `[B]` reward of the transition.
        discount: `[B]` factor on the value after it, sign included.
        prior_logits: `[B, num_actions]` policy logits of the new state.
        value: `[B]` value of the new state.
    """

    reward: Array
    discount: Array
    prior_logits: Array
    value: Array


@chex.dataclass(frozen=True)
class DecisionRecurrentFnOutput:
    """What follows an action, before chance has decided.

    Attributes:
        chance_logits: `[B, C]` logits of the chance outcomes.
        afterstate_value: `[B]` value of the afterstate.
    """

    chance_logits: Array
    afterstate_value: Array


@chex.dataclass(frozen=True)
class ChanceRecurrentFnOutput:
    """What follows a chance outcome.

    Attributes:
        action_logits: `[B, A]` policy logits of the new state.
        value: `[B]` value of the new state.
        reward: `[B]` reward of the transition.
        discount: `[B]` factor on the value after it, sign included.
    """

    action_logits: Array
    value: Array
    reward: Array
    discount: Array


@chex.dataclass(frozen=True)
class StochasticRecurrentState:
    """The embedding of a tree that has decision nodes and chance nodes.

    Attributes:
        state_embedding: `[B, ...]` of a decision node; anything at a chance node.
        afterstate_embedding: `[B, ...]` of a chance node; anything at a decision node.
        is_decision_node: `[B]` which of the two it is.
    """

    state_embedding: Any
    afterstate_embedding: Any
    is_decision_node: Array


@chex.dataclass(frozen=True)
class GumbelMuZeroExtraData:
    """What a Gumbel search keeps in `tree.extra_data`: `root_gumbel`, `[B, num_actions]`."""

    root_gumbel: Array


@chex.dataclass(frozen=True)
class PolicyOutput(Generic[T]):
    """What a policy answers.

    Attributes:
        action: `[B]` the proposed action.
        action_weights: `[B, num_actions]` the training target; sums to 1.
        search_tree: the tree after the search, see `Tree`.
    """

    action: Array
    action_weights: Array
    search_tree: Any


@chex.dataclass(frozen=True)
class SearchSummary:
    """The root after a search: `visit_counts`, `visit_probs`, `qvalues`, all `[B, num_actions]`, and `value` `[B]`."""

    visit_counts: Array
    visit_probs: Array
    value: Array
    qvalues: Array


@chex.dataclass(frozen=True)
class Tree(Generic[T]):
    """A search tree as dense arrays: what selectors are given, and what `search` with selectors of your own returns.

    B games, N = num_simulations + 1 nodes; the node that simulation i (from 1 on) expanded has the index i. The
    arrays named `children_*` speak of the edges out of a node.

    Attributes:
        node_visits: `[B, N]` simulations that passed, the node's own evaluation included.
        raw_values: `[B, N]` what the model said.
        node_values: `[B, N]` mean return.
        parents: `[B, N]` −1 at the root and in unused slots.
        action_from_parent: `[B, N]` likewise.
        children_index: `[B, N, num_actions]` −1 where nothing was expanded.
        children_prior_logits: `[B, N, num_actions]`.
        children_visits: `[B, N, num_actions]`.
        children_rewards: `[B, N, num_actions]`.
        children_discounts: `[B, N, num_actions]`.
        children_values: `[B, N, num_actions]` value of the node below.
        embeddings: `[B, N, ...]`.
        root_invalid_actions: `[B, num_actions]` non-zero where an action may not be taken at the root.
        extra_data: `[B, ...]` as given to `search`.
    """

    node_visits: Array
    raw_values: Array
    node_values: Array
    parents: Array
    action_from_parent: Array
    children_index: Array
    children_prior_logits: Array
    children_visits: Array
    children_rewards: Array
    children_discounts: Array
    children_values: Array
    embeddings: Any
    root_invalid_actions: Array
    extra_data: Any

    ROOT_INDEX: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    UNVISITED: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        """Actions of a node."""
        return self.children_index.shape[-1]

    @property
    def num_simulations(self) -> int:
        """Simulations that the tree has room for."""
        return self.node_visits.shape[-1] - 1

    def qvalues(self, indices: Int[Array, "..."]) -> Float[Array, "... A"]:
        """Reward + discount · value of the edges: of one node of a tree of one game, or of one node per game."""
        if jnp.ndim(indices):
            return jax.vmap(lambda tree, index: tree.qvalues(index))(self, jnp.asarray(indices))
        chex.assert_rank(self.children_discounts, 2)
        return self.children_rewards[indices] + self.children_discounts[indices] * self.children_values[indices]

    def summary(self) -> SearchSummary:
        """The root of each game after the search."""
        root = jnp.zeros(self.node_values.shape[0], jnp.int32)
        return summarise(self.node_values[:, 0], self.children_visits[:, 0], self.qvalues(root))


def summarise(value: Float[Array, "B"], visits: Int[Array, "B A"], qvalues: Float[Array, "B A"]) -> SearchSummary:
    """The root's visits with their shares: uniform if there were none."""
    counts = visits.astype(value.dtype)
    total = jnp.sum(counts, -1, keepdims=True)
    probs = jnp.where(total > 0, counts / jnp.maximum(total, 1), 1 / counts.shape[-1])
    return SearchSummary(visit_counts=counts, visit_probs=probs, value=value, qvalues=qvalues)


def infer_batch_size(tree: Tree) -> int:
    """B of a tree.

    Raises:
        ValueError: it is the tree of one game.
    """
    if tree.node_values.ndim != 2:
        raise ValueError(
            f"tree.node_values has shape {tree.node_values.shape}; for a batch of trees it must be [B, N]."
        )
    return tree.node_values.shape[0]
