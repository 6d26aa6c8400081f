"""A slow, obviously right tree search for one game, which the batched one must equal.

Plain Python floats, one object per node, recursion; nothing is remembered that can be computed again. The model is a
table (`worlds.pick(world, game)`), a rule is a function from a node to one score per action.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from tests.worlds import World

NEVER = -math.inf


@dataclass(eq=False)
class Node:
    """A state reached by a sequence of actions. Values are for the player to move here (or one entry per player)."""

    state: int
    logits: list[float]
    legal: list[bool]
    terminal: bool
    chance: bool  # an outcome is taken here, not an action
    to_play: int
    raw_value: float | np.ndarray
    reward: float | np.ndarray = 0.0  # of the edge that led here, to the player who took it (or to every player)
    discount: float = 1.0  # of the same edge; negative where `value` is for the opponent of the player who took it
    children: dict[int, "Node"] = field(default_factory=dict)
    visits: int = 1
    value: float | np.ndarray = 0.0  # the mean of all returns from here
    in_flight: int = 0  # walks that wait for their evaluation: see `search_in_lanes`
    only_children: bool = False  # edges without children are not considered: see `search`
    prior: list[float] | None = None  # in place of the softmax of the logits: a root's, with noise
    fresh: bool = False  # at the root: nothing was kept of an earlier tree
    overflows: int = 0  # at the root: walks that wanted to make a node and found no room
    lower: float = NEVER  # what the value is proven to be, at least and at most; kept by a search with `returns`
    upper: float = math.inf
    edge_bounds: tuple[float, float] | None = None  # of the edge that led here, for a copy that a rule looks at
    closed: frozenset[int] = frozenset()  # actions that are proven worse than another, for a rule of avoid_proven
    margin: float = math.inf  # smallest difference > 0 between best and second best score in any choice made here


Scores = list[float]
Rule = Callable[[Node, int], Scores]  # (node, number of simulations done so far) -> a score per action
Transform = Callable[[Node], list[float]]  # Q as the rules use it

# --- the search ------------------------------------------------------------------------------------------------------


def search(
    world: World,
    state: int,
    rule: Rule,
    root_rule: Rule | None = None,
    num_simulations: int = 1,
    *,
    max_depth: int | None = None,
    capacity: int | None = None,
    root_prior: list[float] | None = None,
    root: Node | None = None,
    returns: tuple[float, float] | None = None,
) -> Node:
    """Grows a tree from `state`, or continues the subtree of `root`; returns its root.

    A walk follows the best-scored legal action (ties: the lowest) until it
      * wants an edge without a child: the child is made, and its raw value backed up;
      * meets a node that is terminal or has no legal action: its raw value is backed up once more;
      * is `max_depth` edges long: the value its last node has by now is backed up;
      * wants an edge without a child and the tree is full: the raw value of the node is backed up once more. A node
        that was passed (scored) since the tree became full considers edges with children only, and walks end there in
        the same way if it has none. Every walk takes the place of one node, whether it makes one or not.

    Args:
        world: the table of one game.
        state: where to start.
        rule: scores the edges of a node.
        root_rule: the same for the root; default: `rule`.
        num_simulations: walks from the root.
        max_depth: edges between the root and the deepest node.
        capacity: places for nodes, the root's included.
        root_prior: replaces the root's prior probabilities.
        root: a node of an earlier tree, that was moved to. Only walks that make a node then take the place of one.
        returns: the least and the greatest return there is: values are proven. A walk whose end is known tells the
            nodes above, up to where it proves nothing new; a node whose value is proven takes in what makes its mean
            that.
    """
    moved_to = root is not None
    root = root or planted(world, state, returns)
    root.prior = root_prior
    if world.root_legal is not None:
        root.legal = world.root_legal.tolist()

    def is_full(simulations: int) -> bool:
        """Whether there is no place left after so many simulations."""
        used = len(by_path(root)) if moved_to else simulations + 1
        return capacity is not None and used >= capacity

    root.only_children = is_full(0)

    def walk(node: Node, depth: int, simulation: int) -> tuple[float | np.ndarray, bool]:
        """Walks on from `node`; gives the return, in the view of `node`'s values, and whether bounds got closer."""
        action, news = None, False
        if not node.terminal and depth != max_depth:
            action = best(node, (root_rule or rule) if node is root else rule, simulation)

        if depth == max_depth:
            result = node.value
        elif action is None or (action not in node.children and is_full(simulation)):
            result = node.raw_value
            root.overflows += is_full(simulation) and not node.terminal and any(node.legal)
        elif action in node.children:
            child = node.children[action]
            result, news = walk(child, depth + 1, simulation)
            result = child.reward + child.discount * result
            news = news and _tighten(node, returns)
        else:
            child = node.children[action] = _child(world, node, action, returns)
            result = child.reward + child.discount * child.raw_value
            news = child.lower == child.upper and _tighten(node, returns)
        if action is None or action not in node.children or depth == max_depth:  # the walk ended here
            news = node.lower == node.upper
        if node.lower == node.upper:
            result = node.lower * (node.visits + 1) - node.value * node.visits

        node.value = (node.value * node.visits + result) / (node.visits + 1)
        node.visits += 1
        node.only_children = is_full(simulation + 1)
        return result, news

    for simulation in range(num_simulations):
        walk(root, 0, simulation)
    return root


Virtual = Callable[[int, float, int, "Node"], tuple[int, float]]  # N, Q, walks in flight, node above -> N, Q


def search_in_lanes(
    world: World,
    state: int,
    rule: Rule,
    root_rule: Rule | None,
    num_simulations: int,
    lanes: int,
    virtual: Virtual,
    *,
    max_depth: int | None = None,
    capacity: int | None = None,
    root_prior: list[float] | None = None,
    returns: tuple[float, float] | None = None,
) -> Node:
    """As `search`, but walks in groups of `lanes`: the values of a group go up when all of it have walked.

    A walk takes the walks of its group into account as visits in flight, as `virtual` says. A new node is not evaluated
    before all have walked; a walk that comes to one ends there.
    """
    root = planted(world, state, returns)
    root.prior = root_prior
    margins = []

    def is_full(simulations: int) -> bool:
        return capacity is not None and simulations + 1 >= capacity

    def walk(simulation: int) -> list[Node]:
        path = [root]
        while not (path[-1].terminal or len(path) - 1 == max_depth or path[-1].visits == 0):
            node = path[-1]
            seen = _with_walks_in_flight(node, virtual, returns)
            action = best(seen, (root_rule or rule) if node is root else rule, simulation)
            margins.append(seen.margin)
            if action in node.children:
                path.append(node.children[action])
            elif action is None or is_full(simulation):
                root.overflows += is_full(simulation) and any(node.legal)
                break
            else:
                node.children[action] = _child(world, node, action, None)
                node.children[action].visits = 0
                if returns is not None:
                    node.children[action].lower, node.children[action].upper = returns
                path.append(node.children[action])
        for node in path:
            node.in_flight, node.only_children = node.in_flight + 1, is_full(simulation + 1)
        return path

    root.only_children = is_full(0)
    for first in range(0, num_simulations, lanes):
        walks = [walk(first + lane) for lane in range(lanes)]
        for node in by_path(root).values():
            node.in_flight = 0
            if node.visits == 0:
                _bounded(node, returns)
        for path in walks:
            cut = len(path) - 1 == max_depth and path[-1].visits > 0
            _carry_up(path, path[-1].value if cut else path[-1].raw_value, returns)
            for node in path:
                node.only_children = is_full(first + lanes)
    root.margin = min([root.margin, *margins])
    return root


def _carry_up(path: list[Node], result: float | np.ndarray, returns: tuple[float, float] | None) -> None:
    news = path[-1].lower == path[-1].upper
    for node in reversed(path):
        news = news and (node is path[-1] or _tighten(node, returns))
        if node.lower == node.upper:
            result = node.lower * (node.visits + 1) - node.value * node.visits
        node.value = (node.value * node.visits + result) / (node.visits + 1)
        node.visits += 1
        result = node.reward + node.discount * result


def _with_walks_in_flight(node: Node, virtual: Virtual, returns: tuple[float, float] | None) -> Node:
    """A copy of the node for a rule to look at, where walks in flight look like visits."""
    children, more = {}, 0
    for action, child in node.children.items():
        q = _mine(node, child.reward + child.discount * child.value) if child.visits else 0.0
        n, seen = virtual(child.visits, q, child.in_flight, node) if child.in_flight else (child.visits, q)
        reward = seen if np.ndim(child.value) == 0 else np.full(np.shape(child.value), seen)
        children[action] = replace(child, visits=n, reward=reward, discount=0.0)
        more += n - child.visits
        if returns is not None:  # proven values stay
            children[action].edge_bounds = edge_bounds(node, action, returns) if child.visits else returns
    return replace(node, children=children, visits=node.visits + more, margin=math.inf)


def virtual_visits(first_play: float = 0.0) -> Virtual:
    return lambda n, q, walks, node: (n + walks, q if n else first_play)


def virtual_mean() -> Virtual:
    return lambda n, q, walks, node: (n + walks, q if n else _mine(node, node.value))


def virtual_loss(weight: int = 1, loss: float = -1.0) -> Virtual:
    return lambda n, q, walks, node: (n + weight * walks, (n * q + loss * weight * walks) / (n + weight * walks))


def best(node: Node, rule: Rule, simulation: int) -> int | None:
    """The action with the highest score among those that may be taken, the lowest if there are several."""
    actions = _open_actions(node)
    if not actions:
        return None
    scores = by_probability(node) if node.chance else rule(node, simulation)
    action = max(actions, key=lambda a: scores[a])  # max answers the first
    gaps = [scores[action] - scores[a] for a in actions if scores[a] < scores[action]]
    if node.chance:  # 3/6 to one visit and 1/6 to none tie exactly or not, as rounding has it
        gaps += [0.0 for a in actions if scores[a] == scores[action] and visits(node)[a] != visits(node)[action]]
    node.margin = min([node.margin, *gaps])
    return action


def by_probability(node: Node) -> Scores:
    """The priority of each outcome of a chance node: p / (N + 1/2), Webster's method."""
    return [p / (n + 0.5) for p, n in zip(priors(node), visits(node))]


def _open_actions(node: Node) -> list[int]:
    only_children = node.only_children and node.children  # without children, it still wants what it cannot have
    return [a for a, legal in enumerate(node.legal) if legal and (a in node.children or not only_children)]


def planted(world: World, state: int, returns: tuple[float, float] | None = None) -> Node:
    """A root without children."""
    return _bounded(_node(world, state), returns)


def _bounded(node: Node, returns: tuple[float, float] | None) -> Node:
    """A new node with its bounds: exact at the end of a game, otherwise open."""
    if returns is not None:
        node.lower, node.upper = (0.0, 0.0) if node.terminal else returns
    return node


def _tighten(node: Node, returns: tuple[float, float] | None) -> bool:
    """Updates bounds from those of the edges; returns whether they became closer."""
    if node.chance:
        return False
    before, (least, greatest) = (node.lower, node.upper), returns
    edges = [edge_bounds(node, a, returns) for a, legal in enumerate(node.legal) if legal]
    every = all(a in node.children for a, legal in enumerate(node.legal) if legal)
    node.lower = max(node.lower, least, *(low for low, _ in edges))
    node.upper = min(node.upper, greatest, max(high for _, high in edges) if every else greatest)
    return (node.lower, node.upper) != before


def edge_bounds(node: Node, action: int, returns: tuple[float, float]) -> tuple[float, float]:
    """What an action is proven to return, at least and at most."""
    if action not in node.children:
        return returns
    child = node.children[action]
    if child.edge_bounds is not None:
        return child.edge_bounds
    ends = child.discount * child.lower, child.discount * child.upper
    return child.reward + min(ends), child.reward + max(ends)


def _node(world: World, state: int) -> Node:
    terminal = bool(world.terminal[state])
    value = _number(world.value[state])
    raw_value = value - value if terminal else value  # the outcome was the reward on the way here
    to_play = 0 if world.to_play is None else int(world.to_play[state])
    chance = world.chance is not None and bool(world.chance[state]) and not terminal
    logits, legal = world.logits[state].tolist(), world.legal[state].tolist()
    if chance:
        legal = [ok and x > NEVER for ok, x in zip(legal, logits)]
    return Node(state, logits, legal, terminal, chance, to_play, raw_value, value=raw_value)


def _child(world: World, parent: Node, action: int, returns: tuple[float, float] | None = None) -> Node:
    child = _bounded(_node(world, int(world.successor[parent.state, action])), returns)
    child.reward = _number(world.reward[parent.state, action])
    discount = float(world.discount[parent.state, action])
    one_value_per_player = np.ndim(child.raw_value) == 1
    keeps_sign = one_value_per_player or child.to_play == parent.to_play
    child.discount = discount if keeps_sign else -discount
    return child


def _number(x: np.ndarray) -> float | np.ndarray:
    return float(x) if np.ndim(x) == 0 else np.asarray(x, np.float64)


# --- graph search ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Edge:
    """An action that was taken at a position, and what it led to."""

    to: "Position"
    reward: float | np.ndarray
    discount: float
    visits: int = 0


@dataclass(eq=False)
class Position:
    """A state after a number of moves, however it was reached. `node` has its facts and value, but no children."""

    node: Node
    edges: dict[int, Edge] = field(default_factory=dict)
    choice: int | None = None  # the rule's choice when the position was last passed

    def seen(self) -> Node:
        """The node for a rule to look at: with the edges' visits, and the current values of the positions below."""
        children = {
            a: replace(e.to.node, visits=e.visits, reward=e.reward, discount=e.discount) for a, e in self.edges.items()
        }
        return replace(self.node, children=children, visits=1 + sum(e.visits for e in self.edges.values()))


def graph_search(
    world: World,
    state: int,
    rule: Rule,
    root_rule: Rule | None,
    num_simulations: int,
    *,
    max_depth: int | None = None,
    capacity: int | None = None,
    root_prior: list[float] | None = None,
    returns: tuple[float, float] | None = None,
) -> Position:
    """As `search`, but equal states after equally many moves are one position, whose value all ways there share.

    A position's value is that of its edges, by their visits, and of its own evaluation; taken anew when it is passed.
    """
    root = Position(planted(world, state, returns))
    root.node.prior = root_prior
    known = {(state, 0): root}

    def is_full(simulations: int) -> bool:
        return capacity is not None and simulations + 1 >= capacity

    def choose(at: Position, simulation: int) -> None:
        at.node.only_children = is_full(simulation)
        seen, of_root = at.seen(), at is root
        at.choice = best(seen, (root_rule or rule) if of_root else rule, simulation)
        root.node.margin = min(root.node.margin, seen.margin)

    choose(root, 0)
    for simulation in range(num_simulations):
        path = [root]
        while not (path[-1].node.terminal or len(path) - 1 == max_depth):
            at, action = path[-1], path[-1].choice
            if action in at.edges:
                path.append(at.edges[action].to)
            elif action is None or is_full(simulation):
                root.node.overflows += is_full(simulation) and any(at.node.legal)
                break
            else:
                child = _child(world, at.node, action, returns)
                to = known.setdefault((child.state, len(path)), Position(child))
                if not to.edges and to.choice is None and not to.node.terminal:
                    choose(to, simulation + 1)
                at.edges[action] = Edge(to, child.reward, child.discount)
                path.append(to)
                break
        for at, below in zip([*reversed(path)], [None, *reversed(path)]):
            if below is not None:
                at.edges[at.choice].visits += 1
            _take_in(at, returns)
            if at is not root and not at.node.terminal:
                choose(at, simulation + 1)
        choose(root, simulation + 1)
    return root


def _take_in(at: Position, returns: tuple[float, float] | None) -> None:
    results = [e.visits * (e.reward + e.discount * e.to.node.value) for e in at.edges.values()]
    at.node.value = (at.node.raw_value + sum(results)) / (1 + sum(e.visits for e in at.edges.values()))
    if returns is not None and not at.node.terminal and any(at.node.legal):
        seen = at.seen()
        _tighten(seen, returns)
        at.node.lower, at.node.upper = seen.lower, seen.upper
        if seen.lower == seen.upper:
            at.node.value = seen.lower


# --- what a node knows about its edges -------------------------------------------------------------------------------


def visits(node: Node) -> list[int]:
    """N(s, a)."""
    return [node.children[a].visits if a in node.children else 0 for a in range(len(node.legal))]


def qvalues(node: Node) -> list[float]:
    """Q(s, a) for the player to move at s; 0 for actions not taken yet."""
    return [
        _mine(node, c.reward + c.discount * c.value) if (c := node.children.get(a)) else 0.0
        for a in range(len(node.legal))
    ]


def probabilities(logits: list[float], legal: list[bool]) -> list[float]:
    """Softmax over the legal actions, 0 elsewhere."""
    if not any(legal):
        return [0.0] * len(legal)
    top = max(x for x, ok in zip(logits, legal) if ok)
    weights = [math.exp(x - top) if ok else 0.0 for x, ok in zip(logits, legal)]
    return [w / sum(weights) for w in weights]


def priors(node: Node) -> list[float]:
    """P(s, a)."""
    found = node.prior or probabilities(node.logits, node.legal)
    return [0.0 if a in node.closed else p for a, p in enumerate(found)]


def _mine(node: Node, value: float | np.ndarray) -> float:
    return float(value if np.ndim(value) == 0 else value[node.to_play])


# --- Q transforms ----------------------------------------------------------------------------------------------------


FirstPlay = Callable[[Node], float]  # what an action not taken yet counts as


def raw(first_play: float | FirstPlay = 0.0) -> Transform:
    """Q as it is; `first_play` for actions not taken yet."""

    def transform(node: Node) -> list[float]:
        missing = first_play(node) if callable(first_play) else first_play
        return [q if n else missing for q, n in zip(qvalues(node), visits(node))]

    return transform


def parent_raw_value(node: Node) -> float:
    """The network's value of the node."""
    return _mine(node, node.raw_value)


def parent_value(node: Node) -> float:
    """The search's value of the node so far."""
    return _mine(node, node.value)


def reduced_parent(reduction: float = 0.2, parent: FirstPlay = parent_value) -> FirstPlay:
    """KataGo: V - r sqrt(sum of the priors of the actions taken)."""
    return lambda node: parent(node) - reduction * math.sqrt(sum(p for p, n in zip(priors(node), visits(node)) if n))


def mean_of_visited(extra: float | FirstPlay | None = None) -> FirstPlay:
    """The mean Q of the actions taken, with one value more; without that and without an action: the raw value."""

    def first_play(node: Node) -> float:
        taken = [q for q, n in zip(qvalues(node), visits(node)) if n]
        if extra is not None:
            taken.append(extra(node) if callable(extra) else extra)
        return sum(taken) / len(taken) if taken else parent_raw_value(node)

    return first_play


def virtual_zero() -> Transform:
    """W/(1+N), the AlphaGo-style text: every action has been taken once with value 0."""
    return lambda node: [q * n / (1 + n) for q, n in zip(qvalues(node), visits(node))]


def min_max(min_value: float, max_value: float) -> Transform:
    """(Q - min) / (max - min); actions not taken yet: 0."""
    return lambda node: [
        ((q if n else min_value) - min_value) / (max_value - min_value) for q, n in zip(qvalues(node), visits(node))
    ]


def by_parent_and_siblings(epsilon: float = 1e-8) -> Transform:
    """Q scaled to [0, 1] by the extremes of V(s) and all Q(s, b); actions not taken yet: 0."""

    def transform(node: Node) -> list[float]:
        known = [q for q, n in zip(qvalues(node), visits(node)) if n] + [_mine(node, node.value)]
        low, high = min(known), max(known)
        return [((q if n else low) - low) / max(high - low, epsilon) for q, n in zip(qvalues(node), visits(node))]

    return transform


def mixed_value(node: Node) -> float:
    """v_mix: the raw value and the prior-weighted Q of the actions taken (Danihelka et al. 2022, equation 33)."""
    ns, qs = visits(node), qvalues(node)
    ps = [max(p, float(np.finfo(np.float64).tiny)) for p in priors(node)]
    taken = [a for a, n in enumerate(ns) if n]
    if not taken:
        return _mine(node, node.raw_value)
    weighted = sum(ps[a] * qs[a] for a in taken) / sum(ps[a] for a in taken)
    return (_mine(node, node.raw_value) + sum(ns) * weighted) / (1 + sum(ns))


def completed_by_mix_value(
    value_scale: float = 0.1,
    maxvisit_init: float = 50.0,
    rescale_values: bool = True,
    use_mixed_value: bool = True,
    epsilon: float = 1e-8,
) -> Transform:
    """sigma(Q): v_mix where an action was not taken, scaled to [0, 1], times (c_visit + max N) * c_scale.

    As in mctx, the extremes include illegal actions, which count as not taken.
    """

    def transform(node: Node) -> list[float]:
        missing = mixed_value(node) if use_mixed_value else _mine(node, node.raw_value)
        completed = [q if n else missing for q, n in zip(qvalues(node), visits(node))]
        if rescale_values:
            low, high = min(completed), max(completed)
            completed = [(q - low) / max(high - low, epsilon) for q in completed]
        return [(maxvisit_init + max(visits(node))) * value_scale * q for q in completed]

    return transform


# --- rules -----------------------------------------------------------------------------------------------------------


def puct(c: float = 1.25, q: Transform = raw()) -> Rule:
    """AlphaGo Zero: Q + c P sqrt(sum N) / (1 + N)."""

    def rule(node: Node, simulation: int) -> Scores:
        root = math.sqrt(max(sum(visits(node)), 1))  # 1: before the first visit the highest prior goes first
        return [q_ + c * p * root / (1 + n) for q_, p, n in zip(q(node), priors(node), visits(node))]

    return rule


def muzero_puct(pb_c_init: float = 1.25, pb_c_base: float = 19652.0, q: Transform = by_parent_and_siblings()) -> Rule:
    """MuZero, as in mctx: the factor grows with the node's visits, the node's own evaluation counted."""

    def rule(node: Node, simulation: int) -> Scores:
        c = pb_c_init + math.log((node.visits + pb_c_base + 1) / pb_c_base)
        return [q_ + c * p * math.sqrt(node.visits) / (1 + n) for q_, p, n in zip(q(node), priors(node), visits(node))]

    return rule


def forced_playouts(rule: Rule, k: float = 2.0) -> Rule:
    """Actions taken, but less than sqrt(k P sum N) times, first: the one that lacks most. Else the rule."""

    def forced(node: Node, simulation: int) -> Scores:
        ns = visits(node)
        lacks = [math.sqrt(k * (p * sum(ns))) - n for p, n in zip(priors(node), ns)]
        wanted = [lack if n and lack > 0 else NEVER for lack, n in zip(lacks, ns)]
        near = [abs(lack) for lack, n in zip(lacks, ns) if n and lack]  # an exact tie is one in any arithmetic
        node.margin = min([node.margin, *near])
        return wanted if max(wanted) > 0 else rule(node, simulation)

    return forced


def ucb1_uctk(uctk: float = 1.0) -> Rule:
    """Win rate + UCTK sqrt(ln n_parent / (5 n_child)); actions not taken yet first, by logit."""
    return _ucb1(lambda parent, child: uctk * math.sqrt(math.log(parent) / (5 * child)))


def ucb1(c_p: float = math.sqrt(2)) -> Rule:
    """Win rate + C_p sqrt(ln N(s) / N(s, a)); actions not taken yet first, by logit."""
    return _ucb1(lambda parent, child: c_p * math.sqrt(math.log(parent) / child))


def _ucb1(bonus: Callable[[int, int], float]) -> Rule:
    # N(s) is the node's visits, its own evaluation counted: at least 2 where some child has a visit.
    def rule(node: Node, simulation: int) -> Scores:
        return [
            (q + 1) / 2 + bonus(node.visits, n) if n else 1e6 + math.asinh(max(x, -1e300))  # first, however low x is
            for q, n, x in zip(qvalues(node), visits(node), node.logits)
        ]

    return rule


def avoid_proven(rule: Rule, returns: tuple[float, float]) -> Rule:
    """Never an action that is proven to be worse than another, or to lose while another may not."""

    def wrapped(node: Node, simulation: int) -> Scores:
        node.closed = frozenset(worse(node, returns, _open_actions(node)))
        return [NEVER if a in node.closed else x for a, x in enumerate(rule(node, simulation))]

    return wrapped


def worse(node: Node, returns: tuple[float, float], actions: Iterable[int]) -> set[int]:
    """The legal actions that are proven worse than another one, or to lose while another may not."""
    bounds = {a: edge_bounds(node, a, returns) for a in actions if node.legal[a]}
    low, high = (max(end) for end in zip(*bounds.values())) if bounds else returns
    return {
        a
        for a, (lower, upper) in bounds.items()
        if upper < low or (upper <= returns[0] and high > returns[0]) or (low >= high and lower < low)
    }


def gumbel_interior(q: Transform = completed_by_mix_value()) -> Rule:
    """pi' - N / (1 + sum N): visits in proportion to the improved policy (Danihelka et al. 2022, equation 14)."""

    def rule(node: Node, simulation: int) -> Scores:
        ns = visits(node)
        return [p - n / (1 + sum(ns)) for p, n in zip(improved_policy(node, q), ns)]

    return rule


def gumbel_root(
    gumbel: list[float],
    num_simulations: int,
    max_considered: int = 16,
    q: Transform = completed_by_mix_value(),
    brought: list[int] | None = None,
) -> Rule:
    """Sequential halving: among the actions with the visits the schedule asks for, g + logits + sigma(Q).

    Visits that the root's actions had before, `brought`, are not counted by the schedule.

    Simulations beyond those it was planned for go on with the last entry of the schedule. Where no action has the
    visits asked for, the next higher count that some action has is meant; where there is none, the highest.
    """

    def rule(node: Node, simulation: int) -> Scores:
        schedule = halving_schedule(min(max_considered, sum(node.legal)), num_simulations)
        return _considered_scores(node, gumbel, q, schedule[min(simulation, num_simulations - 1)], brought)

    return rule


def halving_schedule(num_considered: int, num_simulations: int) -> list[int]:
    """For every simulation, the number of visits that the next action must have."""
    if num_considered <= 1:
        return list(range(num_simulations))
    rounds = math.ceil(math.log2(num_considered))
    counts, left, schedule = [0] * num_considered, num_considered, []
    while len(schedule) < num_simulations:
        for _ in range(max(1, num_simulations // (rounds * left))):  # each one left gets one more visit
            schedule += counts[:left]
            counts[:left] = [n + 1 for n in counts[:left]]
        left = max(2, left // 2)
    return schedule[:num_simulations]


def _considered_scores(
    node: Node, gumbel: list[float], q: Transform, considered_visits: int, brought: list[int] | None = None
) -> Scores:
    top = max(x for x, ok in zip(node.logits, node.legal) if ok)
    new = [n - before for n, before in zip(visits(node), brought or [0] * len(node.legal))]
    counts = [new[a] for a in _open_actions(node) if a not in node.closed]
    wanted = min((n for n in counts if n >= considered_visits), default=max(counts))
    return [
        max(-1e9, g + x - top + q_) if n == wanted else NEVER for g, x, q_, n in zip(gumbel, node.logits, q(node), new)
    ]


# --- what a search answers -------------------------------------------------------------------------------------------


def improved_policy(node: Node, q: Transform = completed_by_mix_value()) -> list[float]:
    """pi' = softmax(logits + sigma(Q)) over the legal actions (Danihelka et al. 2022, equation 11)."""
    still_open = [ok and a not in node.closed for a, ok in enumerate(node.legal)]
    return probabilities([x + q_ for x, q_ in zip(node.logits, q(node))], still_open)


def gumbel_scores(
    root: Node, gumbel: list[float], q: Transform = completed_by_mix_value(), brought: list[int] | None = None
) -> Scores:
    """g + logits + sigma(Q) of the most visited actions, `brought` not counted."""
    most = max(n - b for n, b, ok in zip(visits(root), brought or [0] * len(root.legal), root.legal) if ok)
    return _considered_scores(root, gumbel, q, most, brought)


def gumbel_action(
    root: Node, gumbel: list[float], q: Transform = completed_by_mix_value(), brought: list[int] | None = None
) -> int:
    """The best g + logits + sigma(Q) among the most visited actions, `brought` not counted."""
    scores = gumbel_scores(root, gumbel, q, brought)
    return max((a for a, ok in enumerate(root.legal) if ok), key=lambda a: scores[a])


def is_principal_variation(line: list[int], root: Node, returns: tuple[float, float] | None, length: int) -> bool:
    """Whether each action is the most visited one of those not proven to be worse, of several one of the best value.

    As closely as floats tell values apart; of outcomes that tie the first. `length`: how many there can be.
    """
    closed = set() if returns is None or root.chance else worse(root, returns, range(len(root.legal)))
    count = {a: child.visits for a, child in root.children.items() if a not in closed}
    if not count or not length:
        return line == []
    tied = sorted(a for a in count if count[a] == max(count.values()))
    q = [0.0] * len(root.legal) if root.chance else qvalues(root)
    allowed = [a for a in tied if q[a] >= max(q[b] for b in tied) - 1e-9][: 1 if root.chance else None]
    below = line and line[0] in allowed and root.children[line[0]]
    return bool(below) and is_principal_variation(line[1:], below, returns, length - 1)


def by_path(root: Node) -> dict[tuple[int, ...], Node]:
    """All nodes, by the actions that lead to them."""
    below = {(a, *path): node for a, child in root.children.items() for path, node in by_path(child).items()}
    return {(): root, **below}


def visits_by_path(root: Node) -> dict[tuple[int, ...], int]:
    return {path: node.visits for path, node in by_path(root).items()}


def values_by_path(root: Node) -> dict[tuple[int, ...], float | np.ndarray]:
    return {path: node.value for path, node in by_path(root).items()}


def margin(root: Node) -> float:
    """The closest call of the whole search, exact ties aside: arithmetic that errs by more may choose otherwise."""
    return min(node.margin for node in by_path(root).values())


# --- exact values ----------------------------------------------------------------------------------------------------


def solve(world: World, state: int) -> float | np.ndarray:
    """The value of a state of a finite game if everyone plays best: expectimax, or max^n (Luckhardt and Irani 1986).

    For the player to move there, or one entry per player, as the values of the world are.
    """
    node = _node(world, state)
    if node.terminal or not any(node.legal):
        return node.raw_value
    worth = {a: action_value(world, state, a) for a, legal in enumerate(node.legal) if legal}
    if node.chance:
        return sum(p * worth[a] for a, p in enumerate(priors(node)) if a in worth)
    return max(worth.values(), key=lambda value: _mine(node, value))


def action_value(world: World, state: int, action: int) -> float | np.ndarray:
    """The value of an action, for the player who takes it, or one entry per player."""
    child = _child(world, _node(world, state), action)
    return child.reward + child.discount * solve(world, child.state)
