"""Leaves in parallel: several walks of one tree wait for the network together.

In each step K lanes walk down one after another, each leaving the mark of a visit that is still in flight, so that the
next lane looks elsewhere. Then one call of the model evaluates all new leaves, `[B·K]` of them, and the marks are taken
back: every lane's value goes up its path as if it had come alone.

    policy = jaxzero.alphazero(model, 800, simulate=jaxzero.parallel(8))      # 100 calls of the network per game

It helps where a call of the network costs about the same for K positions as for one: a single game, above all, on any
device, and a few games on an accelerator. It costs strength per simulation: a lane does not know yet what the lanes
before it will find. The more lanes for the fewer simulations, the more; so K is 1 unless it is asked for. With K = 1
the search is the sequential one, bit for bit. Besides, each lane's path is rated twice.

How the mark of O walks in flight changes an edge of N visits and mean Q is a function, `virtual`:

* `virtual_visits` (WU-UCT, Liu et al. 2020; Leela Chess Zero): N + O, and Q stays as it is;
* `virtual_loss` (Chaslot, Winands and van den Herik 2008; AlphaGo): N + O, as if the walks had come back lost;
* `virtual_mean` (Cazenave 2021, "Batch Monte Carlo tree search"): N + O, as if they had brought back the mean.

The last differs from the first only in an edge all of whose walks are in flight: there the node's own mean stands in.

Two lanes that want the same edge share the new node and its evaluation, and both carry its value up. A lane that ends
where the value is known (at the end of the game, in a full tree) asks nothing. The marks are kept beside the tree only
while lanes walk.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.mcts.backup import group_size
from jaxzero.mcts.choice import choose, choose_at_root, next_edge, remember
from jaxzero.mcts.expansion import ends, grow, grown_size, new_facts, write
from jaxzero.mcts.inputs import counts
from jaxzero.mcts.outputs import check_embedding, checked
from jaxzero.mcts.rows import Frontier, pack, put, take, unpack_facts, unpack_frontier, unpack_stats
from jaxzero.mcts.search import descend, finish, paired
from jaxzero.mcts.solver import new_bounds
from jaxzero.mcts.tree import NONE, Status, Tree, as_stored, rows_of
from jaxzero.types import EdgeView, Keys, Model, Params, Path, Rule, State, Step

__all__ = ["Leaves", "apply", "collect", "parallel", "virtual_loss", "virtual_mean", "virtual_visits"]

Virtual = Callable[[EdgeView], EdgeView]
Active = Callable[[Tree, Int[Array, "B"], Int[Array, ""]], Bool[Array, "B"]]  # (tree, simulations before, lane)


def virtual_visits(first_play: float = 0.0) -> Virtual:
    """Walks in flight count as visits, and do not change the mean.

    Args:
        first_play: what an edge counts as whose only walks are in flight; give the rule's own first-play value.
    """

    def virtual(view: EdgeView) -> EdgeView:
        return _with_visits(view, view.in_flight, jnp.where(view.visits > 0, view.value, first_play))

    return virtual


def virtual_mean() -> Virtual:
    """Walks in flight count as visits that brought back the mean: the edge's own, else the node's."""

    def virtual(view: EdgeView) -> EdgeView:
        return _with_visits(view, view.in_flight, jnp.where(view.visits > 0, view.value, view.node_value[..., None]))

    return virtual


def virtual_loss(weight: int = 1, loss: float = -1.0) -> Virtual:
    """Walks in flight count as so many visits each that brought back a loss.

    AlphaGo counted 3 (Silver et al. 2016), most programs count 1.

    Args:
        weight: visits that each walk counts for.
        loss: the least return of the game, for the player to move.

    Raises:
        ValueError: a weight below 1.
    """
    (weight,) = counts(weight=weight)

    def virtual(view: EdgeView) -> EdgeView:
        more = weight * jnp.asarray(view.in_flight)
        total = jnp.maximum(view.visits + more, 1)
        return _with_visits(view, more, (view.value * view.visits + loss * more) / total)

    return virtual


def _with_visits(view: EdgeView, more: Array, value: Array) -> EdgeView:
    busy = view.in_flight > 0
    return view._replace(
        visits=view.visits + more,
        value=jnp.where(busy, value, view.value),
        node_visits=view.node_visits + jnp.sum(more, -1),
    )


class Lanes(NamedTuple):
    """A `simulate` function of several simulations, which `search` counts as that many; see `parallel`.

    Attributes:
        simulations: K.
        virtual: what walks in flight change.
        active: which games walk in a lane; None: all that take part.
    """

    simulations: int
    virtual: Virtual
    active: Active | None = None

    def __call__(
        self,
        params: Params,
        keys: Keys,
        tree: Tree,
        path: Path,
        model: Model,
        rule: Rule,
        root_rule: Rule,
        max_depth: int | None = None,
    ) -> tuple[Tree, Path]:
        """Arguments and results as those of `jaxzero.simulate`."""
        tree, leaves = collect(tree, path, rule, root_rule, self.simulations, self.virtual, max_depth, self.active)
        step, state = _evaluate(params, keys, tree, leaves, model)
        return apply(tree, leaves, step, state, rule, root_rule, max_depth)


def parallel(lanes: int, virtual: Virtual | None = None) -> Lanes:
    """K leaves per game and step, evaluated in one call of the model: to be given as `simulate=parallel(8)`.

    Args:
        lanes: K; the number of simulations must be a multiple of it.
        virtual: what walks in flight change; default `virtual_visits()`.

    Raises:
        ValueError: lanes below 1.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jz.alphazero(jz.Model(root, step), 32, simulate=jz.parallel(8), act=jz.most_visited)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(4))
    >>> out.action.tolist(), out.info.summary.visits.sum(-1).tolist()
    ([2, 2, 2, 2], [32, 32, 32, 32])
    """
    (lanes,) = counts(lanes=lanes)
    virtual = virtual_visits() if virtual is None else virtual
    if not callable(virtual):
        raise ValueError(f"parallel(virtual={virtual!r}): give virtual_visits(), virtual_loss() or virtual_mean().")
    return Lanes(lanes, virtual)


class Leaves(NamedTuple):
    """What K lanes found, in the order in which they walked.

    Attributes:
        paths: their walks, each array with an axis K in front.
        node: the new nodes, which wait for their evaluation; N: the lane asks nothing.
        parent: the nodes above.
        action: the edges that lead there.
    """

    paths: Path
    node: Int[Array, "K B"]
    parent: Int[Array, "K B"]
    action: Int[Array, "K B"]


def collect(
    tree: Tree,
    path: Path,
    rule: Rule,
    root_rule: Rule,
    lanes: int,
    virtual: Virtual,
    max_depth: int | None = None,
    active: Active | None = None,
) -> tuple[Tree, Leaves]:
    """Walks K times, and makes the nodes where the walks end, not evaluated yet.

    What it returns is to be handed to `apply`; nothing else can be done with such a tree.

    Args:
        tree: the trees; their roots have chosen, see `enter`.
        path: memory for walks.
        rule: how interior nodes choose.
        root_rule: how the root chooses.
        lanes: K.
        virtual: what walks in flight change.
        max_depth: how many edges below the root a walk may go.
        active: which games walk in a lane; None: all that take part.
    """
    busy, busy_root = (_in_flight(r, virtual) for r in (rule, paired(rule, root_rule)))

    def lane(tree: Tree, i: Array) -> tuple[Tree, Leaves]:
        memory = path if active is None else path._replace(going=path.going & active(tree, began.simulations, i))
        walk = descend(tree, max_depth, memory)
        end = ends(tree, walk, max_depth)
        action = jnp.maximum(unpack_frontier(end.at.frontier).next_action, 0)
        size = grown_size(tree, end)
        tree, walk = write(tree, walk, _pending(tree, rule, end))
        tree = tree.replace(size=size)
        if lanes > 1:
            tree = _choose_busy(tree, walk, busy, busy_root)
        node = jnp.where(end.grows, end.node, tree.capacity)
        return tree, Leaves(walk, node, end.at.nodes, action)

    began = tree.root
    if lanes > 1:
        tree = tree.replace(in_flight=jnp.zeros_like(tree.best_child))
    tree, leaves = jax.lax.scan(lane, tree, jnp.arange(lanes))
    return tree.replace(in_flight=None, root=began), leaves


def _in_flight(rule: Rule, virtual: Virtual) -> Rule:
    return rule._replace(score=lambda view: rule.score(virtual(view)))


def _pending(tree: Tree, rule: Rule, end: Any) -> Any:
    """New nodes of which nothing is known yet: nothing may be done there."""
    batch, dtype = tree.size.shape[0], tree.stats.dtype
    value = jnp.zeros((batch, tree.num_players) if tree.num_players > 1 else batch, dtype)
    unknown = Step(
        prior_logits=jnp.full((batch, tree.num_edges), -jnp.inf, dtype),
        value=value,
        reward=value,
        discount=jnp.zeros(batch, dtype),
        terminal=jnp.zeros(batch, bool),
        chance=None if unpack_facts(tree.facts).chance is None else jnp.zeros(batch, bool),
    )
    closed = rule._replace(prepare=lambda logits: logits)
    state = jax.tree.map(lambda x: jnp.zeros_like(x[:, 0]), tree.state)
    growth = grow(closed, end, tree.root.prior, unknown, state)
    if tree.bounds is not None:
        growth = growth._replace(bounds=tree.root.returns)
    return growth._replace(
        parent=jnp.where(end.grows, end.at.nodes, tree.capacity),
        status=jnp.where(end.wants & ~end.grows, Status.FULL.value, 0).astype(jnp.int32),
    )


def _choose_busy(tree: Tree, path: Path, rule: Rule, root_rule: Rule) -> Tree:
    """Marks the nodes of a walk as in flight, and has them choose anew, from the end up."""
    group, batch = group_size(tree.size.shape[0]), tree.size.shape[0]

    def turn(carry: tuple[Array, Tree]) -> tuple[Array, Tree]:
        k, tree = carry
        depth = 1 + k * group + jnp.arange(group)
        real = depth < path.length[:, None]
        nodes = jax.lax.dynamic_slice(path.nodes, (jnp.int32(0), 1 + k * group), (batch, group))
        nodes = jnp.where(real, nodes, 0)
        where = jnp.where(real, nodes, tree.capacity)
        tree = tree.replace(in_flight=put(tree.in_flight, where, take(tree.in_flight, nodes) + 1))
        return k - 1, remember(tree, where, choose(tree, rows_of(tree, nodes), rule, real))

    last = (jnp.max(path.length) - 1 + group - 1) // group - 1
    tree = jax.lax.while_loop(lambda carry: carry[0] >= 0, turn, (last, tree))[1]
    counts = 1 if path.going is None else path.going.astype(jnp.int32)
    tree = tree.replace(root=tree.root.replace(simulations=tree.root.simulations + counts))
    return choose_at_root(tree, root_rule)


def _evaluate(params: Params, keys: Keys, tree: Tree, leaves: Leaves, model: Model) -> tuple[Step, State]:
    """What the model says of the new nodes of all lanes, [B·K] in one call; anything where there is none."""
    lanes = len(leaves.node)
    parent, action = leaves.parent.T, leaves.action.T.reshape(-1)
    state = jax.tree.map(lambda x: take(x, parent).reshape(action.size, *x.shape[2:]), tree.state)

    def ask() -> tuple[Step, State]:
        return model.step(params, lane_keys(keys, lanes), action, state)

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(ask))
    return jax.lax.cond(jnp.any(leaves.node < tree.capacity), ask, lambda: nothing)


def lane_keys(keys: Keys, lanes: int) -> Keys:
    """Keys for each lane of each game, [B·K]; the first lane's is the game's own."""
    if lanes == 1:
        return keys
    of_game = jax.vmap(lambda key: jax.vmap(lambda lane: jax.random.fold_in(key, lane))(jnp.arange(1, lanes)))(keys)
    both = jnp.concatenate([keys[:, None], of_game], 1)
    return both.reshape(-1, *both.shape[2:])


def apply(
    tree: Tree, leaves: Leaves, step: Step, state: State, rule: Rule, root_rule: Rule, max_depth: int | None = None
) -> tuple[Tree, Path]:
    """Writes down what was said of the leaves, and carries the value of every lane up, lane after lane.

    Args:
        tree: as `collect` left it.
        leaves: likewise.
        step: the evaluations, game by game, `[B·K]`; anything where a lane asks nothing.
        state: what the tree stores of the positions, likewise.
        rule: how interior nodes choose.
        root_rule: how the root chooses.
        max_depth: as in `collect`.

    Returns:
        The trees, and the last lane's walk for the sake of its memory.
    """
    tree = _settle(tree, leaves, step, state, rule)

    def lane(tree: Tree, path: Path) -> tuple[Tree, None]:
        end = take(path.nodes, path.length - 1)
        value = unpack_facts(take(tree.facts, end)).raw_value
        if max_depth is not None:  # a walk that was cut takes the mean; one that grew is a node longer than that
            stats = unpack_stats(take(tree.stats, end))
            cut = (path.length > max_depth) & (stats.visits > 0)
            value = jnp.where(cut[:, None], stats.value, value)
        return finish(tree, path, value, rule, root_rule), None

    tree, _ = jax.lax.scan(lane, tree, leaves.paths)
    return tree, jax.tree.map(lambda x: x[-1], leaves.paths)


def _settle(tree: Tree, leaves: Leaves, step: Step, state: State, rule: Rule) -> Tree:
    """The new nodes of all lanes, evaluated."""
    lanes, batch = leaves.node.shape
    given, (step, bad) = step, checked(step, tree, lanes * batch)
    check_embedding(state, lanes * batch, tree.state)
    node, dtype = leaves.node.T, tree.stats.dtype

    def by_lane(x: Array) -> Array:
        return x.reshape(batch, lanes, *x.shape[1:])

    edge = unpack_facts(take(tree.facts, node))
    flat = [x.reshape(-1) for x in (edge.action, edge.edge_prior, edge.mover)]
    facts = pack(new_facts(*flat, step, (batch * lanes, tree.num_players)), dtype)
    prior = as_stored(rule.prepare(step.prior_logits), tree.prior.dtype)
    none, zero = jnp.full(batch * lanes, NONE), jnp.zeros(batch * lanes, dtype)
    found = (
        next_edge(rule, prior.astype(dtype))._asdict()
        if rule.by_prior
        else dict(next_action=none, next_prior=zero, unvisited_mass=zero)
    )
    children = jnp.zeros((batch * lanes, tree.frontier.shape[-1] - 4), jnp.int32)
    frontier = pack(Frontier(num_children=none + 1, children=children, **found), dtype)
    bounds = tree.bounds
    if bounds is not None:
        returns = jnp.repeat(tree.root.returns, lanes, 0)
        bounds = put(bounds, node, by_lane(new_bounds(returns, given)))
    wrong = jnp.any(by_lane(bad) & (node < tree.capacity), -1)
    return tree.replace(
        facts=put(tree.facts, node, by_lane(facts)),
        prior=put(tree.prior, node, by_lane(prior)),
        frontier=put(tree.frontier, node, by_lane(frontier)),
        state=jax.tree.map(lambda x, y: put(x, node, by_lane(y)), tree.state, state),
        bounds=bounds,
        status=tree.status | jnp.where(wrong, Status.NON_FINITE.value, 0),
    )
