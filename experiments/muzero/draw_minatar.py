"""MinAtar by MuZero and by PPO, in one picture for each game: mean return by steps in the environment.

python experiments/muzero/draw_minatar.py      # from the results of training_seeds.py and ppo_on_minatar.py
"""

import json
import pathlib

from jaxzero import viz

RESULTS = pathlib.Path(__file__).parent.parent / "results"
PICTURES = pathlib.Path(__file__).parents[2] / "notebooks" / "pictures"


def main() -> None:
    """Draws the results."""
    others = json.loads((RESULTS / "ppo_minatar.json").read_text())["seeds"]
    for file in sorted(RESULTS.glob("muzero_gymnax_*-MinAtar.json")):
        game, found = file.stem.removeprefix("muzero_gymnax_"), json.loads(file.read_text())
        series = {}
        for row in found["seeds"]:
            looks = row["curve"]
            series[f"MuZero, seed {row['seed']}"] = (
                [x["acting/steps"] for x in looks],
                [x["return/mean"] for x in looks],
            )
        for row in others:
            if row["game"] == game:
                steps, means = zip(*sorted((x["steps"], x["mean"]) for x in row["curve"]))
                series[f"PPO, seed {row['seed']}"] = steps, means
        picture = viz.curves(series, game, "steps in the environment", "mean return")
        print(picture.save(PICTURES / f"{game.lower()}.svg", overwrite=True))


if __name__ == "__main__":
    main()
