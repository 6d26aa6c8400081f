"""The memory that a run is to need, for each kind of environment and model, without anything compiled."""

import jax
import pytest

from jaxzero.cli.muzero import memory_check
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import build, environment_for
from jaxzero.runs import memory
from jaxzero.train import devices
from tests.cli.muzero.tiny_runs import TINY


def needed(monkeypatch, *flags):
    """Bytes of each part of a run."""
    told = []
    monkeypatch.setattr(memory_check.memory, "check", lambda parts, *rest, **more: told.append(parts))
    config = parse([*flags, *TINY])
    environment = environment_for(config)
    run = build(config, environment, devices.mesh(jax.devices()[:1]))
    memory_check.fits(config, environment, run, 1)
    (parts,) = told
    return {name: memory.size(part) for name, part in parts.items()}


@pytest.mark.parametrize("flags", [
    ("--game", "cartpole"),
    ("--game", "gymnasium:CartPole-v1"),  # no state of it is here
    pytest.param(("--game", "2048", "--model", "simulator"), marks=pytest.mark.slow),  # it searches states
    pytest.param(("--game", "tic_tac_toe", "--model", "learned"), marks=pytest.mark.slow),
], ids=" ".join)  # fmt: skip
def test_every_kind_of_run_knows_its_memory(flags, monkeypatch):
    if "gymnasium" in flags[1]:
        pytest.importorskip("gymnasium")
    parts = needed(monkeypatch, *flags)
    assert {name for name, size in parts.items() if size > 0} >= {"search trees", "replay", "learner", "measuring"}
