"""Runs of cartpole as processes: killed at any moment, and on one device or several."""

import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

from jaxzero.runs import checkpoint, metrics
from tests.cli.muzero.tiny_runs import BLIND, CARTPOLE, TINY, rows, state_of
from tests.processes import on_four_devices

ROOT = pathlib.Path(__file__).resolve().parents[3]
STOCHASTIC = "--game", "2048", "--model", "stochastic", *TINY, "--network.codes", "5"
PENDULUM = "--game", "pendulum", *TINY


def begun(*flags):
    """The command, as a process of its own; on one device."""
    one = "--xla_force_host_platform_device_count=1"
    given = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {one}"}
    words = [sys.executable, "-m", "jaxzero", "train", *flags]
    piped = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen(words, env=os.environ | given, cwd=ROOT, **piped)


def ended(*flags):
    process = begun(*flags)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err[-2000:]
    return out


def killed(folder, flags, seconds):
    """Kills a run so many seconds after it has come a little further; whether it was still running then."""
    reached = len(metrics.read(folder)) + 2
    process = begun(*flags)
    while process.poll() is None and len(metrics.read(folder)) <= reached:
        time.sleep(0.01)
    time.sleep(seconds)
    process.kill()
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    "game, kills",
    [
        (CARTPOLE, 1),
        pytest.param(CARTPOLE, 10, marks=pytest.mark.exhaustive),
        pytest.param(STOCHASTIC, 5, marks=pytest.mark.exhaustive),
        pytest.param(PENDULUM, 5, marks=pytest.mark.exhaustive),
    ],
    ids=["cartpole", "cartpole_ten_times", "stochastic", "pendulum"],
)
def test_a_run_killed_again_and_again_ends_like_one_that_was_not(tmp_path, game, kills):
    """Every iteration saves, which takes most of its time, so most of the moments lie within a save."""
    whole, torn, steps = tmp_path / "whole", tmp_path / "torn", 20 * kills
    more, draw = ("--budget.steps", str(steps), "--save-minutes", "0"), random.Random(kills)
    flags = (*game, *BLIND, *more)
    ended(*flags, "--folder", str(whole))
    for _ in range(kills):
        assert killed(torn, (*flags, "--folder", str(torn)), draw.uniform(0, 1))
    assert checkpoint.newest(torn) > 0
    assert "Continuing from iteration" in ended(*flags, "--folder", str(torn))
    (step, state), (again, other) = state_of(whole, *game), state_of(torn, *game)
    assert step == again == steps and int(state["learner"].steps) > 10
    jax.tree.map(np.testing.assert_array_equal, state, other)
    assert rows(whole) == rows(torn) and [row["step"] for row in rows(torn)] == list(range(1, steps + 1))


SCRIPT = """
import json, re
import jax, jax.numpy as jnp, numpy as np
from jaxzero.cli.muzero import evaluation, setup, train
from jaxzero.cli.muzero.command_line import parse
from jaxzero.train import devices
from tests.cli.muzero.tiny_runs import CARTPOLE

jax.config.update("jax_disable_most_optimizations", True)
more = "--learn.warmup 0 --learn.batch-size 16 --learn.capacity 256 --learn.reanalyse 0.25 --learn.priority 0.5 "
more += "--acting.environments 8 --evaluate.episodes 6"
config = parse([*CARTPOLE, *more.split()])
environment = setup.environment_for(config)
COLLECTIVES = "all-reduce|all-gather|all-to-all|collective-permute|reduce-scatter|collective-broadcast"
exchanges = lambda program: sorted(set(re.findall(f" ({COLLECTIVES})(?:-start)?\\\\(", program.as_text())))
raw = lambda x: np.asarray(jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x)
found = {}
for n in (1, 2):
    mesh = devices.mesh(jax.devices()[:n])
    run = setup.build(config, environment, mesh)
    state = run.begin(run.params)
    first = jax.tree.map(np.asarray, state["learner"].params)
    act = run.act.lower(state["learner"].average, state["acting"], state["replay"]).compile()
    update = run.update.lower(state["learner"], state["replay"], run.keys(0), jnp.float32(0)).compile()
    run = run._replace(act=act, update=update)
    told = []
    for step in range(4):
        state, values = train.one_step(config, run, state, step)
        told.append(values)
    measure = evaluation.episode_measure(config, environment, run, mesh)
    look = measure.look(state, 4)[1]
    found[n] = dict(act=exchanges(act), update=exchanges(update), told=told, look=look, first=first,
                    at=len(state["replay"].written.sharding.device_set), state=jax.tree.map(raw, state))
one = found[1]
pairs = lambda x, y: zip(jax.tree.leaves(x), jax.tree.leaves(y))
apart = lambda x, y: max(float(np.abs(a.astype(float) - b).max()) for a, b in pairs(x, y))
answer = {}
for n, other in found.items():
    mine, theirs = one["state"], other["state"]
    answer[n] = dict(
        act=other["act"], update=other["update"], at=other["at"], look=other["look"],
        same=[bool((getattr(mine["replay"].steps, x) == getattr(theirs["replay"].steps, x)).all())
              for x in ("action", "terminated", "last", "random")],
        seen=apart(mine["replay"].steps.observation, theirs["replay"].steps.observation),
        policy=apart(mine["replay"].steps.policy, theirs["replay"].steps.policy),
        priority=apart(mine["replay"].priority, theirs["replay"].priority),
        keys=bool((mine["acting"].keys == theirs["acting"].keys).all()), written=int(theirs["replay"].written[0]),
        params=apart(mine["learner"].params, theirs["learner"].params),
        learned=apart(theirs["learner"].params, other["first"]), minibatches=int(theirs["learner"].steps),
        # what counts states that differ counts those of each device
        told=max(abs(b[x] - a[x]) for a, b in zip(one["told"], other["told"]) for x in a if x != "acting/distinct"),
    )
print(json.dumps(answer))
"""


@pytest.mark.slow
def test_one_device_and_two_act_the_same_and_learn_the_same():
    done = on_four_devices(SCRIPT)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    for n, seen in found.items():
        assert seen["at"] == int(n) and seen["written"] == 16 and seen["minibatches"] > 3
        assert seen["act"] == []  # no device asks another
        assert seen["update"] == ([] if n == "1" else ["all-reduce"])  # gradients, and losses with them
        assert seen["same"] == [True] * 4 and seen["keys"]
        assert seen["seen"] < 1e-5 and seen["policy"] < 1e-4 and seen["priority"] < 1e-3
        assert seen["params"] < 1e-4 < 1e-3 < seen["learned"] and seen["told"] < 1e-3
        assert seen["look"] == found["1"]["look"]
