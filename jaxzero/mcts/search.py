"""Tree search: descend, expand, backup, over many games at once, in lock-step.

A node's preferred edge can change only when a simulation passes through the node, for a rule reads nothing but
its own node's row. So every node remembers its choice, and

* `descend` chases pointers: one small gather per level, no scores, nothing of width A;
* the walk is a value, `Path`, that `backup` consumes: from the leaf up, a few path nodes at a time under a loop
  whose predicate is one scalar, it updates the statistics and has the rule choose anew.

The rules are asked in `choice`, in a way that makes the number of actions play no part except where a new node's prior
is stored. The root has its own rule, asked once per simulation after the rest of the path.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.mcts.choice import choose, choose_at_root, remember, rescore
from jaxzero.mcts.expansion import expand
from jaxzero.mcts.outputs import check_embedding, checked
from jaxzero.mcts.rows import (
    Facts,
    Stats,
    Tile,
    pack,
    put,
    put_column,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
)
from jaxzero.mcts.tree import NONE, Layout, Status, Tree, new_tree, rows_of
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = [
    "backup",
    "choose_at_root",
    "descend",
    "enter",
    "expand",
    "finish",
    "fold_simulation",
    "plant",
    "rescore",
    "search",
    "simulate",
]

FEW_EDGES = 32  # with no more than these the root is rated with the nodes below
FEW_GAMES = 8  # with fewer, the number of kernels is what a simulation costs


def plant(step: Step, state: State, rule: Rule, capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree of one node per game, from what `model.root` says; shapes and numbers are checked."""
    step, bad = checked(step)
    check_embedding(state, step.value.shape[0])
    tree = new_tree(step, state, rule.prepare(step.prior_logits), capacity, layout)
    return tree.replace(status=tree.status | jnp.where(bad, Status.NON_FINITE.value, 0))


def group_size(batch: int) -> int:
    """Path nodes taken together: many keep one game's kernels few, few waste less where paths differ in length."""
    return 8 if batch < FEW_GAMES else 4


def tile_size(batch: int) -> int:
    """How many games go up their paths together.

    On a CPU few: a group of path nodes costs what its longest path and its widest node cost, and a tile's trees
    stay in the cache. Elsewhere all: turns of a loop cost more than idle lanes. Which it is goes by jax's default
    backend; on another device the results are the same, and slower.
    """
    if jax.default_backend() != "cpu":
        return batch
    return next((size for size in range(min(batch, 64), 15, -1) if batch % size == 0), batch)


def longest_walk(tree: Tree, max_depth: int | None) -> int:
    """The most nodes that a walk can pass."""
    return tree.capacity if max_depth is None else min(tree.capacity, max_depth + 1)


def no_walk(tree: Tree, max_depth: int | None = None) -> Path:
    """Paths not taken yet: memory for walks, and for the node that `expand` adds to them."""
    room = longest_walk(tree, max_depth) + group_size(tree.size.shape[0])  # both loops over a path go by whole groups
    return Path(jnp.zeros((tree.size.shape[0], room), jnp.int32), jnp.zeros_like(tree.size))


def descend(tree: Tree, max_depth: int | None = None, path: Path | None = None) -> Path:
    """Walks every game from its root along the remembered choices.

    A walk ends where the choice is not expanded yet, where there is none, or `max_depth` edges below the root.
    Several levels make one turn of the loop: each is a load that depends on the one before, and little else.

    Args:
        tree: the trees.
        max_depth: how many edges below the root a walk may go; None: no limit.
        path: an earlier walk in trees of this capacity, whose memory is written over; None: new memory, which takes
            longer to get than the walk itself where N is large.
    """
    group, longest = group_size(tree.size.shape[0]), longest_walk(tree, max_depth)

    def follow(node: Array) -> Array:
        return jnp.where(node >= 0, take(tree.best_child, jnp.maximum(node, 0)), NONE)

    def turn(carry: tuple) -> tuple:
        depth, nodes, path = carry
        levels = [nodes]
        for _ in range(group):
            levels.append(follow(levels[-1]))
        here = jnp.stack(levels[:-1], 1)
        inside = (here >= 0) & (depth + jnp.arange(group) < longest)
        path = Path(
            jax.lax.dynamic_update_slice(path.nodes, here, (jnp.zeros_like(depth), depth)),
            path.length + jnp.sum(inside, 1, dtype=jnp.int32),
        )
        return depth + group, levels[-1], path

    def going(carry: tuple) -> Array:
        depth, nodes, _ = carry
        return jnp.any(nodes >= 0) & (depth < longest)

    start = jnp.zeros_like(tree.size)
    path = (no_walk(tree, max_depth) if path is None else path)._replace(length=start)
    return jax.lax.while_loop(going, turn, (jnp.int32(0), start, path))[2]


def backup(tree: Tree, path: Path, value: Float[Array, "B P"], rule: Rule, root_too: bool = False) -> Tree:
    """Carries `value`, found at the end of each path, up to the root; every node passed chooses anew.

    Going up, a return becomes reward + discount × return; each node's mean takes in the return from there on. A
    group of path nodes is handled at once.

    Args:
        tree: the trees.
        path: the walks; their ends have been expanded.
        value: what was found there, for the player to move there, or for every player.
        rule: how the nodes choose.
        root_too: whether the root's choice is this rule's, too; it is left as it was if not.
    """
    batch = path.length.shape[0]
    group, size, first = group_size(batch), tile_size(batch), 0 if root_too else 1
    if batch >= FEW_GAMES and rule.by_prior:
        tree, path, value = _visit_ends(tree, path, value)
    turn = functools.partial(_backup_tile, group=group, first=first, rule=rule)
    if size == batch:
        tree, value = turn(tree, path, value, None)
    else:

        def tiles(i: Array, carry: tuple[Tree, Array]) -> tuple[Tree, Array]:
            tree, value = carry
            length, mine = (jax.lax.dynamic_slice_in_dim(x, i * size, size) for x in (path.length, value))
            tree, mine = turn(tree, path._replace(length=length), mine, Tile(i * size, size))
            return tree, jax.lax.dynamic_update_slice_in_dim(value, mine, i * size, 0)

        tree, value = jax.lax.fori_loop(0, batch // size, tiles, (tree, value))
    if root_too:
        return tree
    stats = _visited(unpack_stats(tree.stats[:, 0]), unpack_facts(tree.facts[:, 0]), value)
    return tree.replace(stats=put_column(tree.stats, 0, pack(stats, tree.stats.dtype)))


def _visited(old: Stats, facts: Facts, ret: Float[Array, "... P"]) -> Stats:
    """The statistics of nodes after one visit more, which returned `ret`."""
    visits = old.visits + 1
    mean = (old.value * old.visits[..., None] + ret) / visits[..., None]
    edge = facts.reward + facts.discount[..., None] * mean
    if edge.shape[-1] > 1:
        edge = jnp.take_along_axis(edge, jnp.maximum(facts.mover, 0)[..., None], -1)
    return Stats(visits, edge[..., 0], mean)


def _visit_ends(tree: Tree, path: Path, value: Array) -> tuple[Tree, Path, Array]:
    """The part of `backup` at those ends of walks that have no children: the next edge is known, so is the choice.

    Paths are short, and all of a tile take as long as the longest: one node less is much.
    """
    end = take(path.nodes, path.length - 1)
    at = rows_of(tree, end)
    apart = (unpack_frontier(at.frontier).num_children == 0) & (path.length > 1)
    facts = unpack_facts(at.facts)
    stats = pack(_visited(unpack_stats(at.stats), facts, value), tree.stats.dtype)
    tree = tree.replace(stats=put(tree.stats, jnp.where(apart, end, tree.capacity), stats))
    above = facts.reward + facts.discount[:, None] * value
    return tree, path._replace(length=path.length - apart), jnp.where(apart[:, None], above, value)


def _backup_tile(
    tree: Tree, path: Path, value: Array, tile: Tile | None, group: int, first: int, rule: Rule
) -> tuple[Tree, Array]:
    """`backup` for some games, a group of path nodes at a time, from the leaves up to depth `first`."""

    def turn(carry: tuple) -> tuple:
        k, tree, ret = carry
        # The same number, but known in this turn only: else XLA copies the tile out of the arrays before the loop.
        here = None if tile is None else tile._replace(first=jnp.maximum(tile.first, -k))
        depth = first + k * group + jnp.arange(group)
        real = depth < path.length[:, None]
        corner = [jnp.int32(0 if here is None else here.first), jnp.int32(first + k * group)]
        nodes = jnp.where(real, jax.lax.dynamic_slice(path.nodes, corner, (len(real), group)), 0)
        where = jnp.where(real, nodes, tree.capacity)
        at = rows_of(tree, nodes, here)
        facts, returns = unpack_facts(at.facts), []
        for j in reversed(range(group)):
            returns.insert(0, ret)
            ret = jnp.where(real[:, j, None], facts.reward[:, j] + facts.discount[:, j, None] * ret, ret)
        stats = _visited(unpack_stats(at.stats), facts, jnp.stack(returns, 1))
        at = at._replace(stats=pack(stats, tree.stats.dtype))
        tree = tree.replace(stats=put(tree.stats, where, at.stats, here))
        return k - 1, remember(tree, where, choose(tree, at, rule, real, here), here), ret

    last = (jnp.max(path.length) - first + group - 1) // group - 1
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, turn, (last, tree, value))[1:]


def enter(tree: Tree, root_rule: Rule, max_depth: int | None = None) -> tuple[Tree, Path]:
    """What the first `simulate` is given: the root's rule has chosen, and there is memory for the walks."""
    return choose_at_root(tree, root_rule, fresh=True), no_walk(tree, max_depth)


def finish(tree: Tree, path: Path, value: Float[Array, "B P"], rule: Rule, root_rule: Rule) -> Tree:
    """The second half of a simulation: what was found goes up, the root chooses, the simulation is counted."""
    # The root has many more edges to show than the nodes below, so it is asked apart, unless edges are few anyway.
    root_too = root_rule is rule and tree.num_edges <= FEW_EDGES
    tree = backup(tree, path, value, rule, root_too)
    tree = tree.replace(root=tree.root.replace(simulations=tree.root.simulations + 1))
    return tree if root_too else choose_at_root(tree, root_rule)


def paired(rule: Rule, root_rule: Rule | None) -> Rule:
    """The root's rule as it can be asked beside `rule`: by prior only if what that needs is kept track of."""
    if root_rule is None or root_rule is rule:
        return rule
    kept = rule.by_prior and (root_rule.mass is None or root_rule.mass is rule.mass)
    return root_rule if kept else root_rule._replace(by_prior=False)


def simulate(
    params: Params,
    keys: Keys,
    tree: Tree,
    path: Path,
    model: Model,
    rule: Rule,
    root_rule: Rule,
    max_depth: int | None = None,
) -> tuple[Tree, Path]:
    """One simulation for every game: descend, expand, backup, and the root's own choice.

    Takes what `enter` or the simulation before returned: the trees, and their last walks for the sake of the memory.
    """
    path = descend(tree, max_depth, path)
    tree, path, value = expand(params, keys, tree, path, model, rule, max_depth)
    return finish(tree, path, value, rule, paired(rule, root_rule)), path


def fold_simulation(keys: Keys, simulation: Int[Array, "B"]) -> Keys:
    """The keys of a simulation: a function of the game's key and of how many simulations its root has seen."""
    return jax.vmap(jax.random.fold_in)(keys, simulation)


def search(
    params: Params,
    keys: Keys,
    tree: Tree,
    model: Model,
    rule: Rule,
    num_simulations: int,
    *,
    root_rule: Rule | None = None,
    max_depth: int | None = None,
    simulate: Callable = simulate,
    simulation_keys: Callable[[Keys, Array], Keys] = fold_simulation,
) -> Tree:
    """Adds simulations to a tree. Continuing a search equals one longer search.

    Args:
        params: handed to the model.
        keys: one PRNG key per game, `[B]`.
        tree: from `plant` or `search`; what it has no room for ends at the nodes above, see `Status.FULL`.
        model: what the tree is made of.
        rule: how interior nodes choose; the tree's choices must be of this rule, else call `rescore` first.
        num_simulations: how many to add to every game.
        root_rule: how the root chooses; None: like the others.
        max_depth: how many edges below the root a walk may go; None: no limit.
        simulate: what one simulation is, see `jaxzero.mcts.search.simulate`.
        simulation_keys: `(keys, simulation [B]) -> keys [B]` for the model's call in that simulation.

    Raises:
        ValueError: num_simulations or max_depth below 1.
    """
    if num_simulations < 1:
        raise ValueError(f"num_simulations={num_simulations}: a search adds at least one. Use num_simulations >= 1.")
    if max_depth is not None and max_depth < 1:
        raise ValueError(f"max_depth={max_depth}: a walk takes at least one edge. Use max_depth >= 1, or None.")
    root_rule = paired(rule, root_rule)

    def body(_: Any, carry: tuple[Tree, Path]) -> tuple[Tree, Path]:
        tree, path = carry
        step_keys = simulation_keys(keys, tree.root.simulations)
        return simulate(params, step_keys, tree, path, model, rule, root_rule, max_depth)

    return jax.lax.fori_loop(0, num_simulations, body, enter(tree, root_rule, max_depth))[0]
