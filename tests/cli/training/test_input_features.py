"""Whether a run's network is shown the features that a game names: by the flag, or by what there is already."""

import contextlib
import json

import jax
import pytest

from jaxzero import nets
from jaxzero.cli.training import setup, train
from jaxzero.cli.training.command_line import parse
from jaxzero.games.by_name import by_name
from jaxzero.nets import weights

TINY = """
    --game tic_tac_toe --selfplay.games 8 --selfplay.plies 4 --selfplay.simulations 4 --learn.start 16
    --learn.batch-size 8 --learn.capacity 544 --network.window 2 --network.channels 4 --network.hidden 8
""".split()


@pytest.mark.parametrize(
    "game, flags, shown",
    [
        ("connect_four", (), True),
        ("connect_four", ("--network.kind", "mlp"), True),
        ("connect_four", ("--network.kind", "resnet", "--network.blocks", "1"), True),
        ("connect_four", ("--network.no-input-features",), False),
        ("othello", (), False),
    ],
)
def test_features_are_shown_where_the_game_names_them(game, flags, shown):
    game, config = by_name(game), parse(["--network.channels", "4", "--network.hidden", "8", *flags], "laptop")
    config = setup.filled(config, game)
    assert config.network.input_features is shown
    assert setup.about(config.network, game).get("input_features", False) is shown
    net, _ = setup.network(config.network, game, jax.random.key(0))
    assert (net.input_features is game.input_features) if shown else net.input_features is None


def test_a_run_from_before_goes_on_with_the_flag_that_is_named(tmp_path):
    """Its folder does not say: its network saw no features."""
    words = [*TINY, "--folder", str(tmp_path)]
    with contextlib.ExitStack() as stack:
        train.prepare(parse([*words, "--network.no-input-features"], "laptop"), stack)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["network"].pop("input_features") is False
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with contextlib.ExitStack() as stack, pytest.raises(SystemExit, match="--network.no-input-features"):
        train.prepare(parse(words, "laptop"), stack)
    with contextlib.ExitStack() as stack:
        config, *_ = train.prepare(parse([*words, "--network.no-input-features"], "laptop"), stack)
    assert not config.network.input_features


@pytest.mark.parametrize("shown", [False, True])
def test_a_run_that_begins_with_weights_shows_what_these_were_shown(tmp_path, shown):
    game = by_name("tic_tac_toe")
    about = {"game": game.id, "network": {"kind": "mlp", "hidden": [8]}}
    about["network"] |= {"input_features": True} if shown else {}
    params = nets.mlp(game, (8,), input_features=shown, key=jax.random.key(3))[1]
    weights.save(tmp_path / "there", params, about, game=game)
    words = [*TINY[: TINY.index("--network.window")], "--weights", str(tmp_path / "there")]
    with contextlib.ExitStack() as stack:
        config, _, _, run, *_ = train.prepare(parse([*words, "--folder", str(tmp_path / "run")], "laptop"), stack)
    assert config.network.input_features is shown
    assert (run.net.input_features is game.input_features) if shown else run.net.input_features is None
