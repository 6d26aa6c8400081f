"""Programs whose output has no reader any more, as after `| head`."""

import os
import signal
import subprocess
import sys

import pytest

from jaxzero.unread_output import quiet_if_unread

BUFFERED = pytest.mark.parametrize(
    "unbuffered", ["", "1"]
)  # the error comes with the last flush, or with the first line
ENDS = """
import sys
from jaxzero.unread_output import quiet_if_unread

def work():
    {}

sys.exit(quiet_if_unread(work))
"""


def run_unread(code: str, unbuffered: str, errors_too: bool = False) -> tuple[int, str | None]:
    """The status and the errors of this program, with an output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=writer,
            stderr=writer if errors_too else subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@BUFFERED
def test_a_command_ends_without_a_traceback(unbuffered):
    status, said = run_unread("from jaxzero.cli.main import program; program(['help'])", unbuffered)
    assert (status, said) == (141 if unbuffered else 0, "")


@BUFFERED
def test_a_failure_stays_one(unbuffered):
    """Unless printing had cut the work off before it failed."""
    print_and = "print('1 of 2 tests passed'); {}"
    assert run_unread(ENDS.format(print_and.format("return 1")), unbuffered) == (141 if unbuffered else 1, "")
    words = "raise SystemExit('one is missing')"
    status, said = run_unread(ENDS.format(print_and.format(words)), unbuffered)
    assert (status, said) == ((141, "") if unbuffered else (1, "one is missing\n"))
    assert run_unread("from jaxzero.cli.main import program; program(['nosuch'])", unbuffered, errors_too=True)[0] != 0


@BUFFERED
def test_a_program_that_was_interrupted_says_nothing_more(unbuffered):
    """Ctrl-C ends `| tee` first; what is then printed has no reader."""
    code = f"""
import os, signal, sys
from jaxzero.cli.interrupted_process import ending_at_once
from jaxzero.unread_output import quiet_if_unread

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background may have it ignored

def work():
    try:
        os.kill(os.getpid(), {signal.SIGINT:d})
    except KeyboardInterrupt:
        print("Stopped.")
        sys.exit(130)

sys.exit(ending_at_once(lambda: quiet_if_unread(work)))
"""
    assert run_unread(code, unbuffered) == (141 if unbuffered else 130, "")


def test_another_pipe_that_broke_is_still_an_error(capsys):
    def loses_its_opponent():
        raise BrokenPipeError("the other program has ended")

    with pytest.raises(BrokenPipeError, match="the other program"):
        quiet_if_unread(loses_its_opponent)


@pytest.mark.parametrize("stream", ["None", "io.StringIO()"])
def test_output_may_be_closed_or_replaced(stream):
    assert subprocess.run(
        [sys.executable, "-c", f"import io, sys; sys.stdout = {stream}\n" + ENDS.format("return 3")]
    ).returncode == 3  # fmt: skip
