"""A batch of leaves: K walks per tree that wait for their evaluation.

`collect` walks, `apply` stores the evaluations; in between, the evaluations can come from anywhere. `parallel` says
when this helps; `ask_tell` is for evaluators outside JAX.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.options.chance_expectation import refuse_expectations
from jaxzero.options.leaf_parallel.virtual_loss import Virtual
from jaxzero.options.solver import new_bounds, prove
from jaxzero.search.action_selection import choose, choose_at_root, next_edge, remember
from jaxzero.search.backup import backup, counted, group_size
from jaxzero.search.checks.model_checks import check_embedding, checked
from jaxzero.search.expansion import (
    Ends,
    Growth,
    ends,
    first_visit,
    grow,
    if_any_grows,
    new_facts,
    returned,
    stand_in,
    write,
)
from jaxzero.search.node_storage import (
    Frontier,
    children_at_hand,
    pack,
    places,
    put,
    repeat,
    take,
    unpack_facts,
    unpack_stats,
)
from jaxzero.search.search import descend, paired, taking_part
from jaxzero.search.tree import NONE, Status, Tree, as_read, as_stored, rows_of
from jaxzero.types import Keys, Path, Rule, State, Step

__all__ = ["Active", "Leaves", "apply", "collect", "lane_keys", "parents_of"]

LANES = 0x6C616E65  # larger than any number of parts that a key is split into

Active = Callable[[Tree, Int[Array, "B"], Int[Array, ""]], Bool[Array, "B"]]  # (tree, simulations before, lane)


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
    free_walks: int = 0,
) -> tuple[Tree, Leaves]:
    """Walks K times, and makes nodes where the walks end, which are not evaluated yet.

    Hand what it returns to `apply`; nothing else can be done with such a tree.

    Args:
        tree: the trees, see `enter`.
        path: memory for walks.
        rule: how interior nodes choose.
        root_rule: how the root chooses.
        lanes: K.
        virtual: how walks in flight change an edge.
        max_depth: how many edges below the root a walk may go.
        active: which games walk in a lane; None: all that take part.
        free_walks: how often a lane may walk again after a walk to a known value, which is backed up at once.
    """
    refuse_expectations("parallel, rounds or ask", tree)
    busy, busy_root = rule, paired(rule, root_rule)
    if lanes > 1:
        busy, busy_root = (_in_flight(r, virtual) for r in (busy, busy_root))

    def lane(tree: Tree, i: Array) -> tuple[Tree, Leaves]:
        memory = path if active is None else path._replace(going=path.going & active(tree, began.simulations, i))
        tree = choose_at_root(tree, busy_root)
        walk = descend(tree, max_depth, memory)
        if free_walks:
            tree, walk = _walk_on(tree, walk, memory, busy, busy_root, max_depth, free_walks)
        end = ends(tree, walk, max_depth)
        growth = if_any_grows(
            tree, end, lambda: _pending(tree, rule, end), unpack_facts(end.at.facts).raw_value, asks=False
        )
        tree = write(tree, growth, jnp.zeros_like(tree.stats[:, 0])).replace(size=end.size)
        node = jnp.where(end.grows, end.node, tree.capacity)
        if tree.bounds is not None:
            tree = tree.replace(bounds=put(tree.bounds, node, tree.root.returns))
        if lanes > 1:
            tree = _choose_busy(tree, walk, node, busy)
        return tree, Leaves(walk, node, end.at.nodes, unpack_facts(growth.facts).action)

    began = tree.root  # simulations that are in flight are counted while lanes walk
    if lanes > 1:
        tree = tree.replace(in_flight=jnp.zeros_like(tree.best_child))
    tree, leaves = jax.lax.scan(lane, tree, jnp.arange(lanes))
    in_flight = lanes if leaves.paths.going is None else jnp.sum(leaves.paths.going, 0, dtype=jnp.int32)
    done = tree.root.simulations - in_flight if lanes > 1 else tree.root.simulations
    return tree.replace(in_flight=None, root=began.replace(simulations=done)), leaves


def _walk_on(
    tree: Tree, walk: Path, memory: Path, rule: Rule, root_rule: Rule, max_depth: int | None, most: int
) -> tuple[Tree, Path]:
    """Backs up walks that ended at nodes whose value is known, and walks again in their games."""

    def known(tree: Tree, walk: Path) -> tuple[Bool[Array, "B"], Bool[Array, "B"]]:
        """The walks that are done, and those of them that found the tree full."""
        end = ends(tree, walk, max_depth)
        done = ~end.grows & (unpack_stats(end.at.stats).visits > 0)  # 0 visits: waits for another lane's evaluation
        done = done if walk.going is None else done & walk.going
        return done, done & end.wants

    def again(carry: tuple) -> tuple:
        i, tree, walk, (done, full) = carry
        value = value_at_end(tree, walk, max_depth)
        tree = tree.replace(overflows=tree.overflows + full, status=tree.status | Status.FULL.where(full))
        tree = backup(tree, taking_part(walk, done, tree.capacity), value, rule)
        tree = choose_at_root(tree, root_rule)
        walk = descend(tree, max_depth, memory)
        return i + 1, tree, walk, known(tree, walk)

    start = jnp.int32(0), tree, walk, known(tree, walk)
    return jax.lax.while_loop(lambda carry: (carry[0] < most) & jnp.any(carry[3][0]), again, start)[1:3]


def value_at_end(tree: Tree, path: Path, max_depth: int | None) -> Float[Array, "B P"]:
    """The value to back up from the end of a walk: the model's, or the node's mean where `max_depth` cut the walk."""
    end = take(path.nodes, path.length - 1)
    value = unpack_facts(take(tree.facts, end)).raw_value
    if max_depth is None:
        return value
    stats = unpack_stats(take(tree.stats, end))
    cut = (path.length > max_depth) & (stats.visits > 0)
    return jnp.where(cut[:, None], stats.value, value)


def _in_flight(rule: Rule, virtual: Virtual) -> Rule:
    return rule._replace(score=lambda view: rule.score(virtual(view)))


def _pending(tree: Tree, rule: Rule, end: Ends) -> Growth:
    """New nodes that wait for their evaluation: all their edges are closed."""
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
    return growth._replace(
        parent=jnp.where(end.grows, end.at.nodes, tree.capacity), status=Status.FULL.where(end.wants & ~end.grows)
    )


def _choose_busy(tree: Tree, path: Path, node: Int[Array, "B"], rule: Rule) -> Tree:
    """Marks the nodes of a walk, and the new one, as in flight; those of the walk choose anew, from the end up."""
    group, batch = group_size(tree.size.shape[0]), tree.size.shape[0]
    tree = tree.replace(in_flight=put(tree.in_flight, node, jnp.ones_like(node)))

    def turn(carry: tuple[Array, Tree]) -> tuple[tuple[Array, Tree], Array]:
        k, tree = carry
        depth = 1 + k * group + places(group, 2)
        real = depth < path.length[:, None]
        nodes = jax.lax.dynamic_slice(path.nodes, (jnp.int32(0), 1 + k * group), (batch, group))
        nodes = jnp.where(real, nodes, 0)
        where = jnp.where(real, nodes, tree.capacity)
        tree = tree.replace(in_flight=put(tree.in_flight, where, take(tree.in_flight, nodes) + 1))
        return (k - 1, remember(tree, where, choose(tree, rows_of(tree, nodes), rule, real))), k > 0

    last = jnp.max(jnp.maximum(path.length - 2, 0) // group)
    tree = repeat(turn, (last, tree), jnp.any(path.length > 1))[1]
    return counted(tree, path)


def parents_of(tree: Tree, leaves: Leaves) -> tuple[Int[Array, "B*K"], State]:
    """The edges to the new nodes of all lanes, game by game, and the embeddings above.

    A model may be asked about existing positions only. So where a lane asks nothing, the question of the first lane of
    the game that asks stands in; if no lane asks, the edge to the first node below the root.
    """
    new, lane = leaves.node < tree.capacity, jnp.argmax(leaves.node < tree.capacity, 0)

    def of_first(x: Array, other: Array) -> Array:
        there = jnp.take_along_axis(x, lane[None], 0)[0]
        return jnp.where(new, x, jnp.where(jnp.any(new, 0), there, other)).T

    parent, action = of_first(leaves.parent, jnp.int32(0)), of_first(leaves.action, stand_in(tree)).reshape(-1)
    return action, jax.tree.map(lambda x: take(x, parent).reshape(action.size, *x.shape[2:]), tree.state)


def lane_keys(keys: Keys, lanes: int) -> Keys:
    """Keys for each lane of each game, [B·K]; the first lane's is the game's own."""
    if lanes == 1:
        return keys

    def others(key: Any) -> Any:  # a branch of their own: `split` of a key and `fold_in` of small numbers may coincide
        key = jax.random.fold_in(key, LANES)
        return jax.vmap(lambda lane: jax.random.fold_in(key, lane))(jnp.arange(1, lanes))

    of_game = jax.vmap(others)(keys)
    both = jnp.concatenate([keys[:, None], of_game], 1)
    return both.reshape(-1, *both.shape[2:])


def apply(
    tree: Tree, leaves: Leaves, step: Step, state: State, rule: Rule, max_depth: int | None = None
) -> tuple[Tree, Path]:
    """Stores the evaluations of the leaves, and backs the value of every lane up, lane after lane.

    Args:
        tree: as `collect` left it.
        leaves: likewise.
        step: the evaluations, game by game, `[B·K]`; anything where a lane asks nothing.
        state: what the tree stores of the positions, likewise.
        rule: how interior nodes choose.
        max_depth: as in `collect`.

    Returns:
        The trees, and the last lane's walk, whose memory can be reused.
    """
    tree = _settle(tree, leaves, step, state, rule)

    def lane(tree: Tree, of_lane: tuple[Path, Array]) -> tuple[Tree, None]:
        path, node = of_lane
        facts, new = take(tree.facts, node), node < tree.capacity
        tree = tree.replace(stats=put(tree.stats, node, first_visit(facts, new)))
        tree = tree if tree.bounds is None else prove(tree, path, node)
        if not rule.by_prior:
            tree = remember(tree, node, choose(tree, rows_of(tree, node), rule, new))
        at_end = value_at_end(tree, path, max_depth)
        value = jnp.where(new[:, None], returned(unpack_facts(facts)), at_end)
        return backup(tree, path, value, rule), None

    tree, _ = jax.lax.scan(lane, tree, (leaves.paths, leaves.node))
    return tree, jax.tree.map(lambda x: x[-1], leaves.paths)


def _settle(tree: Tree, leaves: Leaves, step: Step, state: State, rule: Rule) -> Tree:
    """The new nodes of all lanes, evaluated."""
    lanes, batch = leaves.node.shape
    step, bad = checked(step, tree, lanes * batch)
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
        next_edge(rule, as_read(prior, dtype))._asdict()
        if rule.by_prior
        else dict(next_action=none, next_prior=zero, unvisited_mass=zero)
    )
    children = jnp.zeros((batch * lanes, children_at_hand(tree.frontier)), jnp.int32)
    frontier = pack(Frontier(num_children=none + 1, children=children, **found), dtype)
    bounds = tree.bounds
    if bounds is not None:
        returns = jnp.repeat(tree.root.returns, lanes, 0)
        bounds = put(bounds, node, by_lane(new_bounds(returns, step)))
    wrong = jnp.any(by_lane(bad) & (node < tree.capacity), -1)
    return tree.replace(
        facts=put(tree.facts, node, by_lane(facts)),
        prior=put(tree.prior, node, by_lane(prior)),
        frontier=put(tree.frontier, node, by_lane(frontier)),
        state=jax.tree.map(lambda x, y: put(x, node, by_lane(y)), tree.state, state),
        bounds=bounds,
        status=tree.status | Status.NON_FINITE.where(wrong),
    )
