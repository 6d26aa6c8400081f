"""What follows from the numbers of the settings, and those that do not fit one another."""

import dataclasses

import pytest

from jaxzero.cli.muzero import sizes
from jaxzero.cli.muzero.acting_metrics import describe
from jaxzero.cli.muzero.settings import Acting, Budget, Config, Evaluate, Learn
from jaxzero.environments import cartpole

SMALL = Config(
    acting=Acting(environments=4, steps=8), learn=Learn(unroll=2, returns=3, batch_size=16, start=64, capacity=320)
)
TOLD = dict.fromkeys(("steps", "episodes", "entropy", "improvement", "distinct", "bad"), 0.0)


def changed(part, **values):
    return dataclasses.replace(SMALL, **{part: dataclasses.replace(getattr(SMALL, part), **values)})


def test_minibatches_learn_from_each_step_as_often_as_asked():
    assert sizes.minibatches(SMALL) == 16  # 32 steps, 8 times each, 16 at a time
    assert sizes.minibatches(changed("learn", reuse=0.1)) == 1


@pytest.mark.parametrize("capacity", [1, 31, 32, 47, 49, 250, 320, 10_000])
def test_rings_hold_whole_chunks_as_near_to_the_capacity_as_these_come(capacity):
    config = changed("learn", capacity=capacity)
    length = sizes.ring_length(config)
    assert length % 8 == 0 and length >= 8 and sizes.room(config) == 4 * length
    assert abs(sizes.room(config) - capacity) <= 16 or length == 8


def test_learning_begins_with_a_window_in_each_ring_at_the_least():
    assert sizes.least_steps(SMALL) == 64 and sizes.least_steps(changed("learn", start=5)) == 4 * 6


@pytest.mark.parametrize("capacity, start", [(320, 320), (328, 320), (310, 320), (303, 64), (100, 96)])
def test_where_nothing_is_refused_the_replay_comes_to_hold_what_learning_waits_for(capacity, start):
    """Rings are longer or shorter than the capacity asked for: what is counted is what they hold."""
    config = changed("learn", capacity=capacity, start=start)
    sizes.check(config, cartpole())
    held = [describe(config, TOLD, step)["replay/steps"] for step in range(40)]
    assert held[0] == 32 and held[-1] == sizes.room(config) >= sizes.least_steps(config)


def test_what_is_refused_says_what_to_write_which_then_is_not():
    config = changed("learn", returns=40, capacity=100)
    with pytest.raises(ValueError, match="windows of 43 steps, and the replay holds 24 of each of 4 .*capacity 192 or"):
        sizes.check(config, cartpole())
    sizes.check(dataclasses.replace(config, learn=dataclasses.replace(config.learn, capacity=192)), cartpole())
    for capacity, start, instead in ((100, 97, 96), (320, 321, 320)):
        with pytest.raises(ValueError, match=f"would never begin. Use --learn.start {instead} or less"):
            sizes.check(changed("learn", start=start, capacity=capacity), cartpole())
        sizes.check(changed("learn", start=instead, capacity=capacity), cartpole())
    with pytest.raises(ValueError, match="--learn.reanalyse 0.2 of the 2 windows .* each of 8 parts .* 0.5 or more"):
        sizes.check(changed("learn", reanalyse=0.2), cartpole())
    sizes.check(changed("learn", reanalyse=0.5), cartpole())
    sizes.check(changed("learn", reanalyse=0.2, parts=1), cartpole())


def test_a_goal_needs_returns_that_are_looked_at():
    wanted = dataclasses.replace(SMALL, budget=Budget(until=9.0))
    sizes.check(wanted, cartpole())
    for blind in (Evaluate(episodes=0), Evaluate(every=0)):
        with pytest.raises(ValueError, match="--budget.until 9 needs greedy episodes"):
            sizes.check(dataclasses.replace(wanted, evaluate=blind), cartpole())
    with pytest.raises(ValueError, match="--budget.until 9 is a mean return, but cartpole has two players"):
        sizes.check(wanted, cartpole()._replace(num_players=2))
