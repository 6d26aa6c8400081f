"""What can be read off a tree: edges as a rule sees them, Q-values, summaries, the principal variation."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.mcts.rows import (
    EDGE,
    HEAD,
    Tile,
    children_at_hand,
    per_game,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
)
from jaxzero.mcts.tree import NONE, Rows, Tree, rows_of
from jaxzero.types import EdgeView, Rule

__all__ = [
    "Summary",
    "by_action",
    "candidate_view",
    "edge_view",
    "legal_actions",
    "parents",
    "principal_variation",
    "qvalues",
    "summary",
]


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


def visited_edges(tree: Tree, at: Rows, width: int | None = None, tile: Tile | None = None) -> Edges:
    """The expanded edges of the nodes of `at`, of the games of `tile` (default: all).

    Args:
        tree: the trees.
        at: the nodes' rows.
        width: how many slots: more than any of the nodes has children, or W (the default).
        tile: the games of the nodes.
    """
    width = tree.num_edges if width is None else width
    most, at_hand = (width if width == tree.num_edges else width - 1), children_at_hand(tree.frontier)
    child = take(tree.frontier, at.nodes, tile, slice(HEAD.stop, HEAD.stop + min(most, at_hand))).astype(jnp.int32)
    if most > at_hand:
        later = take(tree.later_children, at.nodes, tile, slice(most - at_hand))
        child = jnp.concatenate([child, later.astype(jnp.int32)], -1)
    child = jnp.pad(child, [(0, 0)] * at.nodes.ndim + [(0, width - most)])
    frontier = unpack_frontier(at.frontier)
    seen = jnp.arange(width) < jnp.minimum(frontier.num_children, most)[..., None]
    child = jnp.where(seen, child, 0)
    action, prior = jnp.moveaxis(take_edges(tree.facts, child, tile, EDGE), -1, 0)
    return Edges(child, jnp.where(seen, action.astype(jnp.int32), tree.num_edges), prior, seen)


def take_edges(x: Array, child: Int[Array, "G ... C"], tile: Tile | None = None, columns: slice | None = None) -> Array:
    """Rows of `x [B, N+1, F]` at the nodes below edges; of each row `columns`, if given."""
    return take(x, child.reshape(child.shape[0], -1), tile, columns).reshape(*child.shape, -1)


def edge_view(
    tree: Tree,
    nodes: Int[Array, "G ..."],
    rule: Rule | None = None,
    width: int | None = None,
    at: Rows | None = None,
    tile: Tile | None = None,
) -> EdgeView:
    """All W edges of `nodes` (`[G]` or `[G, K]`), by action.

    Args:
        tree: the trees.
        nodes: node indices.
        rule: whose `mass` of the unvisited edges is wanted.
        width: how many slots are looked through: more than any of the nodes has children, or W; fewer are cheaper.
        at: the nodes' rows, if at hand.
        tile: the games of the nodes; default: all.
    """
    at = rows_of(tree, nodes, tile) if at is None else at
    edges = visited_edges(tree, at, width, tile)
    count, width = nodes.size, edges.child.shape[-1]
    index = jnp.arange(count)[:, None], edges.action.reshape(count, width)

    def by_slot(x: Array) -> Array:
        spread = jnp.zeros((count, tree.num_edges), x.dtype)
        spread = spread.at[index].set(x.reshape(count, width), mode="drop")
        return spread.reshape(*nodes.shape, tree.num_edges)

    taken = edges.prior.reshape(count, width)
    prior = take(tree.prior, nodes, tile).astype(tree.stats.dtype)
    prior = prior.reshape(count, -1).at[index].set(taken, mode="drop").reshape(prior.shape)
    actions = jnp.broadcast_to(jnp.arange(tree.num_edges), prior.shape)
    view = _view(tree, at, tile, edges, actions, prior, by_slot)
    if rule is None or rule.mass is None:
        return view._replace(unvisited_mass=jnp.zeros_like(view.raw_value))
    counts = (view.visits == 0) & ~jnp.isneginf(prior)
    return view._replace(unvisited_mass=jnp.sum(jnp.where(counts, rule.mass(prior), 0), -1))


def candidate_view(tree: Tree, at: Rows, width: int, tile: Tile | None = None) -> tuple[EdgeView, Edges]:
    """The visited edges of the nodes of `at` and the next one to be tried; and the former on their own.

    The other slots look like illegal, unvisited edges, which is what those not shown here count as. A tree
    that is full has no next edge.

    Args:
        tree: the trees.
        at: the nodes' rows.
        width: how many slots: more than the nodes have children, or W.
        tile: the games of the nodes; default: all.
    """
    edges, frontier = visited_edges(tree, at, width, tile), unpack_frontier(at.frontier)
    full = tree.size >= tree.capacity
    full = full if tile is None else full[tile.games]
    next_action = jnp.where(per_game(full, at.nodes), NONE, frontier.next_action)[..., None]
    wanted = (jnp.arange(width) == frontier.num_children[..., None]) & (next_action >= 0)
    next_prior = jnp.where(wanted, frontier.next_prior[..., None], -jnp.inf)
    prior = jnp.where(edges.seen, edges.prior, next_prior)
    action = jnp.where(wanted, next_action, edges.action)
    return _view(tree, at, tile, edges, action, prior, lambda x: jnp.where(edges.seen, x, jnp.zeros_like(x))), edges


def _view(
    tree: Tree, at: Rows, tile: Tile | None, edges: Edges, action: Array, prior: Array, place: Callable[[Array], Array]
) -> EdgeView:
    """The view of the nodes of `at`, what is below the edges put where `place` says.

    The compiler drops what no rule reads.
    """
    nodes, stats, facts = at.nodes, unpack_stats(at.stats), unpack_facts(at.facts)
    games = jnp.arange(nodes.shape[0]) if tile is None else tile.games
    below = unpack_stats(take_edges(tree.stats, edges.child, tile))
    edge = unpack_facts(take_edges(tree.facts, edges.child, tile))

    def of_mover(x: Array) -> Array:
        if x.shape[-1] == 1:
            return x[..., 0]
        mover = facts.to_play.reshape(nodes.shape + (1,) * (x.ndim - nodes.ndim))
        return jnp.take_along_axis(x, mover, -1)[..., 0]

    return EdgeView(
        game=jnp.broadcast_to(per_game(games, nodes), nodes.shape),
        action=action,
        prior=prior,
        visits=place(below.visits.astype(jnp.int32)),
        value=place(below.edge_value),
        reward=place(of_mover(edge.reward)),
        discount=place(edge.discount),
        child_value=place(of_mover(below.value)),
        node_visits=stats.visits.astype(jnp.int32),
        node_value=of_mover(stats.value),
        raw_value=of_mover(facts.raw_value),
        unvisited_mass=unpack_frontier(at.frontier).unvisited_mass,
        root=tree.root,
        chance=facts.chance,
    )


def by_action(tree: Tree, nodes: Int[Array, "B"]) -> Int[Array, "B W"]:
    """The child under every action of `nodes`; −1 where none was expanded."""
    child, action, _, _ = visited_edges(tree, rows_of(tree, nodes))
    rows = jnp.arange(nodes.shape[0])[:, None]
    return jnp.full(child.shape, NONE, jnp.int32).at[rows, action].set(child, mode="drop")


def parents(tree: Tree) -> Int[Array, "B N"]:
    """The parent of every node; −1 for the root and for unused slots."""
    batch, (capacity, width) = tree.size.shape[0], (tree.capacity, tree.num_edges)
    used = jnp.arange(width) < unpack_frontier(tree.frontier[:, :-1]).num_children[..., None]
    target = jnp.where(used, tree.children, capacity).reshape(batch, -1)
    source = jnp.repeat(jnp.arange(capacity, dtype=jnp.int32), width)
    return (
        jnp.full((batch, capacity), NONE, jnp.int32)
        .at[jnp.arange(batch)[:, None], target]
        .set(jnp.broadcast_to(source, target.shape), mode="drop")
    )


class Summary(NamedTuple):
    """What a search found at the root.

    Attributes:
        visits: simulations through each action.
        visit_probs: their shares; uniform over the legal actions if there are none.
        qvalues: mean return of each action for the player to move; 0 if unvisited.
        value: the root's mean value, for the player to move.
    """

    visits: Int[Array, "B W"]
    visit_probs: Float[Array, "B W"]
    qvalues: Float[Array, "B W"]
    value: Float[Array, "B"]


def summary(tree: Tree) -> Summary:
    """Visits, their shares, Q-values and value at the root of each game."""
    view = edge_view(tree, jnp.zeros_like(tree.size))
    total = jnp.sum(view.visits, -1, keepdims=True).astype(view.value.dtype)
    legal = legal_actions(tree).astype(view.value.dtype)
    uniform = legal / jnp.sum(legal, -1, keepdims=True)
    return Summary(
        view.visits, jnp.where(total > 0, view.visits / jnp.maximum(total, 1), uniform), view.value, view.node_value
    )


def legal_actions(tree: Tree) -> Bool[Array, "B W"]:
    """The root's legal actions; all of them where there is none, so that what follows stays defined."""
    legal = ~jnp.isneginf(edge_view(tree, jnp.zeros_like(tree.size)).prior)
    return legal | ~jnp.any(legal, -1, keepdims=True)


def qvalues(tree: Tree, nodes: Int[Array, "B"] | None = None) -> Float[Array, "B W"]:
    """Mean return of each action at `nodes` (default: the roots), for the player to move; 0 if unvisited."""
    return edge_view(tree, jnp.zeros_like(tree.size) if nodes is None else nodes).value


def principal_variation(tree: Tree, max_length: int) -> Int[Array, "B L"]:
    """The most visited action, then the most visited reply, and so on; −1 after the last.

    Args:
        tree: the trees.
        max_length: L, how many actions to follow.
    """

    def step(node: Array, _: None) -> tuple[Array, Array]:
        inner = jnp.maximum(node, 0)
        visits = edge_view(tree, inner).visits
        action = jnp.argmax(visits, -1).astype(jnp.int32)
        on = (node >= 0) & (jnp.max(visits, -1) > 0)
        below = jnp.take_along_axis(by_action(tree, inner), action[:, None], 1)[:, 0]
        return jnp.where(on, below, NONE), jnp.where(on, action, NONE)

    return jax.lax.scan(step, jnp.zeros_like(tree.size), None, length=max_length)[1].T
