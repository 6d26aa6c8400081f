"""The search that asks arbitrary selectors at every level of every walk, on a tree with mctx's arrays."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.compat.mctx_tree import RootFnOutput, Tree

__all__ = ["search_plainly"]


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
