"""Greedy episodes in numbers, tables and sentences."""

import types

import numpy as np
import pytest

from jaxzero.cli.muzero import evaluation
from jaxzero.cli.muzero.settings import Config, Evaluate
from jaxzero.environments import cartpole
from jaxzero.train import devices
from jaxzero.train.muzero.episodes import Episodes

FOUND = Episodes(np.float32([1, 2, 6, 100]), np.array([3, 4, 5, 7]), np.array([True, False, True, False]))


def test_numbers_are_of_the_episodes_that_were_asked_for():
    told = evaluation.in_numbers(FOUND, 3)
    error, deviation = (pytest.approx((14 / n) ** 0.5) for n in (6, 3))  # 1, 2 and 6 are 2, 1 and 3 from their mean
    rest = dict(least=1.0, greatest=6.0, length=4.0, episodes=3, unfinished=1)
    assert told == dict(mean=3.0, error=error, deviation=deviation) | rest
    assert evaluation.in_numbers(FOUND)["episodes"] == 4
    assert evaluation.in_numbers(FOUND, 1)["error"] is None  # one episode says nothing of it


def test_a_table_has_a_row_for_before_and_after():
    after = {"greedy": evaluation.in_numbers(FOUND, 3)}
    ((caption, head, rows),) = evaluation.tables({}, after, 8)
    assert "8 simulations per step" in caption and len(head) == len(rows[0]) == 7
    assert rows == [["after", "3.0 ± 1.5", "2.2", "1.0", "6.0", "4.0", "3"]]
    assert [row[0] for row in evaluation.tables(after, after, 8)[0][2]] == ["before", "after"]
    assert evaluation.tables({}, {}, 8) == []


@pytest.mark.parametrize("solved, mean, said", [
    (475.0, 475.0, "cartpole counts as solved at 475: it is."),
    (475.0, 474.9, "cartpole counts as solved at 475: it is not yet."),
    (None, 3.0, "Its mean return is 3.0 over 3 episodes, untrained 2.0."),
])  # fmt: skip
def test_the_verdict_says_whether_it_is_solved(solved, mean, said):
    results = {"greedy": dict(mean=mean, episodes=3, unfinished=0)}
    before = {"greedy": dict(mean=2.0, episodes=3, unfinished=0)}
    assert evaluation.verdict(cartpole()._replace(solved=solved), results, before).endswith(said)


def test_the_verdict_says_what_was_left_and_nothing_where_nothing_was_measured():
    environment = cartpole()._replace(solved=None)
    said = evaluation.verdict(environment, {"greedy": dict(mean=1.0, episodes=3, unfinished=2)}, None)
    assert said == "Its mean return is 1.0 over 3 episodes; 2 episodes were left unfinished."
    assert evaluation.verdict(environment, {}, None) == ""


def test_where_there_are_no_looks_no_program_is_compiled_for_them(monkeypatch):
    monkeypatch.setattr(evaluation, "_jitted", lambda *_: "program")
    run, mesh = types.SimpleNamespace(), devices.mesh()
    built = lambda asked: evaluation.episode_measure(Config(evaluate=asked), cartpole(), run, mesh)
    assert built(Evaluate()).program == built(Evaluate(every=3)).program == "program"
    blind = built(Evaluate(episodes=0))
    assert blind.program is None and built(Evaluate(every=0)).program is None
    assert blind.look({"a": 1}, 3) == ({"a": 1}, {}) and built(Evaluate(final=0)).whole(None) == {}
