"""Names of moves, stones and boards in letters, game by game."""

import jax
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play import notation

KEY = jax.random.key(3)


def played(game, actions):
    """The positions of a game, the first one too."""
    states = [game.init(KEY)]
    for action in actions:
        states.append(game.step(states[-1], action, KEY))
    return states


@pytest.mark.parametrize("name, some", [
    ("go_9x9", {0: "A9", 8: "J9", 72: "A1", 40: "E5", 81: "pass"}), ("go_19x19", {0: "A19", 18: "T19", 361: "pass"}),
    ("othello", {0: "a1", 7: "h1", 63: "h8", 64: "pass"}), ("hex", {0: "a1", 11: "a2", 120: "k11", 121: "swap-pieces"}),
    ("connect_four", {0: "1", 6: "7"}), ("tic_tac_toe", {4: "b2"}), ("2048", {3: "3"}),
])  # fmt: skip
def test_names(name, some):
    game = games.from_pgx(name)
    called = notation.names(game)
    assert len(called) == len({x.lower() for x in called}) == game.num_actions
    assert {i: called[i] for i in some} == some


def test_names_of_go_and_hex_are_those_of_any_size():
    called = notation.names(games.hex_game(7))
    assert (called[7], called[48], called[49], len(called)) == ("a2", "g7", "swap-pieces", 50)
    assert notation.names(games.go(5)) == (*(f"{column}{row}" for row in "54321" for column in "ABCDE"), "pass")


@pytest.mark.parametrize("game", [games.from_pgx("tic_tac_toe"), games.from_pgx("connect_four"), games.go(5)])
def test_stones_are_those_of_the_players_in_turn(game):
    states = played(game, [0, 1, 2, 3])
    first = int(game.to_play(states[0]))
    for ply, state in enumerate(states):
        board = notation.stones(game, state, first)
        assert ((board == 1).sum(), (board == 2).sum()) == ((ply + 1) // 2, ply // 2)
    row = 0 if game.id != "connect_four" else -1
    assert board[row, :3].tolist() == [1, 2, 1]


def test_stones_of_othello_and_hex():
    othello = games.from_pgx("othello")
    start, after = played(othello, [19])
    first = int(othello.to_play(start))
    assert notation.stones(othello, start, first)[3:5, 3:5].tolist() == [[2, 1], [1, 2]]
    assert notation.stones(othello, after, first)[2:5, 3].tolist() == [1, 1, 1]
    hexagons = games.from_pgx("hex")
    start, one, two = played(hexagons, [5, 121])  # swapped: the stone is the other's, mirrored
    first = int(hexagons.to_play(start))
    assert np.argwhere(notation.stones(hexagons, one, first)).tolist() == [[0, 5]]
    assert notation.stones(hexagons, two, first)[5, 0] == 2 and (notation.stones(hexagons, two, first) > 0).sum() == 1


def test_a_board_of_go():
    game = games.go(5)
    states = played(game, [12, 0, 13])
    assert notation.drawn(game, states[-1], 0, last=13) == [
        "   A B C D E",
        " 5 O . . . .",
        " 4 . . . . .",
        " 3 . . X(X).",
        " 2 . . . . .",
        " 1 . . . . .",
    ]


def test_the_last_move_at_the_edge_and_in_a_column():
    game = games.go(5)
    assert notation.drawn(game, played(game, [4])[-1], 0, last=4)[1] == " 5 . . . .(X)"
    assert notation.drawn(game, played(game, [0])[-1], 0, last=0)[1] == " 5(X). . . ."
    four = games.from_pgx("connect_four")
    states = played(four, [3, 3])
    lines = notation.drawn(four, states[-1], int(four.to_play(states[0])), last=3)
    assert lines[4:] == [" . . .(O). . .", " . . . X . . .", " 1 2 3 4 5 6 7"]


def test_what_is_no_board_is_refused():
    game = games.from_pgx("kuhn_poker")
    with pytest.raises(ValueError, match="not that of a board"):
        notation.stones(game, game.init(KEY), 0)
    assert notation.names(game) == ("0", "1")
