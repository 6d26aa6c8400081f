"""What every kind of training prints: paths as they are, and commands that go on."""

import pathlib
import types

import pytest

from jaxzero.cli.training.reporting import console


def test_brackets_in_paths_are_no_markup(capsys):
    folder = pathlib.Path("runs/[old]/[/x]")
    console.say_stopped("Ctrl-C", 3, folder)
    console.say_finished(folder / "report.html", folder, [f"play --weights {folder}"])
    said = capsys.readouterr().out
    assert f"saved at iteration 3 in {folder}." in said and f"play --weights {folder}" in said


@pytest.mark.parametrize("minutes, longer", [(0.02, "0.04"), (0.3, "0.6"), (13.0, "26")])
def test_twice_of_little_time_is_more_than_none(minutes, longer):
    budget = types.SimpleNamespace(steps=0, minutes=minutes)
    said = console.commands_after(budget, 0, pathlib.Path("runs/a b/x"), 100, minutes)
    assert f"--budget.minutes {longer}    # continue" in said[0]
    assert "--logdir 'runs/a b'" in said[-1]


@pytest.mark.parametrize("minutes, longer", [
    (1.0, "--budget.steps 200"), (12.9, "--budget.steps 200 --budget.minutes 26"),
])  # fmt: skip
def test_twice_the_budget_is_enough_of_both(minutes, longer):
    budget = types.SimpleNamespace(steps=100, minutes=13.0)
    first = console.commands_after(budget, 0, pathlib.Path("runs/x"), 100, minutes)[0]
    assert f"{longer}    # continue" in first
