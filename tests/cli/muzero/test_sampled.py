"""`jaxzero train --game pendulum`: continuous actions, sampled at each state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import nets
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import build, environment_for
from jaxzero.train import devices
from jaxzero.train.muzero.targets import Targets
from jaxzero.train.muzero.unroll_loss import unroll_loss
from tests.cli.muzero.tiny_runs import TINY, rows, state_of, trained

FLAGS = "--game", "pendulum", *TINY


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sampled")
    trained(folder, *FLAGS, "--budget.steps", "6")
    return folder


def test_a_run_learns_and_shows_an_episode(whole):
    last = rows(whole)[-1]
    assert np.isfinite(last["loss/policy"]) and last["acting/steps"] == 6 * 8
    network, params, about = nets.load_learned(whole / "weights.safetensors")
    assert about["network"]["policy"] == {"kind": "gaussian", "low": [-2.0], "high": [2.0]}
    assert network.policy.size == 2 and params["prediction"]["policy"]["kernel"].shape[-1] == 2
    assert "An episode" in (whole / "report.html").read_text()


def test_what_is_recorded_is_the_action_among_those_that_were_sampled(whole):
    _, state = state_of(whole, *FLAGS)
    steps = state["replay"].steps
    assert steps.sampled.shape[-2:] == (20, 1) and steps.policy.shape[-1] == 20
    written = np.asarray(steps.policy).sum(-1) > 0
    np.testing.assert_allclose(np.asarray(steps.policy).sum(-1)[written], 1, rtol=1e-5)
    assert (np.asarray(steps.action)[written] < 20).all() and len(np.unique(np.asarray(steps.sampled)[written])) > 100


def test_a_run_that_went_on_is_one_that_was_never_interrupted(whole, tmp_path):
    for steps in (2, 6):
        trained(tmp_path, *FLAGS, "--budget.steps", str(steps), "--evaluate.final", "0")
    (step, once), (again, twice) = state_of(whole, *FLAGS), state_of(tmp_path, *FLAGS)
    assert step == again == 6
    jax.tree.map(np.testing.assert_array_equal, once, twice)


@pytest.mark.parametrize("flags", [
    ("--network.kind", "planes"), ("--model", "stochastic"), ("--learn.reanalyse", "0.5"),
])  # fmt: skip
def test_what_continuous_actions_cannot_have_is_refused(flags):
    config = parse([*FLAGS, *flags])
    with pytest.raises(ValueError, match="continuous actions"):
        build(config, environment_for(config), devices.mesh())


def test_the_policy_is_learned_over_the_sample_with_densities():
    head, key = nets.bounded(), jax.random.key(0)
    policy = nets.build_action_head({"kind": "gaussian", "low": [-1.0], "high": [1.0]})
    given = dict(value=head, reward=head, embedding=8, width=8, projection=0, policy=policy)
    network, params = nets.muzero_mlp((3,), 5, **given, key=key)
    rng = np.random.default_rng(0)
    sampled, weights = rng.normal(size=(4, 3, 5, 1)).astype(np.float32), rng.dirichlet(np.ones(5), (4, 3))
    yes = jnp.ones((4, 3), bool)
    zeros = jnp.zeros((4, 3)), jnp.zeros((4, 2))
    targets = Targets(jnp.float32(weights), *zeros, yes, yes, jnp.asarray(sampled))
    seen, action = jnp.zeros((4, 3)), jnp.asarray(sampled[:, :2, 0])
    _, (parts, _) = unroll_loss(network, params, seen, action, targets, jnp.ones(4))
    output = jnp.zeros((4, 3, 2))  # heads begin at 0
    density = np.asarray(policy.log_prob(output, sampled))
    expected = (weights * (np.log(weights) - density)).sum(-1).mean(0)
    np.testing.assert_allclose(parts.policy, expected, rtol=1e-5)
