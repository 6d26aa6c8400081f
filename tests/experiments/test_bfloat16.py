"""What bfloat16 brings, in miniature."""

import functools
import json
import re

import pytest

from tests.processes import experiment

run = functools.partial(experiment, "bfloat16.py")


def test_it_measures_both_types_of_every_program_and_saves(tmp_path):
    done = run("--quick", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    results = json.loads(file.read_text())
    assert [row["what"] for row in results["rows"]] == [
        "answers, 2 at once", "gradient of 2 rows", "search of 2 games",
    ]  # fmt: skip
    assert all(set(row["seconds"]) == {"float32", "bfloat16"} for row in results["rows"])
    assert all(seconds > 0 for row in results["rows"] for seconds in row["seconds"].values())
    assert "times as fast" in done.stdout and results["settings"]["quick"]


@pytest.mark.parametrize("flags, expected", [
    (("--networks", "resnett"), "--networks resnett: use windows 256 256"),
    (("--games", "othelo"), "--games: .*othello"), (("--rows", "0"), "--rows 0: at least 1"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected):
    done = run(*flags)
    assert done.returncode != 0 and re.search(expected, done.stderr) and "Traceback" not in done.stderr
