"""Where scripts keep what they compile."""

import ast
import os
import subprocess
import sys

import pytest

from tests.documents import ROOT


@pytest.mark.parametrize("setting, said", [
    (None, f"compiled programs are kept in {ROOT / '.cache' / 'jax'}"),
    ("", "compiled programs are not kept"), ("/tmp/elsewhere", "compiled programs are kept in /tmp/elsewhere"),
], ids=["unset", "empty", "a folder"])  # fmt: skip
def test_the_environment_has_the_last_word(setting, said):
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment |= {} if setting is None else {"JAX_COMPILATION_CACHE_DIR": setting}
    code = "import jaxzero; print(jaxzero.keep_programs())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=environment, cwd=ROOT)  # fmt: skip
    assert done.stdout.strip() == said, done.stderr


@pytest.mark.parametrize("script", ["training/train", "playing/play", "playing/tournament", "playing/gtp_match/match"])
def test_scripts_that_people_start_again_keep_what_they_compile(script):
    tree = ast.parse((ROOT / "jaxzero" / "cli" / f"{script}.py").read_text())
    main = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    called = [node.func.id for node in ast.walk(main) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    assert "keep_programs" in called


def test_a_second_start_finds_what_the_first_has_compiled(tmp_path):
    code = """
import jax, jaxzero
found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name) if name.endswith("cache_hits") else None)
jaxzero.keep_programs()
jax.jit(lambda x: x * 3 + 1)(1.0)
print(len(found))
"""
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    run = lambda: subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                                 env=environment, cwd=ROOT)  # fmt: skip
    first, second = run(), run()
    assert first.stdout.strip() == "0", first.stderr
    assert int(second.stdout) > 0, second.stderr
