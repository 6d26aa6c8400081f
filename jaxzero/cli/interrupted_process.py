"""How a program ends after Ctrl-C: at once, and without a crash."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["ending_at_once"]


def ending_at_once(work: Callable[[], Any]) -> Any:
    """Does the work; if Ctrl-C was pressed meanwhile, the process ends as soon as the work does.

    For programs, not for functions: the process ends here. A normal exit of Python would wait half a minute for what
    XLA still compiles or computes, and then crash in it. Threads are cut off, and `atexit` handlers are not called.

    Args:
        work: what the program does. Its `SystemExit` says how the process ends. A `KeyboardInterrupt` that it lets
            through ends it by the signal, as shells want it, without a traceback. Other errors are reported as usual.

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
        if not pressed:
            return found
        _end(found)
    except BaseException as end:
        if not pressed:
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is ending already
        if not isinstance(end, SystemExit | KeyboardInterrupt):
            traceback.print_exception(end)
        status = end.code if isinstance(end, SystemExit) else 1
        _end(status, by_signal=isinstance(end, KeyboardInterrupt))
    finally:
        if not pressed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(status: Any, by_signal: bool = False) -> NoReturn:
    """Ends the process as `sys.exit(status)` does, but without Python's clean-up."""
    nobody_reads = contextlib.suppress(OSError, ValueError)
    in_words = not (status is None or isinstance(status, int))
    with nobody_reads:
        if in_words:
            print(status, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with nobody_reads:
            stream.flush()
    if by_signal:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(1 if in_words else status or 0)
