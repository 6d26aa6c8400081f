"""mctx's Q transforms and action selectors, in terms of jaxzero's rules; and the way back, from selectors to rules."""
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.compat.mctx_row import ask, reads_one_row
from jaxzero.compat.mctx_tree import Tree
from jaxzero.mcts import qvalues as q
from jaxzero.mcts.gumbel import gumbel_interior, gumbel_root
from jaxzero.mcts.rules import muzero_puct, probabilities
from jaxzero.mcts.tree import RootData
from jaxzero.types import EdgeView, Rule

__all__ = ["gumbel_muzero_interior_action_selection", "gumbel_muzero_root_action_selection", "muzero_action_selection",
           "qtransform_by_min_max", "qtransform_by_parent_and_siblings", "qtransform_completed_by_mix_value"]


def node_view(tree: Tree, node_index: Int[Array, ""]) -> EdgeView:
    """One node of a tree with mctx's attributes, of one game, as a rule sees it."""
    return EdgeView(
        prior=jax.nn.softmax(tree.children_prior_logits[node_index]), visits=tree.children_visits[node_index],
        value=tree.qvalues(node_index), reward=tree.children_rewards[node_index],
        discount=tree.children_discounts[node_index], child_value=tree.children_values[node_index],
        node_visits=tree.node_visits[node_index], node_value=tree.node_values[node_index],
        raw_value=tree.raw_values[node_index])


# ----------------------------------------------------------------------------------------------------- Q transforms
def qtransform_by_min_max(tree: Tree, node_index: Array, *, min_value: Any, max_value: Any) -> Float[Array, "A"]:
    """(q − min)/(max − min) with given bounds; 0 for an unvisited action. See `jaxzero.mcts.qvalues.by_min_max`."""
    return q.by_min_max(min_value, max_value)(node_view(tree, node_index))


def qtransform_by_parent_and_siblings(tree: Tree, node_index: Array, *, epsilon: Any = 1e-8) -> Float[Array, "A"]:
    """Rescaled by the node's and its children's values. See `jaxzero.mcts.qvalues.by_parent_and_siblings`."""
    return q.by_parent_and_siblings(epsilon)(node_view(tree, node_index))


def qtransform_completed_by_mix_value(tree: Tree, node_index: Array, *, value_scale: Any = 0.1, maxvisit_init: Any = 50.0,
                                      rescale_values: bool = True, use_mixed_value: bool = True,
                                      epsilon: Any = 1e-8) -> Float[Array, "A"]:
    """Completed by the mixed value, and scaled. See `jaxzero.mcts.qvalues.completed_by_mix_value`."""
    transform = q.completed_by_mix_value(value_scale, maxvisit_init, rescale_values, use_mixed_value, epsilon)
    return transform(node_view(tree, node_index))


# -------------------------------------------------------------------------------------------------- action selectors
def muzero_action_selection(rng_key: Array, tree: Tree, node_index: Array, depth: Array, *, pb_c_init: Any = 1.25,
                            pb_c_base: Any = 19652.0,
                            qtransform: Callable = qtransform_by_parent_and_siblings) -> Int[Array, ""]:
    """PUCT with MuZero's constant, see `jaxzero.mcts.rules.muzero_puct`; the root's mask holds at depth 0.

    The key is not used: among equal scores the lowest action wins (mctx adds random numbers up to 1e-7).
    """
    rule = muzero_puct(pb_c_init, pb_c_base, lambda _: qtransform(tree, node_index))
    return masked_argmax(rule.score(node_view(tree, node_index)), tree.root_invalid_actions * (depth == 0))


def gumbel_muzero_root_action_selection(rng_key: Array, tree: Tree, node_index: Array, *, num_simulations: int,
                                        max_num_considered_actions: int,
                                        qtransform: Callable = qtransform_completed_by_mix_value) -> Int[Array, ""]:
    """Sequential halving with Gumbel, see `jaxzero.mcts.gumbel.gumbel_root`."""
    logits, view = tree.children_prior_logits[node_index], node_view(tree, node_index)
    root = RootData(simulations=jnp.sum(view.visits, -1), gumbel=tree.extra_data.root_gumbel)
    legal = jnp.where(tree.root_invalid_actions, -jnp.inf, logits - jnp.max(logits, -1, keepdims=True))
    rule = gumbel_root(num_simulations, max_num_considered_actions, lambda _: qtransform(tree, node_index))
    return masked_argmax(rule.score(view._replace(prior=legal, root=root)), tree.root_invalid_actions)


def gumbel_muzero_interior_action_selection(rng_key: Array, tree: Tree, node_index: Array, depth: Array, *,
                                            qtransform: Callable = qtransform_completed_by_mix_value) -> Int[Array, ""]:
    """The deterministic choice below the root, see `jaxzero.mcts.gumbel.gumbel_interior`."""
    view = node_view(tree, node_index)._replace(prior=tree.children_prior_logits[node_index])
    score = gumbel_interior(lambda _: qtransform(tree, node_index)).score(view)
    return jnp.argmax(score, -1).astype(jnp.int32)


def masked_argmax(scores: Float[Array, "... A"], invalid: Array) -> Int[Array, "..."]:
    """The valid action of the highest score; 0 if none is valid."""
    return jnp.argmax(jnp.where(invalid, -jnp.inf, scores), -1).astype(jnp.int32)


# ------------------------------------------------------------------------------------------ from selectors to rules
class NativeRules(NamedTuple):
    """The rules that choose as given selectors do.

    Attributes:
        rule: of interior nodes.
        root: of the root.
        raw_prior: the tree must store the prior logits as the model gave them, for a user's transform to read.
    """

    rule: Rule
    root: Rule
    raw_prior: bool


class Games(NamedTuple):
    """What is known of the games before a search: prior logits and values of the roots, who may act how, extra data."""

    logits: Float[Array, "B A"]
    value: Float[Array, "B"]
    invalid: Array
    allowed: Bool[Array, "B A"]
    extra_data: Any


def native_rules(root_selector: Callable, interior_selector: Callable, games: Games) -> NativeRules | None:
    """The rules that choose as mctx's selectors do; None for selectors that are not recognised."""
    root, root_options = _unwrap(root_selector)
    interior, options = _unwrap(interior_selector)
    transform, root_transform = options.pop("qtransform", None), root_options.pop("qtransform", None)
    depth = root_options.pop("depth", None)
    if root is interior is muzero_action_selection and isinstance(depth, int) and depth == 0:
        standard, store = qtransform_by_parent_and_siblings, probabilities
        make = root_make = lambda qvalues: muzero_puct(qvalues=qvalues, **options)
        if any(root_options.get(name) is not value for name, value in options.items()) or len(root_options) != len(options):
            root_make = lambda qvalues: muzero_puct(qvalues=qvalues, **root_options)
    elif (root is gumbel_muzero_root_action_selection and interior is gumbel_muzero_interior_action_selection
          and depth is None and not options and hasattr(games.extra_data, "root_gumbel")
          and set(root_options) == {"num_simulations", "max_num_considered_actions"}):
        standard, store, make = qtransform_completed_by_mix_value, lambda logits: logits, gumbel_interior
        root_make = lambda qvalues: gumbel_root(root_options["num_simulations"], root_options["max_num_considered_actions"],
                                                qvalues)
    else:
        return None
    transform, root_transform = transform or standard, root_transform or standard
    read = lambda view: view.prior if store is probabilities else probabilities(view.prior)
    known, root_known = native_qvalues(transform, read), native_qvalues(root_transform, read)
    if known and root_known:
        rule = make(known)
        return NativeRules(rule, rule if make is root_make and transform is root_transform else root_make(root_known), False)
    like = games.logits, games.value, (games.invalid, games.extra_data)
    if not (reads_one_row(transform, like) and reads_one_row(root_transform, like)):
        return None
    return NativeRules(_with_transform(make, transform, store, games), _with_transform(root_make, root_transform, store, games, True),
                       True)


def native_qvalues(transform: Callable, probabilities: Callable[[EdgeView], Array]) -> q.QValues | None:
    """The builder of `jaxzero.mcts.qvalues` that does what one of mctx's transforms does; None for any other transform."""
    function, options = _unwrap(transform)
    builders = {qtransform_by_min_max: q.by_min_max, qtransform_by_parent_and_siblings: q.by_parent_and_siblings,
                qtransform_completed_by_mix_value: functools.partial(q.completed_by_mix_value, probabilities=probabilities)}
    if function not in builders or any(jnp.ndim(value) for value in options.values()):
        return None
    return builders[function](**options)


def _unwrap(function: Callable) -> tuple[Any, dict[str, Any]]:
    """A function of this module, or mctx's of the same name, and the keyword arguments bound to it; else (None, {})."""
    options: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        if function.args:
            return None, {}
        options, function = {**function.keywords, **options}, function.func
    name = getattr(function, "__name__", "")
    ours = globals()[name] if name in __all__ else None
    theirs = str(getattr(function, "__module__", "")).partition(".")[0] == "mctx"
    return (ours, options) if ours is not None and (function is ours or theirs) else (None, {})


def _with_transform(make: Callable[[q.QValues], Rule], transform: Callable, store: Callable, games: Games,
                    at_root: bool = False) -> Rule:
    """A rule on a user's own transform, for trees that store the prior logits as they are."""

    def score(view: EdgeView) -> Array:
        values = ask(transform, view, (games.invalid, games.extra_data))
        prior = store(view.prior - jnp.max(view.prior, -1, keepdims=True))
        prior = jnp.where(games.allowed, prior, -jnp.inf) if at_root else prior
        scores = make(lambda _: values).score(view._replace(prior=prior))
        return jnp.where(games.allowed, scores, -jnp.inf) if at_root else scores

    return Rule(prepare=lambda logits: logits, score=score)
