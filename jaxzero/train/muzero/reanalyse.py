"""Reanalyse: old states are searched again with the current network."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.types import Keys, Params

__all__ = ["observed", "reanalyse", "reanalysed", "replaced"]


def observed(observation: Array, legal: Bool[Array, "n A"] | None) -> tuple:
    """A recorded state, as the policies of `reanalyse` take it: the observation and the legal actions."""
    return (observation,) if legal is None else (observation, legal)


def reanalyse(policy: Callable, evaluate: Callable) -> Callable[..., tuple[Array, Array, Array]]:
    """Fresh targets of windows: `fresh(params, keys, observation, legal, later) -> (policies, values, later values)`.

    MuZero Reanalyse (Schrittwieser et al. 2020, appendix H; Schrittwieser et al. 2021, "Online and offline
    reinforcement learning by planning with a learned model"): policies come from a search with the current network,
    and returns are bootstrapped from the values of a target network that follows it. There, 80 % of the updates use
    such targets.

    `observation` `[n, K + 1, ...]` and `legal` belong to the states that the model will unroll. These are searched with
    `keys` `[n]`, which gives `policies` `[n, K + 1, A]` and `values` `[n, K + 1]`. `later` `[n, M, ...]` are
    observations of later states, for which the network alone gives a value `[n, M]`. The policy of a state without a
    legal action is all 0: nothing is learned from it.

    Args:
        policy: `(params, keys, state) -> PolicyOutput` on states as `observed` makes them.
        evaluate: `(params, observation) -> value`, the network's.
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
    """Each part's windows: the first ones with fresh targets, the others as they were stored."""
    by_part = lambda x: x.reshape(parts, -1, *x.shape[1:])
    new = by_part(fresh)
    return jnp.concatenate([new, by_part(stored)[:, new.shape[1] :]], 1).reshape(stored.shape)
