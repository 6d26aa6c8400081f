"""Networks that are shown what a game names beside its observation."""

import pickle

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets import weights

GAME = games.from_pgx("connect_four")
SIZES = {
    "mlp": {"hidden": [4]},
    "windows": {"window": 3, "channels": 4, "hidden": [4]},
    "resnet": {"channels": 4, "blocks": 1},
}


def observations(count=6):
    stones = jax.random.randint(jax.random.key(1), (count, 6, 7), 0, 3)
    return jnp.stack([stones == 1, stones == 2], -1).astype(jnp.float32)


@pytest.mark.parametrize(
    "kind, parity", [("mlp", False), ("windows", False), ("windows", True), ("resnet", False), ("resnet", True)]
)
def test_a_network_sees_the_features_behind_the_observation(kind, parity):
    """It answers as one of a game whose observation holds them does."""
    more = {"stone_parity": True} if parity else {}
    net, params = getattr(nets, kind)(GAME, **SIZES[kind], **more, input_features=True, key=jax.random.key(0))
    full = GAME._replace(observation_shape=(6, 7, 5))
    plain, same = getattr(nets, kind)(full, **SIZES[kind], **more, key=jax.random.key(0))
    chex.assert_trees_all_equal(params, same)
    seen = observations()
    shown = jnp.concatenate([seen, GAME.input_features(seen)], -1)
    chex.assert_trees_all_close(jax.jit(net)(params, seen), plain(params, shown), atol=1e-6)


def test_features_are_those_of_the_canonical_form():
    """What is shown is computed from the position as the network sees it."""
    game = games.hex_game(3)._replace(input_features=lambda seen: jnp.cumsum(seen[..., :1], 1))
    net, params = nets.mlp(game, (8,), canonical=True, input_features=True, key=jax.random.key(0))
    first = jax.random.bernoulli(jax.random.key(1), 0.4, (5, 3, 3, 4)).astype(jnp.float32).at[..., 2].set(0)
    second = jnp.swapaxes(first, 1, 2).at[..., 2].set(1)
    np.testing.assert_allclose(net(params, first)[1], net(params, second)[1], atol=1e-6)


def test_rounded_parameters_answer_the_same():
    game = games.hex_game(5)
    given = dict(window=3, channels=4, hidden=(8,), canonical=True, input_features=True, dtype=jnp.bfloat16)
    net, params = nets.windows(game, **given, key=jax.random.key(0))
    seen = jax.random.bernoulli(jax.random.key(1), 0.3, (6, 5, 5, 4)).astype(jnp.float32)
    chex.assert_trees_all_equal(net(nets.to_bfloat16(net, params), seen), net(params, seen))


def test_boards_of_whole_numbers_have_features_that_are_fractions():
    game = games.hex_game(3)
    seen = jax.random.randint(jax.random.key(1), (6, 3, 3, 4), 0, 2)
    planes = game.input_features(seen.astype(jnp.int8))
    np.testing.assert_allclose(planes, game.input_features(seen.astype(jnp.float32)), atol=0.01)
    assert ((planes > 0) & (planes < 1)).any()


def test_such_a_network_can_be_pickled():
    net, params = nets.mlp(GAME, (4,), input_features=True, key=jax.random.key(0))
    chex.assert_trees_all_equal(pickle.loads(pickle.dumps(net))(params, observations()), net(params, observations()))


@pytest.mark.parametrize("kind", SIZES)
def test_a_game_without_features_is_refused(kind):
    with pytest.raises(ValueError, match=r"names its input features .* othello names none: leave it out"):
        getattr(nets, kind)(games.from_pgx("othello"), **SIZES[kind], input_features=True, key=jax.random.key(0))


@pytest.mark.parametrize("kind", SIZES)
def test_a_file_says_whether_features_are_seen(tmp_path, kind):
    net, params = getattr(nets, kind)(GAME, **SIZES[kind], input_features=True, key=jax.random.key(3))
    network = {"kind": kind, **SIZES[kind]}
    with pytest.raises(weights.WeightsError):
        weights.save(tmp_path / "weights", params, {"game": GAME.id, "network": network}, game=GAME)
    about = {"game": GAME.id, "network": network | {"input_features": True}}
    weights.save(tmp_path / "weights", params, about, game=GAME)
    again, back, _ = weights.load(tmp_path / "weights", GAME)
    chex.assert_trees_all_equal(again(back, observations()), net(params, observations()))
    with pytest.raises(weights.WeightsError, match="names none: leave it out"):
        weights.load(tmp_path / "weights", GAME._replace(input_features=None))
