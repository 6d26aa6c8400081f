"""Setup and output shared by all policies."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.options.early_stopping import AnyOf
from jaxzero.options.graph_search import Transpositions
from jaxzero.options.leaf_parallel.parallel import Lanes
from jaxzero.options.subtree_reuse import with_legal_root
from jaxzero.root.summary import Summary
from jaxzero.search.checks.argument_checks import check_function, one_per_game
from jaxzero.search.checks.model_checks import as_pair, check_embedding, masks_at_root_only, shapes_of
from jaxzero.search.checks.start_checks import check_start
from jaxzero.search.node_storage import pack, unpack_facts
from jaxzero.search.search import Stop, plant, replant
from jaxzero.search.tree import Layout, Status, Tree, as_read, as_stored
from jaxzero.types import Keys, Model, Params, PolicyOutput, Rule, State, Step, in_short

__all__ = ["Policy", "SearchInfo", "begin", "check_loop", "output"]

Policy = Callable[..., PolicyOutput]


class SearchInfo(NamedTuple):
    """Diagnostics of a search, per game.

    Attributes:
        status: bits of `Status`; 0: nothing to report.
        overflows: walks that found the tree full.
        size: node slots in use.
        summary: visits, their shares, Q-values and value at the root.
        has_target: True where `action_weights` may be learned from (see `playout_cap`); None: everywhere.
    """

    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    size: Int[Array, "B"]
    summary: Summary
    has_target: Bool[Array, "B"] | None = None

    __repr__ = in_short


def begin(
    params: Params, keys: Keys, state: State, tree: Tree | None, model: Model, rule: Rule, capacity: int, layout: Layout
) -> tuple[Tree, Keys]:
    """The tree to search, a new one if none is given, and four keys for each game: search, noise, action, root."""
    batch = check_start(model, state, tree)
    keys = jax.vmap(lambda key: jax.random.split(key, 4))(one_per_game(keys, batch))
    if tree is not None and (state is None or tree.root.brought is None):
        return tree if tree.root.brought is None else _over_where_missing(tree), keys

    def ask() -> tuple[Step, State]:
        return as_pair("model.root", model.root(params, keys[:, 3], state))

    if tree is None:
        step, embedding = ask()
        check_embedding(embedding, batch)
        _check_players(step, params, keys[:, 0], model, embedding)
        return plant(step, embedding, rule, capacity, layout), keys
    said = jax.eval_shape(ask)
    _check_same(tree, batch, *said)
    if masks_at_root_only(model, params, keys[:, 3], state):
        tree = with_legal_root(tree, ask()[0].legal)  # under jit nothing else of the answer is computed
    tree = _without_chance_roots(tree)
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), said)
    return replant(tree, *jax.lax.cond(jnp.any(tree.size == 0), ask, lambda: nothing), rule), keys


def _over_where_missing(tree: Tree) -> Tree:
    """Marks games that have neither a tree nor a state to plant one from as over: they are not searched."""
    missing = tree.size == 0
    facts = unpack_facts(tree.facts[:, 0])
    value = jnp.where(missing[:, None], 0, facts.raw_value)
    facts = facts._replace(terminal=facts.terminal | missing, raw_value=value)
    none = jnp.where(missing[:, None], -jnp.inf, as_read(tree.prior[:, 0], tree.stats.dtype))
    return tree.replace(
        facts=tree.facts.at[:, 0].set(pack(facts, tree.facts.dtype)),
        prior=tree.prior.at[:, 0].set(as_stored(none, tree.prior.dtype)),
        status=tree.status | Status.NOT_IN_TREE.where(missing),
    )


def _without_chance_roots(tree: Tree) -> Tree:
    """Drops trees whose root is a chance node, to be planted anew: a policy's root is a decision."""
    chance = unpack_facts(tree.facts[:, 0]).chance
    if chance is None:
        return tree
    lost = chance.astype(bool) & (tree.size > 0)
    return tree.replace(
        size=jnp.where(lost, 0, tree.size),
        root=tree.root.replace(brought=jnp.where(lost[:, None], 0, tree.root.brought)),
        status=tree.status | Status.NOT_IN_TREE.where(lost),
    )


def _check_same(tree: Tree, batch: int, step: Step, embedding: State) -> None:
    """Raises a ValueError if a tree is not of the model that it is searched with, as far as shapes tell."""
    stored, given = shapes_of(tree.state, batch), shapes_of(embedding)
    if stored != given:
        raise ValueError(
            f"the tree stores positions of shapes and types {stored[0]}, but the model makes {given[0]} of the state: "
            "it is a tree of another game, or of another kind of policy. Use the policy that made it, or search anew."
        )
    if step.prior_logits.shape[1] != tree.num_edges:
        raise ValueError(
            f"the tree has {tree.num_edges} edges per node, but the model has {step.prior_logits.shape[1]} actions: it "
            "is a tree of another game, or of another kind of policy. Use the policy that made it, or search anew."
        )


def _check_players(step: Step, params: Params, keys: Keys, model: Model, embedding: State) -> None:
    """Raises a ValueError if only one of the model's functions says who moves."""
    actions = jnp.zeros(len(keys), jnp.int32)
    below, _ = as_pair("model.step", jax.eval_shape(model.step, params, keys, actions, embedding))
    if (step.to_play is None) != (below.to_play is None):
        told = {True: "None", False: "given"}
        raise ValueError(
            f"Step.to_play is {told[step.to_play is None]} by model.root and {told[below.to_play is None]} by "
            "model.step. Give it in both or in neither (then the discounts carry the sign)."
        )


def output(tree: Tree, action: Array, weights: Array, found: Summary) -> PolicyOutput:
    """The output of a policy, from the searched tree."""
    return PolicyOutput(
        action=action,
        action_weights=weights,
        value=found.value if tree.num_players == 1 else tree.value[:, 0],
        tree=tree,
        info=SearchInfo(tree.status, tree.overflows, tree.size, found),
    )


def check_loop(simulation: Callable, stop: Stop | None) -> None:
    """Raises a ValueError if `simulate` or `stop` is a builder that was not called, or no function."""
    arguments = "params, keys, tree, path, model, rule, root_rule, max_depth"
    check_function("simulate", simulation, arguments, "parallel(8) or transpositions()", (Lanes, Transpositions))
    if stop is not None:
        check_function("stop", stop, "tree, remaining", "solved or total_visits(800)", (Stop, AnyOf))
