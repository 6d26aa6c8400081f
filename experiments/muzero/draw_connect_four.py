"""Connect Four learned with its rules and without, in one picture: outcome mistakes by minutes of learning.

python experiments/muzero/draw_connect_four.py      # from the results of training_seeds.py and of train.py
"""

import json
import pathlib

from jaxzero import viz

RESULTS = pathlib.Path(__file__).parent.parent / "results"
PICTURE = pathlib.Path(__file__).parents[2] / "notebooks" / "pictures" / "connect-four-without-rules.svg"


def main() -> None:
    """Draws the mistakes in per cent of the 1,144 positions, with 64 simulations."""
    rules = json.loads((RESULTS / "learning" / "laptop-cpu-amd-epyc-2-cores-2026-11-22.json").read_text())
    learned = json.loads((RESULTS / "muzero_connect_four.json").read_text())["seeds"]
    series, hour = {}, lambda rows: [(minutes, 100 * wrong) for minutes, wrong in rows if minutes <= 60]
    others = [run for run in rules["runs"] if run["seed"] != rules["longer"]["seed"]]  # it began as one of them
    for run in (rules["longer"], *others):
        series[f"with the rules, seed {run['seed']}"] = tuple(zip(*hour([x[1:] for x in run["looks"]])))
    for row in learned:
        rows = [(x["minutes"], x["mistakes/64"]) for x in row["curve"] if "mistakes/64" in x]
        series[f"without them, seed {row['seed']}"] = tuple(zip(*hour(rows)))
    picture = viz.curves(series, "Connect Four: outcome mistakes", "minutes of learning", "per cent")
    print(picture.save(PICTURE, overwrite=True))


if __name__ == "__main__":
    main()
