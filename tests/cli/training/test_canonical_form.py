"""Whether a run's network sees positions in canonical form: by the game, by the flag, or by what there is already."""

import contextlib
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.cli.training import setup, train
from jaxzero.cli.training.command_line import parse
from jaxzero.games.by_name import by_name
from jaxzero.nets import weights

TINY = """
    --game hex_3x3 --selfplay.games 8 --selfplay.plies 4 --selfplay.simulations 4 --learn.start 16
    --learn.batch-size 8 --learn.capacity 544
""".split()
NETWORK = ["--network.window", "2", "--network.channels", "4", "--network.hidden", "8"]


@pytest.mark.parametrize(
    "game, flags, canonical",
    [
        ("hex_7x7", (), True),
        ("hex_7x7", ("--network.kind", "mlp"), True),
        ("hex", ("--network.kind", "resnet", "--network.blocks", "1"), True),
        ("hex_7x7", ("--network.no-canonical",), False),
        ("connect_four", (), False),
    ],
)
def test_positions_are_seen_in_canonical_form_where_the_game_names_one(game, flags, canonical):
    game, config = by_name(game), parse(["--network.channels", "4", "--network.hidden", "8", *flags], "laptop")
    config = setup.filled(config, game)
    assert config.network.canonical is canonical
    assert setup.about(config.network, game).get("canonical", False) is canonical
    net, params = setup.network(config.network, game, jax.random.key(0))
    if game.canonical is None:
        return
    first = jnp.zeros((1, *game.observation_shape)).at[0, 1, 2, 0].set(1)
    second = jnp.swapaxes(first, 1, 2).at[..., 2].set(1)
    assert bool(jnp.allclose(net(params, first)[1], net(params, second)[1], atol=1e-6)) is canonical


def test_a_run_from_before_goes_on_with_the_flag_that_is_named(tmp_path):
    """Its folder does not say: its network saw positions as they are."""
    words = [*TINY, *NETWORK, "--folder", str(tmp_path)]
    with contextlib.ExitStack() as stack:
        train.prepare(parse([*words, "--network.no-canonical"], "laptop"), stack)
    settings = json.loads((tmp_path / "config.json").read_text())
    assert settings["network"].pop("canonical") is False
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with contextlib.ExitStack() as stack, pytest.raises(SystemExit, match="--network.no-canonical"):
        train.prepare(parse(words, "laptop"), stack)
    with contextlib.ExitStack() as stack:
        assert not train.prepare(parse([*words, "--network.no-canonical"], "laptop"), stack)[0].network.canonical


@pytest.mark.parametrize("canonical", [False, True])
def test_a_run_that_begins_with_weights_sees_positions_as_these_do(tmp_path, canonical):
    game = by_name("hex_3x3")
    about = {"game": game.id, "network": {"kind": "windows", "window": 2, "channels": 4, "hidden": [8]}}
    about["network"] |= {"canonical": True} if canonical else {}
    params = nets.windows(game, 2, 4, (8,), canonical=canonical, key=jax.random.key(3))[1]
    weights.save(tmp_path / "there", params, about, game=game)
    words = [*TINY, "--weights", str(tmp_path / "there"), "--folder", str(tmp_path / "run")]
    with contextlib.ExitStack() as stack:
        config, _, _, run, *_ = train.prepare(parse(words, "laptop"), stack)
    assert config.network.canonical is canonical
    jax.tree.map(np.testing.assert_array_equal, run.params, params)
    assert (run.net.canonical is game.canonical) if canonical else run.net.canonical is None
