"""The costs and benefits of the search's options.

    .venv/bin/python experiments/options.py                          # everything: some twenty minutes on two cores
    .venv/bin/python experiments/options.py --quick                  # in miniature, to check that it works
    .venv/bin/python experiments/options.py --parts costs --shapes 1x200x9 --only avoid_proven decided
    .venv/bin/python experiments/options.py --parts lanes rounds --run runs/connect_four --games 400

    costs     the time of a search with each option, divided by that without it, with a free network
    solver    proven values on exactly solved Connect Four endings: how many, how many wrong, what stopping saves
    graph     transpositions against the tree: positions per simulation, mistakes, proven values
    reuse     evaluations kept from move to move: are visits the same, and how many network calls are saved?
    lanes     leaves in parallel with one game and a residual network: simulations per second; with --run: Elo
    rounds    Gumbel search in rounds against one simulation after another: time, actions; with --run: Elo

Prints tables and writes a new file `experiments/results/options/<device>-<date>.json`. Compared runs alternate in one
process, so that other load on the machine affects all of them alike; the load is recorded.
"""

import dataclasses
import functools
import importlib
import pathlib
import sys
from collections.abc import Callable
from typing import Literal

import tyro

HERE = pathlib.Path(__file__).parent
Part = Literal["costs", "solver", "graph", "reuse", "lanes", "rounds"]
Virtual = Literal["visits", "mean", "loss"]
MODULES = {
    "costs": "costs", "solver": "solver_graph", "graph": "solver_graph", "reuse": "evaluation_reuse",
    "lanes": "batching", "rounds": "batching",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Config:
    parts: tuple[Part, ...] = ("costs", "solver", "graph", "reuse", "lanes", "rounds")
    """What to measure."""
    quick: bool = False
    """Everything in miniature; settings given explicitly still apply."""
    seconds: float = 10.0
    """costs, lanes, rounds: seconds for the runs of one table, if three of each fit."""
    shapes: tuple[str, ...] = ("1x200x9", "64x200x82")
    """costs: games x simulations x actions; simulations a multiple of 8."""
    only: tuple[str, ...] = ()
    """costs: options whose names contain one of these words; none: all."""
    positions: int = 344
    """solver, graph: at most this many solved positions of each phase of Connect Four."""
    simulations: int = 1000
    """solver, graph: simulations per position."""
    phases: tuple[Literal["start", "opening", "middle", "end"], ...] = ("start", "opening", "middle", "end")
    """graph: positions of Connect Four, the first one or exact ones of a phase."""
    start_simulations: int = 8000
    """solver: simulations for the first position of tic-tac-toe."""
    kept_positions: int = 500
    """reuse, rounds: positions on which two searches are compared, with each number of games."""
    kept_batches: tuple[int, ...] = (1, 16)
    """reuse: games."""
    kept_simulations: int = 32
    """reuse: simulations per move."""
    network: str = "32x3"
    """reuse: channels x blocks of the residual network."""
    lane_networks: tuple[str, ...] = ("16x2", "32x3", "64x4")
    """lanes: residual networks, channels x blocks."""
    round_networks: tuple[str, ...] = ("16x2", "32x3")
    """rounds: likewise."""
    round_games_of: tuple[str, ...] = ("connect_four", "hex")
    """rounds: games that pgx knows; the first one is the one of `--run`."""
    lanes: tuple[int, ...] = (1, 4, 8, 16)
    """lanes: leaves per call of the network; 1 is always included."""
    virtual: tuple[Virtual, ...] = ("visits", "mean", "loss")
    """lanes: how walks in flight are counted (virtual loss)."""
    lane_simulations: int = 256
    """lanes: simulations, a multiple of every number of lanes."""
    round_games: int = 16
    """rounds: games."""
    round_simulations: int = 32
    """rounds: simulations per move."""
    run: pathlib.Path | None = None
    """lanes, rounds: the folder of a training run, whose network plays for Elo. reuse: plays with it, too."""
    games: int = 40
    """lanes, rounds: games of each match, an even number."""
    opening_plies: int = 4
    """lanes, rounds: random moves at the start; without them, two fixed players would repeat their games."""
    output: pathlib.Path = HERE / "results" / "options"
    """Folder for the JSON file."""


QUICK = Config(
    quick=True, seconds=0.05, shapes=("2x16x12",), only=("avoid_proven", "decided", "advance"), positions=4,
    simulations=64, start_simulations=64, phases=("end",), kept_positions=4, kept_batches=(2,), kept_simulations=8,
    network="8x1", lanes=(4,), virtual=("visits",), lane_networks=("8x1",), lane_simulations=16, round_games=2,
    round_simulations=8, round_networks=("8x1",), round_games_of=("connect_four",), games=2,
    output=HERE.parent / "runs" / "quick",
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> Config:
    arguments = sys.argv[1:] if arguments is None else arguments
    default = QUICK if "--quick" in arguments else Config()
    config = tyro.cli(Config, default=default, args=arguments, description=__doc__)
    for shape in config.shapes:
        sizes = shape.split("x")
        if len(sizes) != 3 or not all(size.isdecimal() and int(size) > 0 for size in sizes) or int(sizes[1]) % 8:
            raise SystemExit(
                f"{shape!r} is not a shape. Write games x simulations x actions, like 64x200x82, with a multiple of 8 "
                "simulations: parallel(8) is one of the options."
            )
    for name in ("positions", "simulations", "start_simulations", "kept_positions", "kept_simulations", "round_games",
                 "round_simulations", "lane_simulations", "opening_plies"):  # fmt: skip
        if getattr(config, name) < 1:
            raise SystemExit(f"--{name.replace('_', '-')} {getattr(config, name)}: at least 1.")
    if config.games < 2 or config.games % 2:
        raise SystemExit(f"--games {config.games}: use an even number, at least 2.")
    for network in (config.network, *config.lane_networks, *config.round_networks):
        sizes = network.split("x")
        if len(sizes) != 2 or not all(size.isdecimal() and int(size) > 0 for size in sizes):
            raise SystemExit(f"{network!r} is not a network. Write channels x blocks, like 32x3.")
    for lanes in config.lanes:
        if lanes < 1 or config.lane_simulations % lanes:
            raise SystemExit(f"--lanes {lanes}: use a divisor of --lane-simulations {config.lane_simulations}.")
    if min(config.kept_batches) < 1:
        raise SystemExit(f"--kept-batches {min(config.kept_batches)}: at least 1.")
    if config.run is not None and not (config.run / "weights.safetensors").is_file():
        raise SystemExit(f"--run {config.run}: it has no weights.safetensors. Give the folder of a training run.")
    if config.run is not None:
        readable_or_exit(config.run)
    return config


def readable_or_exit(run: pathlib.Path) -> None:
    """Loads the network of `--run` now: after the timings, a mistake would cost their time."""
    from bench.options.networks_and_matches import trained

    try:
        trained(run)
    except (ValueError, ImportError, OSError) as error:
        raise SystemExit(f"--run {run}: {error}") from None


def main(config: Config) -> None:
    # jax is imported here, not above: --help and a mistyped flag are answered at once.
    from bench.measure import measure

    settings = dataclasses.asdict(config) | {"run": config.run and config.run.name}
    del settings["output"]  # a path of this machine

    def run(part: Part, keep: Callable[[dict], None]) -> tuple[dict, str]:
        return getattr(importlib.import_module(f"bench.options.{MODULES[part]}"), part)(config, keep)

    measure({part: functools.partial(run, part) for part in config.parts}, settings, config.quick, config.output)


if __name__ == "__main__":
    main(parse())
