"""Forced playouts: at the root, every action that was tried gets a minimum of visits.

Noise leads a search to moves that it would not have tried; one simulation says little about them. KataGo gives every
move that was tried a number of simulations that grows with its prior, however bad they look. So moves that the network
underrates are found sooner. The visit counts then no longer show only what the search thinks good, so learn from pruned
ones (`target=jz.root.pruned_visits(rule)` or `jz.root.solved_visits(rule)`). Do not use it in play for strength.

It costs a square root per edge shown.

Source: Wu 2019, "Accelerating Self-Play Learning in Go" (KataGo), section 3.2; k = 2 there.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.search.checks.argument_checks import check_rule, in_range
from jaxzero.search.selection_rules import constant, stores_probabilities
from jaxzero.types import EdgeView, Rule

__all__ = ["forced_playouts"]


def forced_playouts(rule: Rule, k: Any = 2.0) -> Rule:
    """The rule, but edges with 1 ≤ N < √(k · P · ΣN) come first: for the root only.

    P is the prior in force, with noise and temperature. Of several such edges the one that lacks most visits goes
    first, the lowest action on a tie (KataGo takes the first in the order in which they were tried). Without such an
    edge the rule decides. The rule alone decides which edges are tried at all, so the promise of `rule.by_prior` holds.

    Args:
        rule: a rule that stores probabilities.
        k: 2 in self-play (KataGo), 0 to force nothing; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: a rule without probabilities (UCB1, Gumbel), or k below 0.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> model, rule = jz.Model(root, step), jz.puct()
    >>> policy = jz.alphazero(model, 200, rule=rule, root_rule=jz.forced_playouts(rule), dirichlet_fraction=0.0)
    >>> jax.jit(policy)((), jax.random.key(0), jnp.zeros(1)).info.summary.visits.tolist()  # unforced: 5, 11, 184
    [[12, 12, 176]]
    """
    check_rule("forced_playouts: rule", rule)
    if stores_probabilities(rule) is False:
        raise ValueError(
            f"forced_playouts(k={k}) of a rule that stores no probabilities: how often an edge is forced depends on "
            "its prior. Use a rule like puct(); gumbel needs none, for its halving tries every action it considers, "
            "and neither does ucb1, which tries every action."
        )
    in_range("k", k, 0, float("inf"))

    def score(view: EdgeView) -> Array:
        visits = view.visits.astype(view.prior.dtype)
        wanted = jnp.maximum(view.prior, 0) * jnp.sum(visits, -1, keepdims=True)
        lacking = jnp.sqrt(constant(k, view, wanted) * wanted) - visits
        scores = rule.score(view)
        forced = (view.visits > 0) & (lacking > 0) & ~jnp.isneginf(scores)  # −inf: ruled out by a proof
        first = jnp.where(forced, lacking.astype(scores.dtype), jnp.finfo(scores.dtype).min)
        return jnp.where(jnp.any(forced, -1, keepdims=True), first, scores)

    return rule._replace(score=score)
