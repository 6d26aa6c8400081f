"""jaxzero's search in mctx's terms: one key for the batch, masks at the root only, overwriting at `max_depth`."""

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxzero.compat.mctx._src.base import RootFnOutput
from jaxzero.compat.mctx.checks import as_pair, check_embedding, check_output
from jaxzero.compat.mctx.native.tree import Found
from jaxzero.search import tree as native_tree
from jaxzero.search.action_selection import choose, choose_at_root, remember
from jaxzero.search.checks.model_checks import checked
from jaxzero.search.node_storage import pack, put, take, unpack_facts, unpack_frontier, unpack_stats
from jaxzero.search.search import backup, descend, enter, expand, paired, plant
from jaxzero.search.tree import rows_of
from jaxzero.types import Model, Path, Rule, Step

__all__ = ["Games", "NativeRules", "allowed_at_root", "is_native", "search_natively"]


class NativeRules(NamedTuple):
    """The rules that choose as given selectors do.

    Attributes:
        rule: of interior nodes.
        root: of the root.
        raw_prior: the tree must store the prior logits as the model gave them, for a user's transform to read.
    """

    rule: Rule
    root: Rule
    raw_prior: bool = False


class Games(NamedTuple):
    """What is known of the games before a search.

    Attributes:
        logits: the roots' prior logits.
        value: the roots' values.
        invalid: the mask, for `tree.root_invalid_actions`.
        allowed: which edges of the roots are open.
        extra_data: for `tree.extra_data`.
        num_simulations: of the search.
    """

    logits: Float[Array, "B W"]
    value: Float[Array, "B"]
    invalid: Array
    allowed: Bool[Array, "B W"]
    extra_data: Any
    num_simulations: int


def is_native(root: RootFnOutput, max_depth: Any) -> bool:
    """Whether jaxzero's search can stand in: the depth limit is known, and statistics are kept in 32 bits or more.

    mctx keeps statistics in the type of the values. In 16 bits each step rounds so much that the same search needs the
    same operations in the same order.
    """
    known = max_depth is None or (hasattr(max_depth, "__index__") and not isinstance(max_depth, jax.core.Tracer))
    types = jnp.result_type(root.value), jnp.result_type(root.prior_logits)
    return known and all(jnp.issubdtype(x, jnp.floating) and jnp.finfo(x).bits >= 32 for x in types)


def allowed_at_root(invalid: Array) -> Bool[Array, "B A"]:
    """Where the mask lets act: action 0 if nowhere, as mctx has it."""
    allowed = ~jnp.asarray(invalid, bool)
    return allowed | (~jnp.any(allowed, -1, keepdims=True) & (jnp.arange(allowed.shape[-1])[None] == 0))


def search_natively(
    params: Any,
    key: Array,
    root: RootFnOutput,
    recurrent_fn: Callable,
    rules: NativeRules,
    games: Games,
    max_depth: int | None,
    loop_fn: Callable,
    legal: Callable[[Any], Bool[Array, "B W"]] | None = None,
) -> Found:
    """The search with rules in place of selectors; `legal`, of an embedding, may close edges below the root, too."""
    zeros = jnp.zeros_like(root.value)
    step = Step(root.prior_logits, root.value, zeros, zeros, legal and legal(root.embedding))
    tree = plant(step, (root.embedding, root.prior_logits), rules.rule, games.num_simulations + 1)
    first = _finite(root.prior_logits) if rules.raw_prior else jnp.where(games.allowed, tree.prior[:, 0], -jnp.inf)
    tree = tree.replace(prior=tree.prior.at[:, 0].set(first))
    if hasattr(games.extra_data, "root_gumbel"):
        shifted = root.prior_logits - jnp.max(root.prior_logits, -1, keepdims=True)
        in_force = jnp.where(games.allowed, games.extra_data.root_gumbel + _finite(shifted), -jnp.inf)
        tree = tree.replace(root=tree.root.replace(prior=in_force.astype(tree.stats.dtype)))
    max_depth = None if max_depth is None else max(1, operator.index(max_depth))

    def body(_: Any, loop_state: tuple) -> tuple:
        key, (tree, path) = loop_state  # a pair, as in mctx: a loop of the user's may take it apart
        key, _, expand_key = jax.random.split(key, 3)
        return key, _simulate(params, expand_key, tree, path, recurrent_fn, rules, max_depth, legal)

    tree, path = enter(tree, rules.root, max_depth)
    if games.num_simulations > 0:
        _, (tree, _) = loop_fn(0, games.num_simulations, body, (key, (tree, path)))
    return Found(tree, games.invalid, games.extra_data)


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
    tree = choose_at_root(tree, paired(rules.rule, rules.root))
    path = descend(tree, max_depth, path)
    leaf = _last(path, 1)
    parent, action = leaf, unpack_frontier(take(tree.frontier, leaf)).next_action
    cut = jnp.zeros_like(leaf, bool)
    if max_depth is not None:
        cut = path.length > max_depth
        parent = jnp.where(cut, _last(path, 2), leaf)
        action = jnp.where(cut, unpack_facts(take(tree.facts, leaf)).action, action)
    before = jax.tree.map(lambda x: take(x, parent), tree.state[0])
    # Called here and not in a branch of `expand`: calls into a module system must stay at the level of `loop_fn`.
    answer = recurrent_fn(params, key, jnp.maximum(action, 0), before)
    output, embedding = as_pair("recurrent_fn", answer, "RecurrentFnOutput", "prior_logits")
    check_output(output, leaf.shape[0], tree.num_edges)
    check_embedding(embedding, before)
    step, state = _as_step(output, embedding, tree, legal)
    new = jnp.where(cut, leaf, tree.size)
    model = Model(root=lambda *_: (step, state), step=lambda *_: (step, state))
    tree, value = expand(params, key, tree, path, model, rules.rule, max_depth)
    if max_depth is not None:
        tree = _overwrite(tree, jnp.where(cut, leaf, tree.capacity), step, state, rules.rule)
        value = jnp.where(cut[:, None], step.value[:, None], value)
    if rules.raw_prior:
        tree = tree.replace(prior=put(tree.prior, new, _finite(state[1])))
        tree = remember(tree, new, choose(tree, rows_of(tree, new), rules.rule, True))
    return backup(tree, path, value, rules.rule), path


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
