"""The clock: what a move takes of it, and what of it a move is given."""

import pytest

from jaxzero.play.gtp import clock
from jaxzero.play.gtp.clock import Clock, share, spent, started


def test_moves_take_main_time_and_then_periods():
    now = started(10, 5, 2)
    assert (now := spent(now, 4)) == Clock(10, 5, 2, 0, 6)
    assert (now := spent(now, 7)) == Clock(0, 5, 2, 1, 4), "what was over is of the first period, a move of two"
    assert (now := spent(now, 3)) == Clock(0, 5, 2, 2, 5), "it was kept: the next one is whole"
    assert (now := spent(now, 3)) == Clock(0, 5, 2, 1, 2)
    assert spent(now, 9) == Clock(0, 5, 2, 2, 5), "whoever is late goes on"


def test_without_periods_nothing_is_left_in_the_end():
    assert spent(started(3, 0, 0), 5) == Clock(3, 0, 0, 0, 0)
    assert spent(Clock(), 1e9) == Clock() and share(Clock()) is None


@pytest.mark.parametrize("settings, most", [((60, 0, 0), 3.0), ((0, 5, 1), 5), ((0, 50, 10), 5), ((1, 1, 1), 1.1)])
def test_the_share_of_a_move(settings, most):
    assert 0 < share(started(*settings)) <= most - clock.MARGIN


@pytest.mark.parametrize("settings", [(60, 0, 0), (0, 5, 1), (0, 50, 10), (30, 5, 1), (30, 60, 20), (5, 1, 1)])
def test_who_takes_its_share_is_never_late(settings):
    now = started(*settings)
    for _ in range(300):
        takes = share(now) + clock.MARGIN / 2
        assert takes < now.left or takes < 0.1
        now = spent(now, takes)
