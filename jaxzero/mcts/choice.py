"""Where the rules are asked: the choices that nodes remember.

A rule that promises `by_prior` is shown only the edges that were visited and the next one to be tried; any other is
shown all W. The first edges of a node's list of children are gathered for a whole group of nodes at once, as many as
the node with the most of them has: in steps, for XLA's shapes are static.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.mcts.tree import NONE, Frontier, Tree, pack, per_game, put, take, unpack_frontier
from jaxzero.mcts.view import candidate_view, edge_view, visited_edges
from jaxzero.types import Rule

__all__ = ["WIDTHS", "choose", "choose_at_root", "first_highest", "next_edge", "remember", "rescore"]

# Edges shown to a rule for a group of nodes: the least of these with room for all their visited edges, or W.
WIDTHS = (8, 32)


def choose(
    tree: Tree,
    nodes: Int[Array, "G ..."],
    rule: Rule,
    consider: Bool[Array, "G ..."],
    games: Int[Array, "G"] | None = None,
) -> tuple[Array, Array | None]:
    """The rule's choice at `nodes`: the child to go on to (or −1), and the action that is wanted in that case.

    Args:
        tree: the trees.
        nodes: where to choose.
        rule: what to ask. Of a rule that promises `by_prior` the wanted action is known already: None.
        consider: where the answer matters; elsewhere it may be anything.
        games: the games of the nodes; default: all.
    """

    def at(width: int) -> Callable:
        return lambda: (_choose_candidate if rule.by_prior else _choose_action)(tree, nodes, rule, width, games)

    widths = [w for w in WIDTHS if 2 * w <= tree.num_edges] + [tree.num_edges]
    if len(widths) == 1:
        return at(widths[0])()
    expanded = jnp.max(jnp.where(consider, unpack_frontier(take(tree.frontier, nodes, games)).num_children, 0))
    return jax.lax.switch(sum((expanded >= w).astype(jnp.int32) for w in widths[:-1]), [at(w) for w in widths])


def _choose_candidate(tree: Tree, nodes: Array, rule: Rule, width: int, games: Array | None) -> tuple[Array, None]:
    edges = visited_edges(tree, nodes, width, games)
    view = candidate_view(tree, nodes, edges, games)
    scores = jnp.where(jnp.isneginf(view.prior), -jnp.inf, rule.score(view))
    tied = (scores == jnp.max(scores, -1, keepdims=True)) & ~jnp.isneginf(scores)
    first = jnp.min(jnp.where(tied, view.action, tree.num_edges), -1, keepdims=True)
    return jnp.max(jnp.where(tied & edges.seen & (view.action == first), edges.child, NONE), -1), None


def _choose_action(tree: Tree, nodes: Array, rule: Rule, width: int, games: Array | None) -> tuple[Array, Array]:
    edges = visited_edges(tree, nodes, width, games)
    view = edge_view(tree, nodes, edges, rule, games)
    # In a full tree a node stays inside, if it can: one without children goes on wanting what it cannot have.
    childless = unpack_frontier(take(tree.frontier, nodes, games)).num_children == 0
    open_games = tree.size < tree.capacity
    room = per_game(open_games if games is None else open_games[games], nodes) | childless
    view = view._replace(prior=jnp.where(room[..., None] | (view.visits > 0), view.prior, -jnp.inf))
    scores = jnp.where(jnp.isneginf(view.prior), -jnp.inf, rule.score(view))
    best, _ = first_highest(scores)
    below = jnp.max(jnp.where(edges.seen & (edges.action == best[..., None]), edges.child, NONE), -1)
    return below, jnp.where(below >= 0, NONE, best)


def choose_at_root(tree: Tree, rule: Rule, fresh: bool = False) -> Tree:
    """Has the root's rule choose. `fresh`: the next edge to be tried is not known, or is of another rule."""
    root = jnp.zeros_like(tree.size)
    if fresh and rule.by_prior:
        tree = _find_next(tree, root, rule)
    return remember(tree, root, choose(tree, root, rule, root == 0))


def rescore(tree: Tree, rule: Rule) -> Tree:
    """Has every node choose anew: needed when the rule or its constants changed since the tree was searched.

    The priors stay as the first rule prepared them; a rule that prepares them otherwise needs a new tree.
    """

    def turn(k: Array, tree: Tree) -> Tree:
        nodes = jnp.full_like(tree.size, k)
        tree = _find_next(tree, nodes, rule) if rule.by_prior else tree
        return remember(tree, nodes, choose(tree, nodes, rule, nodes >= 0))

    return jax.lax.fori_loop(0, tree.capacity, turn, tree)


def remember(
    tree: Tree, nodes: Int[Array, "G ..."], choice: tuple[Array, Array | None], games: Int[Array, "G"] | None = None
) -> Tree:
    """Writes down what `choose` said of `nodes`."""
    best, wanted = choice
    if wanted is not None:
        frontier = unpack_frontier(take(tree.frontier, nodes, games))._replace(next_action=wanted)
        tree = tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype), games))
    return tree.replace(best_child=put(tree.best_child, nodes, best, games))


def _find_next(tree: Tree, nodes: Int[Array, "B"], rule: Rule) -> Tree:
    """Finds the next edge to be tried at `nodes` by looking at all edges."""
    view = edge_view(tree, nodes)
    order = view.prior
    if tree.root.prior is not None:
        order = jnp.where((nodes == 0)[:, None], tree.root.prior, order)
    found = next_edge(rule, view.prior, jnp.where(view.visits == 0, order, -jnp.inf))
    count = unpack_frontier(take(tree.frontier, nodes)).num_children
    frontier = found._replace(num_children=count)
    return tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype)))


def next_edge(rule: Rule, prior: Float[Array, "... W"], order: Float[Array, "... W"]) -> Frontier:
    """The edge that comes first in `order`, which is −inf where an edge is visited or illegal; no children yet."""
    action, highest = first_highest(order)
    mass = jnp.zeros_like(highest)
    if rule.mass is not None:
        mass = jnp.sum(jnp.where(jnp.isneginf(order), 0, rule.mass(prior)), -1)
    next_prior = jnp.take_along_axis(prior, jnp.maximum(action, 0)[..., None], -1)[..., 0]
    return Frontier(action, jnp.zeros_like(action), next_prior, mass)


def first_highest(scores: Float[Array, "... W"]) -> tuple[Int[Array, "..."], Float[Array, "..."]]:
    """The lowest index of the highest score, and that score; −1 and −inf if all are −inf.

    Two plain reductions: XLA's CPU backend vectorises these, not the one over pairs that an argmax is.
    """
    best = jnp.max(scores, -1)
    index = jnp.arange(scores.shape[-1], dtype=jnp.int32)
    first = jnp.min(jnp.where(scores == best[..., None], index, scores.shape[-1] - 1), -1)
    return jnp.where(jnp.isneginf(best), NONE, first), best
