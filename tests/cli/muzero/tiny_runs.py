"""Training runs in miniature: settings, how they are run in this process, and what they leave."""

import contextlib
import json
import sys
from unittest import mock

import jax
import numpy as np

from jaxzero.cli.muzero import train
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import build, environment_for, expected
from jaxzero.runs import checkpoint
from jaxzero.train import devices

FLAGS = """
    --network.embedding 8 --network.width 8 --network.channels 4
    --acting.environments 2 --acting.steps 4 --acting.simulations 2
    --learn.parts 2 --learn.batch-size 4 --learn.unroll 2 --learn.returns 3 --learn.reuse 1
    --learn.capacity 64 --learn.start 16
    --evaluate.episodes 2 --evaluate.final 2 --evaluate.simulations 2 --evaluate.longest 20 --evaluate.every 3
    --evaluate.games 4 --evaluate.rollouts 4 --evaluate.position-simulations 2
"""
TINY = tuple(FLAGS.split())
CARTPOLE = "--game", "cartpole", "--learn.optimiser", "muon", *TINY
BLIND = "--evaluate.every", "0", "--evaluate.final", "0"  # nothing is measured, which takes a program less


def trained(folder, *flags):
    """A run as `jaxzero train` does it, but for what concerns the process: signals, devices, kept programs."""
    words = [*flags, "--folder", str(folder)]
    with mock.patch.object(sys, "argv", ["jaxzero", "train", *words]), contextlib.ExitStack() as stack:
        train.go_on(*train.prepare(parse(words), stack))


def state_of(folder, *flags):
    """The newest checkpoint of a run: step, and every array of it."""
    config, mesh = parse([*flags]), devices.mesh()
    made = build(config, environment_for(config), mesh)
    step, state = checkpoint.restore(folder, expected(made, mesh))
    raw = lambda x: jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    return step, jax.tree.map(lambda x: np.asarray(raw(x)), state)


def rows(folder, without=("speed/", "minutes")):
    """The metrics of a run, but for what the clock says."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: x for name, x in line.items() if not name.startswith(without)} for line in lines]
