"""Weights that learned a model of the rules, in `play` and `tournament`."""

import pathlib

import jax
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.playing import network_models
from jaxzero.cli.playing.play import engine, network_engine, resolved, tree_page
from jaxzero.cli.playing.play_settings import Player
from jaxzero.cli.playing.tournament_players import player
from jaxzero.cli.playing.tournament_settings import read
from jaxzero.nets import weights

GAME = games.from_pgx("tic_tac_toe")


def saved(folder: pathlib.Path, **differing) -> pathlib.Path:
    """The weights of a network that learned nothing yet."""
    head = {"kind": "win_draw_loss"}
    network = {
        "kind": "muzero_mlp", "value": head, "reward": head, "embedding": 8, "width": 16, "depth": 1,
        "projection": 0, "normalisation": "layer",
    }  # fmt: skip
    of = {"id": "tic_tac_toe", "name": "tic_tac_toe", "observation_shape": [3, 3, 2], "num_actions": 9} | differing
    shape = tuple(of["observation_shape"])
    _, params = nets.build_learned(network, shape, of["num_actions"], jax.random.key(0))
    params["prediction"]["policy"]["kernel"] = params["prediction"]["policy"]["kernel"] + 0.1  # prefers some moves
    nets.save_learned(folder / "weights.safetensors", params, {"environment": of, "network": network})
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("learned"))


def test_play_takes_them_and_makes_legal_moves_only(folder):
    found = resolved(Player(weights=str(folder)))
    assert found.game == "tic_tac_toe"
    thinker, words = engine(found, found.size, found.komi)
    assert "with a learned model" in words
    while not thinker.over():
        move = thinker.think(12)
        assert thinker.report().visits == 12, "the search of the position before is not kept"
        for one in thinker.report().candidates:
            assert can_be_played(thinker, one.line)
        thinker.play(move)
    assert len(thinker.moves) >= 5


def can_be_played(thinker, line):
    """Whether the rules allow the moves one after another."""
    state, key = thinker.position(), jax.random.key(0)
    for action in line:
        if not GAME.legal(state)[action]:
            return False
        state = GAME.step(state, action, key)
    return True


def test_the_page_of_its_tree_draws_no_positions(folder):
    thinker = network_engine(Player(), GAME, network_models.load(folder, GAME))
    thinker.think(3)
    assert "<html" in tree_page(thinker)(thinker.tree())


@pytest.mark.parametrize("differing, discount", [({}, -1.0), ({"discount": 0.9}, -0.9)])
def test_what_follows_is_worth_as_much_as_in_training(tmp_path, differing, discount):
    network = network_models.load(saved(tmp_path, **differing), GAME)
    keys = jax.random.split(jax.random.key(0), 2)
    step, embedding = network.model.root(network.params, keys, jax.vmap(GAME.init)(keys))
    step, _ = network.model.step(network.params, keys, np.array([0, 4]), embedding)
    np.testing.assert_allclose(step.discount, discount, rtol=1e-6)


@pytest.mark.parametrize("word", ["raw:{}", "{}:4"])
def test_a_tournament_takes_them(folder, word):
    one = player(read(word.format(folder / "weights.safetensors"), 8), GAME)
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(GAME.step, (0, None, 0))(jax.vmap(GAME.init)(keys), 4, keys)
    out = jax.jit(one.policy)(one.params, keys, states)
    assert np.all(np.asarray(out.action) != 4), "that square is taken"


def test_positions_that_are_imagined_have_no_symmetric_forms(folder):
    with pytest.raises(ValueError, match="a learned model: .* Leave it out"):
        player(read(f"mean:{folder}:4", 8), GAME)


@pytest.mark.parametrize("differing", [{"id": "cartpole"}, {"num_actions": 10}, {"observation_shape": [3, 3, 4]}])
def test_those_of_another_environment_are_refused(tmp_path, differing):
    with pytest.raises(weights.WeightsError, match=f"it is for {differing.get('id', 'tic_tac_toe')!r}"):
        network_models.load(saved(tmp_path, **differing), GAME)


def test_the_library_says_how_they_are_loaded(folder):
    with pytest.raises(weights.WeightsError, match="use nets.load_learned"):
        weights.load(folder / "weights.safetensors", GAME)
