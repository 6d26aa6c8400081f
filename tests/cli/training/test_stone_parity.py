"""Whether a run's network is told the parity of stones: by the game, by the flag, or by what there is already."""

import contextlib
import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.cli.training import setup, train
from jaxzero.cli.training.command_line import parse
from jaxzero.games.by_name import by_name
from jaxzero.nets import weights

NO_NETWORK = """
    --game tic_tac_toe --selfplay.games 8 --selfplay.plies 4 --selfplay.simulations 4 --learn.start 16
    --learn.batch-size 8 --learn.capacity 544
""".split()
SMALL = [*NO_NETWORK, "--network.window", "2", "--network.channels", "4", "--network.hidden", "8"]


@pytest.mark.parametrize(
    "game, flags, told",
    [
        ("connect_four", (), True),
        ("connect_four", ("--network.kind", "resnet"), True),
        ("connect_four", ("--network.kind", "mlp"), False),
        ("connect_four", ("--network.no-stone-parity",), False),
        ("othello", (), True),
        ("hex_7x7", (), False),  # a plane tells whose turn it is
    ],
)
def test_it_is_told_where_the_planes_do_not_say_who_began(game, flags, told):
    game, config = by_name(game), parse(["--network.channels", "4", "--network.hidden", "8", *flags], "laptop")
    config = setup.filled(config, game)
    assert config.network.stone_parity is told
    assert setup.about(config.network, game).get("stone_parity", False) is told
    network = lambda net: setup.network(net, game, jax.random.key(0))[1]
    count = lambda net: sum(x.size for x in jax.tree.leaves(network(net)))
    assert (count(config.network) > count(dataclasses.replace(config.network, stone_parity=False))) is told


def test_a_run_from_before_goes_on_with_the_flag_that_is_named(tmp_path):
    """Its folder does not say: its network was not told."""
    words = [*SMALL, "--folder", str(tmp_path)]
    with contextlib.ExitStack() as stack:
        config = train.prepare(parse([*words, "--network.no-stone-parity"], "laptop"), stack)[0]
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["network"].pop("stone_parity") is False and not config.network.stone_parity
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with contextlib.ExitStack() as stack, pytest.raises(SystemExit, match="--network.no-stone-parity"):
        train.prepare(parse(words, "laptop"), stack)
    with contextlib.ExitStack() as stack:
        assert not train.prepare(parse([*words, "--network.no-stone-parity"], "laptop"), stack)[0].network.stone_parity


def test_three_players_have_no_parity():
    game = by_name("tic_tac_toe")._replace(num_players=3)
    assert not setup.tells_parity(parse([], "laptop").network, game)


def test_weights_with_it_begin_a_run_that_goes_on(tmp_path):
    game = games.from_pgx("tic_tac_toe")
    about = {"game": game.id, "network": {"kind": "windows", "window": 2, "channels": 4, "hidden": [8]}}
    about["network"]["stone_parity"] = True
    params = nets.windows(game, 2, 4, (8,), stone_parity=True, key=jax.random.key(3))[1]
    weights.save(tmp_path / "there", params, about, game=game)
    words = [*NO_NETWORK, "--weights", str(tmp_path / "there"), "--folder", str(tmp_path / "run")]
    for _ in range(2):
        with contextlib.ExitStack() as stack:
            config, _, _, run, *_ = train.prepare(parse(words, "laptop"), stack)
        assert config.network.stone_parity is True
        jax.tree.map(np.testing.assert_array_equal, run.params, params)
        (tmp_path / "there").unlink(missing_ok=True)  # the run has its copy
    with contextlib.ExitStack() as stack, pytest.raises(SystemExit) as ended:
        train.prepare(parse([*NO_NETWORK, "--folder", str(tmp_path / "run")], "laptop"), stack)
    assert f"settings that are there (--weights {tmp_path / 'there'}), or name" in str(ended.value)


def test_weights_from_before_begin_a_run_as_they_are(tmp_path):
    with contextlib.ExitStack() as stack:
        words = [*NO_NETWORK, "--weights", "trained", "--folder", str(tmp_path)]
        config, _, game, run, *_ = train.prepare(parse(words, "laptop"), stack)
    assert config.network.stone_parity is False
    expected = weights.load(weights.trained("tic_tac_toe"), games.from_pgx("tic_tac_toe"))[1]
    assert jax.tree.map(lambda x: x.shape, run.params) == jax.tree.map(lambda x: x.shape, expected)
