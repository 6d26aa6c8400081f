"""MuZero's perceptrons: against plain numpy, and what a search and a learner rely on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import models, nets
from jaxzero.nets.layers import perceptron

HEAD = nets.hl_gauss(bins=5, limit=2.0)
VALUE = nets.bounded()


def build(seed=0, **arguments):
    sizes = dict(embedding=6, width=7, depth=2, projection=4)
    return nets.muzero_mlp((2, 3), 3, value=VALUE, reward=HEAD, **(sizes | arguments), key=jax.random.key(seed))


def shaken(params, seed=1):
    """Parameters none of which is zero, as after some training."""
    leaves, shape = jax.tree.flatten(params)
    rng = np.random.default_rng(seed)
    return jax.tree.unflatten(shape, [leaf + np.float32(rng.normal(size=leaf.shape, scale=0.3)) for leaf in leaves])


OBSERVATION = np.random.default_rng(5).normal(size=(4, 2, 3), scale=3).astype(np.float32)
ACTION = np.array([2, 0, 1, 2])


def plain(params, observation, action, depth, normalised, squash=False):
    """Everything that the network says, a line for a layer."""
    params = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
    dense = lambda layer, x: x @ layer["kernel"] + layer["bias"]

    def hidden(part, x):
        for i in range(depth):
            x = np.maximum(dense(params[part][f"dense_{i}"], x), 0)
        return x

    x = observation.reshape(len(observation), -1).astype(float)
    x = np.sign(x) * np.log(1 + abs(x)) if squash else x
    state = normalised(dense(params["representation"]["embedding"], hidden("representation", x)))
    y = hidden("dynamics", np.concatenate([state, np.eye(3)[action]], 1))
    new = normalised(state + dense(params["dynamics"]["embedding"], y))
    z = hidden("prediction", new)
    heads = params["prediction"]
    reward = dense(params["dynamics"]["reward"], np.concatenate([y, new], 1))
    return state, new, reward, dense(heads["policy"], z), dense(heads["value"], z)


def layer_norm(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def min_max(x):
    low, high = x.min(1, keepdims=True), x.max(1, keepdims=True)
    return (x - low) / np.maximum(high - low, 0.01)


def said(network, params, observation, action):
    state = network.represent(params, observation)
    new, reward = network.dynamics(params, state, action)
    return state, new, reward, *network.predict(params, new)


@pytest.mark.parametrize(
    ("arguments", "normalised"),
    [(dict(), layer_norm), (dict(normalisation="min_max", depth=1), min_max), (dict(squash=True), layer_norm)],
)
def test_it_says_what_plain_numpy_says(arguments, normalised):
    network, params = build(**arguments)
    params = shaken(params)
    ours = said(network, params, OBSERVATION, ACTION)
    theirs = plain(params, OBSERVATION, ACTION, arguments.get("depth", 2), normalised, arguments.get("squash", False))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_it_begins_with_a_uniform_policy_and_zeros():
    network, params = build()
    _, _, reward, logits, value = said(network, params, OBSERVATION, ACTION)
    assert not logits.any() and not HEAD.decode(reward).round(5).any() and not VALUE.decode(value).any()


def test_every_parameter_learns():
    network, params = build()

    def loss(params):
        state, new, reward, logits, value = said(network, params, OBSERVATION, ACTION)
        told = network.project(params, state) * network.foretell(params, new)
        policy = jax.nn.log_softmax(logits)[:, 0]
        return jnp.sum(HEAD.loss(reward, jnp.arange(4.0)) + VALUE.loss(value, jnp.ones(4)) - policy) + told.sum()

    slopes = jax.jit(jax.grad(loss))(shaken(params))
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(params))
    assert all(jnp.isfinite(slope).all() and slope.any() for slope in jax.tree.leaves(slopes))


def test_observations_of_any_type_and_keys():
    network, params = build()
    board = np.arange(24).reshape(4, 2, 3) % 2
    as_bool, as_bytes = network.represent(params, board.astype(bool)), network.represent(params, board.astype(np.uint8))
    assert as_bool.dtype == jnp.float32 and (as_bool == as_bytes).all()
    again, other = build(seed=0)[1], build(seed=1)[1]
    same = lambda one, two: [bool((x == y).all()) for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(two))]
    assert all(same(params, again)) and not all(same(params, other))


def test_without_a_projection_embeddings_are_compared():
    network, params = build(projection=0)
    state = jnp.ones((4, 6))
    assert (network.project(params, state) == state).all() and (network.foretell(params, state) == state).all()
    assert set(params) == {"representation", "dynamics", "prediction"}


def test_the_projection_is_of_the_true_and_the_foretelling_of_the_unrolled():
    network, params = build()
    params = shaken(params)
    state = network.represent(params, OBSERVATION)
    assert network.project(params, state).shape == network.foretell(params, state).shape == (4, 4)
    slope = jax.grad(lambda params: network.project(params, state).sum())(params)
    assert not any(leaf.any() for leaf in jax.tree.leaves(slope["foretelling"]))  # the predictor is on one side only


def test_a_search_sees_numbers():
    """Outputs are decoded, and the discount is as given."""
    network, params = build()
    params = shaken(params)
    model = models.learned(*nets.for_search(network, discount=-1.0))
    keys = jax.random.split(jax.random.key(0), 4)
    step, embedding = model.root(params, keys, OBSERVATION)
    new, _ = model.step(params, keys, ACTION, embedding)
    state, after, reward, logits, value = said(network, params, OBSERVATION, ACTION)
    np.testing.assert_allclose(step.value, jnp.tanh(network.predict(params, state)[1][:, 0]), rtol=1e-6)
    np.testing.assert_allclose(new.value, jnp.tanh(value[:, 0]), rtol=1e-6)
    np.testing.assert_allclose(new.reward, HEAD.decode(reward), rtol=1e-6)
    assert (new.discount == -1).all() and new.discount.shape == (4,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(width=0), r"muzero_mlp\(.*width=0.*\): all must be 1 or more"),
        (dict(depth=0), r"depth=0"),
        (dict(projection=-1), r"projection=-1\): .*projection 0 or more"),
        (dict(window=2), r"muzero_mlp\(window=2, .*needs observations of shape \[height, width, planes\]"),
        (dict(normalisation="batch"), r"normalisation='batch'\): use layer or min_max"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        build(**arguments)


def test_windows_of_a_board_are_looked_at_by_one_layer():
    given = dict(value=HEAD, reward=HEAD, embedding=8, width=16, window=3, channels=5, key=jax.random.key(0))
    network, params = nets.muzero_mlp((4, 5, 2), 3, **given)
    look = params["representation"]["look"]
    assert look["kernel"].shape == (3 * 3 * 2, 5)
    board = jax.random.normal(jax.random.key(1), (1, 4, 5, 2))
    seen = [board[:, i : i + 3, j : j + 3].reshape(1, -1) for i in range(2) for j in range(3)]  # 2 x 3 windows fit
    by_hand = jnp.concatenate([jax.nn.relu(x @ look["kernel"] + look["bias"]) for x in seen], -1)
    rest = {name: layer for name, layer in params["representation"].items() if name != "look"}
    hidden = perceptron(rest, by_hand)
    expected = layer_norm(hidden @ rest["embedding"]["kernel"] + rest["embedding"]["bias"])
    np.testing.assert_allclose(network.represent(params, board), expected, rtol=1e-4, atol=1e-5)


def test_windows_do_not_outgrow_the_board():
    with pytest.raises(ValueError, match="window=5, channels=64"):
        nets.muzero_mlp((4, 5, 2), 3, value=HEAD, reward=HEAD, window=5, key=jax.random.key(0))
