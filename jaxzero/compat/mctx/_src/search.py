"""mctx's `search`: by jaxzero's search where the selectors are mctx's own, else selector by selector on mctx's arrays.

The second way, the plain path, is mctx's algorithm operation by operation. It serves selectors that jaxzero has no
rule for, a traced `max_depth`, and half precision, where every rounding counts.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.compat.mctx._src.base import RootFnOutput
from jaxzero.compat.mctx._src.tree import Tree, infer_batch_size
from jaxzero.compat.mctx.checks import as_count, as_pair, check_key, check_mask, check_output, check_root
from jaxzero.compat.mctx.eager import compiled_once
from jaxzero.compat.mctx.native.rules import native_rules
from jaxzero.compat.mctx.native.search import Games, allowed_at_root, is_native, search_natively
from jaxzero.compat.mctx.native.tree import Found, as_tree

__all__ = ["instantiate_tree_from_root", "run_search", "search"]


@compiled_once
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
) -> Tree:
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
        invalid_actions: `[B, A]`, non-zero where an action may not be taken at the root. Another width, as of a search
            with edges for chance, is for selectors of your own: they find it in the tree.
        extra_data: `[B, ...]` for `tree.extra_data`.
        loop_fn: runs the simulations; same interface as `jax.lax.fori_loop`.

    Raises:
        ValueError: a number of simulations below 0, or a root of other shapes.
    """
    num_simulations = as_count("num_simulations", num_simulations, least=0)
    check_key(rng_key)
    check_root(root)
    check_mask(invalid_actions, *jnp.shape(root.prior_logits))
    found = run_search(
        params,
        rng_key,
        root=root,
        recurrent_fn=recurrent_fn,
        root_action_selection_fn=root_action_selection_fn,
        interior_action_selection_fn=interior_action_selection_fn,
        num_simulations=num_simulations,
        max_depth=max_depth,
        invalid_actions=invalid_actions,
        extra_data=extra_data,
        loop_fn=loop_fn,
    )
    return as_tree(found)


def run_search(
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
) -> Found | Tree:
    """`search` before its tree is put together, see `as_tree`, and with arguments that were checked."""
    invalid = jnp.zeros_like(root.prior_logits) if invalid_actions is None else jnp.asarray(invalid_actions)
    if is_native(root, max_depth) and invalid.shape == root.prior_logits.shape:
        games = Games(root.prior_logits, root.value, invalid, allowed_at_root(invalid), extra_data, num_simulations)
        rules = native_rules(root_action_selection_fn, interior_action_selection_fn, games)
        if rules is not None:
            return search_natively(params, rng_key, root, recurrent_fn, rules, games, max_depth, loop_fn)
    limit = num_simulations if max_depth is None else max_depth
    simulate = functools.partial(
        _simulate, root_selector=root_action_selection_fn, interior_selector=interior_action_selection_fn, limit=limit
    )

    def body(simulation: Array, loop_state: tuple[Array, Tree]) -> tuple[Array, Tree]:
        key, tree = loop_state
        key, simulate_key, expand_key = jax.random.split(key, 3)
        games = jnp.arange(infer_batch_size(tree))
        parent, action = simulate(jax.random.split(simulate_key, games.size), tree)
        child = tree.children_index[games, parent, action]
        node = jnp.where(child == Tree.UNVISITED, simulation + 1, child)  # at the depth limit a node is evaluated anew
        tree = _expand(params, expand_key, tree, recurrent_fn, parent, action, node)
        return key, _backward(tree, node)

    tree = instantiate_tree_from_root(root, num_simulations, invalid, extra_data)
    return loop_fn(0, num_simulations, body, (rng_key, tree))[1]


def instantiate_tree_from_root(
    root: RootFnOutput, num_simulations: int, root_invalid_actions: Array, extra_data: Any
) -> Tree:
    """The tree before the first simulation: the root is node 0, and `num_simulations` slots are free.

    Args:
        root: prior logits `[B, A]`, value `[B]` and embedding `[B, ...]`.
        num_simulations: how many nodes the tree must have room for, beside the root.
        root_invalid_actions: `[B, A]`.
        extra_data: `[B, ...]`.
    """
    check_root(root)
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
        root_invalid_actions=root_invalid_actions,
        extra_data=extra_data,
    )


def _simulate(
    keys: Array, tree: Tree, root_selector: Callable, interior_selector: Callable, limit: Any
) -> tuple[Array, Array]:
    """From every root down to an edge without a child, or to the depth limit: the edge's node and action.

    All games are at the same depth, so the root is asked before the loop; the tree is no part of what the loop carries.
    """
    games = jnp.arange(infer_batch_size(tree))
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


def _expand(
    params: Any, key: Array, tree: Tree, recurrent_fn: Callable, parent: Array, action: Array, node: Array
) -> Tree:
    """Asks the model what follows the edges, and writes it where the nodes are, new or not."""
    games = jnp.arange(node.shape[0])
    answer = recurrent_fn(params, key, action, jax.tree.map(lambda x: x[games, parent], tree.embeddings))
    output, embedding = as_pair("recurrent_fn", answer, "RecurrentFnOutput", "prior_logits")
    check_output(output, node.shape[0], tree.num_actions)

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


def _backward(tree: Tree, leaf: Array) -> Tree:
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
