"""The rollout experiment in miniature; and, slowly, how well rollout search plays."""

import dataclasses
import functools
import json
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import rollouts  # noqa: E402

from tests.processes import experiment  # noqa: E402

run = functools.partial(experiment, "rollouts.py")


@pytest.mark.parametrize("flags, expected", [
    (("--parts", "sped"), "speed"), (("--go-games", "3"), "an even number, at least 2"),
    (("--simulations", "0"), "at least 1"), (("--rollouts", "0"), "from 1 to 65,536"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, expected):
    done = run(*flags)
    assert done.returncode != 0 and expected in done.stderr + done.stdout and "Traceback" not in done.stderr


def test_the_minimax_player():
    empty = (0,) * 9
    assert rollouts.best_moves(empty) == (0, tuple(range(9)))
    assert rollouts.best_moves((1, 1, 0, -1, -1, 0, 0, 0, 0)) == (1, (2,))
    assert rollouts.best_moves((0, 0, 0, 0, -1, 0, 0, 0, 0)) == (0, (0, 2, 6, 8)), "corners against the centre"
    assert rollouts.best_moves((-1, -1, -1, 1, 1, 0, 0, 0, 0)) == (-1, ())


@pytest.mark.slow
def test_every_part_runs(tmp_path):
    pytest.importorskip("pyspiel")
    done = run("--quick", "--output", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.iterdir()
    results = json.loads(file.read_text())
    assert [row["who"] for row in results["speed"]["rows"]] == ["OpenSpiel", "B = 1, R = 1", "B = 2, R = 1"]
    assert all(row["per_second"] > 0 for row in results["speed"]["rows"])
    assert sum(results["go"].values()) == 2 and sum(results["tic_tac_toe"].values()) == 4


@pytest.mark.slow
@pytest.mark.optimised
def test_rollouts_beat_random_play_at_go():
    result, _ = rollouts.go(rollouts.Config())
    assert result == {"wins": 20, "draws": 0, "losses": 0, "unfinished": 0}


@pytest.mark.slow
@pytest.mark.optimised
def test_rollouts_never_lose_at_tic_tac_toe():
    config = dataclasses.replace(rollouts.Config(), opponents=500)
    result, _ = rollouts.tic_tac_toe(config)
    assert result == {"won": 0, "drawn": 500, "lost": 0}
