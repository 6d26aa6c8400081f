"""Policy heads for continuous actions: densities, and samples for the search."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from jaxzero.types import Keys

__all__ = ["ActionHead", "factorised", "gaussian"]


class ActionHead(NamedTuple):
    """A policy over arrays `[D]`.

    Attributes:
        size: how many numbers the head puts out.
        dims: D.
        scaled: `action [..., D] -> [..., D]`, each coordinate from its bounds to −1 ... 1, as networks take it.
        log_prob: `(output [..., size], action [..., K, D]) -> [..., K]`, the log-density, or for factorised policies
            the log-probability.
        draw: `(keys [B], output [B, size], K) -> actions [B, K, D]`, from the policy itself.
        entropy: `output [..., size] -> [...]`.
    """

    size: int
    dims: int
    scaled: Callable[[Float[Array, "... D"]], Float[Array, "... D"]]
    log_prob: Callable[[Float[Array, "... size"], Float[Array, "... K D"]], Float[Array, "... K"]]
    draw: Callable[[Keys, Float[Array, "B size"], int], Float[Array, "B K D"]]
    entropy: Callable[[Float[Array, "... size"]], Float[Array, "..."]]


def gaussian(low: tuple[float, ...], high: tuple[float, ...], narrowest: float = 0.05) -> ActionHead:
    """Independent normal distributions, a mean and a log-deviation for each coordinate, of actions scaled to −1 ... 1.

    Means are tanh of the output. Draws beyond the bounds are kept and learned with the density that they were drawn
    from; the environment is given the nearest action within its bounds.

    Args:
        low: the least value of each coordinate.
        high: the greatest.
        narrowest: the least standard deviation: a policy that learns from its samples would narrow until it explores
            nothing.

    Raises:
        ValueError: bounds that are not finite, or in the wrong order.

    Example:
        >>> head = gaussian((-2.0,), (2.0,))
        >>> actions = head.draw(jax.random.split(jax.random.key(0), 5), jnp.zeros((5, 2)), 20)
        >>> head.size, actions.shape, head.log_prob(jnp.zeros((5, 2)), actions).shape
        (2, (5, 20, 1), (5, 20))
    """
    scaled, unscaled, dims = _scales("gaussian", low, high)
    widest = 1.0

    def parts(output: Array) -> tuple[Array, Array]:
        mean, width = jnp.split(output, 2, -1)
        # An output of 0 is a deviation of a half; the limits are never passed.
        return jnp.tanh(mean), narrowest + (widest - narrowest) * jax.nn.sigmoid(width)

    def log_prob(output: Array, action: Array) -> Array:
        mean, width = (x[..., None, :] for x in parts(output))
        distance = (scaled(action) - mean) / width
        return jnp.sum(-(distance**2) / 2 - jnp.log(width) - np.log(2 * np.pi) / 2, -1)

    def draw(keys: Keys, output: Array, number: int) -> Array:
        mean, width = (x[:, None] for x in parts(output))
        noise = jax.vmap(lambda key: jax.random.normal(key, (number, dims)))(keys)
        return unscaled(mean + width * noise)

    def entropy(output: Array) -> Array:
        return jnp.sum(jnp.log(parts(output)[1]) + np.log(2 * np.pi * np.e) / 2, -1)

    return ActionHead(2 * dims, dims, scaled, log_prob, draw, entropy)


def factorised(low: tuple[float, ...], high: tuple[float, ...], bins: int = 7) -> ActionHead:
    """Independent categorical distributions over a grid in each coordinate (Tang and Agrawal 2020).

    Args:
        low: the least value of each coordinate, the first of its bins.
        high: the greatest, the last.
        bins: of each coordinate; published: 7 to 15.

    Raises:
        ValueError: bounds that are not finite, or in the wrong order; fewer than two bins.

    Example:
        >>> head = factorised((-2.0, 0.0), (2.0, 1.0), bins=5)
        >>> actions = head.draw(jax.random.split(jax.random.key(0), 3), jnp.zeros((3, 10)), 4)
        >>> head.size, actions.shape, sorted(set(actions[..., 1].ravel().tolist())) <= [0.0, 0.25, 0.5, 0.75, 1.0]
        (10, (3, 4, 2), True)
    """
    scaled, unscaled, dims = _scales("factorised", low, high)
    if bins < 2:
        raise ValueError(f"factorised(bins={bins}): give 2 or more; published: 7.")
    grid = np.linspace(-1, 1, bins, dtype=np.float32)
    logits_of = lambda output: jax.nn.log_softmax(output.reshape(*output.shape[:-1], dims, bins))

    def log_prob(output: Array, action: Array) -> Array:
        nearest = jnp.round((scaled(action) + 1) / 2 * (bins - 1)).astype(jnp.int32)
        chosen = jax.nn.one_hot(jnp.clip(nearest, 0, bins - 1), bins)
        return jnp.sum(chosen * logits_of(output)[..., None, :, :], (-1, -2))

    def draw(keys: Keys, output: Array, number: int) -> Array:
        one = lambda key, logits: jax.random.categorical(key, logits, shape=(number, dims))
        return unscaled(jnp.asarray(grid)[jax.vmap(one)(keys, logits_of(output))])

    def entropy(output: Array) -> Array:
        logits = logits_of(output)
        return -jnp.sum(jnp.exp(logits) * logits, (-1, -2))

    return ActionHead(dims * bins, dims, scaled, log_prob, draw, entropy)


def _scales(name: str, low: tuple[float, ...], high: tuple[float, ...]) -> tuple[Callable, Callable, int]:
    """To −1 ... 1, back, and how many coordinates there are."""
    least, most = np.float32(low), np.float32(high)
    good = least.ndim == 1 and least.shape == most.shape and len(least) > 0
    if not good or not np.isfinite(least).all() or not np.isfinite(most).all() or not (least < most).all():
        raise ValueError(
            f"{name}(low={low!r}, high={high!r}): give finite numbers, one for each coordinate, low below high."
        )
    middle, half = (least + most) / 2, (most - least) / 2
    return lambda action: (action - middle) / half, lambda x: x * half + middle, len(least)
