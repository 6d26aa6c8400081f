"""Bootstrap values: values of searched positions for value targets, other than the mean over all simulations.

A Gumbel search spends half of its simulations on actions that the halving then drops, which lowers the mean.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.root.proven_edges import not_worse
from jaxzero.root.search_diagnostics import player_values
from jaxzero.root.summary import Summary
from jaxzero.search.qvalues import mixed_value, prior_weights
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Params, State

__all__ = ["greedy_value", "with_greedy_value", "with_improved_value"]


def with_improved_value(policy: Callable) -> Callable:
    """The policy with Σ π'(a) · q(a) as its value: the expectation under its improved policy.

    For actions that were not tried, the mixed value stands in for q (Danihelka et al. 2022, equation 33), as in the
    policy; with more than two players, or where the policy shows no tree, the mean over visits does.

    >>> import jax, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    >>> policy = jz.gumbel(models.rollout(game), 16)
    >>> value = lambda policy: jax.jit(policy)((), jax.random.key(1), states).value
    >>> bool((value(with_improved_value(policy)) > value(policy)).all())
    True
    """

    def improved(params: Params, keys: Keys, state: State, *rest: Any) -> Any:
        out = policy(params, keys, state, *rest)
        found = out.info.summary
        share = jnp.where(found.visits > 0, out.action_weights, 0.0)
        if out.value.ndim > 1:  # an entry for each player
            return out.replace(value=_expected(share[..., None], _by_player(out), out.value))
        others = found.value
        if isinstance(out.tree, Tree):
            view = not_worse(out.tree)
            others = mixed_value(view, prior_weights(view))
        return out.replace(value=_expected(share, found.qvalues, others))

    return improved


def with_greedy_value(policy: Callable) -> Callable:
    """The policy with the value of its best action as its value (`greedy_value`).

    One step of the greedy backup of Willemsen, Baier and Kaisers (2022, "Value targets in off-policy AlphaZero: a new
    greedy backup"), who follow the best actions to a leaf. Where no action was tried, the value is unchanged. Put it
    directly around the policy, inside wrappers that change weights or trees.

    Raises:
        ValueError: when called: several players, and a tree that does not have an edge for each action.

    >>> import jax, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    >>> out = jax.jit(with_greedy_value(jz.gumbel(models.rollout(game), 16)))((), jax.random.key(1), states)
    >>> bool((out.value == greedy_value(out.info.summary)).all())
    True
    """

    def greedy(params: Params, keys: Keys, state: State, *rest: Any) -> Any:
        out = policy(params, keys, state, *rest)
        found = out.info.summary
        value = greedy_value(found)
        if out.value.ndim > 1:  # an entry for each player
            value = jnp.take_along_axis(_by_player(out), _greedy(found)[:, None, None], 1)[:, 0]
        tried = jnp.any(_open_visits(found) > 0, -1).reshape(-1, *[1] * (value.ndim - 1))
        return out.replace(value=jnp.where(tried, value, out.value))

    return greedy


def greedy_value(found: Summary) -> Float[Array, "B"]:
    """The best mean return of the most visited actions, for the player to move; 0 if none was visited.

    The last two actions of sequential halving differ by at most one visit. So all actions within one visit of the most
    count, unless they are proven to be worse than another. If as many actions are considered as there are simulations,
    nothing is halved: each has one visit, and this is the best of all. With more simulations, the other actions were
    visited too rarely: the best of many rough values would be too high.

    Args:
        found: of a search, `out.info.summary`.

    >>> from types import SimpleNamespace
    >>> q, visits = jnp.float32([[0.1, 0.3, 0.9], [0.0, 0.0, 0.0]]), jnp.array([[5, 4, 1], [0, 0, 0]])
    >>> found = SimpleNamespace(visits=visits, visit_probs=visits / 10, qvalues=q)
    >>> [round(float(x), 1) for x in greedy_value(found)]
    [0.3, 0.0]
    """
    return jnp.take_along_axis(found.qvalues, _greedy(found)[:, None], 1)[:, 0]


def _open_visits(found: Summary) -> Int[Array, "B W"]:
    """Visits, without those of actions that are proven to be worse than another."""
    return jnp.where(found.visit_probs > 0, found.visits, 0)


def _greedy(found: Summary) -> Int[Array, "B"]:
    visits = _open_visits(found)
    last = visits >= jnp.maximum(jnp.max(visits, -1, keepdims=True) - 1, 1)
    return jnp.argmax(jnp.where(last, found.qvalues, -jnp.inf), -1)


def _by_player(out: Any) -> Float[Array, "B W P"]:
    """Q-values of each player.

    Raises:
        ValueError: the tree does not have an edge for each action.
    """
    edges, actions = getattr(out.tree, "num_edges", None), out.info.summary.visits.shape[1]
    if edges != actions:
        raise ValueError(
            f"values of {out.value.shape[1]} players need a tree with an edge for each of the {actions} actions, and "
            f"this one has {edges}. Put with_greedy_value or with_improved_value directly around the policy."
        )
    return player_values(out.tree, out.value.shape[1]).qvalues


def _expected(share: Float[Array, "B W ..."], q: Float[Array, "B W ..."], others: Array) -> Array:
    """The mean of q with these weights, and of `others` with the remaining weight."""
    return jnp.sum(share * q, 1) + (1 - share.sum(1)) * others
