"""`jaxzero train --game 2048 --model rules`: a run in miniature, and one that was interrupted."""

import contextlib
import functools
import json
import shutil
import sys
from unittest import mock

import jax
import numpy as np
import pytest

from jaxzero.cli import main as command
from jaxzero.cli.afterstates import evaluation, train
from jaxzero.cli.afterstates.settings import parse
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.runs import checkpoint

TINY = (
    "--learn.tuples", "five_fours", "--learn.games", "4", "--learn.moves", "60",
    "--evaluate.games", "3", "--evaluate.simulations", "0", "2", "--budget.minutes", "100",
)  # fmt: skip


def test_weights_to_begin_with_are_refused():
    with pytest.raises(SystemExit, match="--weights trained: only board games with --model rules can start from"):
        parse(["--weights", "trained"])


def trained(folder, *flags):
    """A run as the command does it, but for what concerns the process."""
    words = ["--game", "2048", "--model", "rules", *TINY, *flags, "--folder", str(folder)]
    with mock.patch.object(sys, "argv", ["jaxzero", "train", *words]), contextlib.ExitStack() as stack:
        config = parse(words)
        train.go_on(config, *train.prepare(config, stack))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("afterstates")
    trained(folder, "--budget.steps", "6")
    return folder


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_leaves_weights_metrics_results_and_a_report(whole):
    found = rows(whole)
    assert [row["step"] for row in found] == [1, 2, 3, 4, 5, 6] and found[-1]["play/moves"] == 6 * 4 * 60
    ended = [row for row in found if row["play/games"]]
    assert ended and all(row["play/score"] > 0 and row["play/length"] > 0 for row in ended)
    network, weights, about = load_ntuples(whole / "weights.safetensors")
    assert about["game"] == "2048" and about["step"] == 6 and network.count == 40 and np.abs(weights).max() > 0
    results = json.loads((whole / "results.json").read_text())["after"]
    assert set(results) == {"0", "2"} and all(sum(x["largest"].values()) == 3 for x in results.values())
    page = (whole / "report.html").read_text()
    assert "Largest tiles" in page and "points so far" in page and "without a search" in page


def test_a_run_that_went_on_is_one_that_was_never_interrupted(whole, tmp_path, capsys):
    trained(tmp_path, "--budget.steps", "2", "--evaluate.games", "0")
    trained(tmp_path, "--budget.steps", "6", "--evaluate.games", "0")
    assert "Continuing from iteration 2," in capsys.readouterr().out
    like = jax.eval_shape(train.build(parse(["--learn.tuples", "five_fours", "--learn.games", "4"])).begin)
    (step, once), (again, twice) = (checkpoint.restore(folder, like) for folder in (whole, tmp_path))
    assert step == again == 6
    jax.tree.map(np.testing.assert_array_equal, once["table"], twice["table"])
    np.testing.assert_array_equal(once["games"].cells, twice["games"].cells)


def test_a_finished_run_is_not_measured_again(whole, tmp_path, capsys):
    folder = shutil.copytree(whole, tmp_path / "run")
    trained(folder, "--budget.steps", "6")
    said = capsys.readouterr().out
    assert "The budget is used up" in said and "Measuring" not in said and "damaged" not in said


def test_other_settings_in_the_same_folder_are_refused(whole):
    with pytest.raises(SystemExit, match="learn.learning_rate: 1.0 there, 0.5 now"):
        trained(whole, "--budget.steps", "6", "--learn.learning-rate", "0.5")


@pytest.mark.parametrize("flags, said", [
    (("--learn.games", "0"), "learn.games 0 is out of range: 1 or more"),
    (("--learn.learning-rate", "2"), "above 0, up to 1"),
    (("--evaluate.simulations", "-1"), "0 or more, each"),
    (("--budget.minutes", "0"), "needs some time"),
    (("--seed", str(2**32)), "--seed 4294967296 is out of range: between 0 and 4294967295"),
])  # fmt: skip
def test_settings_without_meaning_are_refused(flags, said):
    with pytest.raises(SystemExit, match=said):
        parse([*TINY, *flags])


def test_the_command_tells_the_rules_from_a_learned_model(monkeypatch, capsys):
    for words, module in (
        (["--model", "rules"], "jaxzero.cli.afterstates.train"), ([], "jaxzero.cli.muzero.train")
    ):  # fmt: skip
        ran = []
        monkeypatch.setattr(f"{module}.run", lambda config, ran=ran: ran.append(config.game))
        command.main(["train", "--game", "2048", *words])
        assert ran == ["2048"]


def test_games_are_played_to_their_end_and_counted():
    empty = lambda weights, cells: 10.0 * (cells == 0).sum(-1)
    keys = jax.random.split(jax.random.key(0), 8)
    found = jax.jit(lambda keys: evaluation.play_games(evaluation.planner(empty, 0), None, keys))(keys)
    assert (np.asarray(found.moves) > 50).all()
    # Tiles that appear bring no points: of a game with n moves the board holds about 2.2 n.
    assert (np.asarray(found.score) > 2 ** np.asarray(found.largest)).all()
    results = {"0": {"games": 4, "largest": {"1024": 1, "2048": 2, "8192": 1}}}
    assert evaluation.reached(results["0"], 2048) == 0.75 and evaluation.reached(results["0"], 8192) == 0.25


def test_measuring_says_how_far_the_games_are_and_changes_nothing(capsys):
    plan = evaluation.planner(lambda weights, cells: 10.0 * (cells == 0).sum(-1), 0)
    keys, said = jax.random.split(jax.random.key(1), 4), []
    found = evaluation.watched(
        plan, None, keys, "4 games", lambda words: said.append(words) or contextlib.nullcontext()
    )
    whole = jax.jit(lambda keys: evaluation.play_games(plan, None, keys))(keys)
    jax.tree.map(np.testing.assert_array_equal, found, jax.tree.map(np.asarray, whole))
    assert int(found.moves.max()) > evaluation.CHUNK, "one look would have been enough"
    assert said == ["  4 games: compiling, and the first 100 moves"]
    assert f"100%  4 games: all over, after {found.moves.max():,} moves" in capsys.readouterr().out


def test_measuring_can_be_stopped_and_leaves_the_weights(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "evaluated", stopped)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, "--budget.steps", "1")
    assert (tmp_path / "weights.safetensors").is_file()


@pytest.mark.slow
def test_a_search_scores_more_than_none():
    empty = lambda weights, cells: 100.0 * (cells == 0).sum(-1)
    plan, quietly = functools.partial(evaluation.planner, empty), lambda words: contextlib.nullcontext()
    found = evaluation.evaluated(plan, None, 12, (0, 16), jax.random.key(0), quietly)
    assert found["16"]["mean"] > 1.2 * found["0"]["mean"]
