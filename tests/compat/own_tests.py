"""Runs a test file that mctx installs, with mctx or with the front under mctx's name: `own_tests.py front tree_test`.

Prints the seconds that the tests took, and the most memory in use, in MB.
"""

import importlib
import os
import pathlib
import resource
import runpy
import sys
import time

import jax
import mctx

MODULES = ("base", "tree", "search", "policies", "qtransforms", "action_selection", "seq_halving")


def rename_front():
    """From here on `import mctx` gives the front, and `mctx._src` its modules."""
    sys.modules["mctx"] = importlib.import_module("jaxzero.compat.mctx")
    sys.modules["mctx._src"] = importlib.import_module("jaxzero.compat.mctx._src")
    for name in MODULES:
        sys.modules[f"mctx._src.{name}"] = importlib.import_module(f"jaxzero.compat.mctx._src.{name}")


if __name__ == "__main__":
    library, name = sys.argv[1:]
    package = pathlib.Path(mctx.__file__).parent
    if library == "front":
        rename_front()
    jax.config.update("jax_numpy_rank_promotion", "raise")  # as mctx's tree_test has it
    os.chdir(package)  # it finds its golden trees from here
    sys.argv = [name]
    start = time.perf_counter()
    try:
        runpy.run_path(str(package / "_src" / "tests" / f"{name}.py"), run_name="__main__")
    finally:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{library} {name}: {time.perf_counter() - start:.1f} s, {peak:.0f} MB", flush=True)
