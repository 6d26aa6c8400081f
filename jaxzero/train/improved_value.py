"""Improved value: what a position is worth by the policy that the search recommends, not by all that it tried."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.root.search_diagnostics import player_values
from jaxzero.search.edge_view import edge_view
from jaxzero.search.qvalues import mixed_value, prior_weights
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Params, State

__all__ = ["with_improved_value"]


def with_improved_value(policy: Callable) -> Callable:
    """The policy, with Σ π'(a) · q(a) for its value: the mean over visits leans on what was tried to explore.

    A Gumbel search spends half of its simulations on actions that the halving then drops, which draws the mean down. Of
    actions that were not tried, the mixed value stands for q (Danihelka et al. 2022, equation 33), as in the policy;
    with more than two players, or where the policy shows no tree, the mean over visits does.

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
            q = player_values(out.tree, out.value.shape[1]).qvalues
            return out.replace(value=_expected(share[..., None], q, out.value))
        others = found.value
        if isinstance(out.tree, Tree):
            view = edge_view(out.tree)
            others = mixed_value(view, prior_weights(view))
        return out.replace(value=_expected(share, found.qvalues, others))

    return improved


def _expected(share: Float[Array, "B W ..."], q: Float[Array, "B W ..."], others: Array) -> Array:
    """The mean of q with these weights, and of `others` with what they leave."""
    return jnp.sum(share * q, 1) + (1 - share.sum(1)) * others
