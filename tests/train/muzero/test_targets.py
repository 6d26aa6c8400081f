"""Targets against a walk through lists of steps, and what no target may depend on."""

import functools
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.train.muzero.targets import make_targets, returns

FIELDS = ("policy", "reward", "value", "terminated", "last", "random")
UNROLL, ACTIONS = 4, 3


def episode(rng, players):
    """Rows as they are recorded: with `last`, an episode that was cut, whose last row is a state without a step."""
    rows = [
        dict(
            policy=[rng.random() for _ in range(ACTIONS)],
            reward=rng.gauss(0, 1),
            value=rng.gauss(0, 1),
            terminated=False,
            last=False,
            random=rng.random() < 0.15,
            player=i % players,
        )
        for i in range(rng.randint(1, 12))
    ]
    rows[-1]["terminated" if rng.random() < 0.6 else "last"] = True
    rows[-1]["random"] &= not rows[-1]["last"]
    return rows


def looked_ahead(rows, start, steps, discount, trace):
    """The mean of the 1-, 2-, ... h-step returns, by λ: Sutton & Barto 2018, equation 12.9, cut after `steps`."""
    me, paid, found, left = rows[start]["player"], 0.0, 0.0, 1.0
    mine = lambda row, x: x if row["player"] == me else -x
    for m in range(steps):
        row = rows[start + m]
        if row["last"] or row["random"]:  # nothing follows from here: what was found of this state stands for the rest
            return found + left * (paid + discount**m * mine(row, row["value"]))
        paid += discount**m * mine(row, row["reward"])
        if row["terminated"]:
            return found + left * paid
        after = rows[start + m + 1]
        share = (1 - trace) if m + 1 < steps else 1.0
        found += left * share * (paid + discount ** (m + 1) * mine(after, after["value"]))
        left *= trace
    return found


def expected(rows, at, steps, discount, trace):
    """The targets of K + 1 states from place `at` of an episode on: value, reward, running, known, each a list."""
    end = len(rows)
    states = range(at, at + UNROLL + 1)
    running = [i < end for i in states]
    known = [i < end or rows[-1]["terminated"] for i in states]
    value = [looked_ahead(rows, i, steps, discount, trace) if i < end else 0.0 for i in states]
    reward = [rows[i]["reward"] if i < end else 0.0 for i in states][:-1]
    return value, reward, running, known


def windows(count, width, players, seed=0):
    """Windows that begin anywhere in an episode, with others behind it; and their episodes and where they begin."""
    rng, rows, whence = random.Random(seed), [], []
    for _ in range(count):
        first = episode(rng, players)
        at = rng.randrange(len(first))
        row = first[at:]
        while len(row) < width:
            row = row + episode(rng, players)
        rows.append(row[:width])
        whence.append((first, at))
    arrays = {name: np.array([[step[name] for step in row] for row in rows]) for name in FIELDS}
    arrays = {name: np.float32(x) if x.dtype == float else x for name, x in arrays.items()}
    return arrays | dict(policy=arrays["policy"][:, : UNROLL + 1]), whence


def found(arrays, steps, discount, trace=1.0):
    make = functools.partial(make_targets, unroll=UNROLL, steps=steps, discount=discount, trace=trace)
    return jax.tree.map(np.asarray, jax.jit(make)(*(arrays[name] for name in FIELDS)))


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "players, steps, discount, trace", [(1, 5, 0.9, 1.0), (1, 1, 0.9, 1.0), (2, 20, 1.0, 1.0), (2, 5, 0.95, 0.6)]
)
def test_targets_are_those_of_a_walk_through_the_episode(count, players, steps, discount, trace):
    arrays, whence = windows(count, UNROLL + steps + 1, players)
    targets = found(arrays, steps, -discount if players == 2 else discount, trace)
    want = [expected(rows, at, steps, discount, trace) for rows, at in whence]
    value, reward, running, known = (np.array(x) for x in zip(*want))
    np.testing.assert_array_equal(targets.running, running)
    np.testing.assert_array_equal(targets.known, known)
    np.testing.assert_allclose(targets.value[known], value[known], atol=1e-5)
    np.testing.assert_allclose(targets.reward[known[:, 1:]], reward[known[:, 1:]], atol=1e-6)
    np.testing.assert_array_equal(targets.policy, arrays["policy"])
    absorbing, unknown = known & ~running, ~known
    assert min(running.mean(), absorbing.mean(), unknown.mean()) > 0.1  # all three kinds were seen


def test_of_two_who_alternate_the_winner_and_the_loser_see_the_outcome_with_their_own_sign():
    line = np.zeros((1, UNROLL + 8 + 1), bool)
    ends = line.copy()
    ends[0, 2] = True  # the first player's second move wins
    reward = np.where(ends, 1.0, 0.0).astype(np.float32)
    value = np.full_like(reward, 7.0)  # is not looked at: the end is near
    targets = found(
        dict(
            policy=np.zeros((1, UNROLL + 1, ACTIONS)),
            reward=reward,
            value=value,
            terminated=ends,
            last=line,
            random=line,
        ),
        8,
        -1.0,
    )
    assert targets.value.tolist() == [[1.0, -1.0, 1.0, 0.0, 0.0]]
    assert targets.reward.tolist() == [[0.0, 0.0, 1.0, 0.0]]


def test_what_comes_after_the_end_of_an_episode_changes_nothing_even_if_it_is_no_number():
    steps, trace = 5, 0.6
    arrays, whence = windows(200, UNROLL + steps + 1, 1, seed=1)
    after = np.array([np.arange(UNROLL + steps + 1) >= len(rows) - at for rows, at in whence])
    other = {name: np.where(after, np.nan, arrays[name]).astype(np.float32) for name in ("reward", "value")}
    other |= {name: arrays[name] ^ after for name in ("terminated", "last", "random")}
    one, two = (found(x, steps, 0.9, trace) for x in (arrays, arrays | other))
    np.testing.assert_array_equal(one.running, two.running)
    np.testing.assert_array_equal(one.known, two.known)
    np.testing.assert_array_equal(one.value, two.value)
    np.testing.assert_array_equal(one.reward, two.reward)
    assert after.mean() > 0.3


def test_windows_of_another_length_and_no_steps_at_all_are_named():
    flags = jnp.zeros((1, 8), bool)
    for steps, width in ((2, 8), (4, 8), (0, 5)):
        x, no = jnp.zeros((1, width)), flags[:, :width]
        with pytest.raises(ValueError, match=rf"unroll=4 and steps={steps} need windows of {5 + steps} .*are {width}"):
            returns(x, x, no, no, no, unroll=UNROLL, steps=steps, discount=1.0)
