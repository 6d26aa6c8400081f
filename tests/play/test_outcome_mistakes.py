"""Mistakes on the exact positions, with players whose mistakes are known."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play import arena, outcome_mistakes
from jaxzero.types import PolicyOutput

FILE = outcome_mistakes.CONNECT_FOUR


@pytest.fixture(scope="module")
def game():
    return games.from_pgx("connect_four")


@pytest.fixture(scope="module")
def positions(game):
    return outcome_mistakes.load(game, FILE)


def answers(action):
    return lambda params, keys, state: PolicyOutput(
        action=jnp.asarray(action), action_weights=None, value=None, tree=None, info=None
    )


def test_positions_are_those_of_the_file(game, positions):
    records = [json.loads(line) for line in FILE.read_text().splitlines()]
    assert len(records) == len(positions.phase) == 1144
    stones = np.asarray(jax.vmap(game.observe)(positions.state).sum((1, 2, 3)))
    np.testing.assert_array_equal(stones, [len(r["moves"]) for r in records])
    assert not np.asarray(jax.vmap(game.terminal)(positions.state)).any()
    row = records[5]
    assert {str(a + 1): int(s) for a, s in enumerate(positions.scores[5]) if not np.isnan(s)} == row["scores"]


def test_at_least_half_of_the_positions_are_held_out(positions):
    assert 0.35 < positions.tuning.mean() < 0.5
    for phase in ("opening", "middle", "end"):
        assert positions.tuning[positions.phase == phase].mean() < 0.5
    assert positions.tuning.sum() == 464  # never to change: what was held out stays held out
    assert [outcome_mistakes.is_tuning(moves) for moves in ("42442436115", "1", "123")] == [False, False, True]


def test_perfect_play_makes_none_and_the_worst_play_makes_all_that_can_be_made(positions):
    best = np.nanargmax(positions.scores, 1)
    worst = np.nanargmin(positions.scores, 1)
    key = jax.random.key(0)
    assert not outcome_mistakes.outcome_mistakes(answers(best), None, positions, key).any()
    made = np.asarray(outcome_mistakes.outcome_mistakes(answers(worst), None, positions, key))
    sign = np.sign(positions.scores)
    np.testing.assert_array_equal(made, np.nanmin(sign, 1) < np.nanmax(sign, 1))
    # a slower win is no outcome mistake
    slow = np.nanargmin(np.where(sign == np.nanmax(sign, 1)[:, None], positions.scores, np.nan), 1)
    assert not outcome_mistakes.outcome_mistakes(answers(slow), None, positions, key).any()
    illegal = np.where(np.isnan(positions.scores).any(1), np.argmax(np.isnan(positions.scores), 1), best)
    made = np.asarray(outcome_mistakes.outcome_mistakes(answers(illegal), None, positions, key))
    np.testing.assert_array_equal(made, np.isnan(positions.scores).any(1))


def test_random_play_errs_as_often_as_the_scores_say(game, positions):
    sign = np.where(np.isnan(positions.scores), np.nan, np.sign(positions.scores))
    legal = ~np.isnan(sign)
    expected = (legal & (sign < np.nanmax(sign, 1)[:, None])).sum(1) / legal.sum(1)
    player, key = arena.random_player(game), jax.random.key(0)
    made = [outcome_mistakes.outcome_mistakes(player, None, positions, k) for k in jax.random.split(key, 5)]
    assert abs(np.mean(made) - expected.mean()) < 0.02
    table = outcome_mistakes.rates(made[0], positions)
    assert list(table) == ["all", "opening", "middle", "end", "tuning", "held_out"]
    n = positions.tuning.sum()
    assert table["all"] == pytest.approx((table["tuning"] * n + table["held_out"] * (1144 - n)) / 1144)


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        '{"moves": "44"}',
        '{"phase": "end", "kind": "x", "moves": "48", "scores": {}}',
        '{"phase": "end", "kind": "x", "moves": "4", "scores": {"1": 0}}',
        '{"phase": "end", "kind": "x", "moves": "4", "scores": {"1": "x"}}',
        '{"phase": "end", "kind": "x", "moves": "4", "scores": {"1": NaN}}',
        '{"phase": "end", "kind": "x", "moves": "4", "scores": {"1": 1%s}}' % ("0" * 400),
        '{"phase": "end", "kind": "x", "moves": "4", "scores": ["1"]}',
        '{"phase": "end", "kind": "x", "moves": ["4"], "scores": {"1": 0}}',
    ],
)
def test_a_broken_line_is_named(game, tmp_path, line):
    path = tmp_path / "positions.jsonl"
    path.write_text(FILE.read_text().splitlines()[0] + "\n" + line + "\n")
    with pytest.raises(ValueError, match="line 2"):
        outcome_mistakes.load(game, path)


def test_an_empty_file_is_named(game, tmp_path):
    (tmp_path / "positions.jsonl").touch()
    with pytest.raises(ValueError, match=r"positions\.jsonl is empty: give a file with a position in each line"):
        outcome_mistakes.load(game, tmp_path / "positions.jsonl")


def test_groups_without_positions_have_no_rate(positions):
    positions = positions._replace(phase=positions.phase[:4], tuning=np.zeros(4, bool))
    assert outcome_mistakes.rates(np.array([True, False, False, False]), positions) == {
        "all": 0.25, positions.phase[0]: 0.25, "held_out": 0.25
    }  # fmt: skip
