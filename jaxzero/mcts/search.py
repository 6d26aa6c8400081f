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
from typing import Any

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.mcts.tree import (
    NONE, Layout, Status, Tree, batch_rows, candidate_view, edge_view, for_mover, new_tree, visited_edges,
)
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = ["backup", "descend", "expand", "fold_simulation", "plant", "rescore", "search", "simulate"]

# Edges gathered for a group of nodes: the least of these that holds all their expanded edges, or W.
WIDTHS = (8, 32)

# Path nodes taken together on the way up: more keep a single game's kernels few, fewer waste less on short paths.
CHUNK = 4


# ---------------------------------------------------------------------------------------------- what a model says
def checked(step: Step, num_edges: int | None = None) -> tuple[Step, Bool[Array, "B"]]:
    """The step with shapes checked, illegal logits at −inf, the highest at 0, and everything finite.

    Args:
        step: what the user's model returned.
        num_edges: the logits' expected width; None: as they come.

    Returns:
        The step, and where a non-finite number was replaced: by uniform logits, value, reward or discount 0.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    if getattr(step.prior_logits, "ndim", 0) != 2:
        raise ValueError(f"Step.prior_logits has shape {jnp.shape(step.prior_logits)}; it must be [B, A].")
    batch, width = step.prior_logits.shape
    players = step.value.shape[1:] if jnp.ndim(step.value) == 2 else ()
    wanted = dict(prior_logits=(batch, num_edges or width), value=(batch, *players), reward=(batch, *players),
                  discount=(batch,), legal=(batch, num_edges or width), terminal=(batch,), to_play=(batch,))
    for name, shape in wanted.items():
        field = getattr(step, name)
        if field is not None and jnp.shape(field) != shape:
            raise ValueError(f"Step.{name} has shape {jnp.shape(field)}; with prior_logits {(batch, width)} and value "
                             f"{jnp.shape(step.value)} it must be {shape}. Return one entry per game.")
    if players and step.to_play is None:
        raise ValueError("Step.value has one entry per player, so Step.to_play must say who moves; it is None.")
    dtype = step.value.dtype
    terminal = jnp.zeros(batch, bool) if step.terminal is None else step.terminal
    legal = ~terminal[:, None] if step.legal is None else step.legal & ~terminal[:, None]
    logits = jnp.where(legal, step.prior_logits, -jnp.inf)
    highest = jnp.max(logits, -1, keepdims=True)
    bad_logits = ~jnp.isfinite(highest) & jnp.any(legal, -1, keepdims=True)
    logits = jnp.where(legal, jnp.where(bad_logits, 0, logits - highest), -jnp.inf)
    bad = bad_logits[:, 0]

    def finite(x: Array, where: Array) -> Array:
        nonlocal bad
        good = jnp.isfinite(x)
        bad = bad | ~jnp.all(good.reshape(batch, -1), -1)
        return jnp.where(good & where, x, 0).astype(dtype)

    going = ~terminal.reshape((-1,) + (1,) * len(players))
    return step._replace(prior_logits=logits, legal=legal, terminal=terminal, value=finite(step.value, going),
                         reward=finite(step.reward, True), discount=finite(step.discount, True)), bad


def plant(step: Step, state: State, rule: Rule, capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree of one node per game, from what `model.root` says; shapes and numbers are checked."""
    step, bad = checked(step)
    chex.assert_tree_shape_prefix(state, step.prior_logits.shape[:1])
    tree = new_tree(step, state, rule.prepare(step.prior_logits).astype(step.value.dtype), capacity, layout)
    return tree.replace(status=tree.status | jnp.where(bad, Status.NON_FINITE.value, 0))


# ---------------------------------------------------------------------------------------------- the four phases
def descend(tree: Tree, max_depth: int | None = None) -> Path:
    """Walks every game from its root along the remembered choices.

    A walk ends where the choice is not expanded yet, where there is none, or `max_depth` edges below the root.
    """
    batch, longest = tree.size.shape[0], path_length(tree, max_depth)
    rows = jnp.arange(batch)

    def going(carry: tuple) -> Array:
        depth, node, _ = carry
        return jnp.any(node >= 0) & (depth < (longest if max_depth is None else max_depth + 1))

    def step(carry: tuple) -> tuple:
        depth, node, path = carry
        path = path._replace(nodes=jax.lax.dynamic_update_slice(path.nodes, node[:, None], (0, depth)),
                             length=path.length + (node >= 0))
        below = tree.best_child[rows, jnp.maximum(node, 0)]
        return depth + 1, jnp.where(node >= 0, below, NONE), path

    start = jnp.zeros(batch, jnp.int32)
    path = Path(jnp.zeros((batch, longest + CHUNK), jnp.int32), start)
    return jax.lax.while_loop(going, step, (jnp.int32(0), start, path))[2]


def path_length(tree: Tree, max_depth: int | None) -> int:
    """The most nodes that a walk can pass."""
    return tree.capacity if max_depth is None else min(tree.capacity, max_depth + 1)


def expand(params: Params, keys: Keys, tree: Tree, path: Path, model: Model, rule: Rule,
           max_depth: int | None = None) -> tuple[Tree, Path, Array]:
    """Evaluates what lies beyond the end of each walk and adds it to the tree.

    A walk that cannot grow (terminal, nothing legal, cut at `max_depth`, tree full) leaves its tree as it is.

    Returns:
        The tree, the path with the new nodes at its end, and the value to back up from there: the new node's raw
        value; for a walk that did not grow its end's raw value again, or the end's mean if `max_depth` cut it.
    """
    batch = tree.size.shape[0]
    rows = jnp.arange(batch)
    leaf = path.nodes[rows, path.length - 1]
    wanted = tree.next_action[rows, leaf]
    cut = jnp.zeros(batch, bool) if max_depth is None else path.length > max_depth
    wants = (tree.best_child[rows, leaf] < 0) & (wanted >= 0) & ~cut
    grows = wants & (tree.size < tree.capacity)
    mean, raw = tree.value[rows, leaf], tree.raw_value[rows, leaf]
    again = jnp.where(per_game(cut, mean), mean, raw)
    action = jnp.maximum(wanted, 0)
    step, state = model.step(params, keys, action, jax.tree.map(lambda x: x[rows, leaf], tree.state))
    chex.assert_tree_shape_prefix(state, (batch,))
    step, bad = checked(step, tree.num_edges)
    new = jnp.where(grows, tree.size, tree.capacity)
    tree = _add_nodes(tree, leaf, action, new, grows, step, state, rule)
    status = jnp.where(grows & bad, Status.NON_FINITE.value, 0) | jnp.where(wants & ~grows, Status.FULL.value, 0)
    tree = tree.replace(size=tree.size + grows, status=tree.status | status, overflows=tree.overflows + (wants & ~grows))
    nodes = path.nodes.at[rows, path.length].set(jnp.where(grows, new, 0), mode="drop", unique_indices=True)
    value = jnp.where(per_game(grows, step.value), step.value, again)
    return tree, Path(nodes, path.length + grows), value


def _add_nodes(tree: Tree, leaf: Array, action: Array, new: Array, grows: Array, step: Step, state: State,
               rule: Rule) -> Tree:
    """Writes one node per game at index `new` (beyond the last: none) and hangs it under `leaf`."""
    batch = leaf.shape[0]
    rows = jnp.arange(batch)
    discount = step.discount
    if step.to_play is not None and step.value.ndim == 1:
        same = step.to_play == tree.to_play[rows, leaf]
        discount = jnp.where(same, discount, -discount)

    def put(x: Array, row: Array) -> Array:
        row = row.astype(x.dtype)
        if batch > 1:
            return x.at[rows, new].set(row, mode="drop", unique_indices=True)
        # XLA turns a scatter of one row into a slice update, fuses the reading of the old node into it and then
        # has to copy the whole array; a second row, out of range, prevents that.
        twice = jnp.stack([new, jnp.full_like(new, tree.capacity + 1)], 1)
        return x.at[rows[:, None], twice].set(jnp.stack([row, row], 1), mode="drop", unique_indices=True)

    # The new prior is written before the parent's is read: the other order would make XLA copy the array.
    fresh = rule.prepare(step.prior_logits).astype(tree.prior.dtype)
    prior = put(tree.prior, fresh)
    parent_prior = prior[rows, leaf].astype(tree.edge_prior.dtype)
    taken = jnp.take_along_axis(parent_prior, action[:, None], 1)
    parent = jnp.where(grows, leaf, tree.capacity)
    slot = tree.num_children[rows, leaf]

    def put_parent(x: Array, y: Array) -> Array:
        return x.at[rows, parent].set(y, mode="drop", unique_indices=True)

    next_action = tree.next_action
    if rule.by_prior:
        next_action = put(next_action, _first_highest(fresh.astype(tree.edge_prior.dtype)))
        ids = jnp.arange(tree.num_edges)
        later = (parent_prior < taken) | ((parent_prior == taken) & (ids > action[:, None]))
        next_action = put_parent(next_action, _first_highest(jnp.where(later, parent_prior, -jnp.inf)))
    return tree.replace(
        prior=prior, next_action=next_action, state=jax.tree.map(put, tree.state, state),
        raw_value=put(tree.raw_value, step.value), reward=put(tree.reward, step.reward),
        discount=put(tree.discount, discount), action=put(tree.action, action),
        edge_prior=put(tree.edge_prior, taken[:, 0]), terminal=put(tree.terminal, step.terminal),
        to_play=None if tree.to_play is None else put(tree.to_play, step.to_play),
        children=tree.children.at[rows, parent, slot].set(new.astype(tree.children.dtype), mode="drop",
                                                          unique_indices=True),
        num_children=put_parent(tree.num_children, slot + 1))


def backup(tree: Tree, path: Path, value: Array, rule: Rule) -> Tree:
    """Carries `value`, found at the end of each path, up to the root; every node passed chooses anew.

    Returns follow G = reward + discount × G' of the step below; each node's mean takes in the return from there.
    The root's choice is left to its own rule, see `simulate`.
    """
    batch, rows = path.length.shape[0], jnp.arange(path.length.shape[0])[:, None]
    vector = value.ndim - 1

    def group(carry: tuple) -> tuple:
        k, tree, ret, child, child_value = carry  # the return from, index and new mean of the node below the group
        depth = k * CHUNK + jnp.arange(CHUNK)
        real = depth < path.length[:, None]
        nodes = jnp.where(real, jax.lax.dynamic_slice(path.nodes, (0, k * CHUNK), (batch, CHUNK)), 0)
        ends = depth == path.length[:, None] - 1
        below = jnp.where(real & ~ends, jnp.concatenate([nodes[:, 1:], child[:, None]], 1), 0)
        reward, discount = tree.reward[rows, below], tree.discount[rows, below]
        discount = discount[..., None] if vector else discount
        returns = []
        for j in reversed(range(CHUNK)):
            ret = jnp.where(per_game(real[:, j] & ~ends[:, j], ret), reward[:, j] + discount[:, j] * ret, ret)
            returns.insert(0, ret)
        visits = tree.visits[rows, nodes]
        count = visits[..., None] if vector else visits
        mean = (tree.value[rows, nodes] * count + jnp.stack(returns, 1)) / (count + 1)
        under = jnp.concatenate([mean[:, 1:], child_value[:, None]], 1)
        edge = for_mover(reward + discount * under, tree, nodes)
        here, there = jnp.where(real, nodes, tree.capacity), jnp.where(real & ~ends, below, tree.capacity)

        def put(x: Array, index: Array, y: Array) -> Array:
            return x.at[rows, index].set(y.astype(x.dtype), mode="drop", unique_indices=True)

        tree = tree.replace(visits=put(tree.visits, here, visits + 1), value=put(tree.value, here, mean),
                            edge_value=put(tree.edge_value, there, edge))
        best, wanted = choose(tree, nodes, rule, real & (depth > 0))
        tree = tree.replace(best_child=put(tree.best_child, here, best))
        if not rule.by_prior:
            tree = tree.replace(next_action=put(tree.next_action, here, wanted))
        first = real[:, 0]
        return (k - 1, tree, ret, jnp.where(first, nodes[:, 0], child),
                jnp.where(per_game(first, child_value), mean[:, 0], child_value))

    last = (jnp.max(path.length) + CHUNK - 1) // CHUNK - 1
    start = (last, tree, value, jnp.zeros(batch, jnp.int32), value)
    return jax.lax.while_loop(lambda carry: carry[0] >= 0, group, start)[1]


def simulate(params: Params, keys: Keys, tree: Tree, model: Model, rule: Rule, root_rule: Rule,
             max_depth: int | None = None) -> Tree:
    """One simulation for every game: descend, expand, backup, and the root's own choice."""
    path = descend(tree, max_depth)
    tree, path, value = expand(params, keys, tree, path, model, rule, max_depth)
    tree = backup(tree, path, value, rule)
    tree = tree.replace(root=tree.root.replace(simulations=tree.root.simulations + 1))
    return choose_at_root(tree, root_rule)


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
    if root_rule.by_prior and not rule.by_prior:  # only a `by_prior` rule keeps track of the next edge to be tried
        root_rule = root_rule._replace(by_prior=False)

    def body(_: Any, tree: Tree) -> Tree:
        step_keys = simulation_keys(keys, tree.root.simulations)
        return simulate(params, step_keys, tree, model, rule, root_rule, max_depth)

    return jax.lax.fori_loop(0, num_simulations, body, choose_at_root(tree, root_rule, fresh=True))


# ---------------------------------------------------------------------------------------------- choosing
def choose(tree: Tree, nodes: Int[Array, "B ..."], rule: Rule, consider: Bool[Array, "B ..."]) -> tuple[Array, Array | None]:
    """The rule's choice at `nodes`: the child to go on to (or −1), and the action that is wanted then.

    Args:
        tree: the trees.
        nodes: where to choose.
        rule: what to ask. Of a rule that promises `by_prior` the wanted action is known already: None.
        consider: where the answer matters; elsewhere it may be anything.
    """
    full = tree.size >= tree.capacity

    def at(width: int) -> Callable:
        if rule.by_prior:
            return lambda: _choose_candidate(tree, nodes, rule, full, width)
        return lambda: _choose_action(tree, nodes, rule, full, width)

    widths = [w for w in WIDTHS if w < tree.num_edges] + [tree.num_edges]
    if len(widths) == 1:
        return at(widths[0])()
    expanded = jnp.where(consider, tree.num_children[batch_rows(nodes), nodes], 0)
    index = jnp.sum(jnp.max(expanded) >= jnp.array(widths[:-1]))
    return jax.lax.switch(index, [at(width) for width in widths])


def choose_at_root(tree: Tree, rule: Rule, fresh: bool = False) -> Tree:
    """Has the root's rule choose. `fresh`: the next edge to be tried is not known, or of another rule."""
    root = jnp.zeros_like(tree.size)
    if fresh and rule.by_prior:
        tree = tree.replace(next_action=tree.next_action.at[:, 0].set(_next_by_prior(tree, root)))
    best, wanted = choose(tree, root, rule, root == 0)
    if wanted is not None:
        tree = tree.replace(next_action=tree.next_action.at[:, 0].set(wanted))
    return tree.replace(best_child=tree.best_child.at[:, 0].set(best))


def rescore(tree: Tree, rule: Rule) -> Tree:
    """Has every node choose anew: needed when the rule or its constants changed since the tree was searched.

    The priors stay as the first rule prepared them; a rule that prepares them otherwise needs a new tree.
    """

    def group(k: Array, tree: Tree) -> Tree:
        nodes = jnp.minimum(k * CHUNK + jnp.arange(CHUNK), tree.capacity - 1)
        nodes = jnp.broadcast_to(nodes, (tree.size.shape[0], CHUNK))
        rows = batch_rows(nodes)
        if rule.by_prior:
            tree = tree.replace(next_action=tree.next_action.at[rows, nodes].set(_next_by_prior(tree, nodes)))
        best, wanted = choose(tree, nodes, rule, nodes >= 0)
        if wanted is not None:
            tree = tree.replace(next_action=tree.next_action.at[rows, nodes].set(wanted))
        return tree.replace(best_child=tree.best_child.at[rows, nodes].set(best))

    return jax.lax.fori_loop(0, -(-tree.capacity // CHUNK), group, tree)


def _next_by_prior(tree: Tree, nodes: Array) -> Array:
    view = edge_view(tree, nodes)
    return _first_highest(jnp.where(view.visits == 0, view.prior, -jnp.inf))


def _choose_candidate(tree: Tree, nodes: Array, rule: Rule, full: Array, width: int) -> tuple[Array, None]:
    view, action = candidate_view(tree, nodes, full, width)
    child, _, seen = visited_edges(tree, nodes, width)
    scores = jnp.where(jnp.isneginf(view.prior), -jnp.inf, rule.score(view))
    tied = (scores == jnp.max(scores, -1, keepdims=True)) & ~jnp.isneginf(scores)
    first = jnp.min(jnp.where(tied, action, tree.num_edges), -1, keepdims=True)
    return jnp.max(jnp.where(tied & seen & (action == first), child, NONE), -1), None


def _choose_action(tree: Tree, nodes: Array, rule: Rule, full: Array, width: int) -> tuple[Array, Array]:
    view = edge_view(tree, nodes, width)
    child, action, seen = visited_edges(tree, nodes, width)
    allowed = ~jnp.isneginf(view.prior) & ((view.visits > 0) | ~full.reshape((-1,) + (1,) * nodes.ndim))
    best = _first_highest(jnp.where(allowed, rule.score(view), -jnp.inf))
    below = jnp.max(jnp.where(seen & (action == best[..., None]), child, NONE), -1)
    return below, jnp.where(below >= 0, NONE, best)


def _first_highest(scores: Float[Array, "... W"]) -> Int[Array, "..."]:
    """The lowest index of the highest score; −1 if all are −inf.

    Two plain reductions: XLA's CPU backend vectorises these, not the one over pairs that an argmax is.
    """
    best = jnp.max(scores, -1, keepdims=True)
    index = jnp.arange(scores.shape[-1], dtype=jnp.int32)
    first = jnp.min(jnp.where(scores == best, index, scores.shape[-1] - 1), -1)
    return jnp.where(jnp.isneginf(best[..., 0]), NONE, first)


def per_game(mask: Bool[Array, "B"], like: Array) -> Array:
    """`mask` with trailing axes to select between arrays shaped as `like`."""
    return mask.reshape(mask.shape + (1,) * (like.ndim - mask.ndim))
