"""Learning without the rules by `jaxzero train` itself, over several seeds, and how good the results are.

    python experiments/muzero/training_seeds.py --game tic_tac_toe --save           # three seeds of three minutes each
    python experiments/muzero/training_seeds.py --game connect_four --minutes 60 --folder runs/no_rules --save
    python experiments/muzero/training_seeds.py --game pendulum --minutes 6 --save
    python experiments/muzero/training_seeds.py --game gymnax:Breakout-MinAtar --seeds 1 --save  # an hour

Each seed is a process of its own, with a folder of its own: an interrupted one continues when called again. Results,
during learning and at the end, are returns of greedy episodes; for board games, outcome mistakes on positions with
exact values, of the search and of the network alone; for tic-tac-toe, also games against every legal reply. Arguments
after `--` go to `jaxzero train`. With --save each seed is added to the file when it ends. A seed that the file has is
not run again, and a file of another game, model or flags is refused: --name measures into a new file.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from jaxzero.cli.circumstances import circumstances
from jaxzero.runs.run_folder import write_whole

RESULTS = pathlib.Path(__file__).parent.parent / "results"
CIRCUMSTANCES = ("date", "hardware", "versions")
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


def saved_before(file: pathlib.Path, settings: dict, named: bool) -> list[dict]:
    """The seeds that a file has, each with its own date, hardware and versions.

    Args:
        file: of the results; it may be missing.
        settings: game, model and flags, which must be the file's.
        named: the file was named by --name. Otherwise its name tells the game and the model of an old file, which
            does not contain them.

    Raises:
        ValueError: it has other settings, or results of another kind.
    """
    if not file.exists():
        return []
    saved = json.loads(file.read_text())
    if "seeds" not in saved or "flags" not in saved:
        raise ValueError(f"{file} has other results than seeds of this script: give --name and a new name.")
    known = ({} if named else settings) | saved
    for name, value in settings.items():
        if known.get(name) != value:
            has = known.get(name, "not recorded")
            raise ValueError(f"{file}: its {name}: {has}; given: {value}. Give --name and a new name.")
    once = {name: saved[name] for name in CIRCUMSTANCES if name in saved}  # files had them once for all seeds
    return [once | row for row in saved["seeds"]]


def add(file: pathlib.Path, settings: dict, named: bool, row: dict) -> None:
    """Adds a seed to the file, which is read anew: another process may have added seeds meanwhile."""
    rows = {other["seed"]: other for other in [row, *saved_before(file, settings, named)]}
    seeds = [rows[seed] for seed in sorted(rows)]
    write_whole(file, json.dumps(settings | {"seeds": seeds}, indent=1) + "\n")


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
    file, settings = RESULTS / f"muzero_{name}.json", {"game": given.game, "model": given.model, "flags": flags}
    try:
        known = saved_before(file, settings, bool(given.name)) if given.save else []
    except ValueError as error:
        parser.error(f"--save: {error}")
    for seed in range(given.first, given.first + given.seeds):
        if any(row["seed"] == seed for row in known):
            print(f"Seed {seed} is in {file} already; --name measures it anew, into a new file.", flush=True)
            continue
        folder = given.folder / f"{name}_{seed}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        row = one_seed(given, seed, folder, flags)
        print({name: x for name, x in row.items() if name != "curve"}, flush=True)
        if given.save:
            add(file, settings, bool(given.name), circumstances() | row)


if __name__ == "__main__":
    main()
