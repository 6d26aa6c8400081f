"""Minimum visits: every legal action of the root gets a minimum of simulations before its rule decides.

A search for strength looks at a few good moves and hardly at the others. Analysis wants a value for every move, for
example for the one that was played. A search for a hint spends a part of its simulations on that.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.search.checks.argument_checks import check_rule, in_range
from jaxzero.search.selection_rules import constant
from jaxzero.types import EdgeView, Rule

__all__ = ["minimum_visits"]


def minimum_visits(rule: Rule, least: Any = 1) -> Rule:
    """The rule, but legal edges with fewer than `least` visits come first: for the root only.

    Of several such edges the one that lacks most visits goes first; of unvisited ones the one with the highest prior,
    where the rule promises `by_prior`. Edges that are proven to be worse than another are visited, too: `avoid_proven`
    excludes them only when the minimum is reached. The root's mean value then includes visits to bad moves; the values
    of its edges are not affected.

    Args:
        rule: decides when there are no such edges. With proofs, write `minimum_visits(avoid_proven(rule), least)`.
        least: visits; a number, or one per game `[B]`; it may be traced. 0: as the rule.

    Raises:
        ValueError: something that is no rule, or least below 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> model, rule = jz.Model(root, step), jz.puct()
    >>> policy = jz.alphazero(model, 200, root_rule=jz.root.minimum_visits(rule, 25), dirichlet_fraction=0.0)
    >>> jax.jit(policy)((), jax.random.key(0), jnp.zeros(1)).info.summary.visits.tolist()  # else: 5, 11, 184
    [[25, 25, 150]]
    """
    check_rule("minimum_visits: rule", rule)
    in_range("least", least, 0, float("inf"))

    def score(view: EdgeView) -> Array:
        scores = rule.score(view)
        visits = view.visits.astype(scores.dtype)
        lacking = constant(least, view, visits) * jnp.ones_like(visits) - visits
        wanted = (lacking > 0) & ~jnp.isneginf(view.prior)
        first = jnp.where(wanted, lacking, jnp.finfo(scores.dtype).min)
        return jnp.where(jnp.any(wanted, -1, keepdims=True), first, scores)

    return rule._replace(score=score)
