"""What version 0.1 wrote still loads and resumes: a weights file and a run folder in `tests/data/version_0_1`."""

import json
import os
import shutil
import subprocess
import sys

import jax.numpy as jnp
import pytest

from jaxzero import games
from jaxzero.nets import weights
from tests.documents import ROOT

OLD = ROOT / "tests" / "data" / "version_0_1"
FLAGS = """
    --preset laptop --game tic_tac_toe --network.kind mlp --network.hidden 8 --selfplay.games 4 --selfplay.plies 4
    --selfplay.simulations 4 --selfplay.max-considered 4 --selfplay.window 9 --learn.reuse 4 --learn.start 16
    --learn.batch-size 8 --learn.capacity 64 --learn.parts 2 --evaluate.games 0 --evaluate.every 0 --budget.steps 8
""".split()


def test_weights_load():
    game = games.from_pgx("tic_tac_toe")
    net, params, about = weights.load(OLD / "weights.safetensors", game)
    logits, value = net(params, jnp.zeros((2, *game.observation_shape)))
    assert logits.shape == (2, 9) and value.shape == (2,) and about["step"] == 6


@pytest.mark.slow
def test_a_run_resumes_with_the_flags_that_are_told(tmp_path):
    """Defaults have changed since: the same command says which flags ask for the old values, and changes nothing."""
    folder = shutil.copytree(OLD / "run", tmp_path / "run")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "COLUMNS": "150"}
    command = [sys.executable, "-m", "jaxzero", "train", *FLAGS, "--folder", str(folder)]
    run = lambda *flags: subprocess.run(
        [*command, *flags], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    told = run()
    then = ["--network.no-input-features", "--learn.learning-rate", "0.002", "--learn.average-decay", "0.999"]
    then += ["--selfplay.rescale-values", "--selfplay.value-scale", "0.1"]
    assert told.returncode == 1 and f"settings of the run ({' '.join(then)})" in told.stderr, told.stderr
    done = run(*then)
    assert done.returncode == 0 and "Continuing from iteration 6" in done.stdout, done.stdout + done.stderr
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 9))
