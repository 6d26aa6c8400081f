"""Policies over continuous actions: densities, draws and entropies, by numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.nets.muzero.action_heads import factorised, gaussian

LOW, HIGH = (-2.0, 0.0), (2.0, 1.0)


def test_a_gaussian_density_is_that_of_its_scaled_draws():
    head = gaussian(LOW, HIGH, narrowest=0.1)
    output = jnp.array([[0.3, -0.2, 0.5, -1.0]])
    mean, width = np.tanh([0.3, -0.2]), 0.1 + 0.9 / (1 + np.exp([-0.5, 1.0]))
    actions = head.draw(jax.random.split(jax.random.key(0), 1), output, 50_000)
    scaled = np.asarray(head.scaled(actions))[0]
    np.testing.assert_allclose(scaled.mean(0), mean, atol=0.02)
    np.testing.assert_allclose(scaled.std(0), width, rtol=0.02)
    density = -(((scaled - mean) / width) ** 2) / 2 - np.log(width) - np.log(2 * np.pi) / 2
    np.testing.assert_allclose(head.log_prob(output, actions)[0], density.sum(-1), rtol=1e-4, atol=1e-4)
    assert float(head.entropy(output)[0]) == pytest.approx(-float(head.log_prob(output, actions).mean()), abs=0.02)


def test_a_gaussian_never_narrows_beyond_its_floor():
    head = gaussian(LOW, HIGH, narrowest=0.1)
    output = jnp.array([[0.0, 0.0, -1e3, -1e3]])
    actions = head.draw(jax.random.split(jax.random.key(0), 1), output, 20_000)
    np.testing.assert_allclose(np.asarray(head.scaled(actions))[0].std(0), 0.1, rtol=0.03)


def test_factorised_draws_come_as_often_as_they_are_probable():
    head = factorised(LOW, HIGH, bins=3)
    output = jax.random.normal(jax.random.key(1), (1, 6))
    shares = np.asarray(jax.nn.softmax(output.reshape(2, 3)))
    actions = head.draw(jax.random.split(jax.random.key(0), 1), output, 40_000)
    for d, (low, high) in enumerate(zip(LOW, HIGH)):
        values = np.linspace(low, high, 3)
        counted = [(np.abs(np.asarray(actions)[0, :, d] - value) < 1e-5).mean() for value in values]
        np.testing.assert_allclose(counted, shares[d], atol=0.01)
    grid = jnp.array([[[a, b] for a in np.linspace(-2, 2, 3) for b in np.linspace(0, 1, 3)]])
    every = np.asarray(head.log_prob(output, grid))[0]
    np.testing.assert_allclose(np.exp(every), np.outer(*shares).ravel(), rtol=1e-5)
    assert float(head.entropy(output)[0]) == pytest.approx(-float((np.exp(every) * every).sum()), rel=1e-5)


@pytest.mark.parametrize("head", [gaussian(LOW, HIGH), factorised(LOW, HIGH)])
def test_shapes_go_through(head):
    output = jnp.zeros((3, 4, head.size))
    actions = jnp.zeros((3, 4, 5, 2))
    assert head.log_prob(output, actions).shape == (3, 4, 5) and head.entropy(output).shape == (3, 4)
    np.testing.assert_allclose(head.scaled(jnp.array([LOW, HIGH])), [[-1, -1], [1, 1]], atol=1e-6)


@pytest.mark.parametrize("build", [gaussian, factorised])
@pytest.mark.parametrize("low, high", [((), ()), ((1.0,), (1.0,)), ((0.0, 0.0), (1.0,)), ((0.0,), (float("nan"),))])
def test_bounds_that_mean_nothing_are_refused(build, low, high):
    with pytest.raises(ValueError, match=build.__name__):
        build(low, high)


def test_one_bin_is_refused():
    with pytest.raises(ValueError, match="bins=1"):
        factorised(LOW, HIGH, bins=1)
