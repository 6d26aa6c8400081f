"""mctx's `search`: on jaxzero's search where the selectors are mctx's own, else on a plain path that asks them on the way down."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.compat.mctx_rules import Games, NativeRules, native_rules
from jaxzero.compat.mctx_tree import RootFnOutput, SearchTree, Tree
from jaxzero.mcts import tree as native_tree
from jaxzero.mcts.choice import WIDTHS, choose_at_root
from jaxzero.mcts.search import backup, checked, descend, expand, plant
from jaxzero.mcts.tree import pack, put, take, unpack_facts, unpack_frontier, unpack_stats
from jaxzero.types import Model, Rule, Step

__all__ = ["search"]


def search(
    params: Any,
    rng_key: Array,
    *,
    root: RootFnOutput,
    recurrent_fn: Callable,
    root_action_selection_fn: Callable,
    interior_action_selection_fn: Callable,
    num_simulations: int,
    max_depth: int | None = None,
    invalid_actions: Array | None = None,
    extra_data: Any = None,
    loop_fn: Callable = jax.lax.fori_loop,
) -> Tree | SearchTree:
    """Searches and returns the tree.

    Args:
        params: handed to `recurrent_fn`.
        rng_key: one key.
        root: prior logits `[B, A]`, value `[B]` and embedding `[B, ...]`.
        recurrent_fn: `(params, rng_key, action [B], embedding) -> (RecurrentFnOutput, embedding)`.
        root_action_selection_fn: `(rng_key, tree, node_index) -> action`, on the tree of one game.
        interior_action_selection_fn: `(rng_key, tree, node_index, depth) -> action`, likewise.
        num_simulations: how many.
        max_depth: how many edges below the root a walk may go; the node there is evaluated anew each time.
        invalid_actions: `[B, A]`, non-zero where an action may not be taken at the root.
        extra_data: `[B, ...]` for `tree.extra_data`.
        loop_fn: runs the simulations; same interface as `jax.lax.fori_loop`.

    Returns:
        The tree. For `functools.partial`s of the selectors of this package it is a `SearchTree`, made by jaxzero's search;
        for any others a `Tree`.
    """
    if num_simulations < 0:
        raise ValueError(f"num_simulations={num_simulations}: a number of simulations. Use num_simulations >= 1.")
    invalid = jnp.zeros_like(root.prior_logits) if invalid_actions is None else jnp.asarray(invalid_actions)
    depth_is_known = max_depth is None or hasattr(max_depth, "__index__") and not isinstance(max_depth, jax.core.Tracer)
    games = Games(root.prior_logits, root.value, invalid, allowed_at_root(invalid), extra_data, num_simulations)
    rules = native_rules(root_action_selection_fn, interior_action_selection_fn, games) if depth_is_known else None
    if rules is None:
        return search_plainly(
            params,
            rng_key,
            root,
            recurrent_fn,
            root_action_selection_fn,
            interior_action_selection_fn,
            num_simulations,
            max_depth,
            invalid,
            extra_data,
            loop_fn,
        )
    return search_natively(params, rng_key, root, recurrent_fn, rules, games, num_simulations, max_depth, loop_fn)


def allowed_at_root(invalid: Array) -> Bool[Array, "B A"]:
    """Where the mask lets act: action 0 if nowhere, as mctx has it."""
    allowed = ~jnp.asarray(invalid, bool)
    return allowed | (~jnp.any(allowed, -1, keepdims=True) & (jnp.arange(allowed.shape[-1]) == 0))


# ------------------------------------------------------------------------------------------------------- jaxzero's search
def search_natively(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    recurrent_fn: Callable,
    rules: NativeRules,
    games: Games,
    num_simulations: int,
    max_depth: int | None,
    loop_fn: Callable,
    legal: Callable[[Any], Bool[Array, "B W"]] | None = None,
) -> SearchTree:
    """The search with rules in place of selectors; `legal`, of an embedding, may close edges below the root, too."""
    zeros = jnp.zeros_like(root.value)
    step = Step(root.prior_logits, root.value, zeros, zeros, legal and legal(root.embedding))
    tree = plant(step, (root.embedding, root.prior_logits), rules.rule, num_simulations + 1)
    first = _finite(root.prior_logits) if rules.raw_prior else jnp.where(games.allowed, tree.prior[:, 0], -jnp.inf)
    tree = tree.replace(prior=tree.prior.at[:, 0].set(first))
    if hasattr(games.extra_data, "root_gumbel"):
        shifted = root.prior_logits - jnp.max(root.prior_logits, -1, keepdims=True)
        in_force = jnp.where(games.allowed, games.extra_data.root_gumbel + _finite(shifted), -jnp.inf)
        tree = tree.replace(root=tree.root.replace(prior=in_force.astype(tree.stats.dtype)))
    max_depth = None if max_depth is None else max(1, operator.index(max_depth))

    def body(_: Any, loop_state: tuple) -> tuple:
        key, tree = loop_state
        key, _, expand_key = jax.random.split(key, 3)
        return key, _simulate(params, expand_key, tree, recurrent_fn, rules, max_depth, legal)

    tree = choose_at_root(tree, rules.root, fresh=True)
    if num_simulations > 0:
        _, tree = loop_fn(0, num_simulations, body, (rng_key, tree))
    return SearchTree(native=tree, root_invalid_actions=games.invalid, extra_data=games.extra_data)


def _simulate(
    params: Any,
    key: Array,
    tree: native_tree.Tree,
    recurrent_fn: Callable,
    rules: NativeRules,
    max_depth: int | None,
    legal: Callable | None,
) -> native_tree.Tree:
    """One simulation for every game. At the depth limit a node is evaluated anew, from its parent, and overwritten."""
    path = descend(tree, max_depth)
    leaf = _last(path, 1)
    parent, action = leaf, unpack_frontier(take(tree.frontier, leaf)).next_action
    cut = jnp.zeros_like(leaf, bool)
    if max_depth is not None:
        cut = path.length > max_depth
        parent = jnp.where(cut, _last(path, 2), leaf)
        action = jnp.where(cut, unpack_facts(take(tree.facts, leaf)).action, action)
    embedding = jax.tree.map(lambda x: take(x, parent), tree.state[0])
    # Called here and not in a branch of `expand`: what calls into a module system must stay at the level of `loop_fn`.
    output, embedding = recurrent_fn(params, key, jnp.maximum(action, 0), embedding)
    step, state = _as_step(output, embedding, tree, legal)
    new = jnp.where(cut, leaf, tree.size)
    model = Model(root=lambda *_: (step, state), step=lambda *_: (step, state))
    tree, path, value = expand(params, key, tree, path, model, rules.rule, max_depth)
    if max_depth is not None:
        tree = _overwrite(tree, jnp.where(cut, leaf, tree.capacity), step, state, rules.rule)
        value = jnp.where(cut[:, None], step.value[:, None], value)
    if rules.raw_prior:
        tree = tree.replace(prior=put(tree.prior, new, _finite(state[1])))
    root_too = rules.root is rules.rule and tree.num_edges <= WIDTHS[-1]
    tree = backup(tree, path, value, rules.rule, root_too)
    tree = tree.replace(root=tree.root.replace(simulations=tree.root.simulations + 1))
    return tree if root_too else choose_at_root(tree, rules.root)


def _last(path: Any, back: int) -> Array:
    index = jnp.maximum(path.length - back, 0)
    return jnp.take_along_axis(path.nodes, index[:, None], 1)[:, 0]


def _finite(logits: Array) -> Array:
    """In a stored prior −inf means that an edge is closed; mctx closes none."""
    return jnp.maximum(logits, jnp.finfo(logits.dtype).min)


def _as_step(output: Any, embedding: Any, tree: native_tree.Tree, legal: Callable | None) -> tuple[Step, Any]:
    """What the model said, in the types that the tree stores."""
    dtype, stored = tree.stats.dtype, tree.state
    if jax.tree.structure(embedding) == jax.tree.structure(stored[0]):
        embedding = jax.tree.map(lambda x, kept: jnp.asarray(x).astype(kept.dtype), embedding, stored[0])
    step = Step(
        output.prior_logits,
        *(jnp.asarray(x).astype(dtype) for x in (output.value, output.reward, output.discount)),
        legal=legal and legal(embedding),
    )
    checked(step, tree)  # for the shapes: an error names the field
    return step, (embedding, output.prior_logits.astype(stored[1].dtype))


def _overwrite(tree: native_tree.Tree, nodes: Array, step: Step, state: Any, rule: Rule) -> native_tree.Tree:
    """Puts a new evaluation in the place of the old: `backup` then finds the new value as the mean of all visits."""
    step, _ = checked(step, tree)
    value, dtype = step.value[:, None], tree.stats.dtype
    facts = unpack_facts(take(tree.facts, nodes))
    facts = facts._replace(reward=step.reward[:, None], discount=step.discount, raw_value=value)
    stats = unpack_stats(take(tree.stats, nodes))._replace(value=value)
    return tree.replace(
        stats=put(tree.stats, nodes, pack(stats, dtype)),
        facts=put(tree.facts, nodes, pack(facts, dtype)),
        prior=put(tree.prior, nodes, rule.prepare(step.prior_logits)),
        state=jax.tree.map(lambda x, y: put(x, nodes, y), tree.state, state),
    )


# ---------------------------------------------------------------------------------------------------------- the plain path
def search_plainly(
    params: Any,
    rng_key: Array,
    root: RootFnOutput,
    recurrent_fn: Callable,
    root_selector: Callable,
    interior_selector: Callable,
    num_simulations: int,
    max_depth: Any,
    invalid: Array,
    extra_data: Any,
    loop_fn: Callable,
) -> Tree:
    """The search that asks arbitrary selectors at every level of every walk."""
    batch = root.value.shape[0]
    limit = num_simulations if max_depth is None else max_depth

    def body(simulation: Array, loop_state: tuple) -> tuple:
        key, tree = loop_state
        key, walk_key, expand_key = jax.random.split(key, 3)
        parent, action = _walk(jax.random.split(walk_key, batch), tree, root_selector, interior_selector, limit)
        child = tree.children_index[jnp.arange(batch), parent, action]
        node = jnp.where(child == Tree.UNVISITED, simulation + 1, child)
        tree = _evaluate(params, expand_key, tree, recurrent_fn, parent, action, node)
        return key, _climb(tree, node)

    tree = _plain_tree(root, num_simulations, invalid, extra_data)
    return loop_fn(0, num_simulations, body, (rng_key, tree))[1]


def _plain_tree(root: RootFnOutput, num_simulations: int, invalid: Array, extra_data: Any) -> Tree:
    if jnp.ndim(root.prior_logits) != 2 or jnp.shape(root.value) != jnp.shape(root.prior_logits)[:1]:
        raise ValueError(
            f"root.prior_logits has shape {jnp.shape(root.prior_logits)} and root.value {jnp.shape(root.value)}; "
            "they must be [B, A] and [B]."
        )
    (batch, width), nodes = root.prior_logits.shape, num_simulations + 1

    def first(row: Array) -> Array:
        row = jnp.asarray(row)
        return jnp.zeros((batch, nodes, *row.shape[1:]), row.dtype).at[:, 0].set(row)

    none = jnp.full((batch, nodes), Tree.NO_PARENT, jnp.int32)
    edges = jnp.zeros((batch, nodes, width), root.value.dtype)
    return Tree(
        node_visits=first(jnp.ones(batch, jnp.int32)),
        raw_values=first(root.value),
        node_values=first(root.value),
        parents=none,
        action_from_parent=none,
        children_index=jnp.full(edges.shape, Tree.UNVISITED, jnp.int32),
        children_prior_logits=first(root.prior_logits),
        children_visits=jnp.zeros(edges.shape, jnp.int32),
        children_rewards=edges,
        children_discounts=edges,
        children_values=edges,
        embeddings=jax.tree.map(first, root.embedding),
        root_invalid_actions=invalid,
        extra_data=extra_data,
    )


def _walk(
    keys: Array, tree: Tree, root_selector: Callable, interior_selector: Callable, limit: Any
) -> tuple[Array, Array]:
    """From every root down to an edge without a child, or to the depth limit: the edge's node and action.

    All games are at the same depth, so the root is asked before the loop; the tree is no part of what the loop carries.
    """
    games = jnp.arange(tree.node_visits.shape[0])
    split = jax.vmap(jax.random.split)

    def below(node: Array, action: Array) -> Array:
        return tree.children_index[games, node, action]

    def down(carry: tuple) -> tuple:
        depth, keys, node, action = carry
        child = below(node, action)
        pairs = split(keys)
        chosen = jax.vmap(interior_selector, (0, 0, 0, None))(pairs[:, 1], tree, jnp.maximum(child, 0), depth)
        on = child != Tree.UNVISITED
        return depth + 1, pairs[:, 0], jnp.where(on, child, node), jnp.where(on, chosen.astype(action.dtype), action)

    def going(carry: tuple) -> Array:
        depth, _, node, action = carry
        return (depth < limit) & jnp.any(below(node, action) != Tree.UNVISITED)

    pairs, node = split(keys), jnp.zeros_like(games, jnp.int32)
    action = jax.vmap(root_selector)(pairs[:, 1], tree, node).astype(jnp.int32)
    depth = jnp.ones((), tree.children_prior_logits.dtype)  # a float, as mctx's selectors get it
    return jax.lax.while_loop(going, down, (depth, pairs[:, 0], node, action))[2:]


def _evaluate(
    params: Any, key: Array, tree: Tree, recurrent_fn: Callable, parent: Array, action: Array, node: Array
) -> Tree:
    """Asks the model what follows the edges, and writes it where the nodes are, new or not."""
    games = jnp.arange(node.shape[0])
    output, embedding = recurrent_fn(params, key, action, jax.tree.map(lambda x: x[games, parent], tree.embeddings))
    batch, width = node.shape[0], tree.num_actions
    for name, shape in dict(prior_logits=(batch, width), value=(batch,), reward=(batch,), discount=(batch,)).items():
        if jnp.shape(getattr(output, name)) != shape:
            raise ValueError(
                f"RecurrentFnOutput.{name} has shape {jnp.shape(getattr(output, name))}; by the root's outputs it "
                f"must be {shape}."
            )

    def at_node(x: Array, row: Array) -> Array:
        return x.at[games, node].set(jnp.asarray(row).astype(x.dtype))

    def at_edge(x: Array, row: Array) -> Array:
        return x.at[games, parent, action].set(row.astype(x.dtype))

    return tree.replace(
        node_visits=tree.node_visits.at[games, node].add(1),
        raw_values=at_node(tree.raw_values, output.value),
        node_values=at_node(tree.node_values, output.value),
        parents=at_node(tree.parents, parent),
        action_from_parent=at_node(tree.action_from_parent, action),
        children_index=at_edge(tree.children_index, node),
        children_prior_logits=at_node(tree.children_prior_logits, output.prior_logits),
        children_rewards=at_edge(tree.children_rewards, output.reward),
        children_discounts=at_edge(tree.children_discounts, output.discount),
        embeddings=jax.tree.map(at_node, tree.embeddings, embedding),
    )


def _climb(tree: Tree, leaf: Array) -> Tree:
    """Carries the leaves' values up to the roots, in lock-step; a game that is done writes nothing."""
    games = jnp.arange(leaf.shape[0])

    def up(carry: tuple) -> tuple:
        tree, value, node = carry
        parent, action = tree.parents[games, node], tree.action_from_parent[games, node]
        going = node != Tree.ROOT_INDEX
        value_here = (
            tree.children_rewards[games, parent, action] + tree.children_discounts[games, parent, action] * value
        )
        visits = tree.node_visits[games, parent]
        mean = (tree.node_values[games, parent] * visits + value_here) / (visits + 1.0)
        where = jnp.where(going, parent, tree.node_visits.shape[1])
        tree = tree.replace(
            children_values=tree.children_values.at[games, where, action].set(
                tree.node_values[games, node], mode="drop"
            ),
            children_visits=tree.children_visits.at[games, where, action].add(1, mode="drop"),
            node_values=tree.node_values.at[games, where].set(mean, mode="drop"),
            node_visits=tree.node_visits.at[games, where].add(1, mode="drop"),
        )
        return tree, jnp.where(going, value_here, value), jnp.where(going, parent, node)

    return jax.lax.while_loop(
        lambda carry: jnp.any(carry[2] != Tree.ROOT_INDEX), up, (tree, tree.node_values[games, leaf], leaf)
    )[0]
