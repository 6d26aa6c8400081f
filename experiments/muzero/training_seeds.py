"""Learning without the rules by `jaxzero train` itself, over several seeds, and how good the results are.

    python experiments/muzero/training_seeds.py --game tic_tac_toe --save           # three seeds of three minutes each
    python experiments/muzero/training_seeds.py --game connect_four --minutes 60 --folder runs/no_rules --save
    python experiments/muzero/training_seeds.py --game pendulum --minutes 6 --save
    python experiments/muzero/training_seeds.py --game gymnax:Breakout-MinAtar --seeds 1 --save  # an hour

Each seed is a process of its own, with a folder of its own: an interrupted one continues when called again. Results,
during learning and at the end, are returns of greedy episodes; for board games, outcome mistakes on positions with
exact values, of the search and of the network alone; for tic-tac-toe, also games against every legal reply. Arguments
after `--` go to `jaxzero train`. Other seeds that were saved before, with the same flags, stay in the file.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from jaxzero.cli.circumstances import circumstances

RESULTS = pathlib.Path(__file__).parent.parent / "results"
CURVE = ("minutes", "acting/steps", "return/", "mistakes/", "model/")


def one_seed(given: argparse.Namespace, seed: int, folder: pathlib.Path, flags: list[str]) -> dict:
    """Runs a process, and reads what it wrote."""
    command = [sys.executable, "-m", "jaxzero", "train", "--game", given.game, "--model", given.model]
    command += ["--seed", str(seed)]
    subprocess.run([*command, "--folder", str(folder), *flags], check=True)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    after = json.loads((folder / "results.json").read_text())["after"]
    looks = [row for row in rows if any(name.startswith(("model/", "return/")) for name in row)]
    return {
        "seed": seed,
        "minutes": rows[-1]["minutes"],
        "environment_steps": rows[-1]["acting/steps"],
        "curve": [{name: x for name, x in row.items() if name.startswith(CURVE)} for row in looks],
        "after": after,
    }


def before(file: pathlib.Path, flags: list[str]) -> list[dict]:
    """Seeds that were saved earlier, if they had the same flags."""
    saved = json.loads(file.read_text()) if file.exists() else {"flags": None}
    return saved["seeds"] if saved["flags"] == flags else []


def main() -> None:
    """Runs the seeds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--game", default="tic_tac_toe", help="as jaxzero train knows it")
    parser.add_argument("--model", default="learned", help="learned or stochastic")
    parser.add_argument("--minutes", type=float, help="of learning for each seed")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--folder", type=pathlib.Path, default="runs/training_seeds", help="folder of the runs")
    parser.add_argument("--name", help="of the results file, to distinguish runs of a game with different flags")
    parser.add_argument("--save", action="store_true", help="write the results beside those of the other experiments")
    parser.add_argument("flags", nargs="*", help="for jaxzero train, after --")
    given = parser.parse_args()
    flags = ([] if given.minutes is None else ["--budget.minutes", str(given.minutes)]) + given.flags
    name = given.name or given.game.replace(":", "_") + ("_stochastic" * (given.model == "stochastic"))
    rows: list[dict] = []
    for seed in range(given.first, given.first + given.seeds):
        folder = given.folder / f"{name}_{seed}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        rows.append(one_seed(given, seed, folder, flags))
        print({name: x for name, x in rows[-1].items() if name != "curve"}, flush=True)
    if given.save:
        file = RESULTS / f"muzero_{name}.json"
        kept = {row["seed"]: row for row in before(file, flags) + rows}
        seeds = [kept[seed] for seed in sorted(kept)]
        file.write_text(json.dumps(circumstances() | {"flags": flags, "seeds": seeds}, indent=1) + "\n")


if __name__ == "__main__":
    main()
