"""Programs for mctx, run with mctx and with the front in its place: results compared, times of both printed.

    python experiments/compat/run.py                           # three minutes on two CPU cores
    python experiments/compat/run.py --programs walk_tree      # one of them

Each program runs twice in a process of its own for each library. mctx breaks ties of PUCT by random numbers of up to
1e-7, so an action may differ now and then; none does here.
"""

import argparse
import importlib
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = ("train_alphazero", "act_muzero", "walk_tree", "act_stochastic")
LIBRARIES = {"mctx": "mctx", "front": "jaxzero.compat.mctx"}


def once(name: str, library: str) -> dict:
    """Results of a program with a library, and the seconds of two runs; this process imports nothing else."""
    began = time.perf_counter()
    module = importlib.import_module(LIBRARIES[library])
    imported = time.perf_counter() - began
    sys.path.append(str(HERE))
    main, seconds = importlib.import_module(name).main, []
    for _ in range(2):
        began = time.perf_counter()
        results = main(module)
        seconds.append(time.perf_counter() - began)
    return {"results": results, "seconds": [imported, *seconds]}


def apart(name: str, library: str) -> dict:
    """`once` in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(HERE.parent.parent)}
    command = [sys.executable, "-W", "ignore", __file__, "--one", name, library]
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return pickle.loads(run.stdout)


def differences(theirs: dict, ours: dict) -> list[str]:
    """The differences, in words; integers must be equal, other numbers within 1e-4."""
    found = []
    for name, expected in theirs.items():
        got = ours[name]
        exact = np.issubdtype(expected.dtype, np.integer)
        same = expected.shape == got.shape and expected.dtype == got.dtype
        same = same and (np.array_equal(expected, got) if exact else np.allclose(expected, got, atol=1e-4))
        if not same:
            found.append(f"{name}: {expected} of mctx, {got} of the front")
    return found


def compare(name: str) -> bool:
    """Runs a program with both libraries, and prints a row; whether the results are the same."""
    theirs, ours = (apart(name, library) for library in LIBRARIES)
    found = differences(theirs["results"], ours["results"])
    times = [f"{a:.2f}, {b:.2f}" for a, b in zip(theirs["seconds"], ours["seconds"])]
    print(f"| {name} | {' | '.join(times)} | {'same' if not found else '; '.join(found)} |", flush=True)
    return not found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", default=PROGRAMS, choices=PROGRAMS)
    parser.add_argument("--one", nargs=2, metavar=("PROGRAM", "LIBRARY"), help="used by this script itself")
    options = parser.parse_args()
    if options.one:
        sys.stdout.buffer.write(pickle.dumps(once(*options.one)))
        return
    if importlib.util.find_spec("mctx") is None:
        sys.exit("run.py needs mctx, which is not installed: .venv/bin/python -m pip install mctx")
    print("| program | import, s: mctx, front | first run | second run | results |\n|---|---|---|---|---|")
    same = [compare(name) for name in options.programs]  # all of them, whatever the first ones say
    if not all(same):
        sys.exit("Results differ.")


if __name__ == "__main__":
    main()
