"""Time control: the time settings of the Go Text Protocol, and the thinking time for a move."""

from typing import NamedTuple

__all__ = ["Clock", "share", "spent", "started"]

MARGIN = 0.15  # the most seconds that a move takes beside the thinking
EXPECTED = 25  # moves assumed to be left, where it is not known


class Clock(NamedTuple):
    """The time of one player.

    Attributes:
        main: seconds of main time left; None: there is no limit.
        byo_time: seconds of an overtime period.
        byo_stones: moves of a period; 0: no overtime.
        stones: moves left in this period; 0: still in main time.
        left: seconds left, of main time or of the period.
    """

    main: float | None = None
    byo_time: float = 0
    byo_stones: int = 0
    stones: int = 0
    left: float = 0


def started(main: float, byo_time: float, byo_stones: int) -> Clock:
    """A clock by `time_settings`: no limit where overtime has a time and no stones; nothing left where all is 0.

    >>> started(0, 30, 0).main is None, started(0, 30, 5).stones, started(60, 0, 0).left
    (True, 5, 60)
    """
    if byo_time > 0 and byo_stones == 0:
        return Clock()
    if main > 0:
        return Clock(main, byo_time, byo_stones, 0, main)
    return Clock(0, byo_time, byo_stones, byo_stones, byo_time)


def share(clock: Clock) -> float | None:
    """Seconds for the next move; None: no limit.

    In an overtime period an equal part of it; in main time a part of what is left, with a reserve for delays.

    >>> share(started(0, 10, 5)), share(Clock())
    (1.85, None)
    """
    if clock.main is None:
        return None
    if clock.stones:
        return max(0.01, min(clock.left / clock.stones, clock.left * 0.9) - MARGIN)
    overtime = clock.byo_time / clock.byo_stones if clock.byo_stones else 0.0
    return max(0.01, min(clock.left / EXPECTED + overtime, clock.left * 0.5) - MARGIN)


def spent(clock: Clock, seconds: float) -> Clock:
    """The clock after a move of `seconds`, as an estimate: the command `time_left` gives the true value.

    >>> spent(started(10, 5, 2), 12.0)[-2:]
    (1, 3.0)
    """
    if clock.main is None:
        return clock
    left, stones = clock.left - seconds, clock.stones
    if not stones and left < 0 < clock.byo_stones:  # main time is over
        return spent(Clock(0, clock.byo_time, clock.byo_stones, clock.byo_stones, clock.byo_time), -left)
    if stones == 1:  # the period was kept: the next begins
        return clock._replace(left=clock.byo_time, stones=clock.byo_stones)
    return clock._replace(left=max(left, 0.0), stones=max(stones - 1, 0))
