"""`jaxzero train --model stochastic`: chance is learned, too."""

import jax
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.cli.muzero.code_meanings import tiles_that_came
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.health_checks import begin_health
from jaxzero.cli.muzero.setup import build, environment_for
from jaxzero.runs import health
from jaxzero.train import devices
from tests.cli.muzero.tiny_runs import BLIND, TINY, rows, state_of, trained

FLAGS = "--game", "2048", "--model", "stochastic", *TINY, "--network.codes", "5"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stochastic")
    trained(folder, *FLAGS, "--budget.steps", "8")
    return folder


def test_a_run_learns_codes_and_says_how_they_are_used(whole):
    last = rows(whole)[-1]
    shares = [last[f"codes/{i}"] for i in range(5)]
    assert sum(shares) == pytest.approx(1) and 0.999 <= last["loss/codes_told_apart"] <= 5
    assert last["loss/chance"] > 0 and last["loss/afterstate"] > 0 and "unroll/commitment_2" in last
    network, _, about = nets.load_learned(whole / "weights.safetensors")
    assert isinstance(network, nets.StochasticNetwork) and about["network"]["codes"] == 5
    assert "Chance codes in" in (whole / "report.html").read_text()


def test_a_run_that_went_on_is_one_that_was_never_interrupted(whole, tmp_path):
    for steps in (3, 8):
        trained(tmp_path, *FLAGS, "--budget.steps", str(steps), "--evaluate.final", "0")
    (step, once), (again, twice) = state_of(whole, *FLAGS), state_of(tmp_path, *FLAGS)
    assert step == again == 8
    jax.tree.map(np.testing.assert_array_equal, once, twice)


def test_tiles_are_told_by_the_boards_before_and_after():
    boards = np.uint8([[1, 1] + [0] * 14, [2] + [0] * 8 + [2] + [0] * 6, [0] * 12 + [2, 2, 1, 0]])
    assert tiles_that_came(boards, np.array([0, 3])) == ["4 in row 3, column 2", "2 in row 4, column 3"]


@pytest.mark.parametrize("flags, said", [
    (("--network.codes", "1"), "--network.codes 1: give 2 or more outcomes"),
    (("--network.window", "2"), "has no windows"),
    (("--learn.consistency", "1"), "no consistency loss"),
])  # fmt: skip
def test_settings_without_meaning_are_refused(flags, said):
    with pytest.raises(SystemExit, match=said):
        parse([*FLAGS, *flags])


def test_perceptrons_are_trained_too(tmp_path):
    trained(tmp_path, *FLAGS, "--network.kind", "mlp", *BLIND, "--budget.steps", "6")
    _, _, about = nets.load_learned(tmp_path / "weights.safetensors")
    assert about["network"]["kind"] == "stochastic_mlp" and rows(tmp_path)[-1]["loss/chance"] > 0


def test_games_of_two_are_refused():
    config = parse(["--game", "tic_tac_toe", "--model", "stochastic", *TINY])
    with pytest.raises(ValueError, match="tic_tac_toe has two. Use --model learned"):
        build(config, environment_for(config), devices.mesh())


def test_codes_that_collapsed_are_warned_of():
    def said(used):
        well, found = begin_health(4), []
        for step in range(1, 60):
            well, words = health.look(well, {"step": step, "acting/taken": 32.0, "loss/codes_told_apart": used})
            found += words
        return found

    (sentence,) = said(1.01)
    assert "collapsed to one" in sentence and not said(3.0)
