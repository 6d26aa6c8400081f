"""Where handicap stones go: the table of section 4.1.1, GNU Go's places, and those that we choose."""

import pytest

from jaxzero.play.gtp import handicap
from tests.gnugo import gnugo

COLUMNS = "ABCDEFGHJKLMNOPQRST"


def called(points):
    return {f"{COLUMNS[column]}{row + 1}" for column, row in points}


TABLE = """
2 D4 Q16
3 D4 Q16 D16
4 D4 Q16 D16 Q4
5 D4 Q16 D16 Q4 K10
6 D4 Q16 D16 Q4 D10 Q10
7 D4 Q16 D16 Q4 D10 Q10 K10
8 D4 Q16 D16 Q4 D10 Q10 K4 K16
9 D4 Q16 D16 Q4 D10 Q10 K4 K16 K10
"""


@pytest.mark.parametrize("line", TABLE.strip().split("\n"))
def test_the_fixed_places_of_a_large_board(line):
    stones, *places = line.split()
    assert called(handicap.fixed(19, int(stones))) == set(places)


def test_the_lines_of_small_boards():
    assert called(handicap.fixed(12, 2)) == {"C3", "K10"} and called(handicap.fixed(13, 2)) == {"D4", "K10"}
    assert called(handicap.fixed(7, 4)) == {"C3", "C5", "E3", "E5"}


@pytest.mark.parametrize("size, most", [(2, 0), (6, 0), (7, 4), (8, 4), (9, 9), (10, 4), (11, 9), (18, 4), (19, 9)])
def test_how_many_there_are(size, most):
    for stones in range(-1, 12):
        if 2 <= stones <= most:
            assert len(set(handicap.fixed(size, stones))) == stones
        else:
            with pytest.raises(ValueError, match="^invalid number of stones$"):
                handicap.fixed(size, stones)


def test_gnu_go_has_the_same_fixed_places():
    """But on 12 x 12, where it takes the fourth lines; the specification, and GoGui, begin with those at 13 x 13."""
    every = [(size, stones) for size in range(5, 20) if size != 12 for stones in range(2, 10)]
    with gnugo() as program:
        for size, stones in every:
            *_, answer = program.ask(f"boardsize {size}", "clear_board", f"fixed_handicap {stones}")
            if stones <= handicap.most_fixed(size):
                assert set(answer.split()[1:]) == called(handicap.fixed(size, stones))
            else:
                assert answer[0] == "?"


@pytest.mark.parametrize("size", [2, 3, 5, 6, 7, 8, 9])
def test_places_of_our_own_are_apart_and_on_the_board(size):
    every = handicap.free(size, size * size - 1)
    assert len(set(every)) == size * size - 1 and all(0 <= x < size for point in every for x in point)
    for stones in {2, 3, min(9, size * size - 1), size * size - 1}:
        placed = handicap.free(size, stones)
        assert len(set(placed)) == stones
        assert stones > handicap.most_fixed(size) or placed == handicap.fixed(size, stones)
    for stones in (0, 1, size * size):
        with pytest.raises(ValueError, match="^invalid number of stones$"):
            handicap.free(size, stones)


def test_places_of_our_own_begin_in_the_middle_and_leave_the_edge_for_last():
    assert handicap.free(5, 9)[0] == (2, 2)
    lines = [min(*point, *(8 - x for x in point)) for point in handicap.free(9, 80)[9:]]
    lines = [min(line, 2) for line in lines]
    assert lines == sorted(lines, reverse=True)
