"""Backup: adds the value of a simulation to every node on its path; each of them chooses again."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.backend_tuning import machine
from jaxzero.search.action_selection import choose, remember
from jaxzero.search.node_storage import (
    Stats,
    Tile,
    held,
    in_this_turn,
    pack,
    places,
    put,
    put_column,
    repeat,
    unpack_facts,
    unpack_stats,
    visited,
)
from jaxzero.search.tree import Tree, rows_of
from jaxzero.types import Path, Rule

__all__ = ["backup", "counted", "group_size"]


def group_size(batch: int) -> int:
    """Path nodes per iteration: more need fewer kernels for one game; fewer waste less where paths differ in length."""
    here = machine()
    return here.levels_of_few if batch < here.few_games else here.levels


def tile_size(batch: int) -> int:
    """How many games back up together, as one tile.

    On a CPU few, because a tile costs as much as its longest path and its widest node, and its trees stay in the cache.
    On an accelerator all, because more loop iterations cost more than idle games.
    """
    most = machine().tile
    if most is None:
        return batch
    return next((size for size in range(min(batch, most), 15, -1) if batch % size == 0), batch)


def backup(tree: Tree, path: Path, value: Float[Array, "B P"], rule: Rule) -> Tree:
    """Adds `value`, found at the end of each path, to all its nodes; those below the root choose again.

    On the way up, a return becomes reward + discount × return, and each node's mean is updated by the return from
    there. A group of path nodes is handled at once. The simulation is counted in `tree.root.simulations`.

    Args:
        tree: the trees.
        path: the walks: `nodes` has room for a group beyond the longest.
        value: what `expand` found, for the player to move at their ends, or for every player.
        rule: how the nodes choose.
    """
    batch = path.length.shape[0]
    group, size = group_size(batch), tile_size(batch)
    turn = functools.partial(_backup_tile, group=group, rule=rule)
    if size == batch:
        tree, value = turn(tree, path, value, None)
    else:

        def tiles(i: Array, carry: tuple[Tree, Array]) -> tuple[Tree, Array]:
            tree, value = carry
            length, mine = (jax.lax.dynamic_slice_in_dim(x, i * size, size) for x in (path.length, value))
            tree, mine = turn(tree, path._replace(length=length), mine, Tile(i * size, size))
            return tree, jax.lax.dynamic_update_slice_in_dim(value, mine, i * size, 0)

        tree, value = jax.lax.fori_loop(0, batch // size, tiles, (tree, value))
    stats = unpack_stats(held(tree.stats[:, 0]))
    value = tree.hooks.corrected(tree, jnp.zeros_like(tree.size), stats, value, None, True)
    stats = pack(visited(stats, unpack_facts(tree.facts[:, 0]), value), tree.stats.dtype)
    if path.going is not None:
        stats = jnp.where(path.going[:, None], stats, tree.stats[:, 0])
    return counted(tree.replace(stats=put_column(tree.stats, 0, stats)), path)


def counted(tree: Tree, path: Path) -> Tree:
    """Counts the simulation in the games that took part. Sequential halving and later keys depend on the count."""
    more = 1 if path.going is None else path.going.astype(jnp.int32)
    return tree.replace(root=tree.root.replace(simulations=tree.root.simulations + more))


def _backup_tile(tree: Tree, path: Path, value: Array, tile: Tile | None, group: int, rule: Rule) -> tuple[Tree, Array]:
    """Backup of some games, a group of path nodes at a time, from the leaves up to the nodes below the root.

    Returns the trees, and the return at the root.
    """

    def turn(carry: tuple) -> tuple[tuple, Array]:
        k, tree, ret = carry
        here = None if tile is None else tile._replace(first=in_this_turn(tile.first, k))
        depth = 1 + k * group + places(group, 2)
        real = depth < path.length[:, None]
        corner = [jnp.int32(0 if here is None else here.first), 1 + k * group]
        nodes = jnp.where(real, jax.lax.dynamic_slice(path.nodes, corner, (len(real), group)), 0)
        where = jnp.where(real, nodes, tree.capacity)
        at = rows_of(tree, nodes, here)
        at = at._replace(stats=held(at.stats))
        facts, stats, returns = unpack_facts(at.facts), unpack_stats(at.stats), []
        for j in reversed(range(group)):
            old, counted = Stats(*(x[:, j] for x in stats)), j + 1 == group  # nodes below: updated before
            corrected = tree.hooks.corrected(tree, nodes[:, j], old, ret, here, counted)
            ret = ret if corrected is ret else jnp.where(real[:, j, None], corrected, ret)
            returns.insert(0, ret)
            ret = jnp.where(real[:, j, None], facts.reward[:, j] + facts.discount[:, j, None] * ret, ret)
        stats = visited(stats, facts, jnp.stack(returns, 1))
        at = at._replace(stats=pack(stats, tree.stats.dtype))
        tree = tree.replace(stats=put(tree.stats, where, at.stats, here))
        return (k - 1, remember(tree, where, choose(tree, at, rule, real), here), ret), k > 0

    last = jnp.max(jnp.maximum(path.length - 2, 0) // group)  # if nothing is left, one iteration without effect
    return repeat(turn, (last, tree, value), jnp.any(path.length > 1))[1:]
