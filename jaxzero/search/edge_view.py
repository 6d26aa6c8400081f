"""Edge views: the edges of nodes as a rule sees them."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.search.node_storage import (
    EDGE,
    HEAD,
    Facts,
    Tile,
    children_at_hand,
    of_tile,
    per_game,
    places,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
)
from jaxzero.search.tree import NONE, Rows, Status, Tree, as_read, rows_of
from jaxzero.types import EdgeView, Rule

__all__ = ["all_edges", "by_action", "candidate_view", "edge_view", "parents"]


class Edges(NamedTuple):
    """The visited edges of nodes, in the order of their expansion, padded to a common width.

    Attributes:
        child: the nodes below; 0 in padding.
        action: their action slots; W in padding.
        prior: their clean priors; anything in padding.
        seen: False in padding.
    """

    child: Int[Array, "G ... C"]
    action: Int[Array, "G ... C"]
    prior: Float[Array, "G ... C"]
    seen: Bool[Array, "G ... C"]


def most_edges(tree: Tree) -> int:
    """The most edges that a node can have, visited ones and one to try next: the less of W and N, at least 2."""
    return min(tree.num_edges, max(tree.capacity, 2))


def visited_edges(tree: Tree, at: Rows, width: int | None = None) -> Edges:
    """The expanded edges of the nodes of `at`.

    Args:
        tree: the trees.
        at: the nodes' rows.
        width: how many slots: more than any of the nodes has children, or W; default: the less of W and N.
    """
    width = most_edges(tree) if width is None else width
    most, at_hand = (width if width == tree.num_edges else width - 1), children_at_hand(tree.frontier)
    first = slice(HEAD.stop, HEAD.stop + min(most, at_hand))
    known = at.frontier.shape[-1] > HEAD.stop
    child = at.frontier[..., first] if known else take(tree.frontier, at.nodes, at.tile, first)
    child = child.astype(jnp.int32)
    if most > at_hand:
        later = take(tree.later_children, at.nodes, at.tile, slice(most - at_hand))
        child = jnp.concatenate([child, later.astype(jnp.int32)], -1)
    child = jnp.pad(child, [(0, 0)] * (child.ndim - 1) + [(0, width - most)])
    seen = places(width, child.ndim) < jnp.minimum(at.num_children, most)[..., None]
    child = jnp.where(seen, child, 0)
    action, prior = jnp.moveaxis(take_edges(tree.facts, child, at.tile, EDGE), -1, 0)
    return Edges(child, jnp.where(seen, action.astype(jnp.int32), tree.num_edges), prior, seen)


def take_edges(x: Array, child: Int[Array, "G ... C"], tile: Tile | None = None, columns: slice | None = None) -> Array:
    """Rows of `x [B, N+1, F]` at the nodes below edges; of each row `columns`, if given."""
    return take(x, child.reshape(child.shape[0], -1), tile, columns).reshape(*child.shape, -1)


def edge_view(
    tree: Tree, nodes: Int[Array, "G ..."] | None = None, rule: Rule | None = None, width: int | None = None
) -> EdgeView:
    """All W edges of `nodes` (`[G]` or `[G, K]`; default: the roots), in the order of actions.

    Args:
        tree: the trees.
        nodes: node indices.
        rule: its `mass` of the unvisited edges is computed.
        width: how many slots are read: more than any of the nodes has children, or W; fewer are cheaper.
    """
    return all_edges(tree, rows_of(tree, nodes), rule, width)


def all_edges(tree: Tree, at: Rows, rule: Rule | None = None, width: int | None = None) -> EdgeView:
    """`edge_view` of nodes whose rows were read."""
    edges, shape = visited_edges(tree, at, width), at.num_children.shape
    count, width = math.prod(shape), edges.child.shape[-1]
    index = jnp.arange(count)[:, None], edges.action.reshape(count, width)
    slot = (
        jnp.full((count, tree.num_edges), width, jnp.int32)
        .at[index]
        .set(places(width, 2), mode="drop")
        .reshape(*shape, -1)
    )

    def by_action(x: Array, other: Array | int = 0) -> Array:
        found = jnp.take_along_axis(x, jnp.minimum(slot, width - 1), -1)
        return jnp.where(slot < width, found, jnp.asarray(other, x.dtype))

    prior = by_action(edges.prior, as_read(take(tree.prior, at.nodes, at.tile), tree.stats.dtype))
    actions = jnp.broadcast_to(places(tree.num_edges, prior.ndim), prior.shape)
    view = _view(tree, at, edges, actions, prior, by_action)
    if rule is None or rule.mass is None:
        return view._replace(unvisited_mass=jnp.zeros_like(view.raw_value))
    counts = (view.visits == 0) & ~jnp.isneginf(prior)
    return view._replace(unvisited_mass=jnp.sum(jnp.where(counts, rule.mass(prior), 0), -1))


def candidate_view(tree: Tree, at: Rows, width: int) -> tuple[EdgeView, Edges]:
    """The visited edges of the nodes of `at` with the next one to try; and the visited ones alone.

    The other slots look like illegal edges. A full tree has no next edge.

    Args:
        tree: the trees.
        at: the nodes' rows.
        width: how many slots: more than the nodes have children, or W. Fewer show the first children, and the next
            edge.
    """
    edges, full = visited_edges(tree, at, width), of_tile(tree.size >= tree.capacity, at.tile)
    next_action = jnp.where(per_game(full, at.num_children), NONE, at.next_action)[..., None]
    after = jnp.minimum(at.num_children, width - 1)[..., None]
    wanted = (places(width, edges.child.ndim) == after) & (next_action >= 0)
    next_prior = jnp.where(wanted, unpack_frontier(at.frontier).next_prior[..., None], -jnp.inf)
    prior = jnp.where(edges.seen, edges.prior, next_prior)
    action = jnp.where(wanted, next_action, edges.action)
    return _view(tree, at, edges, action, prior, lambda x: jnp.where(edges.seen, x, jnp.zeros_like(x))), edges


def _view(tree: Tree, at: Rows, edges: Edges, action: Array, prior: Array, place: Callable[[Array], Array]) -> EdgeView:
    """The view of the nodes of `at`; `place` puts data of children into the slots of their edges.

    The compiler drops fields that no rule reads.
    """
    stats, facts = unpack_stats(at.stats), unpack_facts(at.facts)
    below = unpack_stats(take_edges(tree.stats, edges.child, at.tile))
    edge = unpack_facts(take_edges(tree.facts, edges.child, at.tile))
    view = EdgeView(
        game=at.games,
        action=action,
        prior=prior,
        visits=place(below.visits.astype(jnp.int32)),
        value=place(below.edge_value),
        reward=place(_of_mover(edge.reward, facts)),
        discount=place(edge.discount),
        child_value=place(_of_mover(below.value, facts)),
        node_visits=stats.visits.astype(jnp.int32),
        node_value=_of_mover(stats.value, facts),
        raw_value=_of_mover(facts.raw_value, facts),
        unvisited_mass=unpack_frontier(at.frontier).unvisited_mass,
        root=tree.root,
        chance=facts.chance,
    )
    plain = tree.graph is None and tree.bounds is None and tree.in_flight is None
    return view if plain else _with_optional_fields(view, tree, at, edges, facts, edge, place)


def _of_mover(x: Float[Array, "G ... P"], facts: Facts) -> Float[Array, "G ..."]:
    """The component of the player to move at the nodes of `facts`."""
    if x.shape[-1] == 1:
        return x[..., 0]
    mover = facts.to_play.reshape(facts.to_play.shape + (1,) * (x.ndim - facts.to_play.ndim))
    return jnp.take_along_axis(x, mover, -1)[..., 0]


def _with_optional_fields(
    view: EdgeView, tree: Tree, at: Rows, edges: Edges, facts: Facts, edge: Facts, place: Callable[[Array], Array]
) -> EdgeView:
    """The view of a tree that keeps more: a graph's nodes, bounds of a solver, walks in flight."""
    if tree.graph is not None:
        value = unpack_stats(take_edges(tree.stats, linked(tree, edges.child, at.tile), at.tile)).value
        view = view._replace(
            value=place(_of_mover(_returns(edge, value), facts)),
            child_value=place(_of_mover(value, facts)),
            node_visits=take(tree.graph.visits, at.nodes, at.tile).astype(jnp.int32),
        )
    if tree.bounds is not None:
        low, high = edge_bounds(tree, edges.child, edge.reward[..., 0], edge.discount, at.tile)
        least, greatest = (per_game(of_tile(x, at.tile), view.prior) for x in jnp.moveaxis(tree.root.returns, -1, 0))
        view = view._replace(
            lower=jnp.where(view.visits > 0, place(low), least), upper=jnp.where(view.visits > 0, place(high), greatest)
        )
    if tree.in_flight is not None:
        view = view._replace(in_flight=place(_walks(tree, edges.child, at.tile)))
    return view


def _walks(tree: Tree, child: Int[Array, "G ... C"], tile: Tile | None) -> Int[Array, "G ... C"]:
    """The walks in flight through the edges into `child`."""
    return take(tree.in_flight, child.reshape(len(child), -1), tile).reshape(child.shape)


def _returns(edge: Facts, value: Float[Array, "G ... C P"]) -> Float[Array, "G ... C P"]:
    """The returns of edges, by the values of the nodes below."""
    return edge.reward + edge.discount[..., None] * value


def linked(tree: Tree, child: Int[Array, "G ..."], tile: Tile | None = None) -> Int[Array, "G ..."]:
    """The nodes below edges: those of their positions, in a graph; in a tree each edge has a node of its own."""
    if tree.graph is None:
        return child
    return take(tree.graph.node, child.reshape(len(child), -1), tile).reshape(child.shape)


def edge_bounds(tree: Tree, child: Array, reward: Array, discount: Array, tile: Tile | None) -> tuple[Array, Array]:
    """The proven lower and upper bounds of the returns of the edges into `child`, for the player who takes them."""
    child = linked(tree, child, tile)
    low, high = jnp.moveaxis(take_edges(tree.bounds, child, tile), -1, 0)
    least, greatest = jnp.minimum(discount * low, discount * high), jnp.maximum(discount * low, discount * high)
    unsure = per_game(
        of_tile(tree.status, tile) & Status.NON_FINITE.value != 0, least
    )  # an edge may hold 0 in place of its reward
    return jnp.where(unsure, -jnp.inf, reward + least), jnp.where(unsure, jnp.inf, reward + greatest)


def by_action(tree: Tree, nodes: Int[Array, "B"]) -> Int[Array, "B W"]:
    """The child under every action of `nodes`; −1 where none was expanded."""
    child, action, _, _ = visited_edges(tree, rows_of(tree, nodes))
    rows = jnp.arange(nodes.shape[0])[:, None]
    return jnp.full((len(nodes), tree.num_edges), NONE, jnp.int32).at[rows, action].set(child, mode="drop")


def parents(tree: Tree) -> Int[Array, "B N"]:
    """The parent of every node; −1 for the root and for unused slots."""
    batch, capacity, at_hand = tree.size.shape[0], tree.capacity, children_at_hand(tree.frontier)
    count = unpack_frontier(tree.frontier[:, :-1]).num_children
    games, nodes = jnp.arange(batch)[:, None], jnp.arange(capacity, dtype=jnp.int32)

    def turn(i: Array, found: Array) -> Array:
        child = jax.lax.dynamic_index_in_dim(tree.frontier, HEAD.stop + jnp.minimum(i, at_hand - 1), 2, False)
        if tree.later_children is not None:
            later = jax.lax.dynamic_index_in_dim(tree.later_children, jnp.maximum(i - at_hand, 0), 2, False)
            child = jnp.where(i < at_hand, child, later.astype(child.dtype))
        where = jnp.where(i < count, child[:, :-1].astype(jnp.int32), capacity)
        return found.at[games, where].set(nodes, mode="promise_in_bounds")

    # In a loop: [B, N, W] at once would take as much memory as the tree, and few nodes have many children.
    found = jnp.full((batch, capacity + 1), NONE, jnp.int32)
    return jax.lax.fori_loop(0, jnp.max(count), turn, found)[:, :-1]
