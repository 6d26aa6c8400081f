"""Where scripts keep what they compile."""

import os
import subprocess
import sys

import pytest

from tests.documents import ROOT


@pytest.mark.parametrize("setting, said", [
    (None, f"compiled programs are kept in {ROOT / '.cache' / 'jax'}"),
    ("", "compiled programs are not kept"), ("/tmp/elsewhere", "compiled programs are kept in /tmp/elsewhere"),
])  # fmt: skip
def test_the_environment_has_the_last_word(setting, said):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment |= {} if setting is None else {"JAX_COMPILATION_CACHE_DIR": setting}
    code = "import caching; print(caching.keep_programs())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=environment, cwd=ROOT / "experiments")  # fmt: skip
    assert done.stdout.strip() == said, done.stderr
