r"""Time and steps to learn CartPole-v1 without its rules, by `jaxzero train` itself, over several seeds.

    python experiments/muzero/cartpole_seeds.py --save                 # time: about five minutes on two quiet cores
    python experiments/muzero/cartpole_seeds.py --save --name few_steps -- --acting.environments 8 \
        --learn.reuse 32 --learn.reanalyse 0.5 --learn.start 512       # steps in the environment
    python experiments/muzero/cartpole_seeds.py --save --name gymnasium -- --game gymnasium:CartPole-v1

Each seed is a process of its own, with nothing compiled before. Seconds count from its start until 50 greedy episodes
first averaged 495 or more, looks and compilation included. Then the parameters are frozen, and play 200 fresh episodes.
Arguments after `--` go to `jaxzero train`.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RESULTS = pathlib.Path(__file__).parent.parent / "results"
FROZEN = "Measuring what was learned"


def one_seed(seed: int, goal: float, flags: list[str]) -> dict:
    """Runs a process; returns the seconds until it froze its parameters, and their mean return."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        command = [sys.executable, "-u", "-m", "jaxzero", "train", "--game", "cartpole", "--seed", str(seed)]
        command += ["--folder", str(run), "--budget.until", str(goal), *flags]
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": f"{folder}/programs"}
        began, frozen = time.monotonic(), None
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if FROZEN in line and frozen is None:
                    frozen = time.monotonic() - began
        if process.returncode:
            sys.exit(f"seed {seed}: the command ended with {process.returncode}")
        last = json.loads((run / "metrics.jsonl").read_text().splitlines()[-1])
        fresh = json.loads((run / "results.json").read_text())["after"]["greedy"]
    return {
        "seed": seed,
        "seconds": round(frozen, 1),
        "environment_steps": int(last["acting/steps"]),
        "reached": last.get("return/mean", 0.0) >= goal,
        "look": last.get("return/mean"),
        "fresh_mean": fresh["mean"],
        "fresh_error": fresh["error"],
        "fresh_episodes": fresh["episodes"],
    }


def main() -> None:
    """Runs the seeds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--save", action="store_true", help="write the results beside those of the other experiments")
    parser.add_argument("--name", default="time", help="of the row in the results; a number is added where it is taken")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--goal", type=float, default=495.0, help="mean return at which a run ends")
    parser.add_argument("flags", nargs="*", help="for jaxzero train, after --")
    given = parser.parse_args()
    rows = []
    for seed in range(given.seeds):
        rows.append(one_seed(seed, given.goal, given.flags))
        print(rows[-1], flush=True)
    found = {
        "flags": given.flags,
        "goal": given.goal,
        "median_seconds": statistics.median(row["seconds"] for row in rows),
        "most_seconds": max(row["seconds"] for row in rows),
        "median_environment_steps": statistics.median(row["environment_steps"] for row in rows),
        "least_fresh_mean": min(row["fresh_mean"] for row in rows),
        "seeds": rows,
    }
    print({name: x for name, x in found.items() if name != "seeds"})
    if given.save:
        import saved_rows

        from jaxzero.cli.circumstances import circumstances

        file = RESULTS / "muzero_cartpole.json"
        print(f"Written to {file}, row {saved_rows.add(file, given.name, circumstances() | found)}")


if __name__ == "__main__":
    main()
