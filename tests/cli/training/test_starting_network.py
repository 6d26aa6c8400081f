"""The network that a run begins with: `--weights`."""

import jax
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.training import settings, setup
from jaxzero.cli.training.starting_network import begun_with, params_of, with_its_network
from jaxzero.nets import weights
from jaxzero.train import devices

GAME = games.from_pgx("tic_tac_toe")
SMALL = "--game tic_tac_toe --network.kind mlp --selfplay.games 8 --selfplay.simulations 2 --learn.capacity 1000"


def given(*more):
    return settings.parse([*SMALL.split(), "--learn.start", "10", *more], "laptop")


def same(one, other):
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_a_run_begins_with_an_untrained_network():
    config = given()
    assert begun_with(config, GAME) is None and params_of(config, GAME) is None
    assert with_its_network(config, GAME) is config


def test_it_begins_with_the_network_that_comes_along():
    """Whatever network was asked for; and the learner and its average have its parameters."""
    config = with_its_network(given("--weights", "trained"), GAME)
    _, params, told = weights.load(weights.trained("tic_tac_toe"), GAME)
    assert setup.about(config.network, GAME) == told["network"] and config.network.kind == "windows"
    run = setup.build(config, GAME, devices.mesh())
    same(run.params, params)
    learner = run.begin(run.params)["learner"]
    same(learner.params, params)
    same(learner.average, params)


def test_a_file_and_the_folder_of_a_run_are_the_same(tmp_path):
    about = {"game": GAME.id, "network": {"kind": "resnet", "channels": 8, "blocks": 1}}
    _, params = nets.resnet(GAME, channels=8, blocks=1, key=jax.random.key(3))
    weights.save(tmp_path / "weights.safetensors", params, about)
    for path in (tmp_path, tmp_path / "weights.safetensors"):
        config = with_its_network(given("--weights", str(path)), GAME)
        assert (config.network.kind, config.network.channels, config.network.blocks) == ("resnet", 8, 1)
        same(params_of(config, GAME), params)


def test_what_is_not_there_or_of_another_game_is_refused():
    with pytest.raises(ValueError, match="--weights nowhere: no such file. Give one, a run's folder, or trained"):
        with_its_network(given("--weights", "nowhere"), GAME)
    with pytest.raises(ValueError, match="it is for the game 'othello'"):
        with_its_network(given("--weights", str(weights.trained("othello"))), GAME)
    with pytest.raises(ValueError, match="no weights come with jaxzero for 'chess'"):
        begun_with(given("--weights", "trained"), GAME._replace(id="chess"))
