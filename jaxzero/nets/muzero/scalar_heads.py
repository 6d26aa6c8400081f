"""Value and reward heads: how outputs are decoded to numbers, and their losses."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

__all__ = ["ScalarHead", "Transform", "bounded", "hl_gauss", "sqrt_transform", "symlog", "two_hot", "win_draw_loss"]


class ScalarHead(NamedTuple):
    """A head for numbers: how its output is decoded, and its loss.

    Attributes:
        size: how many numbers the head puts out.
        decode: `output [..., size] -> [...]`, the number that the output stands for.
        loss: `(output [..., size], target [...]) -> [...]`; the target is a number, clipped to the head's range.
        outside: `target [...] -> bool [...]`, True where a target had to be clipped.
    """

    size: int
    decode: Callable[[Float[Array, "... size"]], Float[Array, "..."]]
    loss: Callable[[Float[Array, "... size"], Float[Array, "..."]], Float[Array, "..."]]
    outside: Callable[[Float[Array, "..."]], Bool[Array, "..."]]


class Transform(NamedTuple):
    """A rising, odd function that brings large numbers closer together, and the way back; for arrays of any shape."""

    forward: Callable[[Float[Array, "..."]], Float[Array, "..."]]
    inverse: Callable[[Float[Array, "..."]], Float[Array, "..."]]


EPSILON = 0.001  # the published slope of MuZero's transform far out; without it, it has no inverse that is Lipschitz


def _sqrt_forward(x: Float[Array, "..."]) -> Float[Array, "..."]:
    return x / (jnp.sqrt(jnp.abs(x) + 1) + 1) + EPSILON * x  # √(|x| + 1) − 1 itself has no digits left near 0


def _sqrt_inverse(y: Float[Array, "..."]) -> Float[Array, "..."]:
    slope = 1 + 2 * EPSILON  # with t = √(|x| + 1) − 1: |y| = ε t² + slope t, and |x| = t (t + 2)
    t = 2 * y / (slope + jnp.sqrt(slope**2 + 4 * EPSILON * jnp.abs(y)))
    return t * (jnp.abs(t) + 2)


# h(x) = sign(x)(√(|x| + 1) − 1) + ε x of MuZero (Schrittwieser et al. 2020, appendix F; Pohlen et al. 2018,
# proposition A.2), both ways free of differences of nearly equal numbers. h(600,000) = 1,374.
sqrt_transform = Transform(_sqrt_forward, _sqrt_inverse)

# sign(x) ln(|x| + 1) of DreamerV3 (Hafner et al. 2023, equation 9). symlog(600,000) = 13.3.
symlog = Transform(
    lambda x: jnp.sign(x) * jnp.log1p(jnp.abs(x)),  #
    lambda y: jnp.sign(y) * jnp.expm1(jnp.abs(y)),
)


def bounded() -> ScalarHead:
    """A number in [-1, 1], as the tanh of one output; squared error. For games that are won or lost.

    Example:
        >>> head = bounded()
        >>> round(float(head.decode(jnp.array([0.5]))), 4), float(head.loss(jnp.array([0.0]), jnp.array(3.0)))
        (0.4621, 1.0)
    """
    decode = lambda output: jnp.tanh(output[..., 0])
    return ScalarHead(
        size=1,
        decode=decode,
        loss=lambda output, target: (decode(output) - jnp.clip(target, -1, 1)) ** 2,
        outside=lambda target: jnp.abs(target) > 1,
    )


def two_hot(bins: int = 601, limit: float = 300.0, transform: Transform = sqrt_transform) -> ScalarHead:
    """MuZero's categorical head: cross-entropy with a target on the two nearest points of a support.

    (Schrittwieser et al. 2020, appendix F.) The number is the expectation over the support, transformed back.

    Args:
        bins: points of the support, evenly in [-limit, limit] of transformed numbers; published: 601, with limit 300.
        limit: the largest transformed number in the range: with MuZero's transform, 300 is 58,706, and 5 is
            34.6. Larger targets are clipped to it.
        transform: of the targets.

    Raises:
        ValueError: bins < 2, or limit <= 0.

    Example:
        >>> head = two_hot(bins=3, limit=1.0, transform=Transform(lambda x: x, lambda y: y))  # says -1, 0 and 1
        >>> output = jnp.log(jnp.array([0.5, 0.25, 0.25]))
        >>> float(head.decode(output)), float(jnp.exp(-head.loss(output, jnp.array(-1.0))))
        (-0.25, 0.5)
    """
    _check("two_hot", bins, limit)
    points = _points(bins)
    hats = lambda place: jnp.maximum(0, 1 - jnp.abs(place[..., None] - points))
    return _categorical(bins, limit, transform, hats)


def win_draw_loss() -> ScalarHead:
    """Three classes, which stand for -1, 0 and 1; cross-entropy. For games that are won, drawn or lost.

    After the head of Leela Chess Zero ("WDL"); the outputs are in the order loss, draw, win. A target in between is a
    mixture of the two nearest classes, so only the mean of a bootstrapped target is kept: half wins and half losses
    count as drawn. Rare rewards, like those of a winning move, are learned from fewer minibatches than with `bounded`:
    a missed win costs -log of its probability, without bound, where the squared error is 1.

    Example:
        >>> head = win_draw_loss()
        >>> output = jnp.log(jnp.array([0.25, 0.25, 0.5]))  # lost, drawn, won
        >>> float(head.decode(output)), float(jnp.exp(-head.loss(output, jnp.array(1.0))))
        (0.25, 0.5)
    """
    return two_hot(bins=3, limit=1.0, transform=Transform(lambda x: x, lambda y: y))


def hl_gauss(bins: int, limit: float, sigma: float = 0.75, transform: Transform = symlog) -> ScalarHead:
    """A categorical head whose target is a normal distribution's histogram: HL-Gauss.

    (Farebrother et al. 2024, section 3.1, with the transform around it.) It trains more steadily than `two_hot`.

    The number is the expectation over the support, transformed back. For targets that vary this is biased towards 0,
    the more so the stronger the transform bends (0 or 99 with equal chances, 49.5 in the mean: by symlog 9, by
    `sqrt_transform` 29). Near ±limit the histogram is cut off, and the number falls short by up to a third of a bin.

    Args:
        bins: of the histogram; their middles lie evenly in [-limit, limit] of transformed numbers.
        limit: the largest transformed number in the range: by symlog, 5 is 147, and 12 is 163,000. Larger
            targets are clipped to it.
        sigma: standard deviation of the normal distribution, in bins; published: 0.75.
        transform: of the targets: `symlog`, or `sqrt_transform` where returns are large and vary.

    Raises:
        ValueError: bins < 2, limit <= 0, or sigma <= 0.

    Example:
        >>> head = hl_gauss(bins=41, limit=5.0)
        >>> round(float(head.decode(jnp.zeros(41))), 4), bool(head.outside(jnp.array(150.0)))
        (0.0, True)
    """
    _check("hl_gauss", bins, limit)
    if not sigma > 0:
        raise ValueError(f"hl_gauss(sigma={sigma}): give a width in bins, more than 0; published: 0.75.")
    edges = np.append(_points(bins) - 0.5, np.float32(bins / 2))

    def histogram(place: Float[Array, "..."]) -> Float[Array, "... bins"]:
        below = jax.lax.erf((edges - place[..., None]) / np.float32(sigma * 2**0.5))  # twice the probability, minus 1
        return jnp.diff(below) / (below[..., -1:] - below[..., :1])

    return _categorical(bins, limit, transform, histogram)


def _points(bins: int) -> np.ndarray:
    """The support in widths of a bin, from its middle, so that points near 0 keep their digits."""
    return np.arange(bins, dtype=np.float32) - np.float32((bins - 1) / 2)


def _categorical(bins: int, limit: float, transform: Transform, spread: Callable[[Array], Array]) -> ScalarHead:
    """Cross-entropy on a support; `spread` gives the target's probabilities, from its place in widths of a bin."""
    width = 2 * limit / (bins - 1)
    support = _points(bins) * np.float32(width)
    most = float(np.finfo(np.float32).max)  # so that infinity is clipped, too, and has no NaN
    transformed = lambda target: transform.forward(jnp.clip(target, -most, most))

    def loss(output: Float[Array, "... bins"], target: Float[Array, "..."]) -> Float[Array, "..."]:
        place = jnp.clip(transformed(target), -limit, limit) / width
        return -jnp.sum(spread(place) * jax.nn.log_softmax(output), -1)

    return ScalarHead(
        size=bins,
        decode=lambda output: transform.inverse(jnp.sum(jax.nn.softmax(output) * support, -1)),
        loss=loss,
        outside=lambda target: jnp.abs(transformed(target)) > limit,
    )


def _check(name: str, bins: int, limit: float) -> None:
    if bins < 2:
        raise ValueError(f"{name}(bins={bins}): a support needs 2 points or more; published: 601 with limit 300.")
    if not limit > 0:
        raise ValueError(f"{name}(limit={limit}): the support reaches from -limit to limit, use limit > 0.")
