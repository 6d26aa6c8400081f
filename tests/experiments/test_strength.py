"""What the strength experiments compute: advantages, honesty of priors, games against a solver."""

import json
import math
import pathlib
import random
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.nets import weights
from jaxzero.play import outcome_mistakes

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(
    str(ROOT / "experiments" / "strength")
)  # as running a script there does; last, so that it hides nothing

import exact_positions  # noqa: E402
import hex_openings  # noqa: E402
import mistakes  # noqa: E402
import perfect_play  # noqa: E402
import ppo  # noqa: E402
import priors  # noqa: E402
import trained_networks  # noqa: E402


class Board:
    """Columns of Connect Four, as the solver's boards have them."""

    def __init__(self, moves=""):
        self.moves = [int(move) - 1 for move in moves]

    def play(self, move):
        assert self.moves.count(move) < 6
        self.moves.append(move)

    def legal_moves(self):
        return [move for move in range(7) if self.moves.count(move) < 6]

    def cells(self):
        board = np.zeros((7, 6), int)
        for ply, move in enumerate(self.moves):
            board[move, self.moves[:ply].count(move)] = 1 + ply % 2
        return board

    def has_win(self):
        board = np.pad(self.cells(), 3)
        return any(
            board[x, y] and all(board[x + i * dx, y + i * dy] == board[x, y] for i in range(4))
            for x in range(3, 10) for y in range(3, 9) for dx, dy in ((1, 0), (0, 1), (1, 1), (1, -1))
        )  # fmt: skip

    def is_game_over(self):
        return len(self.moves) == 42 or self.has_win()


class FarSighted:
    """Prefers the rightmost column, by a score."""

    def score_all_moves(self, board):
        return {move: move - 3 for move in range(7) if board.moves.count(move) < 6}


def test_advantages_are_discounted_sums_of_errors_with_the_mover_s_sign():
    rng, shape = np.random.default_rng(0), (12, 5)
    value, reward = rng.normal(size=(2, *shape)).astype(np.float32)
    ended, same = rng.random((2, *shape)) < 0.3
    last = rng.normal(size=5).astype(np.float32)
    blank = jnp.zeros(shape)
    found = ppo.advantages(ppo.Step(blank, blank, blank, blank, value, reward, ended, same), last, 0.9)
    for game in range(5):
        for start in range(12):
            total, weight = 0.0, 1.0
            for t in range(start, 12):
                sign = 0.0 if ended[t, game] else 1.0 if same[t, game] else -1.0
                following = last[game] if t == 11 else value[t + 1, game]
                total += weight * (reward[t, game] + sign * following - value[t, game])
                weight *= 0.9 * sign
            assert found[start, game] == pytest.approx(total, abs=1e-4)


def test_ppo_pulls_towards_moves_that_paid():
    rows = ppo.Step(
        jnp.zeros((4, 1)),
        jnp.ones((4, 3), bool),
        jnp.array([0, 1, 1, 2]),
        jnp.full(4, -math.log(3)),
        *jnp.zeros((4, 4)),
    )
    net = lambda params, x: (jnp.tile(params, (4, 1)), jnp.zeros(4))
    slope = jax.grad(lambda p: ppo.loss(net, p, rows, jnp.array([-1.0, 1.0, 1.0, -1.0]), jnp.zeros(4)))(jnp.zeros(3))
    assert slope[1] < 0 < slope[0] and slope[2] > 0


def test_honest_priors():
    scores = np.array([[3.0, 1.0, -2.0], [np.nan, 0.0, -1.0], [0.0, 0.0, -5.0]])
    priors_ = np.array([[0.995, 0.0, 0.005], [0.0, 0.9, 0.1], [0.5, 0.3, 0.2]])
    found = priors.honesty(priors_, scores)
    assert found["mass_on_good_moves"] == pytest.approx((0.995 + 0.9 + 0.8) / 3)
    assert found["with_a_choice"] == 2 and found["sure_with_a_choice"] == 0.5


def test_games_against_a_solver_follow_the_rules():
    """The opponent takes what its solver scores best; moves and results are those of the rules of the game."""
    game = games.from_pgx("connect_four")
    rng = random.Random(0)

    def think(keys, state):
        legal = np.asarray(jax.vmap(game.legal)(state))
        return np.array([rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in legal])

    for ours in (0, 1):
        moves = perfect_play.played(game, think, FarSighted(), Board, 4, ours, seed=1)
        for one in moves:
            columns = [int(move) - 1 for move in one]
            assert Board(one).is_game_over() and not any(Board(one[:n]).is_game_over() for n in range(len(one)))
            for ply in range(1 - ours, len(one), 2):
                assert columns[ply] == max(move for move in range(7) if columns[:ply].count(move) < 6)
        found = perfect_play.summary(Board, moves, ours)
        assert found.get("won", 0) + found.get("drawn", 0) + found.get("lost", 0) == found["games"] == 4
        last = [(len(one) - 1) % 2 == ours for one in moves if Board(one).has_win()]
        assert found.get("won", 0) == sum(last)


def test_games_that_went_alike_are_searched_once():
    asked = []

    def think(keys, state):
        asked.append(state.tolist())
        return state

    moves = ["1", "2", "1", "3", *map(str, range(10, 20))]
    over = [False, False, False, True, *[False] * 10]
    found = perfect_play.answers(think, jnp.arange(14), moves, over)
    assert found == {"1": 0, "2": 1} | {str(n): n - 6 for n in range(10, 20)}, "3 is over"
    assert all(len(batch) == perfect_play.BATCH for batch in asked) and len(asked) == 2


def test_mistakes_in_batches_are_those_of_all_at_once(monkeypatch):
    game = games.from_pgx("connect_four")
    positions = outcome_mistakes.load(game, outcome_mistakes.CONNECT_FOUR)
    rightmost = lambda params, keys, state: type("Out", (), {"action": 6 - jnp.argmax(game_legal(state)[:, ::-1], 1)})
    game_legal = jax.vmap(game.legal)
    whole = outcome_mistakes.outcome_mistakes(rightmost, None, positions, jax.random.key(0))
    monkeypatch.setattr(mistakes, "BATCH", 500)
    found = mistakes.wrong(rightmost, None, positions)
    np.testing.assert_array_equal(found, whole)
    rates = outcome_mistakes.rates(whole, positions)
    assert {name: row[0] for name, row in mistakes.intervals(found, positions).items()} == pytest.approx(rates)


def test_positions_offer_a_choice_between_outcomes():
    """And come about by moves that were scored."""
    solver, rng = FarSighted(), random.Random(3)
    found = [
        exact_positions.one(solver, Board, rng, "opening", kind) for kind in ("random", "contested") for _ in range(20)
    ]
    kept = [row for row in found if row]
    assert len(kept) > 20
    for moves, scores in kept:
        assert 4 <= len(moves) <= 14 and len({exact_positions.sign(score) for score in scores.values()}) > 1
        assert scores == solver.score_all_moves(Board(moves))
    contested = [moves for moves, _ in filter(None, found[20:])]
    for moves in contested:  # the last move, at least, was one of the best outcome
        scores = solver.score_all_moves(Board(moves[:-1]))
        assert exact_positions.sign(scores[int(moves[-1]) - 1]) == max(map(exact_positions.sign, scores.values()))
    assert {len(moves) % 2 for moves in contested} == {0, 1}  # not only those where the player who began has to move


def test_openings_of_hex_expect_no_swap():
    game = games.hex_game(4)
    states = hex_openings.openings(game)
    seen = jax.vmap(game.observe)(states)
    assert not jax.vmap(game.legal)(states)[:, -1].any() and not seen[..., 3].any()
    assert (jax.vmap(game.to_play)(states) == 0).all()
    np.testing.assert_array_equal(seen[..., 1].swapaxes(1, 2).reshape(16, 16), np.eye(16))  # mirrored by the swap


@pytest.mark.parametrize("sees", [0.6, -0.6])
def test_a_value_is_that_of_the_player_who_opens(sees):
    """The network values every position at `sees` for player 0, and after the swap the opening is player 1's."""
    game = games.hex_game(4)
    net = lambda params, x: (jnp.zeros((len(x), 17)), jnp.where(x[:, 0, 0, 2] > 0, -sees, sees))  # plane 2: player 1
    worth, proven = hex_openings.judged(game, net, None, 8)
    assert not proven.any()
    np.testing.assert_allclose(worth, -sees, atol=1e-6)


def test_the_published_solution_is_the_same_by_a_half_turn_and_says_how_many_signs_are_right():
    wins = np.array([1.0 if sign == "+" else -1.0 for sign in hex_openings.SOLUTION.split()])
    assert wins.shape == (49,) and (wins == wins[::-1]).all() and (wins > 0).sum() == 27
    assert hex_openings.as_solved(wins).all() and not hex_openings.as_solved(-wins).any()
    assert hex_openings.as_solved(np.ones(16)) is None


@pytest.mark.slow
def test_openings_of_hex_are_proven_on_a_small_board():
    """Against all games of 3 x 3."""
    game = games.hex_game(3)
    net = lambda params, x: (jnp.zeros((len(x), 10)), jnp.zeros(len(x)))
    worth, proven = hex_openings.judged(game, net, None, 6000)

    def wins(cells, ply):  # whether who is to move wins, by all moves
        key = tuple(cells)
        if key not in known:
            known[key] = False
            for at in [i for i in range(9) if not cells[i]]:
                after = [*cells[:at], 1 + ply % 2, *cells[at + 1 :]]
                if joined(after, 1 + ply % 2) or not wins(after, ply + 1):
                    known[key] = True
                    break
        return known[key]

    def joined(cells, side):
        board = np.array(cells).reshape(3, 3)
        board = board.T if side == 1 else board
        reached = {(row, 0) for row in range(3) if board[row, 0] == side}
        while True:
            near = {(r + d, c + e) for r, c in reached for d, e in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, -1), (-1, 1))}
            more = {at for at in near - reached if min(at) >= 0 and max(at) < 3 and board[at] == side}
            if not more:
                return any(column == 2 for _, column in reached)
            reached |= more

    known = {}
    expected = [-1.0 if wins([int(i == at) for i in range(9)], 1) else 1.0 for at in range(9)]
    assert proven.all() and worth.tolist() == expected and 0 < sum(x > 0 for x in expected) < 9


def test_a_network_that_comes_along_is_matched(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(trained_networks, "RESULTS", tmp_path / "results")
    words = "--game tic_tac_toe --games 4 --pairings raw:trained,random trained:8,uct:10 --save"
    monkeypatch.setattr(sys, "argv", ["trained_networks.py", *words.split()])
    trained_networks.main()
    found = json.loads((tmp_path / "results" / "trained_tic_tac_toe.json").read_text())
    assert list(found["matches"]) == ["raw:trained,random", "trained:8,uct:10"]
    for one in found["matches"].values():
        assert sum(one["score"]) == 4 and one["interval"][0] <= one["share"] <= one["interval"][1]
        assert sum(one["pairs"]) == 2 and sum(n * i / 2 for i, n in enumerate(one["pairs"])) == 4 * one["share"]
    assert found["about"]["game"] == "tic_tac_toe" and found["settings"]["openings"] == 1
    assert found["settings"]["seed"] == 0
    assert "trained:8 against uct:10: " in capsys.readouterr().out
    trained_networks.main()  # what was saved stays
    assert (tmp_path / "results" / "trained_tic_tac_toe-2.json").exists()
    assert json.loads((tmp_path / "results" / "trained_tic_tac_toe.json").read_text()) == found


@pytest.mark.parametrize("script, words, said", [
    (mistakes, "--weights wrong.txt", "--weights: wrong.txt cannot be read"),
    (mistakes, "--positions wrong.txt", "--positions: wrong.txt, line 1: expected a JSON object"),
    (mistakes, "--positions nowhere.jsonl", "--positions: .*nowhere.jsonl"),
    (mistakes, "--value-scale 0", "--value-scale 0: above 0, like 0.5"),
    (mistakes, "--rescale-value", "unrecognized arguments: --rescale-value"),
    (mistakes, "--simulations 64 0", "--simulations 0: 1 or more"),
    (mistakes, "--json wrong.txt/found.json", "--json: the folder wrong.txt cannot be made"),
    (exact_positions, "--file wrong.txt", "--file wrong.txt exists: name a new file"),
    (perfect_play, "--games 0", "--games 0: 1 or more"),
    (perfect_play, "--simulations 0", "--simulations 0: 1 or more"),
    (perfect_play, "--weights wrong.txt", "--weights: wrong.txt cannot be read"),
    (trained_networks, "--game tic_tac_toe --pairings trained:16", "--pairings trained:16: two players, with a comma"),
    (trained_networks, "--game tic_tac_toe --opening-plies -1", "--opening-plies -1: 0 or more"),
    (trained_networks, "--game othelo", "error: game othelo: no such game. Did you mean 'othello'?"),
    (ppo, "--weights wrong.txt --games 1", "--games 1: use an even number"),
    (ppo, "--weights wrong.txt --games 401", "--games 401: use an even number"),
    (ppo, "--weights wrong.txt --simulations 0", "--simulations 0: 1 or more"),
    (ppo, "--weights wrong.txt --minutes 0", "--minutes 0: above 0, like 13"),
    (ppo, "--weights wrong.txt --gae-lambda 2", "--gae-lambda 2: from 0 to 1"),
    (ppo, "--weights wrong.txt --json wrong.txt", "--json wrong.txt exists"),
    (ppo, "--weights trained.safetensors --json wrong.txt/found.json", "--json: the folder wrong.txt cannot be made"),
    (priors, "--weights wrong.txt", "--weights: wrong.txt cannot be read"),
    (hex_openings, "--weights wrong.txt", "--weights: wrong.txt cannot be read"),
    (hex_openings, "--game hex_5x5", "--weights: .*hex_5x5"),
])  # fmt: skip
def test_wrong_files_and_numbers_are_answered_in_a_sentence(script, words, said, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("wrong.txt").write_text("hello")
    pathlib.Path("trained.safetensors").write_bytes(weights.trained("tic_tac_toe").read_bytes())
    monkeypatch.setattr(sys, "argv", [script.__name__, *words.split()])
    with pytest.raises(SystemExit) as ended:
        script.main()
    assert ended.value.code == 2
    assert re.search(said, capsys.readouterr().err)
