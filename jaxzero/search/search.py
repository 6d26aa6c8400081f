"""Tree search: descend, expand, backup, for many games at once, in lock-step.

A rule reads only its own node's row. So a node's preferred edge can change only when a simulation passes through the
node, and every node stores its choice:

* `choose_at_root` has the root choose, by a rule of its own, as each simulation begins;
* `descend` follows the stored choices: one small gather per level, no scores, nothing of width A;
* `expand` evaluates the position beyond the end of the walk and adds it as a node;
* `backup` goes up the walk, a few nodes at a time. It updates their statistics and has the rule choose again.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.search.action_selection import choose_at_root, is_rated, rescore, with_next_edge
from jaxzero.search.backup import backup, group_size
from jaxzero.search.checks.argument_checks import check_rule, counts
from jaxzero.search.checks.model_checks import check_embedding, checked
from jaxzero.search.expansion import expand
from jaxzero.search.node_storage import held, per_game, repeat, take
from jaxzero.search.selection_rules import prior_kind, searched_by
from jaxzero.search.tree import NONE, Layout, Status, Tree, new_tree
from jaxzero.types import Keys, Model, Params, Path, Rule, State, Step

__all__ = [
    "backup",
    "choose_at_root",
    "descend",
    "enter",
    "expand",
    "fold_simulation",
    "plant",
    "replant",
    "rescore",
    "search",
    "simulate",
]

Stop = Callable[[Tree, Int[Array, ""]], Bool[Array, "B"]]  # (tree, simulations left) -> the games that need none


def plant(step: Step, state: State, rule: Rule, capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree of one node per game, from the output of `model.root`; shapes and numbers are checked."""
    check_rule("rule", rule)
    (capacity,) = counts(capacity=capacity)
    given, (step, bad) = step, checked(step)
    check_embedding(state, step.value.shape[0])
    tree = new_tree(step, state, rule.prepare(step.prior_logits), capacity, layout)
    tree = tree if rule.on_plant is None else rule.on_plant(tree, given)
    kind = prior_kind(rule, tree.num_edges)
    return tree.replace(prior_kind=kind, status=tree.status | Status.NON_FINITE.where(bad))


def replant(tree: Tree, step: Step, state: State, rule: Rule) -> Tree:
    """Plants the games without a tree (`advance` kept nothing of them); leaves the others as they are."""
    empty = tree.size == 0
    index = None if tree.later_children is None else tree.later_children.dtype
    new = plant(step, state, rule, 1, Layout(index, tree.prior.dtype))

    def root(old: Array, new: Array) -> Array:
        return old.at[:, 0].set(jnp.where(per_game(empty, new[:, 0]), new[:, 0].astype(old.dtype), old[:, 0]))

    arrays = ("stats", "best_child", "frontier", "facts", "state", "later_children", "prior", "bounds")
    planted = {name: jax.tree.map(root, getattr(tree, name), getattr(new, name)) for name in arrays}
    status = tree.status | jnp.where(empty, new.status, 0)
    searched = tree.root.replace(simulations=jnp.where(empty, 0, tree.root.simulations))
    return tree.replace(**planted, size=jnp.where(empty, 1, tree.size), status=status, root=searched)


def longest_walk(tree: Tree, max_depth: int | None) -> int:
    """The most nodes that a walk can pass."""
    return tree.capacity if max_depth is None else min(tree.capacity, max_depth + 1)


def no_walk(tree: Tree, max_depth: int | None = None) -> Path:
    """Empty paths: memory for walks."""
    room = longest_walk(tree, max_depth) + group_size(tree.size.shape[0])  # both loops over a path use whole groups
    return Path(jnp.zeros((tree.size.shape[0], room), jnp.int32), jnp.zeros_like(tree.size))


def descend(tree: Tree, max_depth: int | None = None, path: Path | None = None) -> Path:
    """Walks every game from its root along the stored choices.

    A walk ends where the choice is not expanded yet, where there is none, or `max_depth` edges below the root.
    One loop iteration takes several levels; each level is one load that depends on the one before.

    Args:
        tree: the trees.
        max_depth: how many edges below the root a walk may go; None: no limit.
        path: an earlier walk in trees of this capacity, at least as deep, whose memory is reused; None: new memory,
            which takes longer to allocate than the walk itself where N is large.

    Raises:
        ValueError: `path` has no room for such walks; the tree is a graph.
    """
    if tree.graph is not None:
        raise ValueError("the tree is a graph, of simulate=transpositions(...): search it with the same.")
    group, longest = group_size(tree.size.shape[0]), longest_walk(tree, max_depth)
    if path is not None and path.nodes.shape[1] < longest + group:
        raise ValueError(
            f"a path with room for {path.nodes.shape[1]} nodes, but trees of {tree.capacity} nodes with max_depth="
            f"{max_depth} need {longest + group}. Use enter(tree, root_rule, max_depth) with that max_depth."
        )

    def follow(node: Array) -> Array:
        return jnp.where(node >= 0, take(tree.best_child, jnp.maximum(node, 0)), NONE)

    def turn(carry: tuple) -> tuple[tuple, Array]:
        depth, nodes, path = carry
        levels = [nodes]
        for _ in range(group):
            levels.append(follow(levels[-1]))
        found = held(jnp.stack(levels[1:], 1))  # else every kernel below would follow the pointers again
        here, nodes = jnp.concatenate([nodes[:, None], found[:, :-1]], 1), found[:, -1]
        inside = [(here[:, i] >= 0) & (depth + i < longest) for i in range(group)]
        path = path._replace(
            nodes=jax.lax.dynamic_update_slice(path.nodes, here, (jnp.zeros_like(depth), depth)),
            length=sum((one.astype(jnp.int32) for one in inside), path.length),  # a reduction would be one more kernel
        )
        return (depth + group, nodes, path), jnp.any((nodes >= 0) & (depth + group < longest))

    start = jnp.zeros_like(tree.size)
    path = (no_walk(tree, max_depth) if path is None else path)._replace(length=start)
    path = repeat(turn, (jnp.int32(0), start, path))[2]
    return path if path.going is None else taking_part(path, path.going, tree.capacity)


def taking_part(path: Path, going: Bool[Array, "B"], capacity: int) -> Path:
    """The walks of the games of `going`; those of the others start at the scratch row, so they change nothing."""
    start = jnp.where(going, path.nodes[:, 0], capacity)
    return Path(path.nodes.at[:, 0].set(start), jnp.where(going, path.length, 1), going)


def enter(tree: Tree, root_rule: Rule, max_depth: int | None = None) -> tuple[Tree, Path]:
    """The arguments of the first `simulate`: trees that know which edge their root tries next, and memory for walks.

    Args:
        tree: from `plant` or `search`.
        root_rule: how the root chooses.
        max_depth: that of the simulations to come.
    """
    tree = with_next_edge(tree, root_rule)
    status = tree.status | Status.NON_FINITE.where(~is_rated(tree, root_rule))
    return tree.replace(status=status), no_walk(tree, max_depth)


def paired(rule: Rule, root_rule: Rule) -> Rule:
    """The root's rule beside `rule`: `by_prior` only if the tree keeps what that needs."""
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
    """One simulation for every game: the root's choice, descend, expand, backup.

    Takes what `enter` or the previous simulation returned: the trees, and the memory of their last walks.
    Call it in `jax.jit`; otherwise its loops are compiled again in every call.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> model, rule, keys = jz.Model(root, step), jz.puct(), jax.random.split(jax.random.key(0), 2)
    >>> tree, path = jz.search.enter(jz.search.plant(*model.root((), keys, jnp.zeros(2)), rule, capacity=9), rule)
    >>> once = jax.jit(lambda keys, tree, path: jz.search.simulate((), keys, tree, path, model, rule, rule))
    >>> for i in range(8):
    ...     tree, path = once(jax.vmap(jax.random.fold_in)(keys, jnp.full(2, i)), tree, path)
    >>> jz.summary(tree).visits.tolist()
    [[1, 3, 4], [1, 3, 4]]
    """
    tree = choose_at_root(tree, paired(rule, root_rule))
    path = descend(tree, max_depth, path)
    tree, value = expand(params, keys, tree, path, model, rule, max_depth)
    return backup(tree, path, value, rule), path


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
    stop: Stop | None = None,
) -> Tree:
    """Adds simulations to a tree. Two searches one after the other equal one longer search.

    Args:
        params: handed to the model.
        keys: one PRNG key per game, `[B]`.
        tree: from `plant` or `search`. When it is full, walks end at the nodes above, see `Status.FULL`.
        model: what the tree is made of.
        rule: how interior nodes choose; the tree's choices must be of this rule, else call `rescore` first.
        num_simulations: how many to add to every game.
        root_rule: how the root chooses; None: like the others.
        max_depth: how many edges below the root a walk may go; None: no limit.
        simulate: what one simulation is: arguments and results as those of `jaxzero.search.simulate`. With an attribute
            `simulations` it counts as that many, see `parallel`; with an attribute `prepare` it is first given the tree
            and the rule, see `transpositions`.
        simulation_keys: `(keys, simulation [B]) -> keys [B]` for the model's call in that simulation.
        stop: where a game needs no further simulation, see `jaxzero.options.early_stopping`; None: all get all of them.

    Raises:
        ValueError: num_simulations or max_depth below 1; something else in place of a rule; a tree of another kind of
            rule.
    """
    num_simulations, max_depth = counts(num_simulations=num_simulations, max_depth=max_depth)
    root_rule = rule if root_rule is None else root_rule
    check_rule("rule", rule)
    check_rule("root_rule", root_rule)
    tree = tree if tree.prior_kind == prior_kind(rule, tree.num_edges) else searched_by(tree, rule)
    lanes = getattr(simulate, "simulations", 1)
    if num_simulations % lanes:
        raise ValueError(
            f"num_simulations={num_simulations} with {lanes} simulations at a time: give a multiple of {lanes}, like "
            f"{num_simulations - num_simulations % lanes + lanes}."
        )
    num_steps = num_simulations // lanes
    most = min(lanes * (1 + getattr(simulate, "free_walks", 0)), (2**31 - 1) // num_steps)  # in each step
    if hasattr(simulate, "prepare"):
        tree = simulate.prepare(tree, rule)

    def body(_: Any, carry: tuple[Tree, Path]) -> tuple[Tree, Path]:
        tree, path = carry
        step_keys = simulation_keys(keys, tree.root.simulations)
        return simulate(params, step_keys, tree, path, model, rule, root_rule, max_depth)

    start = enter(tree, root_rule, max_depth)
    if stop is None:
        return jax.lax.fori_loop(0, num_steps, body, start)[0]

    def turn(carry: tuple) -> tuple:
        i, going, tree, path = carry
        tree, path = body(i, (tree, path._replace(going=going)))
        return i + 1, ~stop(tree, most * (num_steps - i - 1)), tree, path

    def unfinished(carry: tuple) -> Array:
        return (carry[0] < num_steps) & jnp.any(carry[1])

    tree, path = start
    going = ~stop(tree, jnp.int32(most * num_steps))
    return jax.lax.while_loop(unfinished, turn, (jnp.int32(0), going, tree, path._replace(going=going)))[2]
