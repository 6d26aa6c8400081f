"""Results of jaxzero's search in mctx's terms: the root's summary, and the whole tree as dense arrays."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.compat.mctx._src.tree import SearchSummary, Tree
from jaxzero.compat.mctx.mctx_records import summarise
from jaxzero.search import tree as native_tree
from jaxzero.search.edge_view import edge_view, parents
from jaxzero.search.node_storage import per_game, unpack_facts
from jaxzero.types import EdgeView

__all__ = ["Found", "as_tree", "edges_of", "root_view", "summary"]

EDGE_FIELDS = ("action", "prior", "visits", "value", "reward", "discount", "child_value")


class Found(NamedTuple):
    """What a search found.

    Attributes:
        tree: jaxzero's tree; its state is the pair of embedding and prior logits.
        root_invalid_actions: `[B, A]`; if A is less than the number of the tree's edges, the first A edges count.
        extra_data: `[B, ...]`.
    """

    tree: native_tree.Tree
    root_invalid_actions: Array
    extra_data: Any

    @property
    def num_actions(self) -> int:
        """A, the edges of a node that are actions."""
        return self.root_invalid_actions.shape[-1]


def edges_of(view: EdgeView, part: slice) -> EdgeView:
    """The same view with only a part of the edges."""
    return view._replace(**{name: getattr(view, name)[..., part] for name in EDGE_FIELDS})


def root_view(found: Found) -> EdgeView:
    """The roots' edges, with the prior logits as their prior."""
    view = edge_view(found.tree)
    return edges_of(view._replace(prior=found.tree.state[1][:, 0]), slice(found.num_actions))


def summary(found: Found | Tree) -> SearchSummary:
    """The root of each game after the search, without the rest of the tree."""
    if isinstance(found, Tree):
        return found.summary()
    view = root_view(found)
    return summarise(view.node_value, view.visits, view.value)


def as_tree(found: Found | Tree) -> Tree:
    """The whole tree as mctx's record. Under `jit` the compiler drops the arrays that nothing reads."""
    if isinstance(found, Tree):
        return found
    tree, num_actions = found.tree, found.num_actions
    visits, facts, above = tree.visits, unpack_facts(tree.facts[:, :-1]), parents(tree)
    used, value = visits > 0, tree.value[..., 0]
    games, children = jnp.arange(len(visits))[:, None], jnp.arange(tree.capacity, dtype=jnp.int32)[None]
    edge = games, jnp.where(above < 0, tree.capacity, above), facts.action  # out of bounds where there is no edge

    def at_edges(of_child: Array, none: int = 0) -> Float[Array, "B N A"]:
        edges = jnp.full((*visits.shape, num_actions), none, of_child.dtype)
        return edges.at[edge].set(of_child, mode="drop")

    def at_nodes(x: Array) -> Array:  # 0 in unused slots, of which there are some where `max_depth` cut walks
        return jnp.where(per_game(used, x[:, :-1]), x[:, :-1], jnp.zeros_like(x[:, :-1]))

    return Tree(
        node_visits=visits,
        raw_values=jnp.where(used, tree.raw_value[..., 0], 0),
        node_values=value,
        parents=above,
        action_from_parent=jnp.where(used, facts.action, Tree.NO_PARENT),
        children_index=at_edges(jnp.broadcast_to(children, visits.shape), Tree.UNVISITED),
        children_prior_logits=at_nodes(tree.state[1])[..., :num_actions],
        children_visits=at_edges(visits),
        children_rewards=at_edges(facts.reward[..., 0]),
        children_discounts=at_edges(facts.discount),
        children_values=at_edges(value),
        embeddings=jax.tree.map(at_nodes, tree.state[0]),
        root_invalid_actions=found.root_invalid_actions,
        extra_data=found.extra_data,
    )
