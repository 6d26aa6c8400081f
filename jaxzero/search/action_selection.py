"""Action selection: the rule scores the edges of a node, and the node remembers the best one.

A rule that promises `by_prior` sees only the visited edges and the next one to be tried; any other rule sees all W.
Edges are gathered for a whole group of nodes at once, as many as the node with the most children has. That number is
rounded up to one of a few widths, because XLA's shapes are static.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.backend_tuning import machine
from jaxzero.search.chance_nodes import by_probability
from jaxzero.search.edge_view import all_edges, candidate_view, most_edges, visited_edges
from jaxzero.search.node_storage import Tile, of_tile, pack, per_game, places, put, take, unpack_frontier
from jaxzero.search.selection_rules import prior_kind, searched_by
from jaxzero.search.tree import AT_HAND, NONE, Rows, Tree, as_read, rows_of
from jaxzero.types import EdgeView, Rule

__all__ = [
    "WIDTHS",
    "choose",
    "choose_at_root",
    "first_highest",
    "is_rated",
    "next_edge",
    "remember",
    "rescore",
    "with_next_edge",
]

# Edges shown to a rule for a group of nodes: the least of these with room for all their visited edges and the next one,
# or `most_edges`. The first needs only the children stored inline.
WIDTHS = (AT_HAND + 1, 32, 128)


class Choice(NamedTuple):
    """The choices of nodes.

    Attributes:
        child: the node to go to; −1: the walk ends here, and expands the next edge if there is one.
        next_action: that edge's action; −1: none. None for a rule that promises `by_prior`: it is known already.
        next_prior: its clean prior, likewise.
    """

    child: Int[Array, "..."]
    next_action: Int[Array, "..."] | None = None
    next_prior: Float[Array, "..."] | None = None


def choose(
    tree: Tree, at: Rows, rule: Rule, consider: Bool[Array, "G ..."] | bool, steps: tuple[int, ...] = WIDTHS
) -> Choice:
    """The rule's choice at the nodes of `at`.

    Args:
        tree: the trees.
        at: the rows of the nodes that choose.
        rule: what scores the edges.
        consider: where the answer matters; elsewhere it may be anything.
        steps: those of `WIDTHS` that are worth a program of their own.
    """

    def among(width: int) -> Callable:
        return lambda: _choose_among(tree, at, rule, width)

    most = most_edges(tree)
    widths = [w for w in steps if 2 * w <= most] + [most]
    if len(widths) == 1 or at.num_children.size * most <= machine().sure_edges:
        return among(most)()
    return jax.lax.switch(_bucket(jnp.where(consider, at.num_children, 0), widths), [among(w) for w in widths])


def _bucket(num_children: Int[Array, "G ..."], widths: list[int]) -> Int[Array, ""]:
    """The index of the first width with room for all children of every node, and one edge more."""
    return jnp.max(sum((num_children >= w).astype(jnp.int32) for w in widths[:-1]))


def _choose_among(tree: Tree, at: Rows, rule: Rule, width: int) -> Choice:
    return (_choose_candidate if rule.by_prior else _choose_action)(tree, at, rule, width)


def _choose_candidate(tree: Tree, at: Rows, rule: Rule, width: int) -> Choice:
    view, edges = candidate_view(tree, at, width)
    return Choice(child_of_best(_open_scores(rule, view), view.action, edges.child, tree.num_edges))


def _open_scores(rule: Rule, view: EdgeView) -> Float[Array, "... W"]:
    """The rule's scores, or at chance nodes those of the outcomes; −inf where an edge is closed or a score is NaN."""
    scores = _scores(rule, view)
    if view.chance is not None:
        scores = jnp.where(view.chance[..., None], by_probability(view), scores)
    return jnp.where(jnp.isneginf(view.prior) | jnp.isnan(scores), -jnp.inf, scores)


def _scores(rule: Rule, view: EdgeView) -> Float[Array, "... W"]:
    """The rule's scores. Raises a ValueError unless there is one for each edge."""
    scores = rule.score(view)
    if jnp.shape(scores) != view.visits.shape:
        raise ValueError(
            f"score of a Rule returned shape {list(jnp.shape(scores))} for edges of shape {list(view.visits.shape)}: "
            "return one score for each edge, and reduce over edges with keepdims=True."
        )
    return scores


def child_of_best(scores: Array, action: Array, child: Array, num_actions: int) -> Array:
    """The child under the lowest action of the highest score; −1 if it has none (`child` is 0), or all are −inf.

    Few scores take one reduction over triples, which is one kernel. Many take several plain reductions, which XLA's CPU
    backend vectorises.
    """
    scores = jax.lax.stop_gradient(scores)  # a choice has none, and jax cannot differentiate reductions over triples
    if scores.size <= machine().few_scores:
        start = jnp.array(-jnp.inf, scores.dtype), jnp.int32(num_actions), jnp.int32(0)

        def better(x: tuple, y: tuple) -> tuple:
            first = (x[0] > y[0]) | ((x[0] == y[0]) & (x[1] <= y[1]))
            return tuple(jnp.where(first, a, b) for a, b in zip(x, y))

        highest, _, below = jax.lax.reduce((scores, action, child), start, better, (scores.ndim - 1,))
        return jnp.where((below > 0) & ~jnp.isneginf(highest), below, NONE)
    tied = (scores == jnp.max(scores, -1, keepdims=True)) & ~jnp.isneginf(scores)
    first = jnp.min(jnp.where(tied, action, num_actions), -1, keepdims=True)
    return jnp.max(jnp.where(tied & (child > 0) & (action == first), child, NONE), -1)


def _choose_action(tree: Tree, at: Rows, rule: Rule, width: int) -> Choice:
    edges, view = visited_edges(tree, at, width), all_edges(tree, at, rule, width)
    # In a full tree a node chooses an existing child if it can; one without children goes on wanting a new edge.
    room = per_game(of_tile(tree.size < tree.capacity, at.tile), at.num_children) | (at.num_children == 0)
    expanded = view.visits > 0 if view.in_flight is None else (view.visits > 0) | (view.in_flight > 0)
    view = view._replace(prior=jnp.where(room[..., None] | expanded, view.prior, -jnp.inf))
    best, _ = first_highest(_open_scores(rule, view))
    below = jnp.max(jnp.where(edges.seen & (edges.action == best[..., None]), edges.child, NONE), -1)
    prior = jnp.take_along_axis(view.prior, jnp.maximum(best, 0)[..., None], -1)[..., 0]
    return Choice(below, jnp.where(below >= 0, NONE, best), jnp.where(below >= 0, 0, prior))


def choose_at_root(tree: Tree, rule: Rule) -> Tree:
    """Has the root's rule choose. There is no program for few edges, because a root soon has many."""
    return remember(tree, None, choose(tree, rows_of(tree), rule, True, WIDTHS[1:]))


def is_rated(tree: Tree, rule: Rule) -> Bool[Array, "B"]:
    """False where the rule's score is NaN for the root's first child or for the edge that it tries next."""
    at = rows_of(tree)
    view = candidate_view(tree, at, 2)[0] if rule.by_prior else all_edges(tree, at, rule)
    return ~jnp.any(jnp.isnan(_scores(rule, view)) & ~jnp.isneginf(view.prior), -1)


def rescore(tree: Tree, rule: Rule) -> Tree:
    """Has every node choose again, after a change of the rule or its constants.

    The priors stay as the first rule prepared them; a rule that prepares them otherwise needs a new tree.

    Raises:
        ValueError: a rule that stores probabilities, where the tree has logits, or the other way round.
    """
    if tree.prior_kind is not None:  # recompute the mass, and which edge is next
        found = dataclasses.replace(prior_kind(rule, tree.num_edges), probabilities=tree.prior_kind.probabilities)
        tree = tree.replace(prior_kind=found)
    tree = searched_by(tree, rule)

    def turn(k: Array, tree: Tree) -> Tree:
        nodes = jnp.full_like(tree.size, k)
        tree = with_next_edge(tree, rule, nodes)
        return remember(tree, nodes, choose(tree, rows_of(tree, nodes), rule, True))

    return jax.lax.fori_loop(0, tree.capacity, turn, tree)


def remember(tree: Tree, nodes: Int[Array, "G ..."] | None, choice: Choice, tile: Tile | None = None) -> Tree:
    """Stores the choice of `nodes` (None: the roots)."""
    if choice.next_action is not None:
        frontier = unpack_frontier(take(tree.frontier, nodes, tile))
        frontier = frontier._replace(next_action=choice.next_action, next_prior=choice.next_prior)
        tree = tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype), tile))
    return tree.replace(best_child=put(tree.best_child, nodes, choice.child, tile))


def with_next_edge(tree: Tree, rule: Rule, nodes: Int[Array, "B"] | None = None) -> Tree:
    """Finds the edge that `nodes` (None: the roots) try next, among all that were not expanded.

    Only a rule that promises `by_prior` needs it; other rules find it when they choose.
    """
    if not rule.by_prior:
        return tree
    left = as_read(take(tree.prior, nodes), tree.stats.dtype)
    order = left
    if tree.root.prior is not None:
        at_root = jnp.where(jnp.isneginf(left), -jnp.inf, tree.root.prior)
        order = at_root if nodes is None else jnp.where((nodes == 0)[:, None], at_root, left)
    frontier = unpack_frontier(take(tree.frontier, nodes))._replace(**next_edge(rule, left, order)._asdict())
    return tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype)))


class NextEdge(NamedTuple):
    """The unvisited edge to try next, as `Frontier` stores it."""

    next_action: Int[Array, "..."]
    next_prior: Float[Array, "..."]
    unvisited_mass: Float[Array, "..."]


def next_edge(rule: Rule, prior: Float[Array, "... W"], order: Float[Array, "... W"] | None = None) -> NextEdge:
    """The edge that comes first in `order` (default: `prior`), where −inf means visited or illegal."""
    ranked = prior if order is None else order
    action, highest = first_highest(ranked)
    mass = jnp.zeros_like(highest)
    if rule.mass is not None:
        mass = jnp.sum(jnp.where(jnp.isneginf(ranked), 0, rule.mass(prior)), -1)
    if order is not None:  # else the highest is the prior itself
        highest = jnp.take_along_axis(prior, jnp.maximum(action, 0)[..., None], -1)[..., 0]
    return NextEdge(action, highest, mass)


def first_highest(scores: Float[Array, "... W"]) -> tuple[Int[Array, "..."], Float[Array, "..."]]:
    """The lowest index of the highest score, and that score; −1 and −inf if all are −inf.

    An argmax is a reduction over pairs, which XLA's CPU backend does not vectorise. So for many rows two plain
    reductions are used; for few rows the argmax, which is fewer kernels.
    """
    if scores.size <= machine().few_scores:
        first = jnp.argmax(scores, -1).astype(jnp.int32)
        best = jnp.take_along_axis(scores, first[..., None], -1)[..., 0]
    else:
        best = jnp.max(scores, -1)
        index = places(scores.shape[-1], scores.ndim)
        first = jnp.min(jnp.where(scores == best[..., None], index, scores.shape[-1] - 1), -1)
    return jnp.where(jnp.isneginf(best), NONE, first), best
