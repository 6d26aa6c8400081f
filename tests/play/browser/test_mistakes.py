"""Mistakes: what a move lost by the table of its position, by the next position's search, and by the result."""

import pytest

from jaxzero.play.browser.mistakes import CLASSES, first_share, loss, losses, mark
from jaxzero.play.browser.record import begun, played, thought


def said(best, *others, mover=0):
    """Thoughts in which action 0 is the best."""
    rows = [{"action": i, "share": share} for i, share in enumerate((best, *others))]
    return {"visits": 20, "first": best if mover == 0 else 1 - best, "candidates": rows}


@pytest.mark.parametrize("name, least", CLASSES)
def test_bounds_belong_to_the_class(name, least):
    assert mark(least) == name and mark(least - 0.01) != name


def test_a_move_gets_the_better_of_two_answers():
    assert loss(said(0.75, 0.5), 1) == 25 and loss(said(0.75, 0.5), 1, after=0.25) == 25
    assert loss(said(0.75, 0.5), 1, after=0.6875) == 6.25
    assert loss(said(0.25, 0.5), 1) == 0, "few visits may make another move look better than the best"
    assert loss(said(0.75), 5) is None and loss(said(0.75), 5, after=0.5) == 25


def test_the_best_move_loses_nothing_but_by_the_result():
    assert loss(said(0.75), 0, after=0.25) == 0
    assert loss(said(1.0, 1.0), 1, after=0.0, over=True) == 100, "a result is certain"


def after_two_moves(first_of_child, over=False, result=None, visits=10):
    open_ = {"over": False, "result": None}
    record = played(begun(open_), 0, 0, open_)
    record = thought(record, 1, said(0.75, 0.5, mover=1))
    last = {"over": over, "result": result}
    record = played(record, 1, 1, last)
    return record if first_of_child is None else thought(record, 2, {"visits": visits, "first": first_of_child})


def test_the_share_of_the_other_side_is_turned():
    assert losses(after_two_moves(None), 1) == {2: 25}
    assert losses(after_two_moves(0.375), 1) == {2: 12.5}, "0.375 for the first is 0.625 for the other, who moved"
    assert losses(after_two_moves(0.375, visits=9), 1) == {2: 25}, "so few visits are no answer"
    assert losses(after_two_moves(None, over=True, result=0.0), 1) == {2: 0}, "who moved second has won"
    assert losses(after_two_moves(None, over=True, result=1.0), 1) == {2: 75}
    assert losses(after_two_moves(None), 0) == {}, "nothing was said of the beginning"


def test_the_share_of_who_moved_first():
    record = after_two_moves(None, over=True, result=0.5)
    assert [first_share(node) for node in record.nodes] == [None, 0.25, 0.5]
