"""What the model of a board game knows, told of networks that were written by hand from the rules."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import environments, games
from jaxzero.cli.muzero import game_evaluation
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.play import outcome_mistakes

SAID = ScalarHead(1, lambda x: x[..., 0], None, None)
GAME = games.from_pgx("connect_four")


def four(stones):
    """Whether stones `[..., 6, 7]` have four in a row anywhere."""
    found = jnp.zeros(stones.shape[:-2], bool)
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        shifted = [
            jnp.pad(stones, [(0, 0)] * (stones.ndim - 2) + [(0, 3 * down), (3 * (right < 0), 3 * (right > 0))])[
                ..., i * down : i * down + 6, 3 * (right < 0) + i * right : 3 * (right < 0) + i * right + 7
            ]
            for i in range(4)
        ]
        found |= (sum(shifted) == 4).any((-2, -1))
    return found


def dropped(board, action):
    """The board `[B, 6, 7, 2]` as the other player sees it after a stone fell; and whether that made four in a row."""
    height = board.sum((1, 3))[jnp.arange(len(board)), action].astype(jnp.int32)
    own = board[..., 0].at[jnp.arange(len(board)), 5 - height, action].set(1.0)
    return jnp.stack([board[..., 1], own], -1), four(own)


def rules(paid=1.0, forgetful=False):
    """Connect Four as a network: a board is its own embedding. Values are some numbers, and 0 where it is over."""

    def dynamics(params, board, action):
        after, won = dropped(board, action)
        return (board if forgetful else after), jnp.where(won, paid, 0.0)[:, None]

    def predict(params, board):
        over = four(board[..., 1]) | (board.sum((1, 2, 3)) == 42)
        value = jnp.sin(jnp.einsum("bijk,ijk->b", board, params))
        logits = jnp.broadcast_to(-jnp.abs(jnp.arange(7.0) - 2), (len(board), 7))
        return logits, jnp.where(over, 0.0, 0.9 * value)[:, None]

    return LearnedNetwork(lambda params, seen: seen, dynamics, predict, SAID, SAID, None, None)


@pytest.fixture(scope="module")
def positions():
    """One in five of those that come along."""
    found = outcome_mistakes.load(GAME, outcome_mistakes.CONNECT_FOUR)
    return jax.tree.map(lambda x: x[::5], found)


PARAMS = jnp.float32(np.random.default_rng(0).normal(size=(6, 7, 2)) * 3)


def known(network, positions):
    environment, run = environments.from_game(GAME), types.SimpleNamespace(network=network)
    told = jax.jit(lambda p: game_evaluation.one_step(environment, run, p, positions, jax.random.key(0)))(PARAMS)
    return {name: float(x) for name, x in told.items()}


def mistakes(positions, choose):
    """Share of the positions in which the move chosen among the legal ones has a worse outcome than the best."""
    wrong = []
    for scores in positions.scores:
        legal = [a for a in range(7) if not np.isnan(scores[a])]
        sign = np.sign(scores[choose(legal)])
        wrong.append(sign < max(np.sign(scores[a]) for a in legal))
    return np.mean(wrong)


def test_a_model_that_is_the_rules_knows_what_the_rules_say(positions):
    told = known(rules(), positions)
    assert told["learned"] == told["true"] > 0.1 and told["wins_foretold"] == 1 and told["others_foretold"] == 0
    by_logits = mistakes(positions, lambda legal: min(legal, key=lambda a: (abs(a - 2), a)))
    assert told["raw"] == pytest.approx(by_logits) and by_logits > 0.1
    assert told["true"] < told["raw"], "of moves that win at once it knows"


def test_a_model_that_errs_is_told_from_a_network_that_does(positions):
    whole, no_rewards, forgetful = (known(x, positions) for x in (rules(), rules(paid=0.0), rules(forgetful=True)))
    for told in (no_rewards, forgetful):
        assert told["true"] == whole["true"] and told["raw"] == whole["raw"] and told["learned"] > told["true"]
    assert no_rewards["wins_foretold"] == 0 and forgetful["wins_foretold"] == 1
    assert known(rules(paid=0.5), positions)["wins_foretold"] == 0.5


def test_positions_are_known_of_two_games():
    assert len(game_evaluation.known_positions(games.from_pgx("tic_tac_toe")).scores) == 4520
    assert game_evaluation.known_positions(games.from_pgx("hex")) is None


def test_tables_show_what_was_measured_before_and_after():
    model = dict(raw=0.5, learned=0.25, true=0.125, wins_foretold=0.75, others_foretold=0.01)
    replies = {"first": dict(positions=1234, wins=5, draws=6, losses=0)}
    before = {"model": model | {"raw": 0.75}, "replies": replies}
    (one, head, rows), (other, _, more) = game_evaluation.more_tables(before, {"model": model, "replies": replies})
    assert "outcome mistakes" in one and len(head) == 6
    assert rows == [["before", "75.0%", "25.0%", "12.5%", "0.750", "0.010"],
                    ["after", "50.0%", "25.0%", "12.5%", "0.750", "0.010"]]  # fmt: skip
    assert other == "Against every legal reply"
    assert more == [[f"{when}, it moves first", "1,234", "5", "6", "0"] for when in ("before", "after")]
    assert game_evaluation.more_tables({}, {}) == []
    assert len(game_evaluation.more_tables({}, {"model": model})[0][2]) == 1, "where nothing was measured before"
