"""What is told of a game: boards, places, sides, results and what the search thinks."""

import functools

import jax
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play.analysis import Candidate, Report
from jaxzero.play.browser import board_json
from jaxzero.play.engine import Engine


@functools.cache
def engine(game):
    return Engine(game, lambda n, stop: None)


def after(game, *actions):
    thinker = engine(game)
    thinker.clear()
    for action in actions:
        thinker.play(action)
    return thinker


FOUR, THREE = games.from_pgx("connect_four"), games.from_pgx("tic_tac_toe")


@pytest.mark.parametrize("name, told", [
    ("connect_four", ("Connect Four", 6, 7, ["Blue", "Orange"], "1", [], [])),
    ("othello", ("Othello", 8, 8, ["Black", "White"], "a", ["1", "2"], [64])),
    ("hex", ("Hex", 11, 11, ["Blue", "Orange"], "a", ["1", "2"], [121])),
    ("go_9x9", ("Go 9×9", 9, 9, ["Black", "White"], "A", ["9", "8"], [81])),
    ("tic_tac_toe", ("Tic-tac-toe", 3, 3, ["X", "O"], "a", ["1", "2"], [])),
])  # fmt: skip
def test_boards(name, told):
    found = board_json.layout(games.from_pgx(name))
    keys = ("title", "rows", "columns", "sides")
    assert (*(found[key] for key in keys), found["columnNames"][0], found["rowNames"][:2], found["beside"]) == told
    assert len(found["names"]) == games.from_pgx(name).num_actions


@pytest.mark.parametrize("name", ["chess", "kuhn_poker"])
def test_what_is_no_board_of_stones_is_a_list_of_moves(name):
    game = games.from_pgx(name)
    told = board_json.layout(game)
    assert told["kind"] == "list" and told["beside"] == list(range(game.num_actions)) and told["columns"] == 0
    assert told["sides"] == ["Player 1", "Player 2"]


def test_squares_without_names_are_told_as_such():
    plain = THREE._replace(id="mine", num_actions=8, observation_shape=(2, 4, 2))
    assert board_json.layout(plain)["names"][7] == "d2"
    odd = THREE._replace(id="mine", num_actions=9, observation_shape=(2, 4, 2))  # one action beside the board
    told = board_json.layout(odd)
    assert told["columnNames"] == told["rowNames"] == [] and told["beside"] == [8] and told["kind"] == "plain"


@pytest.mark.parametrize("called", [
    ("NW", "N", "NE", "W", "C", "E", "SW", "S", "SE"),
    ("top-left", "top", "top-right", "left", "middle", "right", "bottom-left", "bottom", "bottom-right"),
    ("a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "d3"), ("a1", "b1", "a1", "a2", "b2", "a2", "a3", "b3", "a3"),
    ("a", "b", "c", "d", "e", "f", "g", "h", "i"), ("x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9"),
])  # fmt: skip
def test_names_that_are_no_coordinates_do_not_stand_beside_the_board(called):
    told = board_json.layout(THREE._replace(action_names=called))
    assert told["columnNames"] == told["rowNames"] == [] and told["names"] == list(called)


def test_names_of_ones_own_stand_beside_the_board_if_they_are_coordinates():
    called = tuple(f"{column}{row}" for row in (30, 20, 10) for column in ("AA", "BB", "CC"))
    told = board_json.layout(THREE._replace(action_names=called))
    assert told["columnNames"] == ["AA", "BB", "CC"] and told["rowNames"] == ["30", "20", "10"]


def test_a_position_of_connect_four():
    told = board_json.position(after(FOUR, 3, 3, 0))
    board = np.reshape(told["stones"], (6, 7))
    assert board[5, 3] == 1 and board[4, 3] == 2 and board[5, 0] == 1 and (board > 0).sum() == 3
    assert told["last"] == [5, 0] and told["places"][3] == [3, 3] and told["places"][0] == [4, 0]
    assert told["toMove"] == 1 and told["moves"] == ["4", "4", "1"] and not told["over"]
    full = board_json.position(after(FOUR, *[2] * 6))
    assert full["places"][2] is None and 2 not in full["legal"]


def test_the_expected_play_piles_up_and_players_take_turns():
    thinker = after(FOUR, 3)
    report = Report(10, 0.5, (Candidate(3, 9, 0.5, 0.0, (3, 3, 0)), Candidate(1, 1, -1.5, 0.25, (1,))))
    told = board_json.thoughts(thinker, report)
    assert [(step["name"], step["place"], step["player"]) for step in told["line"]] == [
        ("4", [4, 3], 1), ("4", [3, 3], 0), ("1", [5, 0], 1)
    ]  # fmt: skip
    assert told["mover"] == 1 and told["first"] == 0.25 and told["visits"] == 10
    assert told["candidates"][1] == {"action": 1, "visits": 1, "share": 0.0, "value": -1.5, "prior": 0.25}
    assert board_json.thoughts(thinker, Report(0, 0.0, ())) is None


def test_results_in_words():
    won = after(THREE, 0, 3, 1, 4, 2)
    assert board_json.outcome(won, ("X", "O")) == "X has won." and board_json.position(won)["result"] == 1.0
    lost = after(THREE, 0, 3, 1, 4, 8, 5)
    assert board_json.position(lost)["outcome"] == "O has won." and board_json.position(lost)["result"] == 0.0
    drawn = after(THREE, 0, 1, 2, 4, 3, 5, 7, 6, 8)
    assert (
        board_json.position(drawn)["outcome"] == "The game is a draw." and board_json.position(drawn)["result"] == 0.5
    )


def test_points_of_go():
    go = games.go(3, 7.5)
    assert board_json.position(after(go, 4, 9, 9), 7.5)["outcome"] == "Black has won by 1.5 points."
    assert board_json.position(after(go, 9, 9), 7.5)["outcome"] == "White has won by 7.5 points."
    assert board_json.position(after(go, 9, 9))["outcome"] == "White has won."
    by_one = games.go(3, 8.0)
    assert board_json.position(after(by_one, 4, 9, 9), 8.0)["outcome"] == "Black has won by 1 point."
    told = board_json.position(after(go, 4, 9), 7.5)
    assert told["last"] is None and told["places"][9] is None and told["moves"] == ["B2", "pass"]


def test_who_is_first_in_hex_joins_top_and_bottom():  # as the page draws the sides
    game = games.from_pgx("hex")
    step, key = jax.jit(game.step), jax.random.key(0)
    state = game.init(key)
    first = int(game.to_play(state))
    for row in range(11):
        state = step(state, 11 * row + 3, key)
        assert bool(game.terminal(state)) == (row == 10)
        state = step(state, 11 * row + 7, key)
    assert game.rewards(state)[first] == 1 or row == 10


def test_the_winning_line_is_told_at_the_end_only():
    assert board_json.position(after(THREE, 0, 3, 1, 4))["winning"] == []
    assert board_json.position(after(THREE, 0, 3, 1, 4, 2))["winning"] == [[0, 0], [0, 1], [0, 2]]


def test_shares_are_told_where_a_win_is_a_win():
    assert board_json.layout(THREE)["shares"] and board_json.layout(games.from_pgx("kuhn_poker"))["shares"]
    assert not board_json.layout(THREE._replace(outcomes=object()))["shares"], "some wins may pay more than others"
    assert not board_json.layout(games.from_pgx("kuhn_poker")._replace(num_players=3))["shares"]


def test_visits_that_were_given_do_not_change_what_a_position_is_worth():
    rows = (Candidate(3, 8, 0.5, 0.0, (3,)), Candidate(1, 4, 0.25, 0.0, (1,)), Candidate(0, 2, -1.0, 0.0, (0,)))
    report = Report(14, 0.2, rows)
    assert board_json.thoughts(after(FOUR), report)["value"] == 0.2, "nothing was given"
    told = board_json.thoughts(after(FOUR), report, least=2)
    assert told["value"] == pytest.approx((6 * 0.5 + 2 * 0.25) / 8)
    assert board_json.thoughts(after(FOUR), report, least=8)["value"] == 0.2, "nothing else is left"
    assert board_json.thoughts(after(FOUR), report._replace(value=0.5), least=2)["value"] == 0.5, "it is solved"
