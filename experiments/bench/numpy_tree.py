"""A straightforward tree search in NumPy, one tree, one simulation at a time, for comparison in `benchmark.py`.

Child statistics are arrays on each node, as usual in such programs. A node follows the highest W/(1+N) + √ΣN · P/(1+N),
the lowest action on a tie. There are two versions: a readable one and a fast one.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["Node", "as_it_reads", "search", "tuned"]


class Node:
    __slots__ = ("state", "prior", "visits", "total", "count", "children")

    def __init__(self, state: Any, prior: np.ndarray):
        self.state = state
        self.prior = prior  # P
        self.visits = np.zeros_like(prior)  # N
        self.total = np.zeros_like(prior)  # W, for the player to move
        self.count = 0  # ΣN
        self.children: dict[int, Node] = {}


def as_it_reads(node: Node) -> np.ndarray:
    return node.total / (1 + node.visits) + math.sqrt(node.visits.sum()) * node.prior / (1 + node.visits)


def tuned(node: Node) -> np.ndarray:
    """One division in place of two, and ΣN is not recomputed."""
    return (node.total + math.sqrt(node.count) * node.prior) / (1 + node.visits)


def search(
    evaluate: Callable[[Any], tuple[np.ndarray, float]],
    step: Callable[[Any, int], Any],
    state: Any,
    num_simulations: int,
    score: Callable[[Node], np.ndarray] = as_it_reads,
) -> Node:
    """Args: `evaluate(state) -> (P [A], value for the player to move)`; `step(state, action) -> state`."""
    root = Node(state, evaluate(state)[0])
    for _ in range(num_simulations):
        node, path = root, []
        while True:
            action = int(score(node).argmax())
            path.append((node, action))
            below = node.children.get(action)
            if below is None:
                break
            node = below
        state = step(node.state, action)
        prior, value = evaluate(state)
        node.children[action] = Node(state, prior)
        for node, action in reversed(path):
            value = -value
            node.visits[action] += 1
            node.total[action] += value
            node.count += 1
    return root
