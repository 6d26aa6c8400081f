"""The settings of `jaxzero train --game 2048 --model rules`. No jax here: `--help` is answered at once."""

import dataclasses
import operator
import sys
from typing import Any, Literal

import tyro

from jaxzero.cli.training.command_line import check_seed
from jaxzero.cli.training.variant import refuse_weights

__all__ = ["FREE", "Config", "parse"]

DESCRIPTION = """Learn 2048 with its rules: an n-tuple network, by temporal differences of afterstates.

    jaxzero train --game 2048 --model rules                            # an hour, with 256 MiB of weights
    jaxzero train --game 2048 --model rules --learn.tuples five_fours  # 1.3 MiB of weights; minutes are enough
    jaxzero train --game 2048                                          # MuZero, without the rules

The same command continues the run in its folder (Ctrl-C and SIGTERM save first), and a larger budget extends a finished
run. At the end it prints the scores of whole games, without a search and with one that knows the chances of the tiles.
"""


@dataclasses.dataclass(frozen=True)
class Learn:
    tuples: Literal["four_sixes", "five_fours"] = "four_sixes"
    """four_sixes: four tuples of six cells (Yeh et al. 2016), 67 million weights. five_fours: lines and squares of four
    cells, 0.3 million."""
    games: int = 64
    """Games in lock-step, which train one network."""
    moves: int = 1000
    """Moves in each game per iteration."""
    learning_rate: float = 1.0
    """Factor on the step sizes of temporal coherence (Jaskowski 2016: 1)."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 60.0
    """Minutes of learning. Compilation and the final evaluation do not count."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    games: int = 200
    """Whole games at the end, for each number of simulations; 0: none."""
    simulations: tuple[int, ...] = (0, 16, 64)
    """Simulations per move, by the true rules; 0: no search, the best reward plus afterstate value."""


@dataclasses.dataclass(frozen=True)
class Config:
    """A training run."""

    game: Literal["2048"] = "2048"
    """The game."""
    model: Literal["rules"] = "rules"
    """Searches use the rules. (`--model learned`: MuZero.)"""
    folder: str = ""
    """The run's folder. Default: runs/2048."""
    seed: int = 0
    """Random seed."""
    save_minutes: float = 10.0
    """Minutes between checkpoints, of up to 770 MiB."""
    learn: Learn = Learn()
    budget: Budget = Budget()
    evaluate: Evaluate = Evaluate()


FREE = ("budget", "evaluate", "save_minutes", "folder")  # may differ when a run is continued
LEAST = {"learn.games": 1, "learn.moves": 1, "budget.steps": 0, "evaluate.games": 0, "save_minutes": 0}


def parse(arguments: list[str] | None = None) -> Config:
    """The settings from the command line."""
    words = sys.argv[1:] if arguments is None else arguments
    refuse_weights(words)
    config = tyro.cli(Config, args=words, prog="jaxzero train", description=DESCRIPTION)
    for name, least in LEAST.items():
        value: Any = operator.attrgetter(name)(config)
        if not value >= least:
            raise SystemExit(f"train: --{name} {value:g} is out of range: {least} or more.")
    if not 0 < config.learn.learning_rate <= 1:
        raise SystemExit(f"train: --learn.learning-rate {config.learn.learning_rate:g}: above 0, up to 1.")
    if any(n < 0 for n in config.evaluate.simulations):
        raise SystemExit(f"train: --evaluate.simulations {config.evaluate.simulations}: 0 or more, each.")
    check_seed(config.seed)
    if not config.budget.minutes > 0:
        raise SystemExit(f"train: --budget.minutes {config.budget.minutes:g}: a run needs some time, like 3.")
    return config
