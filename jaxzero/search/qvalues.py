"""Q-value transforms, `EdgeView -> [..., W]`: rescale the values of edges for a rule.

Each is a builder: `puct(qvalues=by_min_max(-1, 1))`. Illegal edges count as unvisited ones. A transform of your own
sees only the visited edges and one unvisited edge. So it must give every unvisited edge the same value, and its
reductions over edges must not depend on how many unvisited ones there are. If it cannot, use
`puct(qvalues=...)._replace(by_prior=False)`.
"""

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.search.checks.argument_checks import in_range
from jaxzero.types import EdgeView

__all__ = [
    "FirstPlay",
    "QValues",
    "by_min_max",
    "by_parent_and_siblings",
    "completed_by_mix_value",
    "mixed_value",
    "raw",
    "with_virtual_zero",
]

QValues = Callable[[EdgeView], Float[Array, "... W"]]
FirstPlay = Callable[[EdgeView], Float[Array, "..."]]


def raw(first_play: float | FirstPlay = 0.0) -> QValues:
    """The mean return W/N as it is.

    Args:
        first_play: the value of an unvisited edge: a number, which may be traced, or a function `EdgeView -> [...]`
            of one number per node, see `jaxzero.search.first_play_urgency`.
    """
    if not callable(first_play):
        return lambda view: jnp.where(view.visits > 0, view.value, first_play)

    def transform(view: EdgeView) -> Array:
        unvisited = first_play(view)
        if callable(unvisited):
            raise ValueError(f"first_play={first_play!r} returned a function. Call it: reduced_parent(0.2).")
        return jnp.where(view.visits > 0, view.value, unvisited[..., None])

    return transform


def with_virtual_zero() -> QValues:
    """W/(1+N), as in AlphaGo-style texts: every edge counts one outcome of 0 that was never seen."""

    def transform(view: EdgeView) -> Array:
        visits = view.visits.astype(view.value.dtype)
        return view.value * visits / (1 + visits)

    return transform


def by_min_max(min_value: float, max_value: float) -> QValues:
    """(q − min)/(max − min) with given bounds; an unvisited edge counts as the minimum.

    In mctx: `qtransform_by_min_max`.

    Args:
        min_value: the least return there is.
        max_value: the greatest; both may be traced.

    Raises:
        ValueError: numbers that leave no range between them.
    """
    if all(isinstance(x, int | float) for x in (min_value, max_value)) and min_value >= max_value:
        raise ValueError(f"by_min_max({min_value}, {max_value}): the first must be smaller. Use by_min_max(-1, 1).")
    return lambda view: (jnp.where(view.visits > 0, view.value, min_value) - min_value) / (max_value - min_value)


def by_parent_and_siblings(epsilon: float = 1e-8) -> QValues:
    """Rescaled to [0, 1] by the least and the greatest of the node's value and its visited edges' values.

    An unvisited edge counts as the least (mctx: `qtransform_by_parent_and_siblings`). It needs no bounds on the
    rewards, and reads nothing beyond the node's own row.

    Args:
        epsilon: the least denominator.
    """

    def transform(view: EdgeView) -> Array:
        node = view.node_value[..., None]
        known = jnp.where(view.visits > 0, view.value, node)
        least = jnp.minimum(node, jnp.min(known, -1, keepdims=True))
        greatest = jnp.maximum(node, jnp.max(known, -1, keepdims=True))
        return (jnp.where(view.visits > 0, view.value, least) - least) / jnp.maximum(greatest - least, epsilon)

    return transform


def completed_by_mix_value(
    value_scale: float = 0.1,
    maxvisit_init: float = 50.0,
    rescale_values: bool = True,
    use_mixed_value: bool = True,
    epsilon: float = 1e-8,
    probabilities: Callable[[EdgeView], Array] | None = None,
) -> QValues:
    """(maxvisit_init + max N) · value_scale · q, unvisited edges completed by the mixed value.

    Danihelka et al. 2022, "Policy improvement by planning with Gumbel", appendix D (mctx:
    `qtransform_completed_by_mix_value`, whose defaults these are; the paper has c_visit = 50, c_scale = 1 and
    does not rescale).

    Args:
        value_scale: c_scale.
        maxvisit_init: c_visit.
        rescale_values: first map the completed values of the node to [0, 1].
        use_mixed_value: complete by the mixed value, not by the network's raw value.
        epsilon: the least denominator of the rescaling.
        probabilities: the prior probabilities of a view, up to a factor; default: from what the rules here store,
            probabilities or logits.

    Raises:
        ValueError: value_scale or maxvisit_init below 0.
    """
    in_range("value_scale", value_scale, 0, float("inf"))
    in_range("maxvisit_init", maxvisit_init, 0, float("inf"))
    probabilities = prior_weights if probabilities is None else probabilities

    def transform(view: EdgeView) -> Array:
        value = mixed_value(view, probabilities(view)) if use_mixed_value else view.raw_value
        completed = jnp.where(view.visits > 0, view.value, value[..., None])
        if rescale_values:
            least = jnp.min(completed, -1, keepdims=True)
            completed = (completed - least) / jnp.maximum(jnp.max(completed, -1, keepdims=True) - least, epsilon)
        most = jnp.max(view.visits, -1, keepdims=True).astype(completed.dtype)
        return (maxvisit_init + most) * value_scale * completed

    return transform


def prior_weights(view: EdgeView) -> Float[Array, "... W"]:
    """Prior probabilities up to a factor, of rules that store them, or logits whose maximum is 0.

    A row without a positive entry holds logits, or probabilities that all underflowed: equal weights, then.
    """
    return jnp.where(jnp.any(view.prior > 0, -1, keepdims=True), view.prior, jnp.exp(view.prior))


def mixed_value(view: EdgeView, probabilities: Float[Array, "... W"]) -> Float[Array, "..."]:
    """The network's value mixed with the prior-weighted mean of the visited edges (ibid., equation 33)."""
    seen = view.visits > 0
    weights = jnp.where(seen, jnp.maximum(jnp.finfo(probabilities.dtype).tiny, probabilities), 0)
    total = jnp.sum(weights, -1, keepdims=True)
    mean = jnp.sum(weights * view.value / jnp.where(seen, total, 1), -1)
    visits = jnp.sum(view.visits, -1).astype(mean.dtype)
    return (view.raw_value + visits * mean) / (visits + 1)
