"""Virtual losses, visits and means: how an edge with N visits and O walks in flight looks to a rule.

See `jaxzero.options.leaf_parallel.parallel`, where these functions are used and their sources named.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.search.checks.argument_checks import check_function, counts
from jaxzero.search.qvalues import FirstPlay
from jaxzero.types import EdgeView

__all__ = ["Virtual", "check_virtual", "virtual_loss", "virtual_mean", "virtual_visits"]

Virtual = Callable[[EdgeView], EdgeView]


def virtual_visits(first_play: float | FirstPlay = 0.0) -> Virtual:
    """Walks in flight count as visits, and do not change the mean.

    Args:
        first_play: the value of an edge all of whose walks are in flight: the rule's own first-play value, a number or
            a function (see `jaxzero.search.first_play_urgency`). 0 is that of `puct()`. It is wrong where values have
            another scale, as with `muzero`, which rescales them: use `virtual_mean` there.
    """

    def virtual(view: EdgeView) -> EdgeView:
        unvisited = first_play(view)[..., None] if callable(first_play) else first_play
        return _with_visits(view, view.in_flight, jnp.where(view.visits > 0, view.value, unvisited))

    return virtual


def virtual_mean() -> Virtual:
    """Walks in flight count as visits that returned the mean: the edge's own, else the node's."""

    def virtual(view: EdgeView) -> EdgeView:
        return _with_visits(view, view.in_flight, jnp.where(view.visits > 0, view.value, view.node_value[..., None]))

    return virtual


def virtual_loss(weight: int = 1, loss: float = -1.0) -> Virtual:
    """Each walk in flight counts as `weight` visits that returned a loss.

    AlphaGo counted 3 (Silver et al. 2016), most programs count 1.

    Args:
        weight: visits that each walk counts for.
        loss: the least return of the game, for the player to move.

    Raises:
        ValueError: a weight below 1.
    """
    (weight,) = counts(weight=weight)

    def virtual(view: EdgeView) -> EdgeView:
        more = weight * jnp.asarray(view.in_flight)
        dtype = view.value.dtype
        visits, total = view.visits.astype(dtype), jnp.maximum(view.visits + more, 1).astype(dtype)
        return _with_visits(view, more, (view.value * visits + loss * more.astype(dtype)) / total)

    return virtual


def check_virtual(option: str, virtual: Any) -> None:
    """Raises a ValueError if an option is no such function, or a builder of one that was not called."""
    check_function(option, virtual, "view", "virtual_mean(), virtual_visits() or virtual_loss()", (Virtual,))


def _with_visits(view: EdgeView, more: Array, value: Array) -> EdgeView:
    busy = view.in_flight > 0
    return view._replace(
        visits=view.visits + more,
        value=jnp.where(busy, value, view.value),
        node_visits=view.node_visits + jnp.sum(more, -1, dtype=view.node_visits.dtype),
    )
