"""MuZero's convolutions: against plain numpy, and what a learner relies on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import nets

HEAD = nets.hl_gauss(bins=5, limit=2.0)
VALUE = nets.bounded()
OBSERVATION = np.random.default_rng(5).normal(size=(4, 3, 4, 2), scale=3).astype(np.float32)
ACTION = np.array([2, 0, 1, 2])


def build(**arguments):
    sizes = dict(channels=3, blocks=2, width=7, projection=4)
    return nets.muzero_planes((3, 4, 2), 3, value=VALUE, reward=HEAD, **(sizes | arguments), key=jax.random.key(0))


def shaken(params):
    """Parameters none of which is zero, as after some training."""
    leaves, shape = jax.tree.flatten(params)
    rng = np.random.default_rng(1)
    return jax.tree.unflatten(shape, [leaf + np.float32(rng.normal(size=leaf.shape, scale=0.3)) for leaf in leaves])


def plain_convolution(layer, x):
    """Square by square."""
    batch, height, width, _ = x.shape
    out = np.zeros((batch, height, width, layer["bias"].size)) + layer["bias"]
    for i, j, di, dj in np.ndindex(height, width, 3, 3):
        if 0 <= i + di - 1 < height and 0 <= j + dj - 1 < width:
            out[:, i, j] += x[:, i + di - 1, j + dj - 1] @ layer["kernel"][di, dj]
    return out


def plain(params, observation, action, blocks, normalised, squash):
    """Everything that the network says."""
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    relu = lambda x: np.maximum(x, 0)

    def tower(part, x, action=0.0):
        first = None
        for i in range(blocks):
            block = params[part][f"block_{i}"]
            y = plain_convolution(block["first"], x)
            y = relu(y + action if i == 0 else y)
            first = first if i else y
            x = x + plain_convolution(block["second"], y)
        return normalised(x), first

    def layer(part, name, x):
        return x @ params[part][name]["kernel"] + params[part][name]["bias"]

    def head(part, name, x, **more):
        y = layer(part, "hidden", x.reshape(len(x), -1))
        for planes, of in [("pooled", x), *more.items()]:
            y = y + layer(part, planes, np.concatenate([of.mean((1, 2)), of.max((1, 2))], -1))
        return layer(part, name, relu(y))

    x = np.sign(observation) * np.log(1 + abs(observation)) if squash else observation
    state, _ = tower("representation", relu(plain_convolution(params["representation"]["stem"], x)))
    done = params["dynamics"]["action"]["kernel"][action] + params["dynamics"]["action"]["bias"]
    new, first = tower("dynamics", state, done.reshape(state.shape))
    reward = head("dynamics", "reward", new, met=first)
    return state, new, reward, *(head("prediction", name, new) for name in ("policy", "value"))


def layer_norm(x):
    return (x - x.mean((1, 2, 3), keepdims=True)) / np.sqrt(x.var((1, 2, 3), keepdims=True) + 1e-5)


def min_max(x):
    low, high = x.min((1, 2), keepdims=True), x.max((1, 2), keepdims=True)
    return (x - low) / np.maximum(high - low, 0.01)


def said(network, params, observation, action):
    state = network.represent(params, observation)
    new, reward = network.dynamics(params, state, action)
    return state, new, reward, *network.predict(params, new)


@pytest.mark.parametrize(
    ("blocks", "normalisation", "squash"), [(2, layer_norm, True), (1, min_max, False)], ids=["layer", "min_max"]
)
def test_it_says_what_plain_numpy_says(blocks, normalisation, squash):
    name = {layer_norm: "layer", min_max: "min_max"}[normalisation]
    network, params = build(blocks=blocks, normalisation=name, squash=squash)
    params = shaken(params)
    theirs = plain(params, OBSERVATION, ACTION, blocks, normalisation, squash)
    for one, other in zip(said(network, params, OBSERVATION, ACTION), theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=2e-5)


def test_it_begins_with_a_uniform_policy_and_zeros():
    network, params = build(blocks=1)
    _, _, reward, logits, value = said(network, params, OBSERVATION, ACTION)
    assert not logits.any() and not HEAD.decode(reward).round(5).any() and not VALUE.decode(value).any()


@pytest.mark.parametrize("normalisation", ["layer", "min_max"])
def test_every_parameter_learns(normalisation):
    network, params = build(blocks=1, normalisation=normalisation)

    def loss(params):
        state, new, reward, logits, value = said(network, params, OBSERVATION > 0, ACTION)
        told = network.project(params, state) * network.foretell(params, new)
        policy = jax.nn.log_softmax(logits)[:, 0]
        return jnp.sum(HEAD.loss(reward, jnp.arange(4.0)) + VALUE.loss(value, jnp.ones(4)) - policy) + told.sum()

    slopes = jax.jit(jax.grad(loss))(shaken(params))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))
    assert all(jnp.isfinite(slope).all() and slope.any() for slope in jax.tree.leaves(slopes))


def test_without_a_projection_embeddings_are_compared():
    network, params = build(projection=0)
    state = jnp.arange(144.0).reshape(4, 3, 4, 3)
    assert (network.project(params, state) == state.reshape(4, 36)).all()
    assert (network.foretell(params, state) == state.reshape(4, 36)).all()
    assert set(params) == {"representation", "dynamics", "prediction"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(channels=0), r"muzero_planes\(.*channels=0.*\): all must be 1 or more"),
        (dict(blocks=0), r"blocks=0"),
        (dict(projection=-1), r"projection=-1\): .*projection 0 or more"),
        (dict(normalisation="batch"), r"normalisation='batch'\): use layer or min_max"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        build(**arguments)


def test_observations_that_are_no_planes_are_named():
    with pytest.raises(ValueError, match=r"\[height, width, planes\], not \[4\]: write nets.muzero_mlp"):
        nets.muzero_planes((4,), 2, value=VALUE, reward=HEAD, key=jax.random.key(0))
