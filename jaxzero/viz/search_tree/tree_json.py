"""The drawn part of a search tree as JSON: nodes and edges, in words and numbers."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxzero.search.tree import Tree
from jaxzero.viz.search_tree.node_data import Nodes, labels, read, states_of
from jaxzero.viz.search_tree.visible_nodes import Chosen, Skeleton, one_game

__all__ = ["check_numbers", "described", "number"]

EDGES = 40  # of a node, in addition to those that lead to drawn nodes


def check_numbers(function: str, **numbers: tuple[Any, int]) -> None:
    """Raises a ValueError if one of `name=(value, least)` is no whole number from its least on."""
    for name, (value, least) in numbers.items():
        if not hasattr(value, "__index__") or isinstance(value, bool) or value < least:
            raise ValueError(f"{function}: {name}={value!r}: use a whole number from {least} on.")


def number(value: Any) -> float | str:
    """A number for JSON, to five digits; non-finite numbers as words.

    >>> number(0.123456), number(float("nan")), number(float("-inf"))
    (0.12346, 'NaN', '-inf')
    """
    value = float(value)
    if math.isfinite(value):
        return float(f"{value:.5g}")
    return "NaN" if math.isnan(value) else f"{value:g}"


def described(
    function: str,
    tree: Tree,
    game: int,
    choose: Callable[[Skeleton], Chosen],
    names: Sequence[str] | None,
    draw: Callable[[Any], str] | None,
    room: int,
) -> dict[str, Any]:
    """Some nodes of one game.

    Args:
        function: the name for error messages.
        tree: the trees.
        game: which.
        choose: which nodes.
        names: of actions.
        draw: draws a position.
        room: how many nodes there may be: the program is compiled for this number.

    Returns:
        `game`; `total`: how many nodes there are; `graph`: whether positions are merged; `line`: the principal
        variation, in names, as far as it is drawn; and `nodes`, the root first, each with:

            up        the place in `nodes` of the one above; −1 at the root
            same      the place of an equal position, which lists the edges; else −1
            line      whether the principal variation passes
            visits    of the node, its own evaluation included
            value     mean return, for the player to move or for every player
            raw       the model's value, likewise
            mover     the player to move; −1: unknown
            terminal  whether the game is over
            chance    whether chance moves
            bounds    the proven lower and upper bound of the value; absent where nothing is proven
            edges     [name, visits, Q, P or null, place of the node below or null], then lower and upper bound
            rest      of the edges that are not listed: how many, their visits, their P, how many were visited
            board     the position as an <svg> element, if it is drawn

    Raises:
        ValueError: as `viz.tree`.
    """
    one, skeleton = one_game(function, tree, game)
    found = choose(skeleton)
    room = max(min(room, tree.capacity), len(found.slots))
    nodes, label = read(one, found.slots, found.positions, room), labels(function, one, found.positions, names)
    below: list[dict[int, int]] = [{} for _ in found.slots]
    for here, above in enumerate(found.above[1:], 1):
        below[above][int(nodes.action[here])] = here
    line, passed = _line(found, below, lambda at, slot: label(at, slot, bool(nodes.chance[at])))
    told = [_node(i, found, nodes, below[i], label) | {"line": i in passed} for i in range(len(found.slots))]
    if draw is not None:
        for node, state in zip(told, states_of(one, found.positions, room)):
            node["board"] = _drawn(function, draw, state)
    return {
        "game": int(game), "total": found.total, "graph": tree.graph is not None, "line": line, "nodes": told,
    }  # fmt: skip


def _line(found: Chosen, below: list[dict[int, int]], label: Callable[[int, int], str]) -> tuple[list[str], set[int]]:
    """The principal variation in names as far as it is drawn, and the nodes on it."""
    line, passed, at = [], {0}, 0
    for slot in found.line:
        line.append(label(at, slot))
        there = below[at].get(slot)
        if there is None:
            break
        passed.add(there)
        at = there if found.same[there] < 0 else found.same[there]
    return line, passed


def _drawn(function: str, draw: Callable[[Any], str], state: Any) -> str:
    board = draw(state)
    if not isinstance(board, str) or not board.lstrip().startswith("<svg"):
        raise ValueError(f"{function}: draw returned {board!r:.60}: it must be an <svg> element, as text.")
    return board


def _node(i: int, found: Chosen, nodes: Nodes, below: dict[int, int], label: Callable) -> dict[str, Any]:
    node = {
        "up": found.above[i], "same": found.same[i], "visits": int(nodes.visits[i]),
        "value": [number(x) for x in nodes.value[i]], "raw": [number(x) for x in nodes.raw[i]],
        "mover": int(nodes.mover[i]), "terminal": bool(nodes.terminal[i]), "chance": bool(nodes.chance[i]),
    }  # fmt: skip
    if nodes.bounds is not None:
        node["bounds"] = [number(x) for x in nodes.bounds[i]]
    return node | ({"edges": []} if found.same[i] >= 0 else _edges(i, node["chance"], nodes, below, label))


def _edges(i: int, chance: bool, nodes: Nodes, below: dict[int, int], label: Callable) -> dict[str, Any]:
    """The edges of a node, the most visited first, and a summary of the rest."""
    visits, value, prior = nodes.edge_visits[i], nodes.edge_value[i], nodes.edge_prior[i]
    there = np.flatnonzero((visits > 0) | ~np.isneginf(prior))
    there = there[np.lexsort((-np.nan_to_num(prior[there]), -np.nan_to_num(value[there]), -visits[there]))]
    edges, rest = [], []
    for place, a in enumerate(there.tolist()):
        if place >= EDGES and a not in below:
            rest.append(a)
            continue
        known = number(prior[a]) if np.isfinite(prior[a]) else None
        row = [label(i, a, chance), int(visits[a]), number(value[a]), known, below.get(a)]
        if nodes.edge_lower is not None:
            row += [number(nodes.edge_lower[i, a]), number(nodes.edge_upper[i, a])]
        edges.append(row)
    if not rest:
        return {"edges": edges}
    visited = int((visits[rest] > 0).sum())
    return {"edges": edges, "rest": [len(rest), int(visits[rest].sum()), number(prior[rest].sum()), visited]}
