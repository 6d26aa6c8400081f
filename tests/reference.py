"""A slow, obviously right tree search for one game: what the batched one must equal.

Plain Python floats, one object per node, recursion; nothing is remembered that can be computed again. The model is a
table (`worlds.pick(world, game)`), a rule is a function from a node to one score per action.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.worlds import World


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
    discount: float = 1.0  # of the same edge; negative where `value` is seen by the opponent of who took it
    children: dict[int, "Node"] = field(default_factory=dict)
    visits: int = 1
    value: float | np.ndarray = 0.0  # the mean of all returns from here
    only_children: bool = False  # childless edges are out of question: see `search`
    prior: list[float] | None = None  # in place of the softmax of the logits: a root's, with noise
    overflows: int = 0  # at the root: walks that wanted to make a node and found no room
    margin: float = math.inf  # smallest difference > 0 between best and second best score in any choice made here


Scores = list[float]
Rule = Callable[[Node, int], Scores]  # (node, number of simulations done so far) -> a score per action
Transform = Callable[[Node], list[float]]  # Q as the rules want it

NEVER = -math.inf

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
) -> Node:
    """Grows a tree from `state`; answers its root.

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
    """
    root = _node(world, state)
    root.prior = root_prior
    if world.root_legal is not None:
        root.legal = world.root_legal.tolist()

    def is_full(simulations: int) -> bool:
        """Whether there is no place left after so many simulations."""
        return capacity is not None and simulations + 1 >= capacity

    def walk(node: Node, depth: int, simulation: int) -> float | np.ndarray:
        """Walks on from `node`; answers the return, as `node`'s values are meant."""
        action = None
        if not node.terminal and depth != max_depth:
            action = best(node, (root_rule or rule) if node is root else rule, simulation)

        if depth == max_depth:
            result = node.value
        elif action is None or (action not in node.children and is_full(simulation)):
            result = node.raw_value
            root.overflows += is_full(simulation) and not node.terminal and any(node.legal)
        elif action in node.children:
            child = node.children[action]
            result = child.reward + child.discount * walk(child, depth + 1, simulation)
        else:
            child = node.children[action] = _child(world, node, action)
            result = child.reward + child.discount * child.raw_value

        node.value = (node.value * node.visits + result) / (node.visits + 1)
        node.visits += 1
        node.only_children = is_full(simulation + 1)
        return result

    for simulation in range(num_simulations):
        walk(root, 0, simulation)
    return root


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
    """What is due to each outcome of a chance node: p / (N + 1/2), Webster's method."""
    return [p / (n + 0.5) for p, n in zip(priors(node), visits(node))]


def _open_actions(node: Node) -> list[int]:
    return [a for a, legal in enumerate(node.legal) if legal and (a in node.children or not node.only_children)]


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


def _child(world: World, parent: Node, action: int) -> Node:
    child = _node(world, int(world.successor[parent.state, action]))
    child.reward = _number(world.reward[parent.state, action])
    discount = float(world.discount[parent.state, action])
    one_value_per_player = np.ndim(child.raw_value) == 1
    keeps_sign = one_value_per_player or child.to_play == parent.to_play
    child.discount = discount if keeps_sign else -discount
    return child


def _number(x: np.ndarray) -> float | np.ndarray:
    return float(x) if np.ndim(x) == 0 else np.asarray(x, np.float64)


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
    return node.prior or probabilities(node.logits, node.legal)


def _mine(node: Node, value: float | np.ndarray) -> float:
    return float(value if np.ndim(value) == 0 else value[node.to_play])


# --- Q transforms ----------------------------------------------------------------------------------------------------


def raw(first_play: float = 0.0) -> Transform:
    """Q as it is; `first_play` for actions not taken yet."""
    return lambda node: [q if n else first_play for q, n in zip(qvalues(node), visits(node))]


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
            (q + 1) / 2 + bonus(node.visits, n) if n else 1e6 + x
            for q, n, x in zip(qvalues(node), visits(node), node.logits)
        ]

    return rule


def gumbel_interior(q: Transform = completed_by_mix_value()) -> Rule:
    """pi' - N / (1 + sum N): visits in proportion to the improved policy (Danihelka et al. 2022, equation 14)."""

    def rule(node: Node, simulation: int) -> Scores:
        ns = visits(node)
        return [p - n / (1 + sum(ns)) for p, n in zip(improved_policy(node, q), ns)]

    return rule


def gumbel_root(
    gumbel: list[float], num_simulations: int, max_considered: int = 16, q: Transform = completed_by_mix_value()
) -> Rule:
    """Sequential halving: among the actions with the visits the schedule asks for, g + logits + sigma(Q).

    Simulations beyond those it was planned for go on with the last entry of the schedule. Where no action has the
    visits asked for, the next higher count that some action has is meant; where there is none, the highest.
    """

    def rule(node: Node, simulation: int) -> Scores:
        schedule = halving_schedule(min(max_considered, sum(node.legal)), num_simulations)
        return _considered_scores(node, gumbel, q, schedule[min(simulation, num_simulations - 1)])

    return rule


def halving_schedule(num_considered: int, num_simulations: int) -> list[int]:
    """How many visits the action taken next must have, for every simulation."""
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


def _considered_scores(node: Node, gumbel: list[float], q: Transform, considered_visits: int) -> Scores:
    top = max(x for x, ok in zip(node.logits, node.legal) if ok)
    counts = [visits(node)[a] for a in _open_actions(node)]
    wanted = min((n for n in counts if n >= considered_visits), default=max(counts))
    return [
        max(-1e9, g + x - top + q_) if n == wanted else NEVER
        for g, x, q_, n in zip(gumbel, node.logits, q(node), visits(node))
    ]


# --- what a search answers -------------------------------------------------------------------------------------------


def improved_policy(node: Node, q: Transform = completed_by_mix_value()) -> list[float]:
    """pi' = softmax(logits + sigma(Q)) over the legal actions (Danihelka et al. 2022, equation 11)."""
    return probabilities([x + q_ for x, q_ in zip(node.logits, q(node))], node.legal)


def gumbel_action(root: Node, gumbel: list[float], q: Transform = completed_by_mix_value()) -> int:
    """The best g + logits + sigma(Q) among the most visited actions."""
    most = max(n for n, ok in zip(visits(root), root.legal) if ok)
    scores = _considered_scores(root, gumbel, q, most)
    return max((a for a, ok in enumerate(root.legal) if ok), key=lambda a: scores[a])


def principal_variation(root: Node) -> list[int]:
    """The most visited child (ties: the lowest action), and so on."""
    if not root.children:
        return []
    action = max(sorted(root.children), key=lambda a: root.children[a].visits)
    return [action, *principal_variation(root.children[action])]


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
    """What a state of a finite game is worth if everyone plays best: expectimax, or max^n (Luckhardt and Irani 1986).

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
    """What an action is worth, for the player who takes it, or one entry per player."""
    child = _child(world, _node(world, state), action)
    return child.reward + child.discount * solve(world, child.state)
