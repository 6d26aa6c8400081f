"""Commands whose output has no reader any more, as after `| head`."""

import os
import subprocess
import sys

import pytest

from jaxzero.cli import main


def run_unread(code: str, unbuffered: str) -> subprocess.CompletedProcess:
    """Runs this program with an output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, "-c", code],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("unbuffered", ["", "1"])  # the error comes with the last flush, or with the first line
def test_a_command_ends_without_a_word(unbuffered):
    done = run_unread("from jaxzero.cli.main import program; program(['help'])", unbuffered)
    assert (done.returncode, done.stderr) == (0, "")


def test_another_pipe_that_broke_is_still_an_error(monkeypatch):
    def loses_its_opponent(arguments):
        raise BrokenPipeError("the other program has ended")

    monkeypatch.setattr(main, "main", loses_its_opponent)
    with open(os.devnull, "w") as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(BrokenPipeError, match="the other program"):
            main.program([])
