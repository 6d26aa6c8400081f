"""Expansion: evaluates the position beyond the end of each walk, and adds it to the tree."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt16

from jaxzero.backend_tuning import machine
from jaxzero.search.action_selection import NextEdge, choose, next_edge, remember
from jaxzero.search.checks.model_checks import check_embedding, checked
from jaxzero.search.node_storage import (
    Facts,
    Frontier,
    Stats,
    children_at_hand,
    held,
    pack,
    places,
    put,
    put_column,
    put_entry,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
    visited,
)
from jaxzero.search.tree import NONE, Rows, Status, Tree, as_read, as_stored, player_to_move, rows_of
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["Ends", "Growth", "ends", "expand", "first_visit", "grow", "new_facts", "returned", "write"]


class Ends(NamedTuple):
    """Where walks ended, and whether the trees grow there.

    Attributes:
        at: the rows of the last nodes, with all their children.
        prior: their rows of `Tree.prior`.
        cut: True where `max_depth` ended the walk.
        wants: True where the walk ends at an edge to expand.
        grows: True where the tree has room for it, too.
        node: the slot for the new node, see `Growth.node`.
        size: `Tree.size` after the trees have grown.
    """

    at: Rows
    prior: Float[Array, "B W"] | UInt16[Array, "B W"]
    cut: Bool[Array, "B"]
    wants: Bool[Array, "B"]
    grows: Bool[Array, "B"]
    node: Int[Array, ""] | Int[Array, "B"]
    size: Int[Array, "B"]


def ends(tree: Tree, path: Path, max_depth: int | None) -> Ends:
    """The ends of the walks, as `descend` left them."""
    leaf = take(path.nodes, path.length - 1)
    at = rows_of(tree, leaf)._replace(frontier=take(tree.frontier, leaf))
    at, prior = held((at, take(tree.prior, leaf)))
    cut = jnp.zeros_like(leaf, bool) if max_depth is None else path.length > max_depth
    wants = (at.next_action >= 0) & ~cut  # a walk that is not cut ends where no child is chosen
    wants = wants if path.going is None else wants & path.going
    return Ends(at, prior, cut, wants, *next_slot(tree, wants))


def own_slots(tree: Tree) -> bool:
    """Whether each game counts its own slots: in trees that `advance` made, which hold different numbers of nodes."""
    return tree.root.brought is not None


def next_slot(tree: Tree, wants: Bool[Array, "B"]) -> tuple[Bool[Array, "B"], Array, Int[Array, "B"]]:
    """Which trees grow, the slot of their new node, and the size of the trees afterwards.

    All games take the same slot, so the new nodes are written as one column: it is the size of the largest tree. Games
    that count their own slots take the next one of their own, or the scratch row.
    """
    if own_slots(tree):
        grows = wants & (tree.size < tree.capacity)
        return grows, jnp.where(grows, tree.size, tree.capacity), tree.size + grows.astype(jnp.int32)
    node = jnp.max(jnp.minimum(tree.size, tree.capacity))
    return wants & (node < tree.capacity), node, jnp.full_like(tree.size, jnp.minimum(node + 1, tree.capacity))


class Growth(NamedTuple):
    """What one simulation adds to the trees.

    Attributes:
        value: to be backed up from the end of the walk.
        node: the new node, the same slot in every game, N if the trees are full; or each game's own, N where the tree
            does not grow.
        parent: the node above; N where the tree does not grow.
        facts: the row of the new node.
        frontiers: the row of the new node; and that of the node above, as it is from now on.
        prior: of the new node.
        state: of the new node.
        status: bits of `Status` that this simulation adds.
        data: of the new node, for the tree's hooks.
    """

    value: Float[Array, "B P"]
    node: Int[Array, ""] | Int[Array, "B"]
    parent: Int[Array, "B"]
    facts: Float[Array, "B 6+2P"]
    frontiers: Float[Array, "B 2 4+K"]
    prior: Float[Array, "B W"] | UInt16[Array, "B W"]
    state: State
    status: Int[Array, "B"]
    data: Any = None


def expand(
    params: Params, keys: Keys, tree: Tree, path: Path, model: Model, rule: Rule, max_depth: int | None = None
) -> tuple[Tree, Float[Array, "B P"]]:
    """Evaluates the position beyond the end of each walk, and adds it to the tree as a node visited once.

    A walk that cannot grow (terminal, nothing legal, cut at `max_depth`, tree full) leaves its tree as it is. If no
    walk can grow, the model is not called, except for many games on an accelerator, see `Machine.sure_games`. A
    simulation takes the same slot in every game, needed or not. So the slot is written as one column, and a tree is
    full after N − 1 simulations, whatever the other games of the batch do. (Trees that `advance` made hold different
    numbers of nodes: each takes its own next slot, where it grows.)

    Args:
        params: handed to the model.
        keys: one per game, for the model.
        tree: the trees.
        path: where `descend` stopped, with the same `max_depth`. A walk that stops above a chosen child would count as
            wanting another edge.
        model: what the tree is made of.
        rule: how interior nodes choose.
        max_depth: how many edges below the root a walk may go; None: no limit.

    Returns:
        The tree; and the value to back up from the end of the walk: reward + discount × raw value of the new node. For
        a walk that did not grow, it is the raw value of its end again, or the mean there if `max_depth` cut the walk.
    """
    end = ends(tree, path, max_depth)
    at, leaf, wants, grows = end.at, end.at.nodes, end.wants, end.grows
    # Games that do not grow (over, stopped, at a dead end) repeat a legal action of their root: the action of node 1,
    # the first child. It exists after the first simulation, unless games can be stopped or begin with reused trees.
    all_began = path.going is None and not own_slots(tree)
    other = jnp.maximum(unpack_facts(tree.facts[:, 1]).action, 0) if all_began else stand_in(tree)
    there, action = jnp.where(grows, leaf, 0), jnp.where(grows, jnp.maximum(at.next_action, 0), other)
    action, state = held((action, jax.tree.map(lambda x: take(x, there), tree.state)))
    full = Status.FULL.where(wants & ~grows)
    again = jnp.where(end.cut[:, None], at.value, at.raw_value)

    def evaluate() -> Growth:
        step, below = model.step(params, keys, action, state)
        step, bad = checked(step, tree)
        check_embedding(below, leaf.shape[0], tree.state)
        growth = grow(rule, end, tree.root.prior, step, below)
        return growth._replace(
            data=tree.hooks.node_data(tree, step),
            value=jnp.where(grows[:, None], growth.value, again),
            parent=jnp.where(grows, leaf, tree.capacity),
            status=jnp.where(bad & grows, jnp.int32(Status.NON_FINITE.value), full),
        )

    growth = if_any_grows(tree, end, evaluate, again)
    tree = write(tree, growth, first_visit(growth.facts, grows)).replace(size=end.size)
    node = jnp.where(grows, end.node, tree.capacity)
    tree = tree.hooks.grown(tree, path, node, growth.data)
    if not rule.by_prior:  # else the next edge is known already
        tree = remember(tree, node, choose(tree, rows_of(tree, node), rule, grows))
    return tree, growth.value


def if_any_grows(
    tree: Tree, end: Ends, made: Callable[[], Growth], value: Float[Array, "B P"], *, asks: bool = True
) -> Growth:
    """`made()` if any tree grows; else an empty growth with `value`. `asks`: `made` calls the model.

    If a branch makes the host wait, `made` is always called when it is cheap, or when some tree nearly always grows.

    The old tree is read before or in this function, and everything written to it comes from here. So XLA updates its
    arrays in place; a read that it cannot order before the write would make it copy them.
    """

    def nothing() -> Growth:
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(made))
        nowhere = jnp.full_like(end.at.nodes, tree.capacity)
        node = nowhere if own_slots(tree) else nowhere[0]
        return zeros._replace(value=value, node=node, parent=nowhere, status=Status.FULL.where(end.wants))

    if machine().waits and (not asks or end.at.nodes.shape[0] >= machine().sure_games):
        return made()  # if no tree grows, the result is discarded, or goes into unused memory
    return jax.lax.cond(jnp.any(end.grows), made, nothing)


def stand_in(tree: Tree) -> Int[Array, "B"]:
    """A legal action of the root, for games that do not grow while others do: a model is asked for legal moves only.

    It is the action of node 1, the root's first child, if there is one; else the action that the root will try first.
    """
    first = unpack_facts(tree.facts[:, 1]).action
    known = (unpack_stats(tree.stats[:, 1]).visits > 0) & (tree.capacity > 1)
    return jnp.maximum(jnp.where(known, first, unpack_frontier(tree.frontier[:, 0]).next_action), 0)


def grow(rule: Rule, end: Ends, in_force: Array | None, step: Step, state: State) -> Growth:
    """The new nodes, from the model's `step` and `state`, as if every walk grew."""
    leaf, prior, node = end.at, end.prior, end.node
    frontier, facts = unpack_frontier(leaf.frontier), unpack_facts(leaf.facts)
    action, mover = jnp.maximum(frontier.next_action, 0), facts.to_play
    dtype, children = step.value.dtype, frontier.num_children
    fresh = as_stored(rule.prepare(step.prior_logits), prior.dtype)
    facts = new_facts(action, frontier.next_prior, mover, step, facts.raw_value.shape)
    nothing = jnp.full((*action.shape, 2), NONE)
    found = NextEdge(nothing, jnp.zeros_like(nothing, dtype), jnp.zeros_like(nothing, dtype))
    if rule.by_prior:
        left, order = edges_left(end, action), None
        if in_force is not None:
            order = jnp.stack([as_read(fresh, dtype), order_left(end, left, in_force)], 1)
        found = next_edge(rule, jnp.stack([as_read(fresh, dtype), left], 1), order)
    below = with_child(frontier, node)
    frontiers = Frontier(
        **found._asdict(),
        num_children=jnp.stack([jnp.zeros_like(children), children + 1], 1),
        children=jnp.stack([jnp.zeros_like(below), below], 1),
    )
    return Growth(
        value=returned(facts),
        node=node,
        parent=leaf.nodes,
        facts=pack(facts, dtype),
        frontiers=pack(frontiers, dtype),
        prior=fresh,
        state=state,
        status=jnp.zeros_like(action),
    )


def new_facts(action: Array, edge_prior: Array, mover: Int[Array, "L"], step: Step, shape: tuple[int, ...]) -> Facts:
    """The facts of new nodes and of the edges into them; values have the shape `[L, P]`."""
    to_play, value = player_to_move(step), step.value.reshape(shape)
    signed = shape[-1] > 1 or step.to_play is None
    discount = step.discount if signed else jnp.where(to_play == mover, step.discount, -step.discount)
    reward = step.reward.reshape(shape)
    return Facts(action, edge_prior, mover, discount, reward, to_play, step.terminal, value, step.chance)


def edges_left(end: Ends, action: Int[Array, "B"]) -> Float[Array, "B W"]:
    """The priors of the unexpanded edges without `action`; −inf elsewhere."""
    prior = as_read(end.prior, end.at.stats.dtype)
    return jnp.where(places(prior.shape[1], 2) == action[:, None], -jnp.inf, prior)


def order_left(end: Ends, left: Float[Array, "B W"], in_force: Float[Array, "B W"]) -> Float[Array, "B W"]:
    """The order in which unexpanded edges are tried: by prior; at the root by the prior in force there."""
    at_root = jnp.where(jnp.isneginf(left), -jnp.inf, in_force)
    return jnp.where((end.at.nodes == 0)[:, None], at_root, left)


def with_child(frontier: Frontier, node: Int[Array, ""] | Int[Array, "B"]) -> Int[Array, "B K"]:
    """`Frontier.children` with the new one, if there is room."""
    place = places(frontier.children.shape[1], 2) == frontier.num_children[:, None]
    return jnp.where(place, node[:, None] if node.ndim else node, frontier.children)


def returned(new: Facts) -> Float[Array, "B P"]:
    """The returns of new nodes to the nodes above: reward + discount × raw value."""
    return new.reward + new.discount[:, None] * new.raw_value


def first_visit(facts: Float[Array, "B 6+2P"], grows: Bool[Array, "B"]) -> Float[Array, "B 2+P"]:
    """The statistics of new nodes, visited by the walk that made them; 0 where the tree does not grow."""
    new = unpack_facts(facts)
    none = jnp.zeros_like(new.raw_value)
    stats = visited(Stats(none[:, 0], none[:, 0], none), new, new.raw_value)
    return jnp.where(grows[:, None], pack(stats, facts.dtype), 0)


def write(tree: Tree, growth: Growth, stats: Float[Array, "B 2+P"]) -> Tree:
    """Writes the growth, and the new nodes' statistics, into the tree."""
    # Position and action are read back from the packed rows: every array that a branch returns is a kernel on an
    # accelerator.
    node = growth.node
    place = unpack_frontier(growth.frontiers[:, 1]).num_children - 1  # the new child is the last one
    action = unpack_facts(growth.facts).action
    frontier = put_column(put(tree.frontier, growth.parent, growth.frontiers[:, 1]), node, growth.frontiers[:, 0])
    prior = put_column(tree.prior, node, growth.prior)
    later, at_hand = tree.later_children, children_at_hand(tree.frontier)
    if later is not None:
        where = jnp.where(place < at_hand, tree.capacity, growth.parent)
        later = put_entry(later, where, jnp.clip(place - at_hand, 0, later.shape[-1] - 1), node)
    return tree.replace(
        stats=held(put_column(tree.stats, node, stats)),  # else XLA fuses it into the gather that follows
        facts=put_column(tree.facts, node, growth.facts),
        frontier=frontier,
        best_child=put_column(tree.best_child, node, jnp.full_like(growth.parent, NONE)),
        prior=put_entry(prior, growth.parent, action, as_stored(jnp.float32(-jnp.inf), prior.dtype)),
        state=jax.tree.map(lambda x, y: put_column(x, node, y), tree.state, growth.state),
        later_children=later,
        status=tree.status | growth.status,
        overflows=tree.overflows + growth.status // Status.FULL.value % 2,
    )
