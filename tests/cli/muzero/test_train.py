"""Training with a learned model as a user meets it: what a run leaves, how it ends, goes on, and what it refuses."""

import json
import re
import types

import jax
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.cli.muzero import train
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import Run
from jaxzero.runs import checkpoint
from jaxzero.train.muzero.learner import MuZeroLosses
from jaxzero.train.muzero.unroll_loss import UnrollLosses
from tests.cli.muzero.tiny_runs import BLIND, CARTPOLE, TINY, rows, state_of, trained

LEFT = {"weights.safetensors", "metrics.jsonl", "results.json", "report.html", "config.json", "checkpoints"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of twelve iterations of cartpole that was measured, and not interrupted."""
    folder = tmp_path_factory.mktemp("cartpole") / "run"
    trained(folder, *CARTPOLE, "--budget.steps", "12")
    return folder


def files(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def same_state(folder, other, *flags):
    (step, state), (again, found) = state_of(folder, *flags), state_of(other, *flags)
    assert step == again
    jax.tree.map(np.testing.assert_array_equal, state, found)
    return step, state


@pytest.mark.slow
def test_a_run_leaves_weights_metrics_results_and_a_report(whole):
    assert {path.name for path in whole.iterdir()} >= LEFT
    found = rows(whole)
    assert [row["step"] for row in found] == list(range(1, 13))
    assert [row["acting/steps"] for row in found] == [8 * step for step in range(1, 13)]
    assert [row["step"] for row in found if "return/mean" in row] == [3, 6, 9, 12]
    assert ["loss/total" in row for row in found] == [8 * step >= 16 for step in range(1, 13)], "--learn.start"
    results = json.loads((whole / "results.json").read_text())
    assert results["step"] == 12
    for when in ("before", "after"):
        greedy = results[when]["greedy"]
        assert greedy["episodes"] == 2 and 0 < greedy["least"] <= greedy["mean"] <= greedy["greatest"] <= 20
    report = (whole / "report.html").read_text()
    headings = re.findall(r"<h2[^>]*>([^<]*)<", report)
    assert headings == ["What was learned", "Returns", "How it went", "The model", "An episode", "Settings",
                        "Made with", "What next"]  # fmt: skip
    assert "jaxzero learned cartpole without its rules" in report and "counts as solved at 475" in report
    shown = json.loads(re.search(r'<script type="application/json">(.*?)</script>', report, re.S).group(1))
    assert len(shown) == 1 and f"rewards so far: {len(shown[0])}" in shown[0][-1][1]  # a step pays 1


@pytest.mark.slow
def test_the_weights_are_the_average_parameters_and_say_what_they_are(whole):
    network, params, about = nets.load_learned(whole / "weights.safetensors")
    _, state = state_of(whole, *CARTPOLE)
    jax.tree.map(np.testing.assert_array_equal, params, state["learner"].average)
    assert about["environment"] == dict(
        id="cartpole", name="cartpole", observation_shape=[4], num_actions=2, num_players=1, discount=0.997
    )
    assert about["step"] == 12 and about["results"]["greedy"]["episodes"] == 2
    assert about["command"].startswith("jaxzero train --game cartpole ") and "--folder" not in about["command"]
    assert network.value.size == 41 and int(state["learner"].steps) == sum("loss/total" in r for r in rows(whole)) * 2


@pytest.mark.slow
def test_a_run_that_went_on_is_one_that_was_never_interrupted(whole, tmp_path, capsys):
    for steps in (5, 12):
        trained(tmp_path, *CARTPOLE, "--budget.steps", str(steps))
    out = capsys.readouterr().out
    assert "Continuing from iteration 5," in out
    step, state = same_state(whole, tmp_path, *CARTPOLE)
    assert step == 12 and set(state) == {"acting", "replay", "learner"}
    assert rows(whole) == rows(tmp_path)
    one, other = (json.loads((folder / "results.json").read_text()) for folder in (whole, tmp_path))
    assert one == other
    before = files(tmp_path)
    trained(tmp_path, *CARTPOLE, "--budget.steps", "12")  # used up: shows the table, learns nothing
    assert "The budget is used up" in capsys.readouterr().out and before == files(tmp_path)


@pytest.mark.slow
def test_measuring_can_be_stopped_and_leaves_the_weights(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    real = train.measure_for
    monkeypatch.setattr(train, "measure_for", lambda *given: real(*given)._replace(whole=stopped))
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, *CARTPOLE, "--evaluate.every", "0", "--budget.steps", "3")
    assert (tmp_path / "weights.safetensors").is_file()


@pytest.mark.slow
def test_a_goal_ends_a_run_and_the_same_command_does_not_go_on(tmp_path, capsys):
    flags = *CARTPOLE, "--evaluate.final", "0", "--budget.steps", "6"
    trained(tmp_path, *flags, "--budget.until", "1")
    assert "or until the mean return is 1" in capsys.readouterr().out
    assert [row["step"] for row in rows(tmp_path)] == [1, 2, 3], "the first look was at step 3"
    trained(tmp_path, *flags, "--budget.until", "1")
    said = capsys.readouterr().out
    assert len(rows(tmp_path)) == 3 and "The goal of 1 was reached" in said and "--budget.until inf " in said


@pytest.mark.parametrize("flags, said", [
    (("--network.head", "hl_gauss"), "network.head: 'auto' there, 'hl_gauss' now"),
    (("--seed", "9", "--learn.reuse", "2"), "seed: 0 there, 9 now.*learn.reuse: 1.0 there, 2.0 now"),
    (("--game", "gymnasium:CartPole-v1"), "game: 'cartpole' there, 'gymnasium:CartPole-v1' now"),
])  # fmt: skip
@pytest.mark.slow
def test_other_settings_in_the_same_folder_are_refused(whole, flags, said):
    before = files(whole)
    with pytest.raises(SystemExit, match=f"(?s)train: .*{said}"):
        trained(whole, *CARTPOLE, *flags)
    assert before == files(whole)


@pytest.mark.slow
def test_a_bit_of_the_replay_that_flipped_is_told(whole, tmp_path, capsys):
    """Of a run with one checkpoint nothing is left to go on with; with two it goes on from the older one."""
    flags = *CARTPOLE, *BLIND, "--save-minutes", "0"
    trained(tmp_path, *flags, "--budget.steps", "3")
    steps = sorted(int(path.name) for path in (tmp_path / "checkpoints").iterdir())
    assert steps == [2, 3]

    def flip(step):
        parts = [path for path in (tmp_path / "checkpoints" / str(step) / "state").rglob("*") if path.is_file()]
        file = max(parts, key=lambda path: path.stat().st_size)  # arrays: most of them the replay's
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 4
        file.write_bytes(data)

    flip(3)
    capsys.readouterr()
    trained(tmp_path, *flags, "--budget.steps", "4")
    out = capsys.readouterr().out
    assert re.search(r"Checkpoint 3 in .* is skipped: 3/state/", out) and "Continuing from iteration 2" in out
    assert [row["step"] for row in rows(tmp_path)] == [1, 2, 3, 4]
    for step in sorted(int(path.name) for path in (tmp_path / "checkpoints").iterdir()):
        flip(step)
    with pytest.raises((SystemExit, checkpoint.CheckpointError), match="damaged"):
        trained(tmp_path, *flags, "--budget.steps", "5")


@pytest.mark.slow
def test_returns_that_the_head_cannot_say_are_counted_and_warned_of(tmp_path, capsys):
    """A limit of 1 is 2.99 on MuZero's scale, and ten steps of cartpole pay 10 and a value of 0 behind them."""
    flags = "--network.limit", "1", "--acting.environments", "8", "--acting.steps", "8", "--learn.capacity", "2048"
    flags += "--learn.returns", "10", *BLIND, "--budget.steps", "60"
    trained(tmp_path, *CARTPOLE, *flags)
    found = rows(tmp_path)
    assert np.mean([row["loss/outside"] for row in found if "loss/outside" in row]) > 0.5
    words = r"([\d.]+)% of the value targets lie outside the range of the value head"
    said = re.findall(words, capsys.readouterr().out)
    assert len(said) == 1 and float(said[0]) > 50


@pytest.mark.slow
def test_losses_that_are_not_finite_end_the_run(tmp_path, capsys):
    flags = "--learn.learning-rate", "1e38", "--learn.warmup", "0", *BLIND, "--budget.steps", "30"
    with pytest.raises(SystemExit, match="not finite in 1[0-9] minibatches in a row|not finite in 10 minibatches"):
        trained(tmp_path, *CARTPOLE, *flags)
    assert "skipped" in capsys.readouterr().out and len(rows(tmp_path)) < 30


@pytest.mark.slow
def test_environments_on_the_host_are_learned_and_begin_anew_when_a_run_goes_on(tmp_path, capsys):
    flags = "--game", "gymnasium:CartPole-v1", *TINY
    trained(tmp_path, *flags, "--budget.steps", "4")
    assert "start again" not in capsys.readouterr().out
    trained(tmp_path, *flags, "--budget.steps", "6")
    assert "their episodes start again" in capsys.readouterr().out
    found = rows(tmp_path)
    assert [row["step"] for row in found] == [1, 2, 3, 4, 5, 6] and all(row["acting/taken"] == 8 for row in found)
    assert [row["step"] for row in found if "return/mean" in row] == [3, 6]
    _, state = state_of(tmp_path, *flags)
    steps = state["replay"].steps
    assert (state["replay"].written == 24).all() and steps.last[:, 15].all(), "nothing follows what was there before"
    assert (steps.reward[:, :24] == ~steps.last[:, :24]).all() and steps.last[:, :24].sum() == len(steps.last)
    begun = np.abs(steps.observation[:, 16]) <= 0.05  # as an episode of CartPole begins: here with the fifth chunk
    assert begun.all() and (np.abs(steps.observation[:, :24]).max(-1) > 0.05).any()
    greedy = json.loads((tmp_path / "results.json").read_text())["after"]["greedy"]
    assert greedy["episodes"] == 2 and 0 < greedy["mean"] == greedy["length"] <= 20
    trained(tmp_path, *flags, "--budget.steps", "6")
    assert "The budget is used up" in capsys.readouterr().out, "nothing begins anew where nothing goes on"


@pytest.mark.slow
def test_a_game_of_two_is_measured_by_games_ratings_exact_positions_and_every_reply(tmp_path, capsys):
    flags = "--game", "tic_tac_toe", "--model", "learned", *TINY, "--acting.openings", "4", "--budget.steps", "4"
    trained(tmp_path, *flags)
    looked = [row for row in rows(tmp_path) if "rating/elo" in row]
    assert [row["step"] for row in looked] == [3]
    assert {"mistakes/raw", "mistakes/2", "model/raw", "model/learned", "model/true"} <= set(looked[0])
    assert looked[0]["mistakes/raw"] == pytest.approx(looked[0]["model/raw"]), "two ways to count the same"
    results = json.loads((tmp_path / "results.json").read_text())
    for when in ("before", "after"):
        found = results[when]
        assert sum(found["uct"]["score"]) == sum(found["random"]["score"]) == 4
        for who, most in (("first", 2423), ("second", 2097)):  # boards with an even or an odd number of stones
            told = found["replies"][who]
            assert 0 < told["positions"] <= most and told["wins"] + told["draws"] + told["losses"] > 0
    untrained = results["before"]["model"]
    assert untrained["learned"] == untrained["raw"], "nothing is foretold, so the first legal move stands"
    _, state = state_of(tmp_path, *flags)
    steps, held = state["replay"].steps, state["replay"].written[0]
    boards = steps.observation[:, :held].reshape(2, held, 9, 2)
    np.testing.assert_array_equal(steps.legal[:, :held], boards.sum(-1) == 0)
    assert set(np.unique(steps.reward)) <= {0.0, 1.0} and steps.terminated[:, :held].any()
    assert float(state["rating"].elo) == pytest.approx(looked[0]["rating/elo"])
    report, said = (tmp_path / "report.html").read_text(), capsys.readouterr().out
    headings = re.findall(r"<h2[^>]*>([^<]*)<", report)
    assert headings == ["What was learned", "How it went", "The model", "Six games, with what the search thought",
                        "Settings", "Made with", "What next"]  # fmt: skip
    for words in ("Against every legal reply", "What the network and the model know", "a random player"):
        assert words in report and words in said


def test_one_step_acts_with_the_average_and_learns_at_the_rate_of_its_minibatches():
    """What is handed to whom, told by functions that only say what they were given."""
    config, given = parse([*CARTPOLE]), {}

    def telling(name, answer):
        def run(*args):
            given[name] = args
            return answer

        return run

    numbers = dict.fromkeys(("steps", "episodes", "entropy", "improvement", "distinct", "bad"), 0.0)
    parts = UnrollLosses(*[np.ones(3)] * 6, *[np.float32(2)] * 4)
    losses = MuZeroLosses(np.float32(1), parts, np.float32(np.inf), np.float32(0))
    run = Run(
        network=None, model=None, params=None, begin=None,
        act=telling("act", ("new acting", "new replay", "stats")),
        update=telling("update", (types.SimpleNamespace(in_a_row=2), "newer replay", losses)),
        tell=telling("tell", numbers | {"minibatches": 49.0}), keys=lambda step: f"keys of {step}",
    )  # fmt: skip
    before = types.SimpleNamespace(params="params", average="average")
    state = {"acting": "acting", "replay": "replay", "learner": before}
    after, values = train.one_step(config, run, state, 7)
    assert given["act"] == ("average", "acting", "replay") and given["tell"] == ("stats", before)
    assert given["update"][:3] == (before, "new replay", "keys of 7") and values["learning_rate"] == given["update"][3]
    assert 0.4 * config.learn.learning_rate < values["learning_rate"] < 0.6 * config.learn.learning_rate
    assert after["acting"] == "new acting" and after["replay"] == "newer replay" and values["in_a_row"] == 2
    assert state == {"acting": "acting", "replay": "replay", "learner": before}, "what was given is left alone"
    assert "loss/gradient_norm" not in values and values["loss/outside"] == 2, "what is not finite is left out"
    given.clear()
    assert "learning_rate" not in train.one_step(config, run, state, 0)[1] and "update" not in given, "too few steps"
