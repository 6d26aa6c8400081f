"""mctx's `search`: by jaxzero's search where the selectors are mctx's own, else on the plain path."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.compat.mctx_plain import search_plainly
from jaxzero.compat.mctx_rules import Games, NativeRules, native_rules
from jaxzero.compat.mctx_search_tree import SearchTree
from jaxzero.compat.mctx_tree import RootFnOutput, Tree
from jaxzero.mcts import tree as native_tree
from jaxzero.mcts.outputs import checked
from jaxzero.mcts.rows import pack, put, take, unpack_facts, unpack_frontier, unpack_stats
from jaxzero.mcts.search import descend, enter, expand, finish, plant
from jaxzero.types import Model, Path, Rule, Step

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
        The tree: a `SearchTree`, made by jaxzero's search, for `functools.partial`s of this package's selectors; for
        any others a `Tree`.
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
        key, tree, path = loop_state
        key, _, expand_key = jax.random.split(key, 3)
        return key, *_simulate(params, expand_key, tree, path, recurrent_fn, rules, max_depth, legal)

    tree, path = enter(tree, rules.root, max_depth)
    if num_simulations > 0:
        _, tree, _ = loop_fn(0, num_simulations, body, (rng_key, tree, path))
    return SearchTree(native=tree, root_invalid_actions=games.invalid, extra_data=games.extra_data)


def _simulate(
    params: Any,
    key: Array,
    tree: native_tree.Tree,
    path: Path,
    recurrent_fn: Callable,
    rules: NativeRules,
    max_depth: int | None,
    legal: Callable | None,
) -> tuple[native_tree.Tree, Path]:
    """One simulation for every game. At the depth limit a node is evaluated anew, from its parent, and overwritten."""
    path = descend(tree, max_depth, path)
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
    return finish(tree, path, value, rules.rule, rules.root), path


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
