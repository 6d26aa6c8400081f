"""The records of the mctx front: what goes in, what comes out, and the search tree with mctx's attributes."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.mcts import tree as native_tree
from jaxzero.mcts.tree import Facts, per_game, unpack_facts
from jaxzero.mcts.view import edge_view, parents
from jaxzero.types import EdgeView

__all__ = [
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "GumbelMuZeroExtraData",
    "PolicyOutput",
    "RecurrentFnOutput",
    "RootFnOutput",
    "SearchSummary",
    "SearchTree",
    "StochasticRecurrentState",
    "Tree",
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
    """A search tree as a dense record: what action selectors are given, and what `search` with selectors of your own returns.

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
        """Reward + discount · value of the edges: of node `indices` if the tree is of one game, else of one node per game."""
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


@chex.dataclass(frozen=True)
class SearchTree(Generic[T]):
    """A tree of jaxzero with the attributes of `Tree`, each worked out when it is asked for.

    A pytree like `Tree`: it goes through `jax.jit` and `jax.vmap`, and `jax.tree.map(lambda x: x[0], tree)` is the tree of
    game 0. What nobody reads is not computed under `jit`. `dense()` is the same tree as a `Tree`.

    Attributes:
        native: jaxzero's tree; its state is the pair of embedding and prior logits.
        root_invalid_actions: see `Tree`.
        extra_data: see `Tree`.
    """

    native: native_tree.Tree
    root_invalid_actions: Array
    extra_data: Any

    ROOT_INDEX: ClassVar[int] = 0
    NO_PARENT: ClassVar[int] = -1
    UNVISITED: ClassVar[int] = -1

    @property
    def num_actions(self) -> int:
        """Actions of a node."""
        return self.root_invalid_actions.shape[-1]

    @property
    def num_simulations(self) -> int:
        """Simulations that the tree has room for."""
        return self.native.capacity - 1

    @property
    def node_visits(self) -> Array:
        """See `Tree`."""
        return self.native.visits

    @property
    def node_values(self) -> Array:
        """See `Tree`."""
        return self.native.value[..., 0]

    @property
    def raw_values(self) -> Array:
        """See `Tree`."""
        return jnp.where(self.node_visits > 0, self.native.raw_value[..., 0], 0)

    @property
    def parents(self) -> Array:
        """See `Tree`."""
        return _per_game(parents, self.native)

    @property
    def action_from_parent(self) -> Array:
        """See `Tree`."""
        return jnp.where(self.node_visits > 0, _facts(self.native).action, self.NO_PARENT)

    @property
    def children_index(self) -> Array:
        """See `Tree`."""
        return self._of_edges(
            lambda tree: jnp.broadcast_to(jnp.arange(tree.capacity, dtype=jnp.int32), tree.visits.shape), self.UNVISITED
        )

    @property
    def children_prior_logits(self) -> Array:
        """See `Tree`."""
        return self._nodes(self.native.state[1])[..., : self.num_actions]

    @property
    def children_visits(self) -> Array:
        """See `Tree`."""
        return self._of_edges(lambda tree: tree.visits)

    @property
    def children_rewards(self) -> Array:
        """See `Tree`."""
        return self._of_edges(lambda tree: _facts(tree).reward[..., 0])

    @property
    def children_discounts(self) -> Array:
        """See `Tree`."""
        return self._of_edges(lambda tree: _facts(tree).discount)

    @property
    def children_values(self) -> Array:
        """See `Tree`."""
        return self._of_edges(lambda tree: tree.value[..., 0])

    @property
    def embeddings(self) -> Any:
        """See `Tree`."""
        return jax.tree.map(self._nodes, self.native.state[0])

    def qvalues(self, indices: Int[Array, "..."]) -> Float[Array, "... A"]:
        """See `Tree`."""
        if jnp.ndim(indices):
            return edge_view(self.native, jnp.asarray(indices, jnp.int32)).value[..., : self.num_actions]
        chex.assert_rank(self.native.size, 0)
        return _per_game(lambda tree: edge_view(tree, jnp.reshape(indices, 1)).value, self.native)[: self.num_actions]

    def summary(self) -> SearchSummary:
        """See `Tree`."""
        view = self.root_view()
        return summarise(view.node_value, view.visits, view.value)

    def root_view(self) -> EdgeView:
        """The roots' edges, with the prior logits as their prior."""
        chex.assert_rank(self.native.size, 1)
        view = edge_view(self.native, jnp.zeros_like(self.native.size))
        return edges_of(view._replace(prior=self.native.state[1][:, 0]), slice(self.num_actions))

    def dense(self) -> Tree:
        """Everything, as a plain record of arrays."""
        return Tree(**{name: getattr(self, name) for name in (field.name for field in dataclasses.fields(Tree))})

    def _nodes(self, x: Array) -> Array:
        """The rows of the nodes; 0 in unused slots, of which there are some where `max_depth` cut walks."""
        x = jax.lax.slice_in_dim(x, 0, self.native.capacity, axis=self.native.size.ndim)
        return jnp.where(per_game(self.node_visits > 0, x), x, jnp.zeros_like(x))

    def _of_edges(self, of_child: Callable[[native_tree.Tree], Array], none: int = 0) -> Array:
        """`of_child [B, N]`, known of the nodes, put where their parents' edges are."""

        def spread(tree: native_tree.Tree) -> Array:
            values, above = of_child(tree), parents(tree)
            games = jnp.arange(above.shape[0])[:, None]
            edges = jnp.full((*above.shape, tree.num_edges), none, values.dtype)
            above = jnp.where(above < 0, tree.capacity, above)
            return edges.at[games, above, _facts(tree).action].set(values, mode="drop")

        return _per_game(spread, self.native)[..., : self.num_actions]


def _replace(tree: SearchTree, **changes: Any) -> Tree:
    """The dense record with other contents in the fields named."""
    return tree.dense().replace(**changes)


SearchTree.replace = _replace  # chex gives every record a `replace` of its own; mctx's fields are the dense record's


def _facts(tree: native_tree.Tree) -> Facts:
    return unpack_facts(tree.facts[..., :-1, :])


def _per_game(function: Callable[[native_tree.Tree], Any], tree: native_tree.Tree) -> Any:
    """`function`, which is made for the axes `[B, ...]`, for a tree of one game or with more axes before B."""
    if tree.size.ndim == 0:
        return function(jax.tree.map(lambda x: x[None], tree))[0]
    for _ in range(tree.size.ndim - 1):
        function = jax.vmap(function)
    return function(tree)


EDGE_FIELDS = ("action", "prior", "visits", "value", "reward", "discount", "child_value")


def edges_of(view: EdgeView, part: slice) -> EdgeView:
    """The same view with only a part of the edges."""
    return view._replace(**{name: getattr(view, name)[..., part] for name in EDGE_FIELDS})
