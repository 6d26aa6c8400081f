"""Reanalyse: old states searched anew, with the network as it is now."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.types import Keys, Params

__all__ = ["observed", "reanalyse", "reanalysed", "replaced"]


def observed(observation: Array, legal: Bool[Array, "n A"] | None) -> tuple:
    """A recorded state, as the policies of `reanalyse` take it: what was seen and what was legal."""
    return (observation,) if legal is None else (observation, legal)


def reanalyse(policy: Callable, evaluate: Callable) -> Callable[..., tuple[Array, Array, Array]]:
    """Fresh targets of windows: `fresh(params, keys, observation, legal, later) -> (policies, values, later values)`.

    MuZero Reanalyse (Schrittwieser et al. 2020, appendix H; Schrittwieser et al. 2021, "Online and offline
    reinforcement learning by planning with a learned model"): policies come from a search with the present network,
    and the values that returns are bootstrapped from are those of a network that follows it. There 80 % of the updates
    are such.

    `observation` `[n, K + 1, ...]` and `legal` are of the states that the model will unroll: these are searched, with
    `keys` `[n]`, which gives `policies` `[n, K + 1, A]` and `values` `[n, K + 1]`. `later` `[n, M, ...]` are
    observations of states further on, for which the network alone says a value `[n, M]`. The policy of a state without
    a legal action is all 0: nothing is learned from it.

    Args:
        policy: `(params, keys, state) -> PolicyOutput` on states as `observed` makes them.
        evaluate: `(params, observation) -> value`, what the network says.
    """

    def fresh(params: Params, keys: Keys, observation: Array, legal: Any, later: Array) -> tuple[Array, Array, Array]:
        n, states = observation.shape[:2]
        flat = lambda x: x.reshape(-1, *x.shape[2:])
        keys = jax.vmap(lambda k: jax.random.split(k, states))(keys).reshape(-1)
        out = policy(params, keys, jax.tree.map(flat, observed(observation, legal)))
        policies = out.action_weights.reshape(n, states, -1)
        if legal is not None:
            policies = jnp.where(legal.any(-1, keepdims=True), policies, 0.0)
        return policies, out.value.reshape(n, states), evaluate(params, flat(later)).reshape(n, -1)

    return fresh


def reanalysed(share: float, n: int) -> int:
    """How many of the n windows of a minibatch are searched anew.

    Raises:
        ValueError: a share outside 0 ... 1.

    >>> reanalysed(0.5, 256)
    128
    """
    if not 0 <= share <= 1:
        raise ValueError(f"reanalyse: a share of {share} of each minibatch; use 0 (none) ... 1 (all of it).")
    return round(share * n)


def replaced(stored: Array, fresh: Array, parts: int) -> Array:
    """Of each part's windows the first with their fresh targets, the others as they were stored."""
    by_part = lambda x: x.reshape(parts, -1, *x.shape[1:])
    new = by_part(fresh)
    return jnp.concatenate([new, by_part(stored)[:, new.shape[1] :]], 1).reshape(stored.shape)
