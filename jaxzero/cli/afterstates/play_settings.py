"""The settings of `jaxzero play --game 2048`. No jax here: `--help` and mistakes are answered at once."""

import dataclasses
import math
import pathlib
import sys
from typing import Literal

import tyro

from jaxzero.cli.playing.play_settings import means_trained

__all__ = ["TRAINED", "Play", "parse", "weights_file"]

DESCRIPTION = """Play 2048, with the expected score of each move as a hint; or watch the program play.

    jaxzero play --game 2048                                # in the terminal
    jaxzero play --game 2048 --browser                      # in the browser, with arrow keys or swipes
    jaxzero play --game 2048 --watch --delay 0.1            # it plays by itself
    jaxzero play --game 2048 --weights runs/2048            # hints with the weights of a run

In the terminal: left, up, right, down, or a, w, d, s; `hint`, `undo`, `auto 10`, `new`, `quit`, `help`.
"""

TRAINED = pathlib.Path(__file__).parents[2] / "nets" / "trained" / "ntuples" / "2048.safetensors"
WEIGHTS = "weights.safetensors"  # in the folder of a run
TRAIN = """    jaxzero train --game 2048 --model rules --learn.tuples five_fours --budget.minutes 10
    jaxzero play --game 2048 --weights runs/2048"""


@dataclasses.dataclass(frozen=True)
class Play:
    """A game of 2048."""

    game: Literal["2048"] = "2048"
    """The game."""
    weights: str = ""
    """Weights for hints: the folder of a run of `jaxzero train --game 2048 --model rules`, or its weights file.
    Default: those that come with jaxzero."""
    simulations: int = 16
    """Simulations of the search for each hint; 0: no search, only the weights' values."""
    seed: int | None = None
    """Random seed of the tiles. Default: a new one each time."""
    browser: bool = False
    """Play on a page in a browser on this machine."""
    port: int | None = None
    """--browser: the port of the page. Default: 8000, or any free one if that is taken."""
    watch: bool = False
    """In the terminal: it plays by itself until the game is over, or Ctrl-C."""
    delay: float | None = None
    """--watch: seconds from move to move. Default: 0.5."""


def parse(arguments: list[str] | None = None) -> Play:
    """The settings from the command line. Exits with a sentence where they are invalid."""
    words = sys.argv[1:] if arguments is None else arguments
    config = tyro.cli(Play, args=words, prog="jaxzero play", description=DESCRIPTION)
    if mistake := _mistake(config):
        raise SystemExit(f"play: {mistake}")
    return config


def weights_file(config: Play) -> pathlib.Path:
    """The file that the settings name: itself, the one in a run's folder, or what comes with jaxzero."""
    path = TRAINED if not config.weights or means_trained(config.weights) else pathlib.Path(config.weights)
    return path / WEIGHTS if path.is_dir() else path


def _mistake(config: Play) -> str:
    """What is wrong with the settings, in a sentence; empty if nothing is."""
    if config.simulations < 0:
        return f"--simulations {config.simulations}: give 0, for no search, or more, like 16."
    if config.seed is not None and not 0 <= config.seed < 2**32:
        return f"--seed {config.seed}: give a number from 0 to {2**32 - 1}."
    if config.browser and config.watch:
        return "--browser --watch: the page has a button for it; leave --watch out."
    if config.port is not None and not config.browser:
        return f"--port {config.port}: it is the port of the page, so give --browser, too."
    if config.port is not None and not 1 <= config.port <= 65535:
        return f"--port {config.port}: give a port from 1 to 65535."
    if config.delay is not None and not config.watch:
        return f"--delay {config.delay:g}: it is the time between moves of --watch, so give --watch, too."
    if config.delay is not None and not (math.isfinite(config.delay) and config.delay >= 0):
        return f"--delay {config.delay:g}: give seconds, 0 or more, like 0.2."
    return _missing(config)


def _missing(config: Play) -> str:
    """What to do where there are no weights; empty if there are some."""
    file = weights_file(config)
    if file.is_file():
        return ""
    if not config.weights:
        return f"this copy of jaxzero has no weights for 2048. Train some in ten minutes:\n{TRAIN}"
    if pathlib.Path(config.weights).is_dir():
        return f"--weights {config.weights}: no {WEIGHTS} in this folder. Give a run's folder, or a file."
    return f"--weights {config.weights}: there is no such file or folder. Train some:\n{TRAIN}"
