"""How a command names the interpreter when it is printed again."""

import os
import sys

import pytest

from jaxzero.cli import repeat_command


@pytest.mark.parametrize("on_path, below, expected", [
    (True, True, "python"), (True, False, "python"),
    (False, True, os.path.join(".venv", "bin", "python")), (False, False, None),
])  # fmt: skip
def test_the_shell_finds_the_interpreter_that_is_named(tmp_path, monkeypatch, on_path, below, expected):
    here, other = tmp_path / ".venv" / "bin", tmp_path / "other"
    for folder in (here, other):
        folder.mkdir(parents=True)
        (folder / "python").write_text("#!/bin/sh\n")
        (folder / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(here / "python"))
    monkeypatch.setenv("PATH", str(here if on_path else other))
    monkeypatch.chdir(tmp_path if below else other)
    assert repeat_command.python() == (expected or str(here / "python"))
