"""A package that is missing is answered by the command that installs it."""

import sys

import pytest

from jaxzero import extras
from jaxzero.cli import main as command
from tests.processes import python

MISSING = """
import sys
sys.modules[{package!r}] = None
try:
    import {module}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    "package, module", [("flax", "jaxzero.nets.weights"), ("optax", "jaxzero.train.learner"), ("orbax", "jaxzero.runs")]
)
def test_a_room_says_what_it_needs(package, module):
    done = python(MISSING.format(package=package, module=module))
    assert done.stdout.endswith(f" needs {package}: pip install '.[train]' in the clone\n"), done.stderr


def test_a_command_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "tyro", None)
    for name in [name for name in sys.modules if name.endswith("_settings") or name.endswith("training.command_line")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match=r"jaxzero train needs tyro: pip install '.\[train\]' in the clone"):
        command.main(["train"])


def test_what_no_extra_has_is_no_matter_of_ours():
    assert extras.install("numpy") is None
    assert extras.install("orbax.checkpoint") == "pip install '.[train]' in the clone"
