"""mctx's own installed tests pass with the front in mctx's place."""

import os
import pathlib
import subprocess
import sys

import mctx
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = sorted(x.stem for x in (pathlib.Path(mctx.__file__).parent / "_src" / "tests").glob("*_test.py"))


def test_there_are_five_files_of_tests():
    assert NAMES == ["mctx_test", "policies_test", "qtransforms_test", "seq_halving_test", "tree_test"]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_mctx_tests_pass(name):
    run = subprocess.run(
        [sys.executable, "-m", "tests.compat.own_tests", "front", name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0 and "\nOK" in run.stderr, run.stdout + run.stderr
    assert f"front {name}" in run.stdout
