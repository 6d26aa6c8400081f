"""How a program ends whose output has no reader any more, as after `| head`: without a traceback."""

import contextlib
import os
import select
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["discard", "quiet_if_unread"]

CUT_OFF = 141  # the shells' status of a program that ends by SIGPIPE


def quiet_if_unread(work: Callable[[], Any]) -> Any:
    """Does the work; its output and errors go to nowhere from the moment when nobody reads them.

    Args:
        work: what the program does.

    Returns:
        The status for `sys.exit`: what the work returns, or what its `SystemExit` holds; 141 if the missing reader cut
        the work off. A pipe that broke elsewhere, such as that to a program it plays against, stays an error.
    """
    try:
        status = work()
    except SystemExit as end:
        status = end.code
    except BrokenPipeError:
        if not (_unread(sys.stdout) or _unread(sys.stderr)):
            raise
        status = CUT_OFF
    for stream in (sys.stdout, sys.stderr):
        if _unread(stream):  # or Python would fail to write what is left at its end
            discard(stream)
    return status


def _unread(stream: Any) -> bool:
    """Whether the reader of this stream has closed the pipe."""
    try:
        stream.flush()
        pipe = select.poll()
        pipe.register(stream, 0)  # errors are told anyway
        return any(told & (select.POLLERR | select.POLLHUP) for _, told in pipe.poll(0))
    except BrokenPipeError:
        return True
    except (OSError, ValueError, AttributeError, TypeError):  # None, closed, replaced; or a system without poll
        return False


def discard(stream: Any) -> None:
    """Sends to nowhere what is printed to this stream from now on, also what Python flushes at its end."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a replaced stream may have no descriptor
        descriptor, nowhere = stream.fileno(), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, descriptor)
        os.close(nowhere)
