"""What an import brings along: who only searches should not wait for, or even need, the training packages."""

import json
import pathlib
import subprocess
import sys

import pytest

import jaxzero

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEAVY = ["flax", "optax", "orbax", "tensorstore", "pgx", "mctx", "matplotlib", "tyro", "rich", "tensorboardX"]
# Rooms that may bring heavy packages along. (flax imports optax, orbax and rich itself.)
NEEDS = {
    "nets": {"flax", "optax", "orbax", "tensorstore", "rich"},
    "train": {"flax", "optax", "orbax", "tensorstore", "rich"},
    "runs": {"orbax", "tensorstore", "rich"},
    "compat": {"mctx"},
    "cli": set(HEAVY),
}

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "jaxzero").rglob("*.py")
    if not path.stem.startswith("_") or path.stem == "__init__"
)

# Imports each module as if it were the first of jaxzero (so that a circular import shows), light rooms before heavy
# ones (so that what the latter leave in sys.modules is not held against the former).
IMPORT_EACH_ALONE = """
import importlib, json, sys, traceback
import chex, jax, jaxtyping
heavy, modules = json.loads(sys.argv[1])
result = {}
for module in modules:
    for name in [n for n in sys.modules if n.partition(".")[0] == "jaxzero"]:
        del sys.modules[name]
    before = set(sys.modules)
    try:
        importlib.import_module(module)
        error = None
    except Exception:
        error = traceback.format_exc()
    brought = sorted({n.partition(".")[0] for n in set(sys.modules) - before} & set(heavy))
    result[module] = [error, brought]
print(json.dumps(result))
"""


def python(code: str, *args: str) -> str:
    done = subprocess.run([sys.executable, "-c", code, *args], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.fixture(scope="module")
def imported():
    ordered = sorted(MODULES, key=lambda m: (len(NEEDS.get(room(m), ())), m))
    return json.loads(python(IMPORT_EACH_ALONE, json.dumps([HEAVY, ordered])))


def test_import_jaxzero_is_light():
    loaded = python("import jaxzero, sys; print(*{name.partition('.')[0] for name in sys.modules})").split()
    assert "jaxzero" in loaded
    assert not set(HEAVY) & set(loaded)


@pytest.mark.parametrize("module", MODULES)
def test_module_imports_alone(imported, module):
    error, brought = imported[module]
    assert error is None, error
    assert set(brought) <= NEEDS.get(room(module), set()), f"{module} imports {brought}"


@pytest.mark.parametrize("name, home", [("chain", "root"), ("Path", "types"), ("go", "games"), ("backup", "search")])
def test_a_name_that_moved_is_answered_by_its_home(name, home):
    with pytest.raises(AttributeError, match=f"It is jaxzero.{home}.{name}"):
        getattr(jaxzero, name)


def test_a_name_that_is_nowhere_is_given_no_home():
    with pytest.raises(AttributeError, match="has no attribute 'jnp'.$"):
        jaxzero.jnp  # noqa: B018
