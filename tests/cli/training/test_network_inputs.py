"""What a run's network is shown beside the board: by the game, by the flag, or by what there is already."""

import contextlib
import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.training import network_setup, setup, train
from jaxzero.cli.training.command_line import parse
from jaxzero.cli.training.settings import GAME_INPUTS, INPUTS
from jaxzero.games.by_name import by_name
from jaxzero.nets import weights

RUN = """
    --selfplay.games 8 --selfplay.plies 4 --selfplay.simulations 4 --learn.start 16 --learn.batch-size 8
    --learn.capacity 544
""".split()
NETWORK = ["--network.window", "2", "--network.channels", "4", "--network.hidden", "8"]
SMALL = {"kind": "windows", "window": 2, "channels": 4, "hidden": [8]}
GAMES = {"stone_parity": "tic_tac_toe", "canonical": "hex_3x3", "input_features": "tic_tac_toe"}  # that allow it
OFF = {name: f"--network.no-{name.replace('_', '-')}" for name in INPUTS}


def prepared(*words):
    """The settings of the run that the words ask for, and the run."""
    with contextlib.ExitStack() as stack:
        config, _, _, run, *_ = train.prepare(parse(list(words), "laptop"), stack)
    return config, run


@pytest.mark.parametrize(
    "name, game, flags, shown",
    [
        ("stone_parity", "connect_four", (), True),
        ("stone_parity", "connect_four", ("--network.kind", "resnet", "--network.blocks", "1"), True),
        ("stone_parity", "connect_four", ("--network.kind", "mlp"), False),
        ("stone_parity", "connect_four", (OFF["stone_parity"],), False),
        ("stone_parity", "othello", (), True),
        ("stone_parity", "hex_7x7", (), False),  # a plane tells whose turn it is
        ("canonical", "hex_7x7", (), True),
        ("canonical", "hex_7x7", ("--network.kind", "mlp"), True),
        ("canonical", "hex", ("--network.kind", "resnet", "--network.blocks", "1"), True),
        ("canonical", "hex_7x7", (OFF["canonical"],), False),
        ("canonical", "connect_four", (), False),
        ("input_features", "connect_four", (), True),
        ("input_features", "connect_four", ("--network.kind", "mlp"), True),
        ("input_features", "connect_four", ("--network.kind", "resnet", "--network.blocks", "1"), True),
        ("input_features", "connect_four", (OFF["input_features"],), False),
        ("input_features", "othello", (), False),
    ],
)
def test_a_network_is_shown_what_the_game_allows(name, game, flags, shown):
    game, config = by_name(game), parse(["--network.channels", "4", "--network.hidden", "8", *flags], "laptop")
    chosen = setup.filled(config, game).network
    assert getattr(chosen, name) is shown
    assert network_setup.about(chosen, game).get(name, False) is shown
    net, params = network_setup.network(chosen, game, jax.random.key(0))
    if name == "stone_parity":
        _, without = network_setup.network(dataclasses.replace(chosen, stone_parity=False), game, jax.random.key(0))
        count = lambda tree: sum(x.size for x in jax.tree.leaves(tree))
        assert (count(params) > count(without)) is shown
    elif getattr(game, name) is not None:
        assert getattr(net, name) is (getattr(game, name) if shown else None)
    assert jnp.isfinite(net(params, jnp.zeros((1, *game.observation_shape)))[1]).all()


@pytest.mark.parametrize("shown", [False, True])
def test_the_second_players_positions_look_like_the_first_players(shown):
    game, flags = by_name("hex_7x7"), [] if shown else [OFF["canonical"]]
    config = setup.filled(parse(["--network.channels", "4", "--network.hidden", "8", *flags], "laptop"), game)
    net, params = network_setup.network(config.network, game, jax.random.key(0))
    first = jnp.zeros((1, *game.observation_shape)).at[0, 1, 2, 0].set(1)
    second = jnp.swapaxes(first, 1, 2).at[..., 2].set(1)
    assert bool(jnp.allclose(net(params, first)[1], net(params, second)[1], atol=1e-6)) is shown


def test_three_players_have_no_parity():
    game = by_name("tic_tac_toe")._replace(num_players=3)
    assert not network_setup.tells_parity(parse([], "laptop").network, game)


@pytest.mark.parametrize("name", INPUTS)
def test_a_run_from_before_goes_on_with_the_flag_that_is_named(tmp_path, name):
    """Its folder does not say: its network was not shown it."""
    words = ["--game", GAMES[name], *RUN, *NETWORK, "--folder", str(tmp_path)]
    prepared(*words, OFF[name])
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["network"].pop(name) is False
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(SystemExit, match=OFF[name]):
        prepared(*words)
    assert getattr(prepared(*words, OFF[name])[0].network, name) is False


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("name", INPUTS)
def test_a_run_that_begins_with_weights_shows_what_these_were_shown(tmp_path, name, shown):
    game, there = by_name(GAMES[name]), tmp_path / "there"
    about = {"game": game.id, "network": SMALL | ({name: True} if shown else {})}
    params = nets.windows(game, 2, 4, (8,), **{name: shown}, key=jax.random.key(3))[1]
    weights.save(there, params, about, game=game)
    words = ["--game", GAMES[name], *RUN, "--folder", str(tmp_path / "run")]
    for _ in range(2):
        config, run = prepared(*words, "--weights", str(there))
        assert {one for one in INPUTS if getattr(config.network, one)} == ({name} if shown else set())
        jax.tree.map(np.testing.assert_array_equal, run.params, params)
        if name in GAME_INPUTS:
            assert getattr(run.net, name) is (getattr(game, name) if shown else None)
        there.unlink(missing_ok=True)  # the run has its copy
    with pytest.raises(SystemExit) as ended:
        prepared(*words)
    assert f"settings of the run (--weights {there}), or name" in str(ended.value)


def test_the_weights_that_come_along_begin_a_run_as_they_are(tmp_path):
    config, run = prepared("--game", "tic_tac_toe", *RUN, "--weights", "trained", "--folder", str(tmp_path))
    assert config.network.stone_parity is False
    expected = weights.load(weights.trained("tic_tac_toe"), games.from_pgx("tic_tac_toe"))[1]
    assert jax.tree.map(lambda x: x.shape, run.params) == jax.tree.map(lambda x: x.shape, expected)
