"""From mctx's action selectors to the jaxzero rules that choose alike."""

import functools
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.compat.mctx._src import action_selection, qtransforms
from jaxzero.compat.mctx._src.tree import Tree
from jaxzero.compat.mctx.native.custom_qtransform import ask, reads_one_row
from jaxzero.compat.mctx.native.search import Games, NativeRules
from jaxzero.compat.mctx.native.tree import Found, root_view
from jaxzero.root.gumbel import gumbel_interior, gumbel_root, improved_policy
from jaxzero.search import qvalues as q
from jaxzero.search.selection_rules import muzero_puct, probabilities
from jaxzero.types import EdgeView, Rule

__all__ = ["native_qvalues", "native_rules", "qvalues_at_roots"]


KNOWN = {
    function.__name__: function
    for function in (
        action_selection.muzero_action_selection,
        action_selection.gumbel_muzero_root_action_selection,
        action_selection.gumbel_muzero_interior_action_selection,
        qtransforms.qtransform_by_min_max,
        qtransforms.qtransform_by_parent_and_siblings,
        qtransforms.qtransform_completed_by_mix_value,
    )
}


class Family(NamedTuple):
    """How one kind of selector becomes rules.

    Attributes:
        transform: the Q transform, if none is given.
        prepare: from the logits to what a rule reads as the prior.
        probabilities: the prior probabilities of a view, up to a factor.
        interior: the rule of interior nodes, by its Q-values.
        own_interior: the same for Q-values of any kind, in view of all edges.
        root: the rule of the root, by its Q-values.
    """

    transform: Callable
    prepare: Callable[[Array], Array]
    probabilities: Callable[[EdgeView], Array]
    interior: Callable[[q.QValues], Rule]
    own_interior: Callable[[q.QValues], Rule]
    root: Callable[[q.QValues], Rule]


def native_rules(root_selector: Callable, interior_selector: Callable, games: Games) -> NativeRules | None:
    """The rules that choose as mctx's selectors do; None for selectors that are not recognised."""
    root, root_options = _unwrap(root_selector)
    interior, options = _unwrap(interior_selector)
    given, root_given = options.pop("qtransform", None), root_options.pop("qtransform", None)
    family = _family(root, root_options, interior, options, games)
    if family is None:
        return None
    transform, root_transform = given or family.transform, root_given or family.transform
    known, root_known = (native_qvalues(x, family.probabilities) for x in (transform, root_transform))
    if known and root_known:
        rule = family.interior(known)
        shared = family.root is family.interior and transform is root_transform
        return NativeRules(rule, rule if shared else family.root(root_known))
    like = games.logits, games.value, (games.invalid, games.extra_data)
    if not (reads_one_row(transform, like) and reads_one_row(root_transform, like)):
        return None
    return NativeRules(
        _on_transform(transform, family.own_interior, family.prepare, games),
        _on_transform(root_transform, family.root, family.prepare, games, at_root=True),
        raw_prior=True,
    )


def _family(root: Any, root_options: dict, interior: Any, options: dict, games: Games) -> Family | None:
    if root is interior is action_selection.muzero_action_selection:
        if not (_in_range(options) and _in_range(root_options)):
            return None
        depth = root_options.pop("depth", None)
        if not (isinstance(depth, int) and depth == 0 and "depth" not in options):
            return None
        below = at_root = lambda qvalues: muzero_puct(qvalues=qvalues, **options)
        same = options.keys() == root_options.keys() and all(root_options[name] is options[name] for name in options)
        if not same:
            at_root = lambda qvalues: muzero_puct(qvalues=qvalues, **root_options)
        return Family(
            qtransforms.qtransform_by_parent_and_siblings, probabilities, lambda view: view.prior, below, below, at_root
        )
    gumbel = (
        action_selection.gumbel_muzero_root_action_selection,
        action_selection.gumbel_muzero_interior_action_selection,
    )
    if (root, interior) != gumbel or options or not hasattr(games.extra_data, "root_gumbel"):
        return None
    if root_options.keys() != {"num_simulations", "max_num_considered_actions"}:
        return None
    if root_options["num_simulations"] < games.num_simulations:  # beyond the plan no rule does what mctx does
        return None
    at_root = functools.partial(
        gumbel_root, *(root_options[x] for x in ("num_simulations", "max_num_considered_actions"))
    )
    return Family(
        qtransforms.qtransform_completed_by_mix_value,
        lambda logits: logits,
        lambda view: jnp.exp(view.prior),
        gumbel_interior,
        _whole_gumbel_interior,
        at_root,
    )


def native_qvalues(transform: Callable, probabilities: Callable[[EdgeView], Array]) -> q.QValues | None:
    """The counterpart in `jaxzero.search.qvalues` of one of mctx's transforms; None for any other transform."""
    function, options = _unwrap(transform)
    builders = {
        qtransforms.qtransform_by_min_max: q.by_min_max,
        qtransforms.qtransform_by_parent_and_siblings: q.by_parent_and_siblings,
        qtransforms.qtransform_completed_by_mix_value: functools.partial(
            q.completed_by_mix_value, probabilities=probabilities
        ),
    }
    if function not in builders or not _in_range(options):
        return None
    return builders[function](**options)


def _in_range(options: dict[str, Any]) -> bool:
    """Whether jaxzero's functions take these numbers; mctx's take any, and arrays by action, too."""
    if any(jnp.ndim(value) for value in options.values()):
        return False
    number = {name: float(x) for name, x in options.items() if isinstance(x, Real)}
    positive = all(number.get(name, 1) >= 0 for name in ("pb_c_init", "value_scale", "maxvisit_init"))
    ordered = number.get("min_value", -float("inf")) < number.get("max_value", float("inf"))
    return positive and ordered and number.get("pb_c_base", 1) > 0


def _unwrap(function: Callable) -> tuple[Any, dict[str, Any]]:
    """The front's function and its bound keyword arguments, for the front's or mctx's own function; else (None, {})."""
    options: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        if function.args:
            return None, {}
        options, function = {**function.keywords, **options}, function.func
    name = getattr(function, "__name__", "")
    ours = KNOWN.get(name)
    theirs = str(getattr(function, "__module__", "")).partition(".")[0] == "mctx"
    return (ours, options) if ours is not None and (function is ours or theirs) else (None, {})


def _on_transform(
    transform: Callable, make: Callable[[q.QValues], Rule], prepare: Callable, games: Games, at_root: bool = False
) -> Rule:
    """A rule on a user's own transform, for trees that store the prior logits as they are."""

    def score(view: EdgeView) -> Array:
        values = ask(transform, view, (games.invalid, games.extra_data))
        prior = prepare(view.prior - jnp.max(view.prior, -1, keepdims=True))
        prior = jnp.where(games.allowed[view.game], prior, -jnp.inf) if at_root else prior
        scores = make(lambda _: values).score(view._replace(prior=prior))
        scores = jnp.maximum(scores, jnp.finfo(scores.dtype).min)  # a transform's −inf closes no edge
        return jnp.where(games.allowed[view.game], scores, -jnp.inf) if at_root else scores

    return Rule(prepare=lambda logits: logits, score=score)


def _whole_gumbel_interior(qvalues: q.QValues) -> Rule:
    """`gumbel_interior` for any Q-values: that rule sees only one unvisited edge, and needs the same value for all."""

    def score(view: EdgeView) -> Array:
        visits = view.visits.astype(view.prior.dtype)
        return improved_policy(view, qvalues) - visits / (1 + jnp.sum(visits, -1, keepdims=True))

    return Rule(prepare=lambda logits: logits, score=score)


def qvalues_at_roots(found: Found | Tree, qtransform: Callable) -> Float[Array, "B A"]:
    """A Q transform at the root of each game of a finished search."""
    if isinstance(found, Tree):
        return jax.vmap(qtransform, (0, None))(found, Tree.ROOT_INDEX)
    view = root_view(found)
    known = native_qvalues(qtransform, lambda view: jax.nn.softmax(view.prior))
    return known(view) if known else ask(qtransform, view, (found.root_invalid_actions, found.extra_data))
