"""Target pruning: policy targets without the visits that noise and forced playouts caused.

A search that explores visits moves only to look at them; a network that learns the shares of visits learns to explore,
too. Both targets here are the visits that the rule would have made, had it known what the search found:

* `solved_visits`: the counts at which PUCT is in balance, with the final Q-values and the clean prior. It can give an
  action more than it got, and needs no integers. Begin with this one.
* `pruned_visits`: the counts of the search, minus those that PUCT would not have made (Wu 2019, KataGo).

They are made for noise and `forced_playouts`; without either they differ little from the visits. Both take the rule
that searched, and derive the exploration factor and the Q-values, first-play urgency included, from its scores. Gumbel
search has a target of its own. They cost some thirty passes over `[B, W]`, or a few, once per search.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.root.exploration import prior_at_root
from jaxzero.root.root_action import per_game_number
from jaxzero.root.summary import legal_actions
from jaxzero.search.checks.argument_checks import check_rule, in_range
from jaxzero.search.edge_view import edge_view
from jaxzero.search.node_storage import places
from jaxzero.search.selection_rules import stores_probabilities
from jaxzero.search.tree import RootData, Tree
from jaxzero.types import EdgeView, Rule

__all__ = ["Target", "ideal_visits", "pruned_visits", "solved_visits"]

Target = Callable[[Tree], Float[Array, "B W"]]

BISECTIONS, POLISHES = 26, 3  # e^±90 to 1 in 10^6, then to the last digit


class Terms(NamedTuple):
    """The parts of PUCT: a score is `qvalues + exploration · prior / (1 + visits)`.

    Attributes:
        qvalues: first-play values among them.
        exploration: c(N)·√N.
    """

    qvalues: Float[Array, "... W"]
    exploration: Float[Array, "... 1"]


def solved_visits(rule: Rule) -> Target:
    """The shares of the visits at which every action of the root would have the same score: an idealised search.

    N̂ = max(0, c(N)·√N·P/(V − Q) − 1), where V is such that Σ N̂ = N; P is the clean prior, Q the final values (the
    first-play value for an unvisited action), c(N) the rule's own factor. Uniform over the legal actions without a
    visit.

    Args:
        rule: the rule that searched: `puct` or `muzero_puct`, not its wrappers for the root.

    Raises:
        ValueError: a rule that is not PUCT.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> rule = jz.puct()
    >>> policy = jz.alphazero(
    ...     jz.Model(root, step), 200, rule=rule, root_rule=jz.forced_playouts(rule),
    ...     target=jz.root.solved_visits(rule), dirichlet_fraction=0.0
    ... )
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(1))
    >>> (200 * out.action_weights).round().tolist()  # of 12, 12, 176 visits; without forcing they are 5, 11, 184
    [[5.0, 10.0, 185.0]]
    """
    _check("solved_visits", rule)

    def target(tree: Tree) -> Array:
        view = edge_view(tree)
        q, exploration = puct_terms(rule, view)
        total = jnp.sum(view.visits, -1, keepdims=True).astype(q.dtype)
        return _shares(tree, ideal_visits(q, jnp.maximum(view.prior, 0), exploration, total))

    return target


def pruned_visits(rule: Rule, k: Any = 2.0) -> Target:
    """The shares of the visits, without those that PUCT would not have made.

    Wu 2019, section 3.2: with c* the most visited action, every other loses up to √(k·P·ΣN) visits, as long as its
    score with what is left stays below that of c*, with the final Q-values and the prior in force; actions left with
    one visit are dropped.

    Args:
        rule: the rule that searched, without `forced_playouts`: `puct` or `muzero_puct`.
        k: that of the forced playouts; a number, one per game `[B]`, or `Tree -> [B]`. None: as KataGo does today: any
            number of visits may go, single ones stay, and c* is the action of the highest N + 2P.

    Raises:
        ValueError: a rule that is not PUCT, or k below 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> rule = jz.puct()
    >>> policy = jz.alphazero(
    ...     jz.Model(root, step), 200, rule=rule, root_rule=jz.forced_playouts(rule),
    ...     target=jz.root.pruned_visits(rule), dirichlet_fraction=0.0
    ... )
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(1))
    >>> out.info.summary.visits.tolist(), (192 * out.action_weights).round().tolist()
    ([[12, 12, 176]], [[5.0, 11.0, 176.0]])
    """
    _check("pruned_visits", rule)
    if k is not None:
        in_range("k", k, 0, float("inf"))

    def target(tree: Tree) -> Array:
        view = edge_view(tree)._replace(prior=prior_at_root(tree))
        q, exploration = puct_terms(rule, view)
        forced = None
        if k is not None:
            total = jnp.sum(view.visits, -1, keepdims=True)
            wanted = jnp.maximum(view.prior, 0) * total.astype(view.prior.dtype)
            forced = jnp.sqrt(per_game_number(k, tree)[:, None] * wanted)
        return _shares(tree, _without_surplus(view, q, exploration, forced))

    return target


def ideal_visits(
    qvalues: Float[Array, "B W"],
    prior: Float[Array, "B W"],
    exploration: Float[Array, "B 1"],
    total: Float[Array, "B 1"],
) -> Float[Array, "B W"]:
    """N̂ of `solved_visits`, of sum `total`.

    The unknown is δ = V − max Q over the actions with a prior, because V itself is too coarse in float32. It is found
    by bisection of ln δ, then by Newton's method on δ. Σ N̂ falls and is convex in δ, so Newton from below stays below.

    Args:
        qvalues: Q.
        prior: P; 0 where an action is excluded.
        exploration: c(N)·√N.
        total: N.
    """
    tiny, pull = jnp.finfo(prior.dtype).tiny, exploration * prior
    open_ = pull > 4 * tiny * (total + 1)  # a prior too small for its share to be a float counts as 0
    gap = jnp.where(open_, jnp.max(jnp.where(open_, qvalues, -jnp.inf), -1, keepdims=True) - qvalues, jnp.inf)
    best = jnp.max(jnp.where(gap == 0, pull, 0), -1, keepdims=True)
    pull = jnp.where(open_, pull, 0)

    def visits(delta: Array) -> Array:
        return jnp.maximum(pull / (delta + gap) - 1, 0)

    def bisect(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        enough = jnp.sum(visits(jnp.exp(middle)), -1, keepdims=True) >= total
        return jnp.where(enough, middle, low), jnp.where(enough, high, middle)

    def polish(_: Any, delta: Array) -> Array:
        found = visits(delta)
        slope = jnp.sum(jnp.where(found > 0, (found + 1) / (delta + gap), 0), -1, keepdims=True)
        over = jnp.sum(found, -1, keepdims=True) - total
        return jnp.maximum(delta + jnp.where(slope > 0, over / jnp.where(slope > 0, slope, 1), 0), tiny)

    some = jnp.maximum(total, 1)  # without a visit, or an open action: anything finite
    low = jnp.log(jnp.maximum(best / (some + 1), tiny))  # here the best action alone would get all visits
    high = jnp.log(jnp.maximum(jnp.sum(pull, -1, keepdims=True) / some, tiny))  # here all together would get too few
    low, _ = jax.lax.fori_loop(0, BISECTIONS, bisect, (low, high))
    return visits(jax.lax.fori_loop(0, POLISHES, polish, jnp.exp(low)))


def puct_terms(rule: Rule, view: EdgeView) -> Terms:
    """The parts of a PUCT rule's scores, derived from the scores themselves.

    Two unvisited edges are added to the view, with priors 0 and 1. The rule scores them by the first-play value, and by
    that plus c(N)·√N, because it promises (see `jaxzero.search.qvalues`) to treat all unvisited edges alike.
    """
    shape = *view.visits.shape[:-1], 2

    def with_two(edges: Array, *values: int) -> Array:
        return jnp.concatenate([edges, jnp.broadcast_to(jnp.asarray(values, edges.dtype), shape)], -1)

    blank = {
        name: with_two(getattr(view, name), 0) for name in ("visits", "value", "reward", "discount", "child_value")
    }
    more = view._replace(action=with_two(view.action, view.action.shape[-1]), prior=with_two(view.prior, 0, 1), **blank)
    first_play, highest = jnp.split(rule.score(more)[..., -2:], 2, -1)
    exploration = highest - first_play
    drawn = exploration * jnp.maximum(view.prior, 0) / (1 + view.visits).astype(view.prior.dtype)
    return Terms(jnp.where(view.visits > 0, rule.score(view) - drawn, first_play), exploration)


def _without_surplus(view: EdgeView, q: Array, exploration: Array, forced: Array | None) -> Float[Array, "B W"]:
    """The visits of `pruned_visits`; `forced`: how many may be removed; None: any number, and single visits stay."""
    prior, visits = jnp.maximum(view.prior, 0), view.visits.astype(q.dtype)
    weight = visits if forced is not None else jnp.where(visits > 0, visits + 2 * prior, 0)
    best = places(visits.shape[-1], visits.ndim) == jnp.argmax(weight, -1, keepdims=True).astype(jnp.int32)
    score = jnp.sum(jnp.where(best, q + exploration * prior / (1 + visits), 0), -1, keepdims=True)
    above = score - q
    balance = jnp.where(above > 0, exploration * prior / jnp.where(above > 0, above, 1) - 1, jnp.inf)
    if forced is None:
        left = jnp.ceil(jnp.clip(balance, 0, visits))
    else:  # below the score of the best, not equal to it: one more than the whole part
        left = jnp.clip(jnp.floor(jnp.clip(balance, -1, visits)) + 1, jnp.ceil(jnp.maximum(visits - forced, 0)), visits)
        left = jnp.where(left > 1, left, 0)
    return jnp.where(best, visits, left)


def _shares(tree: Tree, visits: Float[Array, "B W"]) -> Float[Array, "B W"]:
    """Visits as shares that sum to 1; uniform over the legal actions where there are no visits."""
    total, legal = jnp.sum(visits, -1, keepdims=True), legal_actions(tree)
    uniform = legal.astype(visits.dtype) / jnp.sum(legal, -1, keepdims=True, dtype=visits.dtype)
    return jnp.where(total > 0, visits / jnp.where(total > 0, total, 1), uniform)


def _check(name: str, rule: Any) -> None:
    """Raises a ValueError unless the rule is PUCT."""
    check_rule(f"{name}: rule", rule)
    if rule.returns is not None:
        raise ValueError(
            f"{name} of a rule with avoid_proven or seek_proof around it: give the puct() inside; actions that are "
            "proven worse have no weight anyway."
        )
    if stores_probabilities(rule) is not False and _is_puct(rule):
        return
    raise ValueError(
        f"{name} of a rule that is not PUCT: it solves Q + E·P/(1 + N) for N. Give the puct() or muzero_puct() that "
        "searches, without forced_playouts or with_root_prior around it; gumbel has its own target, and for other "
        "rules leave the target out: the shares of visits."
    )


def _is_puct(rule: Rule) -> bool:
    """Whether the priors of visited edges change their scores by E·ΔP/(1 + N), which those of forced edges do not.

    A rule with numbers that are not known yet, or one per game, is assumed to be PUCT.
    """
    zero, one = jnp.zeros((2, 3)), jnp.ones((2, 3))
    view = EdgeView(
        game=jnp.arange(2),
        action=jnp.tile(jnp.arange(3), (2, 1)),
        prior=jnp.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]),
        visits=jnp.tile(jnp.array([4000, 1, 1]), (2, 1)),
        value=zero,
        reward=zero,
        discount=one,
        child_value=zero,
        node_visits=jnp.full(2, 4003),
        node_value=zero[:, 0],
        raw_value=zero[:, 0],
        unvisited_mass=zero[:, 0],
        root=RootData(simulations=jnp.full(2, 4002), prior=one / 3),
    )
    try:
        with jax.ensure_compile_time_eval(), jax.debug_infs(False):
            q, exploration = puct_terms(rule, view)
            same = jnp.allclose(q[0], q[1], atol=1e-4) & jnp.allclose(exploration[0], exploration[1], rtol=1e-4)
            return bool(same & (exploration[0, 0] > 0))
    except (jax.errors.ConcretizationTypeError, ValueError):
        return True
