"""GNU Go, for tests that compare with it; they are skipped where it is not installed."""

import contextlib
import shutil
import subprocess

import pytest


class GnuGo:
    """The GNU Go program, for many commands at once."""

    def __init__(self):
        command = ["gnugo", "--mode", "gtp"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *lines):
        """The answers to at most some hundred lines, without their empty last lines."""
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()
        return [self._answer() for _ in lines]

    def _answer(self):
        text = ""
        while not text.endswith("\n\n"):
            text += self.process.stdout.readline() or pytest.fail("GNU Go has ended")
        return text.strip()


@contextlib.contextmanager
def gnugo():
    """GNU Go as a process that ends with the block."""
    if shutil.which("gnugo") is None:
        pytest.skip("GNU Go is not installed")
    program = GnuGo()
    try:
        yield program
    finally:
        program.process.communicate("quit\n", timeout=10)
