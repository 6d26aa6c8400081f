"""2048 in one table: scores of whole games, by any kind of trained run and by random playouts.

    jaxzero train --game 2048 --model simulator --budget.minutes 60 --folder runs/2048_simulator
    jaxzero train --game 2048 --model stochastic --budget.minutes 60 --folder runs/2048_stochastic
    python experiments/scores_2048.py runs/2048_simulator runs/2048_stochastic --save
    python experiments/scores_2048.py --playouts --games 20 --save     # the control: a search with random playouts

Without a search a network plays its most probable legal move. Runs of `--model rules` are scored by the same games.
"""

import argparse
import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxzero as jz
from jaxzero import environments, games, models, nets
from jaxzero.cli.afterstates.evaluation import evaluated, planner, tables
from jaxzero.cli.circumstances import circumstances
from jaxzero.cli.muzero.command_line import parse
from jaxzero.cli.muzero.setup import policy, search_models
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.nets import weights
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.runs import metrics, progress_display
from jaxzero.search.qvalues import completed_by_mix_value

RESULTS = pathlib.Path(__file__).parent / "results" / "scores_2048.json"


def of_run(folder: pathlib.Path) -> tuple[Callable[[int], Callable], Any, dict[str, Any]]:
    """How a run plays with a number of simulations, its parameters, and its description."""
    config, file = json.loads((folder / "config.json").read_text()), folder / "weights.safetensors"
    rows = metrics.read(folder)
    about = {"run": folder.name, "model": config["model"], "minutes": round(rows[-1]["minutes"], 1)}
    about |= {"command": weights.read_about(file).get("command")}
    if config["model"] == "rules":
        network, params, _ = load_ntuples(file)
        return functools.partial(planner, network.value), params, about
    environment, (network, params, said) = environments.by_name("2048"), nets.load_learned(file)
    config = parse(["--game", "2048", "--model", config["model"], *flags_of(config)])
    model, _ = search_models(config, environment, network)

    def plan(simulations: int) -> Callable:
        if simulations == 0:
            return lambda params, keys, state: most_probable(model, params, keys, state)
        search = policy(config, environment, model, simulations, explore=False)
        return lambda params, keys, state: search(params, keys, state).action

    steps = rows[-1]["acting/steps"]
    return plan, params, about | {"steps": steps, "network": said["network"]["kind"]}


def flags_of(config: dict[str, Any]) -> list[str]:
    """The settings of a run that decide how it searches."""
    return ["--acting.range-floor", str(config["acting"]["range_floor"]), "--acting.max-considered", "4"]


def most_probable(model: Any, params: Any, keys: Any, state: Any) -> jax.Array:
    """The legal move that the network finds most probable."""
    root, _ = model.root(params, keys, state)
    return jnp.argmax(jnp.where(root.legal, root.prior_logits, -jnp.inf)[:, :4], -1)


def playouts(simulations: int) -> Callable:
    """The same search as for networks, by the true rules and chances, with a random playout per simulation."""
    game, qvalues = games.game_2048(), completed_by_mix_value(epsilon=1.0)
    build = lambda model: jz.gumbel(model, simulations, max_considered=4, gumbel_scale=0.0, qvalues=qvalues)
    search = with_listed_outcomes(build, models.rollout(game), game)
    return lambda params, keys, state: search(params, keys, state).action


def main() -> None:
    """Scores the players asked for; --save adds them to the earlier results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("runs", nargs="*", type=pathlib.Path, help="folders of runs")
    parser.add_argument("--games", type=int, default=200, help="of each player")
    parser.add_argument("--simulations", type=int, nargs="+", default=[0, 16, 64], help="of each move")
    parser.add_argument("--playouts", action="store_true", help="score a search with random playouts, too")
    parser.add_argument("--save", action="store_true", help="write the results beside those of the other experiments")
    given = parser.parse_args()
    players = [of_run(folder) for folder in given.runs]
    if given.playouts:
        players.append((playouts, None, {"run": "random playouts", "model": "rules and random play"}))
    key, kept = jax.random.key(2048), json.loads(RESULTS.read_text()) if RESULTS.exists() else {"players": []}
    for plan, params, about in players:
        counts = tuple(n for n in given.simulations if n or params is not None)
        found = evaluated(plan, params, given.games, counts, key, progress_display.announced)
        for caption, head, rows in tables(found):
            progress_display.table(f"{about['run']}: {caption.lower()}", head, rows)
        others = [row for row in kept["players"] if row["run"] != about["run"]]
        kept = {"players": [*others, about | {"scores": found} | circumstances()]}
        if given.save:
            RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
