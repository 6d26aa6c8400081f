"""The metrics of acting and of the loss, beside sums by hand, and the line of progress."""

import numpy as np
import pytest

from jaxzero.cli.muzero import acting_metrics
from jaxzero.cli.muzero.settings import Acting, Config, Learn
from jaxzero.train.muzero.learner import MuZeroLosses
from jaxzero.train.muzero.unroll_loss import UnrollLosses

CONFIG = Config(acting=Acting(environments=4, steps=5, simulations=3), learn=Learn(capacity=100))


def test_means_are_over_the_searches_and_over_the_episodes():
    returns, lengths = np.array([4.0, 0.0, -1.0, 3.0]), [3, 4, 5, 6]
    told = dict(
        steps=18.0, entropy=30.0, improvement=5.0, distinct=10.0, bad=2.0, episodes=4.0,
        returned=returns.sum(), squared=(returns**2).sum(), length=sum(lengths), first_wins=2.0, draws=1.0,
    )  # fmt: skip
    found = acting_metrics.describe(CONFIG, told, 6)
    assert found["acting/entropy"] == 30 / 20 and found["acting/improvement"] == 5 / 20  # 4 x 5 searches
    assert found["acting/distinct"] == 500 and found["acting/bad"] == 2 and found["acting/taken"] == 18
    assert found["acting/steps"] == 7 * 20 and found["replay/steps"] == 100
    assert found["acting/return"] == returns.mean() and found["acting/length"] == np.mean(lengths)
    assert found["acting/return_deviation"] == pytest.approx(returns.std())
    assert found["acting/first_wins"] == 0.5 and found["acting/draws"] == 0.25
    none = acting_metrics.describe(CONFIG, told | {"episodes": 0.0}, 1)
    assert "acting/return" not in none and none["acting/episodes"] == 0 and none["replay/steps"] == 40
    alike = acting_metrics.describe(CONFIG, told | {"returned": 4 * 0.1, "squared": 4 * 0.1**2 - 1e-9}, 1)
    assert alike["acting/return_deviation"] == 0, "rounding makes no root of a negative number"


def test_losses_are_named_by_head_and_by_the_state_they_are_of():
    steps = dict(policy=[1, 2, 3], value=[4, 5, 6], reward=[7, 8], consistency=[9, np.nan], value_error=[0, 1, 2])
    steps |= dict(reward_error=[3, 4])
    single = dict(outside=0.5, spread=0.25, reward_spread=2.0, reward_said=1.0)
    parts = UnrollLosses(**{name: np.float32(x) for name, x in (steps | single).items()})
    found = acting_metrics.losses_in_metrics(MuZeroLosses(np.float32(10), parts, np.float32(3), np.float32(1)))
    assert found["loss/total"] == 10 and found["loss/gradient_norm"] == 3 and found["loss/skipped"] == 1
    assert {name: found[f"loss/{name}"] for name in single} == single
    assert found["loss/policy"] == 2 and found["loss/value"] == 5 and found["loss/reward"] == 7.5
    assert [found[f"unroll/policy_{k}"] for k in range(3)] == [1, 2, 3] and "unroll/policy_3" not in found
    assert [found[f"unroll/reward_{k}"] for k in (1, 2)] == [7, 8] and "unroll/reward_0" not in found
    assert [found[f"unroll/value_error_{k}"] for k in range(3)] == [0, 1, 2]
    assert [found[f"unroll/reward_error_{k}"] for k in (1, 2)] == [3, 4]
    assert (
        found["unroll/consistency_1"] == 9 and "unroll/consistency_2" not in found and "loss/consistency" not in found
    )


def test_speeds_are_per_second():
    assert acting_metrics.speeds(CONFIG, {}, 4.0) == {"speed/steps": 5.0, "speed/simulations": 15.0}


def test_the_line_tells_what_there_is():
    values = {"acting/steps": 1234.0, "speed/steps": 56.7, "acting/distinct": 321.0, "acting/bad": 0.0, "minutes": 1.0}
    line = acting_metrics.line(values, 0.25)
    assert "1,234 steps  57/s" in line and "filling the replay" in line and "321/1000" in line and "3:00 left" in line
    assert "return" not in line and "not finite" not in line
    values |= {"acting/return": 7.0, "loss/policy": 0.5, "learning_rate": 1e-3, "acting/bad": 3.0}
    line = acting_metrics.line(values, 1.0)
    assert "acting return 7.0  losses: policy 0.500" in line and "filling" not in line and "0:00 left" in line
    assert line.endswith("3 searches or rewards not finite")
    looked = {"return/mean": 9.0, "return/deviation": 2.0}
    assert "return 9.0 (deviation 2.0)" in acting_metrics.line(values | looked, 0.5)
