"""Tree search: descend, expand, backup, over many games at once, in lock-step.

A node's preferred edge can change only when a simulation passes through the node, for a rule reads nothing but
its own node's row. So every node remembers its choice, and

* `descend` chases pointers: one small gather per level, no scores, nothing of width A;
* the walk is a value, `Path`, that `backup` consumes: from the leaf up, a few path nodes at a time under a loop
  whose predicate is one scalar, it updates the statistics and has the rule choose anew, the only place where it is asked.

A rule that promises `by_prior` is shown only the edges that were visited and the next one to be tried; the number
of actions then plays no part except where a new node's prior is stored. The root has its own rule, asked once
per simulation after the rest of the path.
"""
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.mcts.tree import (
    NONE, Facts, Frontier, Layout, Stats, Status, Tree, new_tree, pack, per_game, player_to_move, put, put_column, take,
    unpack_facts, unpack_frontier, unpack_stats,
)
from jaxzero.mcts.view import candidate_view, edge_view, visited_edges
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["backup", "descend", "expand", "fold_simulation", "plant", "rescore", "search", "simulate"]

# Edges shown to a rule for a group of nodes: the least of these with room for all their visited edges, or W.
WIDTHS = (8, 32)


def group_size(batch: int) -> int:
    """Path nodes taken together: many keep one game's kernels few, few waste less where paths differ in length."""
    return 8 if batch < 8 else 4


# ---------------------------------------------------------------------------------------------- what a model says
def checked(step: Step, tree: Tree | None = None) -> tuple[Step, Bool[Array, "B"]]:
    """The step with shapes checked, illegal logits at −inf, the highest at 0, and everything finite.

    Args:
        step: what the user's model returned.
        tree: the tree that the step must agree with; None: it is the root's.

    Returns:
        The step, and where a non-finite number was replaced: by uniform logits, value, reward or discount 0.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    if getattr(step.prior_logits, "ndim", 0) != 2:
        raise ValueError(f"Step.prior_logits has shape {jnp.shape(step.prior_logits)}; it must be [B, A].")
    batch, width = step.prior_logits.shape if tree is None else (tree.size.shape[0], tree.num_edges)
    players = step.value.shape[1:] if jnp.ndim(step.value) == 2 else ()
    if tree is not None:
        players = (tree.num_players,) if tree.num_players > 1 else ()
    wanted = dict(prior_logits=(batch, width), value=(batch, *players), reward=(batch, *players), discount=(batch,),
                  legal=(batch, width), terminal=(batch,), to_play=(batch,))
    for name, shape in wanted.items():
        field = getattr(step, name)
        if field is not None and jnp.shape(field) != shape:
            basis = "prior_logits and value" if tree is None else "the root's outputs"
            raise ValueError(f"Step.{name} has shape {jnp.shape(field)}; by {basis} it must be {shape}. "
                             f"Return B = {batch} entries, A = {width} actions" + (f", P = {players[0]} players." if players else "."))
    if players and step.to_play is None:
        raise ValueError("Step.value has one entry per player, so Step.to_play must say who moves; it is None.")
    dtype = jnp.promote_types(step.value.dtype, jnp.float32)  # visits are counted in it
    terminal = jnp.zeros(batch, bool) if step.terminal is None else step.terminal
    legal = ~terminal[:, None] if step.legal is None else step.legal & ~terminal[:, None]
    logits = jnp.where(legal, step.prior_logits, -jnp.inf)
    highest = jnp.max(logits, -1, keepdims=True)
    bad_logits = ~jnp.isfinite(highest) & jnp.any(legal, -1, keepdims=True)
    lowest = jnp.finfo(logits.dtype).min / 4  # finite: only illegal actions are at −inf
    logits = jnp.where(legal, jnp.where(bad_logits, 0, jnp.maximum(logits - highest, lowest)), -jnp.inf)
    bad = bad_logits[:, 0]

    def finite(x: Array, where: Array) -> Array:
        nonlocal bad
        good = jnp.isfinite(x)
        bad = bad | ~jnp.all(good.reshape(batch, -1), -1)
        return jnp.where(good & where, x, 0).astype(dtype)

    going = ~terminal.reshape((-1,) + (1,) * len(players))
    return step._replace(prior_logits=logits, legal=legal, terminal=terminal, value=finite(step.value, going),
                         reward=finite(step.reward, True), discount=finite(step.discount, True)), bad


def _check_embedding(state: State, stored: State, batch: int) -> None:
    """Raises a ValueError if an embedding is not one entry per game of what the tree stores."""
    got = jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x)), state)
    kept = jax.tree.map(lambda x: ((batch, *jnp.shape(x)[2:]), jnp.result_type(x)), stored)
    if jax.tree.structure(state) != jax.tree.structure(stored) or got != kept:
        raise ValueError(f"model.step returned an embedding of shapes and types {got}; model.root's, which the tree stores, is "
                         f"{kept}. Return the same structure, shapes and types, one entry per game.")


def plant(step: Step, state: State, rule: Rule, capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree of one node per game, from what `model.root` says; shapes and numbers are checked."""
    step, bad = checked(step)
    _check_embedding(state, jax.tree.map(lambda x: x[:, None], state), step.value.shape[0])
    tree = new_tree(step, state, rule.prepare(step.prior_logits).astype(step.value.dtype), capacity, layout)
    return tree.replace(status=tree.status | jnp.where(bad, Status.NON_FINITE.value, 0))


# ---------------------------------------------------------------------------------------------- the four phases
def tile_size(batch: int) -> int:
    """How many games go up their paths together.

    On a CPU few: a group of path nodes costs what its longest path and its widest node cost, and a tile's trees
    stay in the cache. Elsewhere all: turns of a loop cost more than idle lanes.
    """
    if jax.default_backend() != "cpu":
        return batch
    return next((size for size in range(min(batch, 64), 15, -1) if batch % size == 0), batch)


def descend(tree: Tree, max_depth: int | None = None) -> Path:
    """Walks every game from its root along the remembered choices.

    A walk ends where the choice is not expanded yet, where there is none, or `max_depth` edges below the root.
    Several levels make one turn of the loop: each is a load that depends on the one before, and little else.
    """
    batch, group = tree.size.shape[0], group_size(tree.size.shape[0])
    longest = tree.capacity if max_depth is None else min(tree.capacity, max_depth + 1)

    def follow(node: Array) -> Array:
        return jnp.where(node >= 0, take(tree.best_child, jnp.maximum(node, 0)), NONE)

    def turn(carry: tuple) -> tuple:
        depth, nodes, path = carry
        levels = [nodes]
        for _ in range(group):
            levels.append(follow(levels[-1]))
        here = jnp.stack(levels[:-1], 1)
        inside = (here >= 0) & (depth + jnp.arange(group) < longest)
        path = Path(jax.lax.dynamic_update_slice(path.nodes, here, (jnp.zeros_like(depth), depth)),
                    path.length + jnp.sum(inside, 1, dtype=jnp.int32))
        return depth + group, levels[-1], path

    def going(carry: tuple) -> Array:
        depth, nodes, _ = carry
        return jnp.any(nodes >= 0) & (depth < longest)

    start = jnp.zeros(batch, jnp.int32)
    room = (longest + group) // group * group  # for the node that `expand` adds, too
    path = Path(jnp.zeros((batch, room), jnp.int32), start)
    return jax.lax.while_loop(going, turn, (jnp.int32(0), start, path))[2]


class Growth(NamedTuple):
    """What one simulation adds to the trees.

    Attributes:
        value: to be backed up from the end of the path.
        node: the new node, the same slot in every game; N if the trees are full.
        parent: the node above; N where the tree does not grow.
        child: where the new node goes in its parent's list of children.
        frontier: of the new node.
        parent_frontier: of the node above, as it is from now on.
        facts: of the new node.
        prior: of the new node.
        state: of the new node.
        bad: where the model returned something that is not finite.
    """

    value: Float[Array, "B P"]
    node: Int[Array, ""]
    parent: Int[Array, "B"]
    child: Int[Array, "B"]
    frontier: Frontier
    parent_frontier: Frontier
    facts: Facts
    prior: Float[Array, "B W"]
    state: State
    bad: Bool[Array, "B"]


def expand(params: Params, keys: Keys, tree: Tree, path: Path, model: Model, rule: Rule,
           max_depth: int | None = None) -> tuple[Tree, Path, Array]:
    """Evaluates what lies beyond the end of each walk and adds it to the tree.

    A walk that cannot grow (terminal, nothing legal, cut at `max_depth`, tree full) leaves its tree as it is; the
    model is not asked if no walk can. A simulation takes the same slot in every game, needed or not: it is written
    as one column, and a tree is full after N − 1 simulations whatever the other games of the batch do.

    Returns:
        The tree; the path, with the new node at its end; and the value `[B, P]` to back up from there: the new
        node's raw value; for a walk that did not grow its end's raw value again, or its mean where `max_depth` cut it.
    """
    leaf = path.nodes[jnp.arange(tree.size.shape[0]), path.length - 1]
    frontier, facts = unpack_frontier(take(tree.frontier, leaf)), unpack_facts(take(tree.facts, leaf))
    prior, state = take(tree.prior, leaf), jax.tree.map(lambda x: take(x, leaf), tree.state)
    cut = jnp.zeros_like(leaf, bool) if max_depth is None else path.length > max_depth
    wants = (take(tree.best_child, leaf) < 0) & (frontier.next_action >= 0) & ~cut
    node = jnp.minimum(jnp.max(tree.size), tree.capacity)
    grows = wants & (node < tree.capacity)
    again = jnp.where(cut[:, None], unpack_stats(take(tree.stats, leaf)).value, facts.raw_value)

    def evaluate() -> Growth:
        step, below = model.step(params, keys, jnp.maximum(frontier.next_action, 0), state)
        step, bad = checked(step, tree)
        _check_embedding(below, tree.state, leaf.shape[0])
        growth = _grow(rule, leaf, frontier, facts, prior, tree.root.prior, step)
        return growth._replace(value=jnp.where(grows[:, None], growth.value, again), node=node,
                               parent=jnp.where(grows, leaf, tree.capacity), state=below, bad=bad & grows)

    def nothing() -> Growth:
        zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(evaluate))
        nowhere = jnp.full_like(leaf, tree.capacity)
        return zeros._replace(value=again, node=nowhere[0], parent=nowhere)

    # All that is read of the old tree is read here, and all that is written to it comes from here: XLA then
    # updates its arrays in place, where a reading not known to come before a writing would make it copy them.
    growth = jax.lax.cond(jnp.any(grows), evaluate, nothing)
    return *_write(tree, path, growth, wants), growth.value


def _grow(rule: Rule, leaf: Array, frontier: Frontier, facts: Facts, prior: Array, in_force: Array | None,
          step: Step) -> Growth:
    """A new node, of which the model says `step`, below `leaf`, whose rows are given."""
    action, mover, to_play, dtype = jnp.maximum(frontier.next_action, 0), facts.to_play, player_to_move(step), step.value.dtype
    value = step.value.reshape(facts.raw_value.shape)
    signed = value.shape[-1] > 1 or step.to_play is None
    discount = step.discount if signed else jnp.where(to_play == mover, step.discount, -step.discount)
    fresh = rule.prepare(step.prior_logits).astype(prior.dtype)
    taken = jnp.take_along_axis(prior, action[:, None], 1)[:, 0].astype(dtype)
    none = jnp.zeros_like(action)
    first = after = Frontier(none + NONE, none, jnp.zeros_like(taken), jnp.zeros_like(taken))
    if rule.by_prior:
        order = prior if in_force is None else jnp.where((leaf == 0)[:, None], in_force, prior)
        bound = jnp.take_along_axis(order, action[:, None], 1)
        later = (order < bound) | ((order == bound) & (jnp.arange(prior.shape[1]) > action[:, None]))
        both = next_edge(rule, jnp.stack([fresh, prior], 1).astype(dtype),
                         jnp.stack([fresh, jnp.where(later, order, -jnp.inf)], 1).astype(dtype))
        first, after = (Frontier(*(x[:, i] for x in both)) for i in (0, 1))
    return Growth(
        value=value, node=none[0], parent=leaf, child=frontier.num_children, frontier=first,
        parent_frontier=after._replace(num_children=frontier.num_children + 1),
        facts=Facts(action, mover, taken, discount, step.reward.reshape(value.shape), to_play, step.terminal, value),
        prior=fresh, state=(), bad=none)


def _write(tree: Tree, path: Path, growth: Growth, wants: Bool[Array, "B"]) -> tuple[Tree, Path]:
    """Puts what has grown into the tree, and the new node at the end of the path."""
    rows, node, dtype = jnp.arange(path.length.shape[0]), growth.node, tree.stats.dtype
    grows = growth.parent < tree.capacity
    overflow = wants & ~grows
    status = jnp.where(growth.bad, Status.NON_FINITE.value, 0) | jnp.where(overflow, Status.FULL.value, 0)
    facts, frontier = pack(growth.facts, dtype), pack(growth.frontier, dtype)
    children = tree.children.at[rows, growth.parent, growth.child].set(node.astype(tree.children.dtype),
                                                                      mode="promise_in_bounds")
    return tree.replace(
        stats=put_column(tree.stats, node, jnp.zeros_like(tree.stats[:, 0])), facts=put_column(tree.facts, node, facts),
        frontier=put(put_column(tree.frontier, node, frontier), growth.parent, pack(growth.parent_frontier, dtype)),
        best_child=put_column(tree.best_child, node, jnp.full_like(growth.parent, NONE)),
        prior=put_column(tree.prior, node, growth.prior),
        state=jax.tree.map(lambda x, y: put_column(x, node, y), tree.state, growth.state),
        children=children, size=jnp.full_like(tree.size, jnp.minimum(jnp.max(tree.size) + 1, tree.capacity)),
        status=tree.status | status, overflows=tree.overflows + overflow,
    ), Path(path.nodes.at[rows, path.length].set(jnp.where(grows, node, tree.capacity), mode="promise_in_bounds"),
            path.length + grows)


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
    group, tile = group_size(batch), tile_size(batch)
    if tile == batch:
        return _backup_tile(tree, path, value, None, group, rule, root_too)

    def turn(i: Array, tree: Tree) -> Tree:
        games = i * tile + jnp.arange(tile, dtype=jnp.int32)
        mine = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, i * tile, tile), (path, value))
        return _backup_tile(tree, *mine, games, group, rule, root_too)

    return jax.lax.fori_loop(0, batch // tile, turn, tree)


def _backup_tile(tree: Tree, path: Path, value: Array, games: Array | None, group: int, rule: Rule, root_too: bool) -> Tree:
    """`backup` for some games, a group of path nodes at a time, from the leaves up."""

    def turn(carry: tuple) -> tuple:
        k, tree, ret = carry
        depth = k * group + jnp.arange(group)
        real = depth < path.length[:, None]
        nodes = jnp.where(real, jax.lax.dynamic_slice_in_dim(path.nodes, k * group, group, 1), 0)
        where = jnp.where(real, nodes, tree.capacity)
        old, facts = unpack_stats(take(tree.stats, nodes, games)), unpack_facts(take(tree.facts, nodes, games))
        returns = []
        for j in reversed(range(group)):
            returns.insert(0, ret)
            ret = jnp.where(real[:, j, None], facts.reward[:, j] + facts.discount[:, j, None] * ret, ret)
        visits = old.visits + 1
        mean = (old.value * old.visits[..., None] + jnp.stack(returns, 1)) / visits[..., None]
        edge = facts.reward + facts.discount[..., None] * mean
        if tree.num_players > 1:
            edge = jnp.take_along_axis(edge, jnp.maximum(facts.mover, 0)[..., None], -1)
        stats = pack(Stats(visits, edge[..., 0], mean), tree.stats.dtype)
        tree = tree.replace(stats=put(tree.stats, where, stats, games))
        choice = choose(tree, nodes, rule, real & (depth > 0) | root_too, games)
        return k - 1, remember(tree, where, choice, games), ret

    last = (jnp.max(path.length) + group - 1) // group - 1
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, turn, (last, tree, value))[1]


def simulate(params: Params, keys: Keys, tree: Tree, model: Model, rule: Rule, root_rule: Rule,
             max_depth: int | None = None) -> Tree:
    """One simulation for every game: descend, expand, backup, and the root's own choice."""
    path = descend(tree, max_depth)
    tree, path, value = expand(params, keys, tree, path, model, rule, max_depth)
    # The root has many more edges to show than the nodes below, so it is asked apart, unless edges are few anyway.
    root_too = root_rule is rule and tree.num_edges <= WIDTHS[-1]
    tree = backup(tree, path, value, rule, root_too)
    tree = tree.replace(root=tree.root.replace(simulations=tree.root.simulations + 1))
    return tree if root_too else choose_at_root(tree, root_rule)


def fold_simulation(keys: Keys, simulation: Int[Array, "B"]) -> Keys:
    """The keys of a simulation: a function of the game's key and of how many simulations its root has seen."""
    return jax.vmap(jax.random.fold_in)(keys, simulation)


def search(params: Params, keys: Keys, tree: Tree, model: Model, rule: Rule, num_simulations: int, *,
           root_rule: Rule | None = None, max_depth: int | None = None, simulate: Callable = simulate,
           simulation_keys: Callable[[Keys, Array], Keys] = fold_simulation) -> Tree:
    """Adds simulations to a tree. Continuing a search equals one longer search.

    Args:
        params: handed to the model.
        keys: one PRNG key per game, `[B]`.
        tree: from `plant`, `search` or `advance`; what it has no room for ends at the nodes above, see `Status.FULL`.
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
    root_rule = rule if root_rule is None else root_rule
    if not rule.by_prior:  # else nobody keeps track of the next edge to be tried
        root_rule = root_rule if root_rule is rule else root_rule._replace(by_prior=False)

    def body(_: Any, tree: Tree) -> Tree:
        step_keys = simulation_keys(keys, tree.root.simulations)
        return simulate(params, step_keys, tree, model, rule, root_rule, max_depth)

    return jax.lax.fori_loop(0, num_simulations, body, choose_at_root(tree, root_rule, fresh=True))


# ---------------------------------------------------------------------------------------------- choosing
def choose(tree: Tree, nodes: Int[Array, "G ..."], rule: Rule, consider: Bool[Array, "G ..."],
           games: Int[Array, "G"] | None = None) -> tuple[Array, Array | None]:
    """The rule's choice at `nodes`: the child to go on to (or −1), and the action that is wanted in that case.

    Args:
        tree: the trees.
        nodes: where to choose.
        rule: what to ask. Of a rule that promises `by_prior` the wanted action is known already: None.
        consider: where the answer matters; elsewhere it may be anything.
        games: the games of the nodes; default: all.
    """

    def at(width: int) -> Callable:
        return lambda: (_choose_candidate if rule.by_prior else _choose_action)(tree, nodes, rule, width, games)

    widths = [w for w in WIDTHS if 2 * w <= tree.num_edges] + [tree.num_edges]
    if len(widths) == 1:
        return at(widths[0])()
    expanded = jnp.max(jnp.where(consider, unpack_frontier(take(tree.frontier, nodes, games)).num_children, 0))
    return jax.lax.switch(sum((expanded >= w).astype(jnp.int32) for w in widths[:-1]), [at(w) for w in widths])


def _choose_candidate(tree: Tree, nodes: Array, rule: Rule, width: int, games: Array | None) -> tuple[Array, None]:
    edges = visited_edges(tree, nodes, width, games)
    view = candidate_view(tree, nodes, edges, games)
    scores = jnp.where(jnp.isneginf(view.prior), -jnp.inf, rule.score(view))
    tied = (scores == jnp.max(scores, -1, keepdims=True)) & ~jnp.isneginf(scores)
    first = jnp.min(jnp.where(tied, view.action, tree.num_edges), -1, keepdims=True)
    return jnp.max(jnp.where(tied & edges.seen & (view.action == first), edges.child, NONE), -1), None


def _choose_action(tree: Tree, nodes: Array, rule: Rule, width: int,
                   games: Array | None) -> tuple[Array, Array]:
    edges = visited_edges(tree, nodes, width, games)
    view = edge_view(tree, nodes, edges, rule, games)
    # In a full tree a node stays inside, if it can: one without children goes on wanting what it cannot have.
    childless = unpack_frontier(take(tree.frontier, nodes, games)).num_children == 0
    open_games = tree.size < tree.capacity
    room = per_game(open_games if games is None else open_games[games], nodes) | childless
    open_ = room[..., None] | (view.visits > 0)
    scores = jnp.where(open_ & ~jnp.isneginf(view.prior), rule.score(view), -jnp.inf)
    best, _ = first_highest(scores)
    below = jnp.max(jnp.where(edges.seen & (edges.action == best[..., None]), edges.child, NONE), -1)
    return below, jnp.where(below >= 0, NONE, best)


def choose_at_root(tree: Tree, rule: Rule, fresh: bool = False) -> Tree:
    """Has the root's rule choose. `fresh`: the next edge to be tried is not known, or is of another rule."""
    root = jnp.zeros_like(tree.size)
    if fresh and rule.by_prior:
        tree = _find_next(tree, root, rule)
    return remember(tree, root, choose(tree, root, rule, root == 0))


def rescore(tree: Tree, rule: Rule) -> Tree:
    """Has every node choose anew: needed when the rule or its constants changed since the tree was searched.

    The priors stay as the first rule prepared them; a rule that prepares them otherwise needs a new tree.
    """

    def turn(k: Array, tree: Tree) -> Tree:
        nodes = jnp.full_like(tree.size, k)
        tree = _find_next(tree, nodes, rule) if rule.by_prior else tree
        return remember(tree, nodes, choose(tree, nodes, rule, nodes >= 0))

    return jax.lax.fori_loop(0, tree.capacity, turn, tree)


def remember(tree: Tree, nodes: Int[Array, "G ..."], choice: tuple[Array, Array | None],
             games: Int[Array, "G"] | None = None) -> Tree:
    """Writes down what `choose` said of `nodes`."""
    best, wanted = choice
    if wanted is not None:
        frontier = unpack_frontier(take(tree.frontier, nodes, games))._replace(next_action=wanted)
        tree = tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype), games))
    return tree.replace(best_child=put(tree.best_child, nodes, best, games))


def _find_next(tree: Tree, nodes: Int[Array, "B"], rule: Rule) -> Tree:
    """Finds the next edge to be tried at `nodes` by looking at all edges."""
    view = edge_view(tree, nodes)
    order = view.prior
    if tree.root.prior is not None:
        order = jnp.where((nodes == 0)[:, None], tree.root.prior, order)
    found = next_edge(rule, view.prior, jnp.where(view.visits == 0, order, -jnp.inf))
    count = unpack_frontier(take(tree.frontier, nodes)).num_children
    frontier = found._replace(num_children=count)
    return tree.replace(frontier=put(tree.frontier, nodes, pack(frontier, tree.frontier.dtype)))


def next_edge(rule: Rule, prior: Float[Array, "... W"], order: Float[Array, "... W"]) -> Frontier:
    """The edge that comes first in `order`, which is −inf where an edge is visited or illegal; no children yet."""
    action, highest = first_highest(order)
    mass = jnp.zeros_like(highest)
    if rule.mass is not None:
        mass = jnp.sum(jnp.where(jnp.isneginf(order), 0, rule.mass(prior)), -1)
    next_prior = jnp.take_along_axis(prior, jnp.maximum(action, 0)[..., None], -1)[..., 0]
    return Frontier(action, jnp.zeros_like(action), next_prior, mass)


def first_highest(scores: Float[Array, "... W"]) -> tuple[Int[Array, "..."], Float[Array, "..."]]:
    """The lowest index of the highest score, and that score; −1 and −inf if all are −inf.

    Two plain reductions: XLA's CPU backend vectorises these, not the one over pairs that an argmax is.
    """
    best = jnp.max(scores, -1)
    index = jnp.arange(scores.shape[-1], dtype=jnp.int32)
    first = jnp.min(jnp.where(scores == best[..., None], index, scores.shape[-1] - 1), -1)
    return jnp.where(jnp.isneginf(best), NONE, first), best
