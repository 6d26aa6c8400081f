"""Expansion: what lies beyond the end of each walk is evaluated, and added to the tree as one column of nodes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.mcts.choice import NextEdge, next_edge
from jaxzero.mcts.outputs import check_embedding, checked
from jaxzero.mcts.rows import (
    Facts,
    Frontier,
    children_at_hand,
    pack,
    put,
    put_column,
    put_entry,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
)
from jaxzero.mcts.tree import NONE, Rows, Status, Tree, as_stored, player_to_move, rows_of
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["expand"]


class Growth(NamedTuple):
    """What one simulation adds to the trees.

    Attributes:
        value: to be backed up from the end of the path.
        node: the new node, the same slot in every game; N if the trees are full.
        parent: the node above; N where the tree does not grow.
        place: where the new node goes in its parent's list of children.
        action: the edge that it takes from its parent's prior.
        facts: the row of the new node.
        frontiers: the row of the new node; and that of the node above, as it is from now on.
        prior: of the new node.
        state: of the new node.
        status: bits of `Status` that this simulation adds.
    """

    value: Float[Array, "B P"]
    node: Int[Array, ""]
    parent: Int[Array, "B"]
    place: Int[Array, "B"]
    action: Int[Array, "B"]
    facts: Float[Array, "B 6+2P"]
    frontiers: Float[Array, "B 2 4+K"]
    prior: Float[Array, "B W"]
    state: State
    status: Int[Array, "B"]


def expand(
    params: Params, keys: Keys, tree: Tree, path: Path, model: Model, rule: Rule, max_depth: int | None = None
) -> tuple[Tree, Path, Array]:
    """Evaluates what lies beyond the end of each walk and adds it to the tree.

    A walk that cannot grow (terminal, nothing legal, cut at `max_depth`, tree full) leaves its tree as it is; the
    model is not asked if no walk can. A simulation takes the same slot in every game, needed or not: it is written
    as one column, and a tree is full after N − 1 simulations whatever the other games of the batch do.

    Args:
        params: handed to the model.
        keys: one per game, for the model.
        tree: the trees.
        path: where `descend` stopped, with the same `max_depth`: a walk that stops elsewhere, above a child that is
            chosen, counts as wanting another.
        model: what the tree is made of.
        rule: how interior nodes choose.
        max_depth: how many edges below the root a walk may go; None: no limit.

    Returns:
        The tree; the path, with the new node at its end; and the value `[B, P]` to back up from there: the new
        node's raw value; for a walk that did not grow its end's raw value again, or its mean where `max_depth` cut it.
    """
    leaf = take(path.nodes, path.length - 1)
    at = rows_of(tree, leaf)._replace(frontier=take(tree.frontier, leaf))
    prior, state = take(tree.prior, leaf), jax.tree.map(lambda x: take(x, leaf), tree.state)
    cut = jnp.zeros_like(leaf, bool) if max_depth is None else path.length > max_depth
    wants = (unpack_frontier(at.frontier).next_action >= 0) & ~cut  # at the end of a walk not cut, no child is chosen
    node = jnp.minimum(jnp.max(tree.size), tree.capacity)
    grows = wants & (node < tree.capacity)
    again = jnp.where(cut[:, None], unpack_stats(at.stats).value, unpack_facts(at.facts).raw_value)

    def evaluate() -> Growth:
        step, below = model.step(params, keys, jnp.maximum(unpack_frontier(at.frontier).next_action, 0), state)
        step, bad = checked(step, tree)
        check_embedding(below, leaf.shape[0], tree.state)
        growth = _grow(rule, node, at, prior, tree.root.prior, step, below)
        return growth._replace(
            value=jnp.where(grows[:, None], growth.value, again),
            parent=jnp.where(grows, leaf, tree.capacity),
            status=jnp.where(bad & grows, Status.NON_FINITE.value, 0).astype(jnp.int32),
        )

    def nothing() -> Growth:
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(evaluate))
        nowhere = jnp.full_like(leaf, tree.capacity)
        status = jnp.where(wants, Status.FULL.value, 0).astype(jnp.int32)
        return zeros._replace(value=again, node=nowhere[0], parent=nowhere, status=status)

    # All that is read of the old tree is read here, and all that is written to it comes from here: XLA then
    # updates its arrays in place, where a reading not known to come before a writing would make it copy them.
    growth = jax.lax.cond(jnp.any(grows), evaluate, nothing)
    tree, path = _write(tree, path, growth)
    return tree.replace(size=jnp.full_like(tree.size, jnp.minimum(node + 1, tree.capacity))), path, growth.value


def _grow(
    rule: Rule,
    node: Int[Array, ""],
    leaf: Rows,
    prior: Float[Array, "B W"],
    in_force: Array | None,
    step: Step,
    state: State,
) -> Growth:
    """The new node `node`, of which the model says `step` and `state`, below `leaf`: as if every walk grew."""
    frontier, facts = unpack_frontier(leaf.frontier), unpack_facts(leaf.facts)
    action, mover, to_play = jnp.maximum(frontier.next_action, 0), facts.to_play, player_to_move(step)
    dtype, children = step.value.dtype, frontier.num_children
    value = step.value.reshape(facts.raw_value.shape)
    signed = value.shape[-1] > 1 or step.to_play is None
    discount = step.discount if signed else jnp.where(to_play == mover, step.discount, -step.discount)
    fresh = as_stored(rule.prepare(step.prior_logits), prior.dtype)
    reward = step.reward.reshape(value.shape)
    facts = Facts(action, frontier.next_prior, mover, discount, reward, to_play, step.terminal, value, step.chance)
    nothing = jnp.full((*action.shape, 2), NONE)
    found = NextEdge(nothing, jnp.zeros_like(nothing, dtype), jnp.zeros_like(nothing, dtype))
    if rule.by_prior:
        left = jnp.where(jnp.arange(prior.shape[1]) == action[:, None], -jnp.inf, prior)  # −inf where expanded
        order = None
        if in_force is not None:
            at_root = jnp.where(jnp.isneginf(left), -jnp.inf, in_force)
            order = jnp.stack([fresh.astype(dtype), jnp.where((leaf.nodes == 0)[:, None], at_root, left)], 1)
        found = next_edge(rule, jnp.stack([fresh, left], 1).astype(dtype), order)
    below = jnp.where(jnp.arange(frontier.children.shape[1]) == children[:, None], node, frontier.children)
    frontiers = Frontier(
        **found._asdict(),
        num_children=jnp.stack([jnp.zeros_like(children), children + 1], 1),
        children=jnp.stack([jnp.zeros_like(below), below], 1),
    )
    return Growth(
        value=value,
        node=node,
        parent=leaf.nodes,
        place=children,
        action=action,
        facts=pack(facts, dtype),
        frontiers=pack(frontiers, dtype),
        prior=fresh,
        state=state,
        status=jnp.zeros_like(action),
    )


def _write(tree: Tree, path: Path, growth: Growth) -> tuple[Tree, Path]:
    """Puts what has grown into the tree, and the new node at the end of the path."""
    node, grows = growth.node, growth.parent < tree.capacity
    frontier = put_column(put(tree.frontier, growth.parent, growth.frontiers[:, 1]), node, growth.frontiers[:, 0])
    prior = put_column(tree.prior, node, growth.prior)
    later, at_hand = tree.later_children, children_at_hand(tree.frontier)
    if later is not None:
        where = jnp.where(growth.place < at_hand, tree.capacity, growth.parent)
        later = put_entry(later, where, jnp.clip(growth.place - at_hand, 0, later.shape[-1] - 1), node)
    end = jnp.where(grows, node, tree.capacity)
    nodes = put_entry(path.nodes[:, None], jnp.zeros_like(end), path.length, end)
    return tree.replace(
        stats=put_column(tree.stats, node, jnp.zeros_like(tree.stats[:, 0])),
        facts=put_column(tree.facts, node, growth.facts),
        frontier=frontier,
        best_child=put_column(tree.best_child, node, jnp.full_like(growth.parent, NONE)),
        prior=put_entry(prior, growth.parent, growth.action, -jnp.inf),
        state=jax.tree.map(lambda x, y: put_column(x, node, y), tree.state, growth.state),
        later_children=later,
        status=tree.status | growth.status,
        overflows=tree.overflows + growth.status // Status.FULL.value % 2,
    ), Path(nodes[:, 0], path.length + grows)
