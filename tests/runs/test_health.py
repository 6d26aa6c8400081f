"""Warnings of a run: each condition by itself, just short of it, once, again, and never in a run that is well."""

import dataclasses
import json
import math
import pathlib
import re
import sys

import pytest

from jaxzero.runs import health, metrics
from jaxzero.runs.health import Health, look

ROOT = pathlib.Path(__file__).resolve().parents[2]

# An iteration of a Connect Four run that does well.
WELL = {
    "selfplay/games": 60, "selfplay/length": 31, "selfplay/first_wins": 0.56, "selfplay/draws": 0.05,
    "selfplay/entropy": 0.5, "selfplay/improvement": 0.2, "selfplay/same_openings": 0.01, "replay/age": 40,
    "loss/policy": 0.9, "loss/value": 0.5, "loss/target_entropy": 0.5, "loss/skipped": 0,
}  # fmt: skip
# What makes it ill, words of the sentence, and a flag that it names.
ILL = {
    "first": ({"selfplay/first_wins": 0.98, "selfplay/draws": 0.0}, "first player won 98.0%", "random-plies"),
    "second": ({"selfplay/first_wins": 0.01, "selfplay/draws": 0.01}, "second player won 98.0%", "random-plies"),
    "draws": ({"selfplay/first_wins": 0.01, "selfplay/draws": 0.98}, "98.0% of the last 3,000", "random-rate"),
    "openings": ({"selfplay/same_openings": 0.3}, "30.0% of all pairs of games had the same position", "random-plies"),
    "certain, idle": ({"selfplay/entropy": 0.03, "selfplay/improvement": 0.004}, "collapsed", "learning-rate"),
    "idle, values": ({"selfplay/improvement": 0.004}, "changed the network's policy by only 0.0040", "simulations"),
    "idle, policy": (
        {"selfplay/improvement": 0.004, "loss/value": 0.1, "loss/policy": 1.5},
        "policy 1.500",
        "simulations",
    ),
    "old": ({"replay/age": 250}, "up to 250 iterations old", "newest"),
}
NEARLY = {
    "first": {"selfplay/first_wins": 0.965, "selfplay/draws": 0.0},
    "second": {"selfplay/first_wins": 0.0, "selfplay/draws": 0.04},
    "draws": {"selfplay/first_wins": 0.02, "selfplay/draws": 0.965},
    "openings": {"selfplay/same_openings": 0.09},
    "certain, but the search changes it": {"selfplay/entropy": 0.03, "selfplay/improvement": 0.02},
    "idle, but all is learned": {"selfplay/improvement": 0.004, "loss/value": 0.2, "loss/policy": 0.5},
    "old, as by default": {"replay/age": 0.6 * 200 + 10},
    "not a number": {name: math.nan for name in WELL if name != "selfplay/games"},
    "nothing known": dict.fromkeys(WELL, math.nan),
}


def sentences(changes, iterations=50, start=Health(7), first=150):
    state, said = start, []
    for step in range(first, first + iterations):
        state, new = look(state, WELL | {"step": step} | changes)
        said += new
    return state, said


@pytest.mark.parametrize("name", ILL)
def test_what_is_wrong_is_said_once_with_a_number_and_a_flag(name):
    changes, words, flag = ILL[name]
    state, said = sentences(changes, iterations=49)
    assert said == []
    state, said = sentences(changes, iterations=101, start=state, first=199)
    assert len(said) == 1 and words in said[0] and flag in said[0], said


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_wrong_is_not_said(name):
    assert sentences(NEARLY[name], iterations=100)[1] == []


def test_a_run_that_is_well_hears_nothing_and_fills_no_memory():
    state, said = sentences({}, iterations=1000, first=0)
    assert said == [] and state == Health(7)


def test_a_warning_comes_again_only_after_it_had_gone():
    ill = ILL["openings"][0]
    state, said = sentences(ill, 100)
    assert len(said) == 1
    state, said = sentences({}, 50, state)
    assert said == []
    state, said = sentences(ill, 100, state)
    assert len(said) == 1


def test_certain_and_alike_is_a_collapse_even_where_the_search_changes_the_policy():
    _, said = sentences({"selfplay/entropy": 0.03, "selfplay/same_openings": 0.3})
    assert [("collapsed" in s, "30.0% of all pairs" in s) for s in said] == [(False, True), (True, True)]


def test_games_count_not_iterations():
    few = {"selfplay/games": 4} | ILL["first"][0]
    state, said = sentences(few, iterations=124)
    assert said == [] and state.block.games == 496
    state, said = sentences(few, iterations=1, start=state)
    assert len(said) == 1 and "98.0% of the last 500 games" in said[0]


def test_shares_of_games_are_weighed_by_games():
    state, said = Health(7), []
    for step in range(60):  # one game in every other iteration says nothing about the fifty of the next
        wins, games = (0.0, 1) if step % 2 else (1.0, 50)
        state, new = look(
            state, {"selfplay/games": games, "selfplay/first_wins": wins, "selfplay/draws": 0, "step": step}
        )
        said += new
    assert len(said) == 1 and "first player won 98.0%" in said[0]


def test_openings_may_be_known_in_few_iterations_and_losses_may_not():
    state, said = Health(7), []
    for step in range(400, 450):
        values = {"selfplay/games": 20, "selfplay/improvement": 0.001, "replay/age": 400, "step": step}
        rare = {"selfplay/same_openings": 0.5, "loss/value": 1.0, "loss/policy": 1.9} if step < 405 else {}
        state, new = look(state, values | rare)
        said += new
    assert len(said) == 1 and "50.0% of all pairs of games had the same" in said[0], (
        "and nothing of losses that are hardly known"
    )


def test_skipped_minibatches_are_said_at_once_and_once():
    state, said = sentences({}, 3)
    state, said = look(state, WELL | {"step": 9, "loss/skipped": 2})
    assert len(said) == 1 and said[0].startswith("2 minibatches were skipped") and "--learn.learning-rate" in said[0]
    state, said = sentences({"loss/skipped": 1}, 100, state)
    assert said == [], "it goes on"
    state, said = sentences({}, 96, state)
    assert said == [] and "skipped" not in state.standing, "a block without"
    state, said = look(state, WELL | {"step": 9, "loss/skipped": 1})
    assert len(said) == 1 and said[0].startswith("1 minibatch was skipped")


def test_the_health_of_a_run_that_goes_on_is_read_from_its_lines(tmp_path):
    lines = [WELL | ILL["draws"][0] | {"step": step} for step in range(70)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    state, said = Health(7), []
    for line in metrics.read(tmp_path):
        state, new = look(state, line)
        said += new
    assert len(said) == 1 and state == sentences(ILL["draws"][0], 70, first=0)[0]


def test_look_changes_nothing_that_it_is_given():
    state, values = sentences({}, 5)[0], WELL | {"step": 5}
    before = state.block.sums.copy(), values.copy()
    look(state, values)
    assert (state.block.sums, values) == before and Health(7).block.sums == {}


def falling(state):
    length, loss = health.mean(state, "acting/length"), health.mean(state, "loss/reward")
    return f"{length:.0f} steps, {loss:.1f}" if length < 10 else None


def test_another_kind_of_training_has_checks_and_metrics_of_its_own():
    state, said = Health(2, checks=(falling,), games="acting/episodes", per_game=("acting/length",),
                         per_iteration=("loss/reward",)), []  # fmt: skip
    for step in range(60):  # one long episode in every other iteration; and draws, which nobody asks for here
        few, long = (1, 100.0) if step % 2 else (50, 5.0)
        values = {"acting/episodes": few, "acting/length": long, "loss/reward": 0.5 + step % 2}
        state, new = look(state, values | {"step": step, "selfplay/games": 100, "selfplay/draws": 1.0})
        said += new
    assert said == ["7 steps, 1.0"] and state.standing == {"falling"}


def test_every_flag_that_is_named_exists():
    sys.path.append(str(ROOT / "experiments"))
    from jaxzero.cli.training.settings import Config

    config = Config()
    source = pathlib.Path(health.__file__).read_text()
    flags = set(re.findall(r"--([a-z]+)\.([a-z-]+[a-z])", source))
    assert len(flags) >= 5
    for group, name in flags:
        fields = {field.name for field in dataclasses.fields(getattr(config, group))}
        assert name.replace("-", "_") in fields, f"--{group}.{name}"
