"""Each warning fires where it should, once, and nothing is said of a run that does well."""

import math
import re

import pytest

from jaxzero.cli.muzero.health_checks import CHECKS, begin_health
from jaxzero.runs import health

WELL = {
    "loss/reward_spread": 0.3, "loss/reward_said": 0.2, "loss/outside": 0.0, "loss/spread": 0.3,
    "acting/distinct": 800.0, "acting/entropy": 0.5, "acting/improvement": 0.05,
}  # fmt: skip


def said(values, iterations=60, steps=64.0, num_actions=4):
    """What is warned of in a run whose iterations all have these metrics."""
    state, sentences = begin_health(num_actions), []
    for step in range(iterations):
        state, new = health.look(state, {"step": step, "acting/taken": steps} | values)
        sentences += new
    return sentences


@pytest.mark.parametrize("values, words", [
    ({"loss/reward_said": 0.029}, "Rewards differ by 0.300 .*predictions by only 0.0290.*raise --learn.reward-weight"),
    ({"loss/outside": 0.011}, "1.1% of the value targets lie outside .*: raise --network.limit"),
    ({"loss/spread": 0.019}, "Hidden states of different windows differ by only 0.0190 .*collapsed.*learning-rate"),
    ({"loss/codes_told_apart": 1.04}, "The model tells 1.04 chance codes apart .*collapsed to one"),
    ({"acting/distinct": 49.0}, "Only 49 of 1,000 states differed.*raise --acting.openings"),
    ({"acting/entropy": 0.029 * math.log(4), "acting/improvement": 0.0029, "acting/distinct": 49.0},
     "entropy of 0.0402 nats, and differs from the network's by only 0.0029 nats.*collapsed to a few lines"),
])  # fmt: skip
def test_what_is_wrong_is_said_once_and_what_to_change(values, words):
    found = said(WELL | values, iterations=300)
    fired = [sentence for sentence in found if re.search(words, sentence)]
    assert len(fired) == 1 and len(found) == (2 if len(values) > 2 else 1)


@pytest.mark.parametrize("values", [
    {},
    {"loss/reward_said": 0.031},
    {"loss/reward_spread": 0.019, "loss/reward_said": 0.0},  # there is nothing to say
    {"loss/outside": 0.009},
    {"loss/spread": 0.021},
    {"loss/codes_told_apart": 1.06},
    {"acting/distinct": 51.0},
    {"acting/entropy": 0.031 * math.log(4), "acting/improvement": 0.0, "acting/distinct": 60.0},
    {"acting/entropy": 0.0, "acting/improvement": 0.0},  # it may be solved: its states differ
    {"acting/entropy": 0.0, "acting/improvement": 0.0031},
])  # fmt: skip
def test_nothing_is_said_a_step_before(values):
    assert said(WELL | values, iterations=300) == []


def test_a_search_that_improves_on_the_network_has_not_collapsed():
    alike = WELL | {"acting/distinct": 49.0}
    assert len(said(alike | {"acting/entropy": 0.0, "acting/improvement": 0.0029})) == 2
    assert len(said(alike | {"acting/entropy": 0.0, "acting/improvement": 0.0031})) == 1
    assert len(said(alike | {"acting/entropy": 0.031 * math.log(4), "acting/improvement": 0.0})) == 1
    assert len(said(alike | {"acting/entropy": 0.01, "acting/improvement": 0.0}, num_actions=1)) == 2, "no ln 1 = 0"


def test_little_evidence_is_none():
    ill = WELL | {"loss/outside": 0.9}
    assert said(ill, iterations=49) == [] and len(said(ill, iterations=50)) == 1
    assert said(ill, iterations=50, steps=9.0) == [] and len(said(ill, iterations=56, steps=9.0)) == 1, "500 steps"
    learning_late = [{}] * 40 + [ill] * 20  # while the replay fills there are no losses
    state, found = begin_health(4), []
    for step, values in enumerate(learning_late):
        state, new = health.look(state, {"step": step, "acting/taken": 64.0} | values)
        found += new
    assert found == []


def test_every_check_is_asked():
    assert {check.__name__ for check in CHECKS} == {
        "rewards_unsaid", "values_outside", "embeddings_collapsed", "codes_collapsed", "states_alike", "collapsed"
    }  # fmt: skip
