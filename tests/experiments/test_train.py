"""The training script as a user meets it: a process, its output, its folder."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = (
    "--game",
    "tic_tac_toe",
    "--network.hidden",
    "32",
    "--selfplay.games",
    "16",
    "--selfplay.plies",
    "4",
    "--selfplay.simulations",
    "4",
    "--selfplay.max-considered",
    "4",
    "--selfplay.window",
    "9",
    "--learn.start",
    "100",
    "--learn.batch-size",
    "32",
    "--learn.capacity",
    "2000",
    "--evaluate.games",
    "4",
    "--evaluate.simulations",
    "4",
    "--evaluate.rollouts",
    "8",
)


def command(*arguments):
    return [sys.executable, str(ROOT / "experiments" / "train.py"), *arguments]


def run(*arguments, timeout=300):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "COLUMNS": "150"}
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=timeout, env=environment)


def files(folder):
    return {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_help_answers_without_jax():
    code = (
        "import sys; sys.argv = ['train.py', '--help']\nimport config\n"
        "try:\n    config.parse('text')\nexcept SystemExit: pass\nassert 'jax' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT / "experiments")
    assert done.returncode == 0, done.stderr
    for word in ("--budget.minutes", "--selfplay.simulations", "Simulations per move", "9.0"):
        assert word in done.stdout


def test_a_mistyped_flag_names_the_nearest():
    done = run("--selfplay.simulatoins", "8")
    assert done.returncode != 0
    assert "--selfplay.simulations" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "flag, given, allowed",
    [
        ("--evaluate.rollouts", "0", "1 or more"),
        ("--selfplay.plies", "0", "1 or more"),
        ("--learn.learning_rate", "-1", "0 or more"),
        ("--selfplay.trace", "1.5", "between 0 and 1"),
    ],
)
def test_a_number_out_of_range_is_refused_before_a_folder_is_made(tmp_path, flag, given, allowed):
    done = run(flag, given, "--folder", str(tmp_path / "run"))
    assert done.returncode != 0 and f"{flag} {given}" in done.stderr and allowed in done.stderr
    assert not (tmp_path / "run").exists()


def test_an_unknown_game_names_the_nearest(tmp_path):
    done = run("--game", "conect_four", "--folder", str(tmp_path / "run"))
    assert done.returncode != 0 and "connect_four" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_with_other_things_is_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    done = run(*SMALL, "--folder", str(tmp_path))
    assert done.returncode != 0 and "holds no run" in done.stderr and "Traceback" not in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.slow
def test_a_run_ends_with_a_table_and_goes_on_when_asked(tmp_path):
    folder = tmp_path / "run"
    done = run(*SMALL, "--folder", str(folder), "--budget.steps", "12")
    assert done.returncode == 0, done.stderr
    assert re.search(r"against\W+before\W+after", done.stdout) and "a random player" in done.stdout
    assert "Compiling self-play" in done.stdout and str(folder) in done.stdout and "--seed 1" in done.stdout
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 13))
    results = json.loads((folder / "results.json").read_text())
    assert results["step"] == 12 and sum(results["after"]["uct"]["score"]) == 4

    before = files(folder)
    again = run(*SMALL, "--folder", str(folder), "--budget.steps", "12")  # used up: shows the table, learns nothing
    assert again.returncode == 0 and "a random player" in again.stdout and before == files(folder)

    other = run(*SMALL, "--folder", str(folder), "--learn.reuse", "2.5", "--seed", "9")
    assert other.returncode != 0 and "Traceback" not in other.stderr
    assert "learn.reuse: 4.0 there, 2.5 now" in other.stderr and "seed: 0 there, 9 now" in other.stderr
    assert before == files(folder)

    longer = run(*SMALL, "--folder", str(folder), "--budget.steps", "20")
    assert longer.returncode == 0 and "Going on from step 12" in longer.stdout
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 21))


@pytest.mark.slow
def test_sigterm_saves_and_the_same_command_goes_on(tmp_path):
    folder = tmp_path / "run"
    flags = *SMALL, "--folder", str(folder), "--budget.minutes", "5", "--budget.steps", "100000"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen(
        command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    lines, until = folder / "metrics.jsonl", time.monotonic() + 240
    while not (lines.exists() and lines.read_text()) and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    step = int(re.search(r"saved at step (\d+)", out).group(1))
    assert step > 0 and "To go on, the same command" in out
    longer = run(*SMALL, "--folder", str(folder), "--budget.minutes", "5", "--budget.steps", str(step + 3))
    assert longer.returncode == 0 and f"Going on from step {step}" in longer.stdout
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert steps == list(range(1, step + 4))
