"""The solver beside a reference: every visit, value and bound of the root.

Two-sided bounds (Cazenave and Saffidine 2010): a node is worth at least the best of its edges' lower bounds, at most
the best of their upper ones; an unvisited edge may be worth anything from -1 to 1. An edge is closed where it is proven
to be worse than another, or to lose where another may not (Winands et al. 2008). At a node whose bounds meet, past
visits are re-valued, and the difference goes up the path (Leela Chess Zero's sticky endgames).
"""

import math
from typing import Any

import jax
import numpy as np
import pytest

import jaxzero as jz
from tests.independent import plain_search as plain
from tests.independent import test_options as options

GAMES, SIMULATIONS, NEAR = 64, 60, 2e-5


def world(seed: int) -> plain.World:
    """Ends soon; a win, a draw or a loss is paid at the end."""
    found, rng = plain.world(seed, width=6, layers=6), np.random.default_rng(seed + 10_000)
    layer = np.arange(len(found.terminal)) // 6
    terminal = found.terminal | ((layer > 0) & (rng.random(len(layer)) < 0.35))
    paid = rng.integers(-1, 2, found.reward.shape)
    reward = np.where(terminal[found.successor], paid, 0).astype(np.float32)
    return found._replace(terminal=terminal, reward=reward, value=np.where(terminal, 0, found.value))


class Node(plain.Node):
    """A node with bounds, for the player to move."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.low, self.high = (-1.0, 1.0) if self.legal else (0.0, 0.0)

    def bounds(self, action: int) -> tuple[float, float]:
        """Of an edge."""
        kid = self.kids.get(action)
        if kid is None:
            return -1.0, 1.0
        reward = float(self.world.reward[self.state, action])
        return reward - kid.high, reward - kid.low

    def open(self) -> list[int]:
        """The edges that are not proven to be worse than another."""
        edges = {a: self.bounds(a) for a in self.legal}
        low, high = (max(pair[i] for pair in edges.values()) for i in (0, 1))
        closed = {a for a, (_, h) in edges.items() if h < low or (h <= -1 < high)}
        if low >= high:
            closed |= {a for a, (x, _) in edges.items() if x < low}
        return [a for a in self.legal if a not in closed]


def choose(node: Node, margin: plain.Margin) -> int:
    edges = {a: node.edge(a) for a in node.legal}
    root = math.sqrt(max(sum(n for n, _ in edges.values()), 1))
    return margin.best({a: edges[a][1] + 1.25 * node.prior[a] * root / (1 + edges[a][0]) for a in node.open()})


def search(world: plain.World) -> tuple[Node, plain.Margin]:
    root, margin = Node(world, 0), plain.Margin()
    for _ in range(SIMULATIONS):
        path, node, ret = [], root, None
        while node.legal:
            action = choose(node, margin)
            path.append((node, action))
            if action not in node.kids:
                kid = node.kids[action] = Node(world, int(world.successor[node.state, action]))
                kid.visits, kid.sum, node = 0, 0.0, kid
                break
            node = node.kids[action]
        for above, _ in reversed(path):  # what is proven
            edges = [above.bounds(a) for a in above.legal]
            above.low, above.high = (max(pair[i] for pair in edges) for i in (0, 1))
        ret = node.raw
        for here, action in [(node, None), *reversed(path)]:
            if action is not None:
                ret = float(world.reward[here.state, action]) - ret
            if here.low == here.high:
                ret = here.low * (here.visits + 1) - here.sum
            here.visits, here.sum = here.visits + 1, here.sum + ret
    return root, margin


@pytest.mark.slow
@pytest.mark.parametrize("seed", options.SEEDS)
def test_trees(seed):
    worlds, same, solved = [world(1000 * seed + i) for i in range(GAMES)], 0, 0
    policy = jz.alphazero(options.MODEL, SIMULATIONS, rule=jz.avoid_proven(jz.puct()), **options.QUIET)
    start = np.arange(GAMES, dtype=np.int32) * len(worlds[0].terminal)
    out = jax.jit(policy)(options.tables(worlds), options.KEYS, start)
    for game, one in enumerate(worlds):
        root, margin = search(one)
        if not options.compare(out, game, root, margin):
            continue
        same += 1
        bounds = np.asarray(jz.options.bounds(out.tree))[game]
        assert bounds.tolist() == [root.low, root.high]
        solved += root.low == root.high
    print(f"solver: {same} of {GAMES} the same, {solved} solved")
    assert same >= 0.9 * GAMES and solved > 4
