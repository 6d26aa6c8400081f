"""How values weigh in self-play: what is filled in for a game, and what old runs go on with."""

import contextlib
import json
import re
import shlex

import jax
import numpy as np
import pytest

from jaxzero import games
from jaxzero.cli.training import setup, train
from jaxzero.cli.training.command_line import parse
from tests.games import dice_race

SMALL = ("--game", "tic_tac_toe", "--network.kind", "mlp", "--network.hidden", "8", "--selfplay.games", "8")
SMALL += ("--selfplay.simulations", "4", "--learn.batch-size", "64")
NAMES = "rescale_values", "value_scale"


def prepared(words):
    with contextlib.ExitStack() as stack:
        own = train.prepare(parse(list(words), "laptop"), stack)[0].selfplay
    return own.rescale_values, own.value_scale


@pytest.mark.slow
@pytest.mark.parametrize("flags, found", [
    ((), (False, 1.0)),
    (("--selfplay.rescale-values",), (True, 0.1)),
    (("--selfplay.rescale-values", "True", "--selfplay.value-scale", "0.3"), (True, 0.3)),
    (("--selfplay.no-rescale-values",), (False, 1.0)),
    (("--selfplay.no_rescale_values", "--selfplay.value_scale", "0.1"), (False, 0.1)),
    (("--selfplay.value-scale", "2"), (False, 2.0)),
])  # fmt: skip
def test_a_run_keeps_what_it_plays_with(tmp_path, flags, found):
    assert prepared((*SMALL, *flags, "--folder", str(tmp_path))) == found
    kept = json.loads((tmp_path / "config.json").read_text())["selfplay"]
    assert tuple(kept[name] for name in NAMES) == found
    assert prepared((*SMALL, *flags, "--folder", str(tmp_path))) == found


def test_values_are_mapped_where_chance_decides_or_several_play():
    duel = games.by_name("tic_tac_toe")
    for game, found in (
        (duel, (False, 1.0)),
        (dice_race.game, (True, 0.1)),
        (duel._replace(num_players=3), (True, 0.1)),
    ):
        own = setup.filled(parse([], "laptop"), game).selfplay
        assert (own.rescale_values, own.value_scale) == found


@pytest.mark.slow
def test_self_play_with_dice_is_as_it_was():
    network = lambda params, seen: (seen @ np.linspace(-2, 2, seen.shape[-1] * 2).reshape(-1, 2), seen.sum(-1) / 50)
    keys = jax.random.split(jax.random.key(0), 3)
    race = jax.vmap(dice_race.game.init)(keys)
    words = ("--selfplay.simulations", "16")
    play = lambda *flags: setup.policy(parse([*words, *flags], "laptop"), dice_race.game, network)(None, keys, race)
    usual, mapped, plain = play(), play("--selfplay.rescale-values"), play("--selfplay.no-rescale-values")
    np.testing.assert_array_equal(usual.action_weights, mapped.action_weights)
    assert (np.asarray(usual.action_weights) != plain.action_weights).any()


@pytest.mark.slow
@pytest.mark.parametrize("there", [(True, 0.1), (None, None), (True, 1.0), (False, 0.1)])
def test_a_run_from_before_goes_on_with_the_flags_that_are_named(tmp_path, there):
    """Where config.json does not say, values were mapped, with a scale of 0.1."""
    words = (*SMALL, "--folder", str(tmp_path))
    prepared(words)
    file = tmp_path / "config.json"
    kept = json.loads(file.read_text())
    for name, value in zip(NAMES, there):
        kept["selfplay"] |= {name: value}
        if value is None:
            del kept["selfplay"][name]
    file.write_text(json.dumps(kept))
    with pytest.raises(SystemExit) as refused:
        prepared(words)
    named = re.search(r"settings of the run \((.*?)\)", str(refused.value))[1]
    assert prepared((*words, *shlex.split(named))) == ((True, 0.1) if None in there else there)
