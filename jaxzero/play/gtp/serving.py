"""Serves GTP over two streams."""

from typing import BinaryIO

from jaxzero.play.gtp.lines import LONGEST
from jaxzero.play.gtp.session import Session

__all__ = ["serve"]


def serve(session: Session, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answers line by line until `quit` or the end of the input."""
    try:
        while not session.closed:
            line = stdin.readline(LONGEST)
            if not line:
                break
            while line and not line.endswith(b"\n") and (more := stdin.readline(LONGEST)):
                line = line[:LONGEST] + b"\n" * more.endswith(b"\n")  # the rest of a long line is read and dropped
            answer = session.answer(line.decode("utf-8", errors="replace"))
            stdout.write(answer.encode("ascii", errors="replace"))
            stdout.flush()
            session.idle()
    finally:
        session.rest()  # also after Ctrl-C or a closed pipe: a thinking thread must not outlive the program
