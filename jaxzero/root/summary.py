"""Summary of a search: visits and values at the root, the principal variation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.root.proven_edges import worse
from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import by_action, edge_view, linked
from jaxzero.search.tree import NONE, Tree
from jaxzero.types import in_short

__all__ = [
    "Summary",
    "any_legal",
    "first_by_visits",
    "legal_actions",
    "open_actions",
    "principal_variation",
    "qvalues",
    "summary",
    "without_worse",
]


class Summary(NamedTuple):
    """What a search found at the root.

    Attributes:
        visits: simulations through each action.
        visit_probs: their shares; uniform over the legal actions if there are no visits. 0 for actions that are proven
            to be worse than another.
        qvalues: mean return of each action for the player to move; 0 if unvisited.
        value: the root's mean value, for the player to move.
    """

    visits: Int[Array, "B W"]
    visit_probs: Float[Array, "B W"]
    qvalues: Float[Array, "B W"]
    value: Float[Array, "B"]

    __repr__ = in_short


def summary(tree: Tree) -> Summary:
    """Visits, their shares, Q-values and value at the root of each game."""
    check_tree("summary: tree", tree)
    view = edge_view(tree)
    total = jnp.sum(view.visits, -1, keepdims=True).astype(view.value.dtype)
    legal = legal_actions(tree).astype(view.value.dtype)
    uniform = legal / jnp.sum(legal, -1, keepdims=True)
    shares = jnp.where(total > 0, view.visits.astype(total.dtype) / jnp.maximum(total, 1), uniform)
    return Summary(view.visits, without_worse(tree, shares), view.value, view.node_value)


def any_legal(tree: Tree) -> Bool[Array, "B"]:
    """Whether the root has a legal action."""
    return ~jnp.all(jnp.isneginf(edge_view(tree).prior), -1)


def legal_actions(tree: Tree) -> Bool[Array, "B W"]:
    """The root's legal actions; all actions where none is legal, so that later results stay defined."""
    legal = ~jnp.isneginf(edge_view(tree).prior)
    return legal | ~jnp.any(legal, -1, keepdims=True)


def open_actions(tree: Tree) -> Bool[Array, "B W"]:
    """The root's legal actions without those that are proven to be worse than another."""
    legal = legal_actions(tree)
    return legal if tree.bounds is None else legal & ~worse(edge_view(tree))


def without_worse(tree: Tree, weights: Float[Array, "B W"]) -> Float[Array, "B W"]:
    """The weights, 0 for actions that are proven to be worse than another; uniform where nothing is left."""
    if tree.bounds is None:
        return weights
    still_open = open_actions(tree)
    left = jnp.where(still_open, weights, 0)
    total = jnp.sum(left, -1, keepdims=True)
    even = still_open.astype(weights.dtype) / jnp.sum(still_open, -1, keepdims=True, dtype=weights.dtype)
    return jnp.where(total > 0, left / jnp.where(total > 0, total, 1), even)


def first_by_visits(visits: Array, values: Float[Array, "B W"]) -> Int[Array, "B"]:
    """The most visited action; on a tie the one with the best value, then the lowest index."""
    most = visits == jnp.max(visits, -1, keepdims=True)
    values = jnp.maximum(values, jnp.finfo(values.dtype).min)
    return jnp.argmax(jnp.where(most, values, -jnp.inf), -1).astype(jnp.int32)


def qvalues(tree: Tree, nodes: Int[Array, "B"] | None = None) -> Float[Array, "B W"]:
    """Mean return of each action at `nodes` (default: the roots), for the player to move; 0 if unvisited."""
    check_tree("qvalues: tree", tree)
    return edge_view(tree, nodes).value


def principal_variation(tree: Tree, max_length: int) -> Int[Array, "B L"]:
    """The most visited action, then the most visited reply, and so on; −1 after the last.

    Ties go to the better value, as in `most_visited`, and actions that are proven to be worse are skipped. (Gumbel
    search acts by its halving: its action is mostly, but not always, the first of the line.)

    Args:
        tree: the trees.
        max_length: L, how many actions to follow.

    Raises:
        ValueError: something else in place of a tree.
    """
    check_tree("principal_variation: tree", tree)

    def step(node: Array, _: None) -> tuple[Array, Array]:
        inner = jnp.maximum(node, 0)
        view = edge_view(tree, inner)
        visits, values = view.visits, view.value
        by_player = True if view.chance is None else ~view.chance[:, None]  # chance does not choose
        if tree.bounds is not None:
            visits = jnp.where(worse(view) & by_player, 0, visits)
        action = first_by_visits(visits, jnp.where(by_player, values, 0))
        on = (node >= 0) & (jnp.max(visits, -1) > 0)
        below = jnp.take_along_axis(by_action(tree, inner), action[:, None], 1)[:, 0]
        below = linked(tree, jnp.maximum(below, 0))
        return jnp.where(on, below, NONE), jnp.where(on, action, NONE)

    return jax.lax.scan(step, jnp.zeros_like(tree.size), None, length=max_length)[1].T
