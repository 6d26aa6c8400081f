"""jaxzero's tree with mctx's attributes, worked out when they are asked for."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.compat.mctx_tree import SearchSummary, Tree, summarise
from jaxzero.mcts import tree as native_tree
from jaxzero.mcts.rows import Facts, per_game, unpack_facts
from jaxzero.mcts.view import edge_view, parents
from jaxzero.types import EdgeView

__all__ = ["SearchTree", "edges_of"]

T = TypeVar("T")


@chex.dataclass(frozen=True)
class SearchTree(Generic[T]):
    """A tree of jaxzero with the attributes of `Tree`, each worked out when it is asked for.

    A pytree like `Tree`: it goes through `jax.jit` and `jax.vmap`, and `jax.tree.map(lambda x: x[0], tree)` is the
    tree of game 0. What nobody reads is not computed under `jit`. `dense()` is the same tree as a `Tree`.

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
