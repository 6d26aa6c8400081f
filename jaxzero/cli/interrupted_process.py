"""How a command ends after Ctrl-C: at once, and without a crash."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["ending_at_once"]


def ending_at_once(work: Callable[[], Any]) -> Any:
    """Does the work; if Ctrl-C was pressed meanwhile, the process ends where the work does.

    Python's own end would wait for what XLA still compiles or computes, for half a minute, and then crash in it. All
    files are written atomically, so none is left half written. What the work made of Ctrl-C, its words and the exit
    status, stays; an error is told as Python tells it.

    Args:
        work: what a command does. Its `SystemExit` says how the process ends.

    Returns:
        What the work returns, where Ctrl-C was not pressed.
    """
    pressed: list[int] = []

    def note(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # ignored, as in a shell's job
        return work()
    signal.signal(signal.SIGINT, note)
    try:
        found = work()
    except (SystemExit, KeyboardInterrupt) as end:
        if not pressed:
            raise
        found = end.code if isinstance(end, SystemExit) else 130
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        _end(found)
    return found


def _end(found: Any) -> None:
    """Ends the process as `sys.exit(found)` does, but for what Python does at its end."""
    words = "" if found is None or isinstance(found, int) else f"{found}\n"
    status = (found or 0) if not words else 1
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.write(2, words.encode())
    finally:  # also where nobody reads what is printed any more
        os._exit(status)
