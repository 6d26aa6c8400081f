"""Programs for mctx give the same with the front in its place; the table of small searches is made."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "compat"
LONG = [pytest.param(x, marks=pytest.mark.exhaustive) for x in ("act_muzero", "train_alphazero")]


def python(file, *arguments):
    command = [sys.executable, str(FOLDER / file), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["walk_tree", "act_stochastic", *LONG])
def test_results_are_the_same_with_either_import(name):
    run = python("run.py", "--programs", name)
    assert run.returncode == 0, run.stdout + run.stderr
    row = run.stdout.splitlines()[-1]
    assert row.startswith(f"| {name} |") and row.endswith("| same |")


def test_what_differs_is_told():
    sys.path.append(str(FOLDER))
    import numpy as np
    import run

    theirs = {"actions": np.array([1, 2]), "weights": np.array([0.25, 0.5])}
    assert run.differences(theirs, {"actions": np.array([1, 2]), "weights": np.array([0.25, 0.500001])}) == []
    assert len(run.differences(theirs, {"actions": np.array([1, 3]), "weights": np.array([0.3, 0.5])})) == 2


@pytest.mark.slow
@pytest.mark.exhaustive
def test_small_searches_print_their_rows():
    run = python("first_call_times.py", "--quick")
    assert run.returncode == 0, run.stderr
    rows = [line for line in run.stdout.splitlines()[1:] if line.startswith("|")]
    assert [line.split("|")[1].strip() for line in rows] == [
        "muzero_policy",
        "gumbel_muzero_policy",
        "stochastic_muzero_policy",
    ]
