"""Phase ablation: a search without one of its phases, to measure what each phase takes.

Nothing can be timed inside a compiled search. But the search can be run again without one phase: the time saved is that
phase's. The results of the missing phase are read from a record of the same search. So the other phases do the same
work as before: the same walks, loop iterations, nodes and choices. XLA does not know the record, so it cannot optimise
any of that away.

    network  logits and values are on record. The game is played, its observations are made and read.
    model    the game's positions are on record, too: neither network nor game.
    descend  the walks are on record.
    expand   all nodes exist from the beginning; only the lists of children grow, as on record.
    backup   no statistics, no choices: each walk is written into the tree beforehand, as the choices of its nodes.

Reading the record takes a few kernels per simulation, by which each phase is underestimated; for `backup`, writing the
walk, too. The last three are left out of a search without its model: their few microseconds would vanish beside a
network that takes milliseconds. If the game has no network, `network` cannot be left out.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from bench.gpu.worlds import World, looked_at, rule

import jaxzero as jz
from jaxzero.search import node_storage
from jaxzero.search.backup import backup, counted, group_size, tile_size
from jaxzero.search.expansion import first_visit
from jaxzero.search.search import choose_at_root, descend, enter, expand, fold_simulation, search

__all__ = ["PHASES", "Record", "recording", "trimmed", "turns", "whole", "without"]

PHASES = ("network", "model", "descend", "expand", "backup")
MOST_NUMBERS = 2**28  # of the record of the walks


class Record(NamedTuple):
    """The record of a search, simulation by simulation: `[S, B, ...]`.

    Attributes:
        root: the model's output for the roots, and their embeddings.
        new: the same for the new nodes.
        nodes: the walks as `descend` returns them.
        length: how many nodes `descend` passed.
        grew: where a new node was made.
        value: what is backed up.
        parents: the rows of `Tree.frontier` of the walks' last nodes, as `expand` leaves them.
        children: the same rows of the new nodes.
        facts: `Tree.facts`, at the end.
        later: `Tree.later_children`, at the end.
    """

    root: tuple
    new: tuple
    nodes: jax.Array
    length: jax.Array
    grew: jax.Array
    value: jax.Array
    parents: jax.Array
    children: jax.Array
    facts: jax.Array
    later: jax.Array | None


def whole(world: World, simulations: int) -> Callable:
    """`(params, keys, states) -> Tree`: the search as it is."""

    def run(params: Any, keys: Any, states: Any) -> jz.Tree:
        tree = jz.search.plant(*world.model.root(params, keys, states), rule(), simulations + 1)
        return search(params, keys, tree, world.model, rule(), simulations)

    return run


def recording(world: World, simulations: int) -> Callable:
    """`(params, keys, states) -> Record`. The model's outputs become part of the positions that the tree stores."""

    def root(params: Any, keys: Any, states: Any) -> tuple:
        said, below = world.model.root(params, keys, states)
        return said, (below, said)

    def step(params: Any, keys: Any, action: Any, embedding: tuple) -> tuple:
        said, below = world.model.step(params, keys, action, embedding[0])
        return said, (below, said)

    choose = rule()

    def run(params: Any, keys: Any, states: Any) -> Record:
        def simulate(carry: tuple, i: Any) -> tuple:
            tree, path = carry
            tree = choose_at_root(tree, choose)
            length = (path := descend(tree, None, path)).length
            own = fold_simulation(keys, tree.root.simulations)
            tree, value = expand(params, own, tree, path, jz.Model(root, step), choose)
            at = node_storage.take(tree.frontier, node_storage.take(path.nodes, length - 1))
            children = tree.frontier[:, i + 1]
            found = path.nodes[:, :room], length, tree.visits[:, i + 1] > 0, value, at, children
            return (backup(tree, path, value, choose), path), found

        said = root(params, keys, states)
        tree, path = enter(jz.search.plant(*said, choose, simulations + 1), choose)
        room = min(path.nodes.shape[1], max(64, MOST_NUMBERS // (simulations * len(keys))))
        (tree, _), found = jax.lax.scan(simulate, (tree, path), jnp.arange(simulations))
        new = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0)[1 : simulations + 1], tree.state)
        return Record(said[1], new, *found, tree.facts, tree.later_children)

    return run


def trimmed(record: Record) -> Record:
    """The walks, cut to the width of the longest; entries beyond their ends point to no node.

    Raises:
        ValueError: a walk was longer than there was room on record.
    """
    batch = record.length.shape[1]
    longest, most = int(record.length.max()), record.nodes.shape[2]
    if longest > most:
        raise ValueError(f"a walk of {longest} nodes, and room for {most} on record: take fewer games or simulations.")
    width = min(most, -(-longest // group_size(batch)) * group_size(batch))
    nowhere = record.facts.shape[1] - 1
    nodes = jnp.where(jnp.arange(width) < record.length[..., None], record.nodes[..., :width], nowhere)
    return record._replace(nodes=nodes)


# ---------------------------------------------------------------------------------------------------- what is left out
def without(phase: str, world: World, simulations: int) -> Callable:
    """`(record, keys) -> Tree`: the search without `phase`, and without its network; see above."""
    choose = rule()
    simulate = {"network": _as_ever, "model": _as_ever, "descend": _descend, "expand": _expand, "backup": _backup}[
        phase
    ]
    model = _played(world) if phase == "network" else jz.Model(None, lambda said, keys, action, embedding: said)

    def run(record: Record, keys: Any) -> jz.Tree:
        below, said = record.root
        tree = jz.search.plant(said, below, choose, simulations + 1)
        if phase == "expand":
            tree = tree.replace(facts=record.facts, later_children=record.later)

        def once(record: Record, keys: Any, tree: jz.Tree, path: Any, *_: Any) -> tuple:
            i = tree.root.simulations[0]
            now = Record(None, *jax.tree.map(lambda x: x[i], tuple(record[1:8])), None, None)
            now = now._replace(new=now.new[::-1])  # as a model answers
            return simulate(now, keys, tree, path, model, choose)

        return search(record, keys, tree, model, choose, simulations, simulate=once)

    return run


def _played(world: World) -> jz.Model:
    """The game without its network, whose output for the position is on record."""

    def step(said: tuple, keys: Any, action: Any, embedding: Any) -> tuple:
        step, position, below = world.model.move((), keys, action, embedding)
        seen = jax.vmap(world.game.observe)(position)
        logits, value = said[0].prior_logits, said[0].value
        return step._replace(prior_logits=logits, value=looked_at(value, seen)), below

    return jz.Model(None, step)


def _as_ever(now: Record, keys: Any, tree: jz.Tree, path: Any, model: jz.Model, choose: jz.Rule) -> tuple:
    tree = choose_at_root(tree, choose)
    path = descend(tree, None, path)
    tree, value = expand(now.new, keys, tree, path, model, choose)
    return backup(tree, path, value, choose), path


def _descend(now: Record, keys: Any, tree: jz.Tree, path: Any, model: jz.Model, choose: jz.Rule) -> tuple:
    tree = choose_at_root(tree, choose)
    path = _walk(now, path)
    tree, value = expand(now.new, keys, tree, path, model, choose)
    return backup(tree, path, value, choose), path


def _walk(now: Record, path: Any) -> Any:
    return path._replace(nodes=jax.lax.dynamic_update_slice(path.nodes, now.nodes, (0, 0)), length=now.length)


def _expand(now: Record, keys: Any, tree: jz.Tree, path: Any, model: jz.Model, choose: jz.Rule) -> tuple:
    tree = choose_at_root(tree, choose)
    path = descend(tree, None, path)
    node = tree.root.simulations[0] + 1
    parent = jnp.where(now.grew, node_storage.take(path.nodes, path.length - 1), tree.capacity)
    frontier = node_storage.put_column(node_storage.put(tree.frontier, parent, now.parents), node, now.children)
    facts = jax.lax.dynamic_index_in_dim(tree.facts, node, 1, False)
    stats = node_storage.put_column(tree.stats, node, first_visit(facts, now.grew))
    tree = tree.replace(stats=stats, frontier=frontier, size=jnp.full_like(tree.size, node + 1))
    return backup(tree, path, now.value, choose), path


def _backup(now: Record, keys: Any, tree: jz.Tree, path: Any, model: jz.Model, choose: jz.Rule) -> tuple:
    depth, games = jnp.arange(now.nodes.shape[1]), jnp.arange(len(now.length))[:, None]
    following = jnp.where(depth[1:] < now.length[:, None], now.nodes[:, 1:], -1)
    from_ = jnp.where(depth[:-1] < now.length[:, None], now.nodes[:, :-1], tree.capacity)
    tree = tree.replace(best_child=tree.best_child.at[games, from_].set(following))
    path = descend(tree, None, path)
    tree, value = expand(now.new, keys, tree, path, model, choose)
    tree = tree.replace(status=tree.status + looked_at(jnp.zeros_like(tree.status), value))
    return counted(tree, path), path


# ------------------------------------------------------------------------------------------------------ loop iterations
def turns(record: Record) -> dict[str, float]:
    """The depth of the walks, and the iterations of the loops over their paths per simulation."""
    length, grew = np.asarray(record.length), np.asarray(record.grew)
    batch = length.shape[1]
    group, size = group_size(batch), tile_size(batch)
    up = length - 1  # the root is handled separately
    tiles = up.reshape(len(up), -1, size).max(2)
    edges = length + grew - 1
    return {
        "descend_turns": float(np.ceil(length.max(1) / group).mean()),
        "backup_turns": float(np.ceil(np.maximum(tiles, 1) / group).sum(1).mean()),
        "mean_depth": float(edges.mean()),
        "deepest": int(edges.max()),
    }
