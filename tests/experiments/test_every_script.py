"""Every script of experiments/ can be imported: one that no longer fits the library is found here, not in an hour."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
# The gallery's scripts draw their pictures as they are imported; its own test runs them.
SCRIPTS = sorted(path for path in EXPERIMENTS.rglob("*.py") if "gallery" not in path.parts)
# `main` is not called: each script is a module of another name. An optional package may be missing.
IMPORTING = """
import pathlib, runpy, sys
optional = {"bitbully", "gymnasium", "gymnax", "mctx", "muax", "mujax", "pyspiel", "rejax"}
path = list(sys.path)
for script in sys.argv[1:]:
    file = pathlib.Path(script)
    # As running a script does; bench is a package beside the scripts that use it.
    folder = next((above.parent for above in file.parents if above.name == "bench"), file.parent)
    if sys.path[0] != str(folder):
        sys.path[:] = [str(folder), *path]
        beside = {other.stem for other in folder.iterdir()}
        for name in [name for name in sys.modules if name.split(".")[0] in beside]:
            del sys.modules[name]
    sys.argv[:] = [script]
    try:
        runpy.run_path(script, run_name="imported")
    except (ImportError, SystemExit) as error:
        cause = error if isinstance(error, ImportError) else error.__cause__ or error.__context__
        absent = isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0]
        if absent not in optional:
            raise
        print(f"{script}: without {absent}")
    else:
        print(f"{script}: imported")
"""


def imported(*scripts):
    """Imports scripts in one process; gives what was printed."""
    settings = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", IMPORTING, *map(str, scripts)]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_script_is_imported():
    told = imported(*SCRIPTS)
    assert len(told) == len(SCRIPTS) > 50


def test_a_script_that_does_not_fit_is_found(tmp_path):
    for text in ("from jaxzero.play import nothing", "import jaxzero.nowhere", "import nothing_beside_it"):
        (script := tmp_path / "script.py").write_text(text)
        try:
            imported(script)
        except AssertionError:
            continue
        raise AssertionError(text)
    script.write_text("import rejax.nothing_of_this_name")
    assert imported(script) == [f"{script}: without rejax"]
