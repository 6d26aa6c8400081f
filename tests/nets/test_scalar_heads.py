"""Heads that say a number: against plain Python, and there and back."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.nets.muzero.scalar_heads import (
    Transform,
    bounded,
    hl_gauss,
    sqrt_transform,
    symlog,
    two_hot,
    win_draw_loss,
)

MAGNITUDES = np.concatenate([[0.0], np.logspace(-7, 5, 121)])
NUMBERS = np.concatenate([-MAGNITUDES[:0:-1], MAGNITUDES]).astype(np.float32)
IDENTITY = Transform(lambda x: x, lambda y: y)


def plain_sqrt(x):
    """MuZero's formula as it is printed, in double precision."""
    return math.copysign(math.sqrt(abs(x) + 1) - 1, x) + 0.001 * x


def plain_sqrt_inverse(y):
    return math.copysign(((math.sqrt(1 + 0.004 * (abs(y) + 1 + 0.001)) - 1) / 0.002) ** 2 - 1, y)


FORMULAS = {
    "sqrt": (sqrt_transform, plain_sqrt, plain_sqrt_inverse),
    "symlog": (
        symlog,
        lambda x: math.copysign(math.log(1 + abs(x)), x),
        lambda y: math.copysign(math.exp(abs(y)) - 1, y),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_transforms_are_the_formulas(name):
    transform, forward, inverse = FORMULAS[name]
    images = np.array([forward(float(x)) for x in NUMBERS])
    np.testing.assert_allclose(transform.forward(NUMBERS), images, rtol=1e-6, atol=1e-12)
    small = np.linspace(-9, 9, 37).astype(np.float32)
    np.testing.assert_allclose(transform.inverse(small), [inverse(float(y)) for y in small], rtol=2e-6, atol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_transforms_there_and_back_keep_their_digits(name):
    transform, *_ = FORMULAS[name]
    np.testing.assert_allclose(transform.inverse(transform.forward(NUMBERS)), NUMBERS, rtol=1e-6, atol=0)


def test_the_published_limit():
    assert abs(float(sqrt_transform.forward(jnp.float32(600_000))) - 1374) < 1


def plain_two_hot(x, bins, limit):
    """The mass of a point, shared between its two neighbours."""
    place = (min(max(x, -limit), limit) + limit) / (2 * limit) * (bins - 1)
    target, low = np.zeros(bins), math.floor(place)
    target[low] += 1 - (place - low)
    if low + 1 < bins:
        target[low + 1] += place - low
    return target


def plain_hl_gauss(x, bins, limit, sigma):
    """The histogram of a normal distribution, bin by bin."""
    width = 2 * limit / (bins - 1)
    x = min(max(x, -limit), limit)
    cdf = lambda edge: 0.5 * (1 + math.erf((edge - x) / (math.sqrt(2) * sigma * width)))
    edges = [-limit + (i - 0.5) * width for i in range(bins + 1)]
    mass = np.array([cdf(high) - cdf(low) for low, high in zip(edges, edges[1:])])
    return mass / mass.sum()


TARGETS = np.array([-200.0, -21.3, -3.0, -0.7, -1e-4, 0.0, 0.01, 1.0, 2.5, 20.0, 147.0, 1e4], np.float32)
CATEGORICAL = {
    "two_hot": (two_hot(13, 3.0), plain_sqrt, lambda y: plain_two_hot(y, 13, 3.0)),
    "win_draw_loss": (win_draw_loss(), lambda x: x, lambda y: plain_two_hot(y, 3, 1.0)),
    "two_hot, even": (two_hot(8, 2.0, IDENTITY), lambda x: x, lambda y: plain_two_hot(y, 8, 2.0)),
    "hl_gauss": (hl_gauss(21, 5.0), FORMULAS["symlog"][1], lambda y: plain_hl_gauss(y, 21, 5.0, 0.75)),
    "hl_gauss, even": (hl_gauss(8, 3.0, 0.4, sqrt_transform), plain_sqrt, lambda y: plain_hl_gauss(y, 8, 3.0, 0.4)),
}


@pytest.mark.parametrize("name", CATEGORICAL)
def test_the_loss_is_cross_entropy_with_the_target(name):
    head, forward, target = CATEGORICAL[name]
    output = np.random.default_rng(0).normal(size=(len(TARGETS), head.size))
    logs = output - np.log(np.exp(output).sum(-1, keepdims=True))
    expected = [-(target(forward(float(x))) * log).sum() for x, log in zip(TARGETS, logs)]
    np.testing.assert_allclose(head.loss(jnp.float32(output), TARGETS), expected, rtol=2e-5)


@pytest.mark.parametrize("name", CATEGORICAL)
def test_the_gradient_is_what_the_network_says_less_the_target(name):
    head, forward, target = CATEGORICAL[name]
    output = np.random.default_rng(1).normal(size=(len(TARGETS), head.size)).astype(np.float32)
    slope = jax.grad(lambda output: head.loss(output, TARGETS).sum())(output)
    said = np.exp(output) / np.exp(output).sum(-1, keepdims=True)
    np.testing.assert_allclose(slope, said - [target(forward(float(x))) for x in TARGETS], atol=2e-5)


@pytest.mark.parametrize("head", [two_hot(), two_hot(41, 5.0), hl_gauss(41, 5.0), hl_gauss(601, 300.0, 0.75, symlog)])
def test_a_head_of_zeros_says_zero(head):
    assert abs(float(head.decode(jnp.zeros(head.size)))) < 1e-4


@pytest.mark.parametrize(
    ("head", "target"),
    [
        (two_hot(), lambda y: plain_two_hot(y, 601, 300)),
        (hl_gauss(601, 300.0, 0.75, sqrt_transform), lambda y: plain_hl_gauss(y, 601, 300, 0.75)),
    ],
)
def test_what_is_learned_is_what_is_said(head, target):
    """From the best output for a target comes the target: near 0, and far out."""
    numbers = [-50_000.0, -12.5, -0.3, 0.0, 0.02, 1.0, 30_000.0]
    best = np.log([target(plain_sqrt(x)) + 1e-12 for x in numbers])
    np.testing.assert_allclose(head.decode(jnp.float32(best)), numbers, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("head", [bounded(), win_draw_loss(), two_hot(13, 3.0), hl_gauss(13, 3.0), two_hot(601, 300.0)])
def test_what_cannot_be_said_is_clipped(head):
    reach = {1: 1.0, 3: 1.0, 13: None, 601: plain_sqrt_inverse(300)}[head.size]
    far = jnp.array([-jnp.inf, -1e30, 1e6, jnp.inf])
    assert head.outside(far).all() and not head.outside(jnp.array([-0.99, 0.0, 0.99])).any()
    output = jnp.broadcast_to(jnp.linspace(-1.0, 2.0, head.size), (4, head.size))
    losses = head.loss(output, far)
    assert losses[0] == losses[1] and losses[2] == losses[3] and jnp.isfinite(losses).all()
    if reach:
        assert head.outside(jnp.array([reach * 1.001])).all() and not head.outside(jnp.array([reach * 0.999])).any()
        np.testing.assert_allclose(losses[3], head.loss(output[3], jnp.float32(reach)), rtol=1e-5)


def test_bounded_is_tanh_and_squared_error():
    output, targets = np.float32([[0.3], [-2.0], [0.0]]), np.float32([1.0, -1.0, 0.25])
    said = [math.tanh(x) for (x,) in output.tolist()]
    np.testing.assert_allclose(bounded().decode(output), said, rtol=1e-6)
    np.testing.assert_allclose(bounded().loss(output, targets), (np.array(said) - targets) ** 2, rtol=1e-5)


@pytest.mark.parametrize(("transform", "limit", "said"), [(symlog, 6.0, 9), (sqrt_transform, 12.0, 29)])
def test_the_bias_is_as_documented(transform, limit, said):
    """0 or 99 with equal chances."""
    places = [float(transform.forward(jnp.float32(x))) for x in (0, 99)]
    mass = sum(plain_hl_gauss(place, 241, limit, 0.75) for place in places) / 2
    decoded = hl_gauss(241, limit, 0.75, transform).decode(jnp.log(jnp.float32(mass + 1e-12)))
    assert abs(float(decoded) - said) < 0.5


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: two_hot(bins=1), r"two_hot\(bins=1\): .* 2 points"),
        (lambda: hl_gauss(bins=1, limit=2.0), r"hl_gauss\(bins=1\): .* 2 points"),
        (lambda: hl_gauss(bins=5, limit=0.0), r"limit=0.0\): .*limit > 0"),
        (lambda: two_hot(bins=5, limit=math.nan), r"limit=nan\): .*limit > 0"),
        (lambda: hl_gauss(bins=5, limit=2.0, sigma=0.0), r"sigma=0.0\): .*more than 0"),
    ],
)
def test_bad_sizes_are_named(build, said):
    with pytest.raises(ValueError, match=said):
        build()
