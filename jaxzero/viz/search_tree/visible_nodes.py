"""The choice of the nodes of a search tree to draw: the most visited of one game."""

import heapq
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.root.summary import principal_variation
from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import linked, parents
from jaxzero.search.node_storage import unpack_facts
from jaxzero.search.tree import Tree

__all__ = ["Chosen", "Skeleton", "choose", "choose_along", "one_game"]

LINE = 64  # plies of a principal variation that are followed


class Skeleton(NamedTuple):
    """How the nodes of one game are connected, by slot `[N]`; in a tree a slot is a node, in a graph an edge.

    Attributes:
        parent: the node above; −1: none.
        action: the edge slot there.
        visits: simulations through the edge.
        position: the node of the position that the edge leads to; the slot itself, except in graphs.
        line: edge slots of the principal variation; −1 after the last.
        size: slots in use.
    """

    parent: np.ndarray
    action: np.ndarray
    visits: np.ndarray
    position: np.ndarray
    line: np.ndarray
    size: np.ndarray


class Chosen(NamedTuple):
    """The nodes of one game that are drawn, the most visited first, each after the one above.

    Attributes:
        slots: which, the root first.
        positions: the nodes of their positions.
        above: the place in this list of the node above; −1 at the root.
        same: if the position is drawn already, its place in this list, so that its edges are drawn once; else −1.
        line: the edge slots of the principal variation.
        total: how many there are in all.
    """

    slots: list[int]
    positions: list[int]
    above: list[int]
    same: list[int]
    line: list[int]
    total: int


def one_game(function: str, tree: Any, game: int) -> tuple[Tree, Skeleton]:
    """The tree of one game, still a batch of one, and how its nodes are connected.

    Raises:
        ValueError: something else in place of a tree; a tree without the axis of games; a game that is not there, or
            without a root.
    """
    check_tree(f"{function}: tree", tree)
    if np.ndim(tree.size) != 1:
        raise ValueError(
            f"{function}: the tree must have exactly one axis of games, but its size has shape "
            f"{list(np.shape(tree.size))}. Give the tree as the policy returned it, and game= for which one."
        )
    batch = tree.size.shape[0]
    if not hasattr(game, "__index__") or isinstance(game, bool) or not 0 <= game < batch:
        raise ValueError(f"{function}: game={game!r} of a batch of {batch}: use a whole number from 0 to {batch - 1}.")
    one, skeleton = _opened(tree, jnp.int32(game))
    skeleton = Skeleton(*(x[0] for x in jax.device_get(skeleton)))
    if not skeleton.size:
        raise ValueError(f"{function}: game {game} has no root, because nothing of its tree was kept. Search it first.")
    return one, skeleton


@jax.jit
def _opened(tree: Tree, game: Any) -> tuple[Tree, Skeleton]:
    one = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, game, 1), tree)
    slots = jnp.arange(tree.capacity)[None]
    action = unpack_facts(one.facts[:, :-1]).action
    line = principal_variation(one, LINE)
    return one, Skeleton(parents(one), action, one.visits, linked(one, slots), line, one.size)


def choose(tree: Skeleton, most: int) -> Chosen:
    """The `most` most visited nodes of one game, each with the nodes above it."""
    used = (tree.parent >= 0) & (tree.visits > 0)
    order = np.argsort(tree.parent, kind="stable")
    first = np.searchsorted(tree.parent[order], np.arange(len(tree.parent) + 1))
    found = Chosen([], [], [], [], _without_end(tree.line), int(used.sum()) + 1)
    drawn: dict[int, int] = {}  # positions, and their places in the list
    # Visits (negative: most first), off the line (it goes first among equals), slot, place above, plies on the line.
    waiting = [(0, False, 0, -1, 0)]
    while waiting and len(found.slots) < most:
        _, off, slot, above, ply = heapq.heappop(waiting)
        here, position = len(found.slots), int(tree.position[slot])
        known = drawn.setdefault(position, here)
        for field, x in zip(found, (slot, position, above, -1 if known == here else known)):
            field.append(x)
        if known != here:
            continue
        for below in order[first[position] : first[position + 1]]:
            if used[below]:
                follows = not off and ply < len(found.line) and tree.action[below] == found.line[ply]
                heapq.heappush(waiting, (-int(tree.visits[below]), not follows, int(below), here, ply + 1))
    return found


def choose_along(tree: Skeleton, depth: int, widest: int) -> Chosen:
    """The nodes of the principal variation down to a depth, and the most visited siblings of each."""
    used, line = (tree.parent >= 0) & (tree.visits > 0), _without_end(tree.line)
    found = Chosen([0], [int(tree.position[0])], [-1], [-1], line, int(used.sum()) + 1)
    at = 0
    for action in line[:depth]:
        below = np.flatnonzero(used & (tree.parent == found.positions[at]))
        follows = tree.action[below] == action
        order = np.lexsort((below, -tree.visits[below], ~follows))[:widest]
        above, at = at, len(found.slots)
        for slot in below[order].tolist():
            for field, x in zip(found, (slot, int(tree.position[slot]), above, -1)):
                field.append(x)
    return found


def _without_end(line: np.ndarray) -> list[int]:
    return line[: int(np.argmin(line))].tolist() if (line < 0).any() else line.tolist()
