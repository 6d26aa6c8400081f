"""A second reference for the options of the search, written from the formulas and the documentation alone.

One game at a time, in float64 and plain Python, and nothing shared with `tests/reference.py`. Formulas:

* PUCT (Silver et al. 2017): Q + c P √max(ΣN, 1) / (1 + N), an unvisited edge counting 0.
* Walks in flight, O of them through an edge: virtual visits N + O with Q as it is (Liu et al. 2020); virtual loss
  (N Q − O) / (N + O); virtual mean, where an edge without a completed visit counts as the node's mean (Cazenave 2021).
* Gumbel search (Danihelka et al. 2022): sequential halving by g + logit + σ(q), completed by v_mix; below the root
  argmax π' − N / (1 + ΣN). In rounds: the actions of a pass are chosen in turn, the walks before them in flight.
* Graph search (D. Wu 2021): V = (U + Σ N(s, a) (r + V')) / (1 + Σ N(s, a)), edges count their own visits.

Values are for the player to move; players alternate, so a value changes its sign on the way up.
"""

import math
from typing import Any, NamedTuple

import numpy as np


class World(NamedTuple):
    """Tables of one game: states in layers, the last of which is terminal. `[M]` and `[M, A]`."""

    successor: np.ndarray
    legal: np.ndarray
    terminal: np.ndarray
    logits: np.ndarray
    value: np.ndarray
    reward: np.ndarray
    player: np.ndarray


def world(seed: int, actions: int = 5, width: int = 9, layers: int = 9) -> World:
    """A random game; different moves often lead to the same state."""
    rng, states = np.random.default_rng(seed), width * layers
    layer = np.arange(states) // width
    following = np.minimum(layer + 1, layers - 1)[:, None] * width
    legal = rng.random((states, actions)) < 0.75
    legal[np.arange(states), rng.integers(actions, size=states)] = True
    terminal = (layer == layers - 1) | ((layer > 1) & (rng.random(states) < 0.1))
    return World(
        successor=(following + rng.integers(width, size=(states, actions))).astype(np.int32),
        legal=legal,
        terminal=terminal,
        logits=rng.normal(size=(states, actions)).astype(np.float32),
        value=np.where(terminal, 0, rng.uniform(-1, 1, states)).astype(np.float32),
        reward=rng.uniform(-0.4, 0.4, (states, actions)).astype(np.float32),
        player=(layer % 2).astype(np.int32),
    )


class Node:
    """A node of a tree; in a graph, the node of a position."""

    def __init__(self, world: World, state: int, keep: int | None = None, rounded: Any = float):
        self.world, self.state, self.raw = world, state, float(world.value[state])
        self.legal = [] if world.terminal[state] else [int(a) for a in np.flatnonzero(world.legal[state])]
        best = sorted(self.legal, key=lambda a: -world.logits[state, a])
        self.legal = sorted(best[:keep]) if keep else self.legal
        self.logit = {a: float(world.logits[state, a]) for a in self.legal}
        top = max(self.logit.values(), default=0.0)
        total = sum(math.exp(x - top) for x in self.logit.values())
        self.prior = {a: float(rounded(math.exp(x - top) / total)) for a, x in self.logit.items()}
        self.visits, self.sum, self.kids, self.flight = 1, self.raw, {}, dict.fromkeys(self.legal, 0)

    @property
    def mean(self) -> float:
        return self.sum / self.visits

    def edge(self, action: int) -> tuple[int, float]:
        """Visits, and the mean return for the player to move here; 0 and 0 if unvisited."""
        kid = self.kids.get(action)
        if kid is None or kid.visits == 0:
            return 0, 0.0
        return kid.visits, float(self.world.reward[self.state, action]) - kid.mean


class Margin:
    """The least difference between the best and the second score of all choices: what rounding could turn round."""

    def __init__(self) -> None:
        self.least = math.inf

    def best(self, scores: dict[int, float]) -> int:
        order = sorted(scores, key=lambda a: (-scores[a], a))
        if len(order) > 1:
            self.least = min(self.least, scores[order[0]] - scores[order[1]])
        return order[0]


def puct(node: Node, margin: Margin, virtual: str = "", c: float = 1.25) -> int:
    """The edge that PUCT chooses, with the walks in flight."""
    seen = {}
    for action in node.legal:
        visits, q = node.edge(action)
        flight = node.flight[action]
        if virtual == "loss" and flight:
            q = (visits * q - flight) / (visits + flight)
        elif virtual == "mean" and flight and not visits:
            q = node.mean
        seen[action] = visits + flight, q
    root = math.sqrt(max(sum(n for n, _ in seen.values()), 1))
    return margin.best({a: q + c * node.prior[a] * root / (1 + n) for a, (n, q) in seen.items()})


def completed(node: Node) -> dict[int, float]:
    """σ(q) of every legal action: rescaled completed Q-values times (50 + max N) · 0.1."""
    plain = {a: node.edge(a) for a in node.legal}  # a walk in flight counts as a visit of the same mean
    edges = {a: (n + node.flight[a], q if n else node.mean) for a, (n, q) in plain.items()}
    tried = [a for a in node.legal if edges[a][0]]
    visits, weight = sum(edges[a][0] for a in tried), sum(node.prior[a] for a in tried)
    mixed = node.raw
    if tried:
        mean = sum(node.prior[a] * edges[a][1] for a in tried) / weight
        mixed = (node.raw + visits * mean) / (1 + visits)
    q = {a: edges[a][1] if edges[a][0] else mixed for a in node.legal}
    known = list(q.values()) + [mixed] * (len(node.legal) < len(node.world.legal[0]))  # illegal: as unvisited ones
    low, high = min(known), max(known)
    most = max(n for n, _ in edges.values())
    return {a: (50 + most) * 0.1 * (x - low) / max(high - low, 1e-8) for a, x in q.items()}


def gumbel_interior(node: Node, margin: Margin) -> int:
    """argmax π' − N / (1 + ΣN)."""
    score = {a: node.logit[a] + s for a, s in completed(node).items()}
    top = max(score.values())
    total = sum(math.exp(x - top) for x in score.values())
    visits = {a: node.edge(a)[0] for a in node.legal}
    return margin.best(
        {a: math.exp(score[a] - top) / total - visits[a] / (1 + sum(visits.values())) for a in node.legal}
    )


def walk(root: Node, choose: Any, first: int | None = None, **how: Any) -> list[tuple[Node, int]]:
    """From the root to a new node, or to a node that cannot grow: the edges passed; new nodes are made on the way."""
    path, node = [], root
    while node.legal and node.visits:
        action = first if first is not None and not path else choose(node)
        path.append((node, action))
        if action not in node.kids:
            kid = node.kids[action] = Node(node.world, int(node.world.successor[node.state, action]), **how)
            kid.visits, kid.sum = 0, 0.0
            return path
        node = node.kids[action]
    return path


def take_in(root: Node, path: list[tuple[Node, int]]) -> None:
    """Backup: every node passed takes in the return from there."""
    end = path[-1][0].kids[path[-1][1]] if path else root
    value = end.raw
    end.visits, end.sum = end.visits + 1, end.sum + value
    for node, action in reversed(path):
        value = float(node.world.reward[node.state, action]) - value
        node.visits, node.sum = node.visits + 1, node.sum + value


def search(world: World, state: int, simulations: int, lanes: int = 1, virtual: str = "", decided: bool = False, **how):
    """PUCT, sequential or with K lanes. Returns the root, the margin and how many simulations were made."""
    root, margin, made = Node(world, state, **how), Margin(), 0
    while made < simulations:
        if decided:
            first, second = (
                sorted((root.edge(a)[0] for a in root.legal), reverse=True)[:2] if len(root.legal) > 1 else (0, 0)
            )
            if len(root.legal) == 1:
                first, second = root.edge(root.legal[0])[0], 0
            if first - second > simulations - made:
                break
        paths = []
        for _ in range(lanes):
            paths.append(walk(root, lambda node: puct(node, margin, virtual), **how))
            for node, action in paths[-1]:
                node.flight[action] += 1
        for path in paths:
            for node, action in path:
                node.flight[action] -= 1
        for path in paths:
            take_in(root, path)
        made += lanes
    return root, margin, made


def passes(considered: int, simulations: int) -> list[int]:
    """The sizes of the fields of sequential halving, pass after pass."""
    sizes, field, levels = [], considered, max(1, math.ceil(math.log2(max(considered, 2))))
    while sum(sizes) < simulations:
        sizes += [field] * max(1, simulations // (levels * field))
        field = max(2, field // 2) if considered > 1 else 1
    while sum(sizes) > simulations:
        over = sum(sizes) - simulations
        sizes[-1] -= min(over, sizes[-1])
        sizes = [size for size in sizes if size]
    return sizes


def search_in_rounds(world: World, state: int, simulations: int, considered: int):
    """Gumbel search without noise, a pass at a time."""
    root, margin = Node(world, state), Margin()
    for size in passes(min(considered, len(root.legal)), simulations):
        before = sorted((root.edge(a)[0] for a in root.legal), reverse=True)
        level, field = before[size - 1], []
        for _ in range(size):  # with walks in flight as virtual visits of the same mean
            rated = completed(root)
            left = {a: root.logit[a] + rated[a] for a in root.legal if a not in field and root.edge(a)[0] == level}
            field.append(margin.best(left))
            root.flight[field[-1]] += 1
        root.flight = dict.fromkeys(root.legal, 0)
        for path in [walk(root, lambda node: gumbel_interior(node, margin), first=a) for a in field]:
            take_in(root, path)
    return root, margin


class Position(Node):
    """A node of a graph: its value is computed anew from its edges, which count their own visits."""

    def __init__(self, world: World, state: int):
        super().__init__(world, state)
        self.edge_visits, self.v = dict.fromkeys(self.legal, 0), self.raw
        self.choice: int | None = None

    def edge(self, action: int) -> tuple[int, float]:
        visits = self.edge_visits[action]
        if not visits:
            return 0, 0.0
        return visits, float(self.world.reward[self.state, action]) - self.kids[action].v


def search_graph(world: World, state: int, simulations: int):
    """PUCT in a graph: a walk ends where it makes an edge; from there upwards positions are valued and choose anew."""
    root, margin = Position(world, state), Margin()
    known = {state: root}
    root.choice = puct(root, margin) if root.legal else None
    for _ in range(simulations):
        path, node = [], root
        while node.legal:
            action = node.choice
            path.append((node, action))
            if action not in node.kids:
                below = int(world.successor[node.state, action])
                fresh = below not in known
                node.kids[action] = known.setdefault(below, Position(world, below))
                if fresh and known[below].legal:
                    known[below].choice = puct(known[below], margin)
                break
            node = node.kids[action]
        for node, action in path:
            node.edge_visits[action] += 1
        end = [path[-1][0].kids[path[-1][1]]] if path else []
        for node in end + [node for node, _ in reversed(path)]:  # a position where a walk ends is up to date, too
            edges = {a: node.edge(a) for a in node.legal}
            node.v = (node.raw + sum(n * q for n, q in edges.values())) / (1 + sum(n for n, _ in edges.values()))
            node.choice = puct(node, margin) if node.legal else None
    return root, margin, known


def visits_below(root: Node) -> list[int]:
    """Visits of all nodes of a tree, sorted."""
    found, left = [], [root]
    while left:
        node = left.pop()
        found.append(node.visits)
        left += node.kids.values()
    return sorted(found)
