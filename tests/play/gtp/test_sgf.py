"""Game records: what is written claims no more than it holds, and what others write is read."""

import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.game import Game
from jaxzero.play.gtp import sgf


def test_a_rectangle_of_stones_is_read_as_its_points():
    setup = sgf.read("(;SZ[5]AB[bb:cd][ee])").setup
    assert setup == ((1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3), (4, 4))
    assert sgf.read("(;SZ[5]AB[cd:bb][ee])").setup == setup, "whichever corners are named"
    for value, says in (("aa:zz", "[zz] is not a point"), ("aa:", "not on the board"), ("aa:bb:cc", "not a point")):
        with pytest.raises(ValueError) as caught:
            sgf.read(f"(;SZ[5]AB[{value}])")
        assert says in str(caught.value)


@pytest.mark.parametrize("before", ["", "Played (by hand) today: ", "(", "a) ((b) "])
def test_what_stands_before_a_record_is_no_part_of_it(before):
    assert sgf.read(f"{before}(;SZ[5];B[aa])").moves == (("b", (0, 0)),)
    with pytest.raises(ValueError, match="there is no game in it"):
        sgf.read(before)


@pytest.mark.parametrize("name, head", [
    ("go_9x9", "GM[1]CA[UTF-8]SZ[9]"), ("othello", "GM[2]CA[UTF-8]SZ[8]"), ("hex", "GM[11]CA[UTF-8]SZ[11]"),
    ("tic_tac_toe", "GM[0]GN[tic_tac_toe]CA[UTF-8]SZ[3]"), ("connect_four", "GM[0]GN[connect_four]CA[UTF-8]SZ[7:6]"),
    ("backgammon", "GM[0]GN[backgammon]CA[UTF-8];"),
])  # fmt: skip
def test_a_record_says_which_game_it_is_of(name, head):
    """Without GM it would be of Go."""
    game = games.from_pgx(name)
    text = sgf.written(game, [0])
    assert text.startswith(f"(;FF[4]{head}")
    if name != "go_9x9":
        with pytest.raises(ValueError, match="it is a record of another game"):
            sgf.read(text)


@pytest.mark.parametrize("shape", [(40,), ()])
def test_a_game_without_a_board_is_written_with_the_names_of_its_actions(shape):
    fields = dict.fromkeys(Game._fields[4:11])
    game = Game(id="own", num_actions=40, num_players=2, observation_shape=shape, **fields)
    assert sgf.written(game, [30, 39]) == "(;FF[4]GM[0]GN[own]CA[UTF-8];B[30];W[39])\n"
    named = game._replace(action_names=("a]",) * 40)
    assert sgf.written(named, [30]).endswith(";B[a\\]])\n")


RESULTS = ("B+3.5", "b+3.5"), ("B+12", "B+12."), ("W+0.5", "W+0.50"), ("B+R", "B+Resign"), ("W+R", "w+r")
RESULTS += ("W+T", "W+Time"), ("B+F", "B+FORFEIT"), ("B+", "B+"), ("W+7.5", "W+7.5 (upper bound: -4.0, lower: -11.0)")
RESULTS += ("0", "0"), ("0", "Draw"), ("0", "JIGO"), ("0", "0.0"), ("0", "B+0.0"), ("W+R", " W+R\n")
RESULTS += tuple((None, said) for said in ("", "?", "unknown", "Void", "0.5", "B+x", "B+3.5x", "Black wins", "W+RIME"))


@pytest.mark.parametrize("result, said", RESULTS)
def test_results_are_those_of_the_format(result, said):
    assert sgf.result_of(said) == result


def test_moves_of_go_are_points_and_passes():
    assert sgf.written(games.go(5), [30 - 6, 25, np.int32(1)]).endswith(";B[ee];W[];B[ba])\n")
