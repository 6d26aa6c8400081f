"""`jaxzero train --model simulator`: searches step the environment itself."""

import jax
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import build, environment_for, policy, simulator
from jaxzero.train import devices
from tests.cli.muzero.tiny_runs import BLIND, TINY, rows, state_of, trained

TILES = "--game", "2048", "--model", "simulator", *TINY
CARTPOLE = "--game", "cartpole", "--model", "simulator", *TINY


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulator")
    trained(folder, *TILES, "--budget.steps", "8")
    return folder


def test_a_run_learns_values_and_policies_and_no_dynamics(whole):
    last = rows(whole)[-1]
    assert last["loss/value"] > 0 and "unroll/policy_0" in last and "unroll/policy_1" not in last
    assert "loss/reward" not in last and last["acting/bad"] == 0
    _, params, _ = nets.load_learned(whole / "weights.safetensors")
    assert np.abs(params["prediction"]["value"]["kernel"]).max() > 0
    assert not np.abs(params["dynamics"]["reward"]["kernel"]).any()  # as it began
    assert "in its simulator" in (whole / "report.html").read_text()


def test_a_run_that_went_on_is_one_that_was_never_interrupted(whole, tmp_path):
    for steps in (3, 8):
        trained(tmp_path, *TILES, "--budget.steps", str(steps), "--evaluate.final", "0")
    (step, once), (again, twice) = state_of(whole, *TILES), state_of(tmp_path, *TILES)
    assert step == again == 8
    jax.tree.map(np.testing.assert_array_equal, once, twice)


def slots_of_trees(flags, change=lambda environment: environment):
    """How many edges a node has, and how many actions the policy tells of."""
    config = parse([*flags])
    environment = environment_for(config)
    run, keys = build(config, environment, devices.mesh()), jax.random.split(jax.random.key(0), 2)
    start = jax.eval_shape(jax.vmap(environment.reset), keys)
    model = simulator(change(environment), run.network)
    out = jax.eval_shape(policy(config, environment, model, 4), run.params, keys, start)
    return out.tree.num_edges, out.action_weights.shape[1]


def test_tiles_have_nodes_of_their_own_and_an_environment_without_chance_none():
    assert slots_of_trees(TILES) == (32, 4) and slots_of_trees(CARTPOLE) == (2, 2)


def test_chance_that_is_not_listed_is_drawn_a_few_times():
    def shaken(environment):
        step = lambda state, action, key: environment.step(state, jax.random.bernoulli(key).astype(int), key)
        return environment._replace(step=step, chance=True)

    assert slots_of_trees(CARTPOLE, shaken) == (4, 2)


def test_an_environment_without_a_game_is_trained_too(tmp_path):
    trained(tmp_path, *CARTPOLE, *BLIND, "--budget.steps", "6")
    assert rows(tmp_path)[-1]["loss/value"] > 0


@pytest.mark.parametrize("flags", [("--learn.consistency", "1"), ("--learn.reanalyse", "0.5")])
def test_settings_without_meaning_are_refused(flags):
    with pytest.raises(SystemExit, match="cannot search observations again"):
        parse([*TILES, *flags])


@pytest.mark.parametrize("game", ["pendulum", "tic_tac_toe"])
def test_what_cannot_be_stepped_by_numbers_or_is_a_game_of_two_is_refused(game):
    config = parse(["--game", game, "--model", "simulator", *TINY])
    with pytest.raises(ValueError, match=f"{game} is none. Use --model learned"):
        build(config, environment_for(config), devices.mesh())
