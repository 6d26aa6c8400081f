"""The settings of `train.py`: no jax here, so that `--help` and a mistyped flag are answered at once."""

import dataclasses
import glob
import importlib.util
import operator
import os
from typing import Literal

import tyro

__all__ = ["FREE", "PRESETS", "Config", "parse", "preset_by_looks"]


@dataclasses.dataclass(frozen=True)
class Network:
    kind: Literal["mlp", "resnet"] = "mlp"
    """mlp: fast on a CPU; resnet: the tower of AlphaZero, for accelerators."""
    hidden: tuple[int, ...] = (256, 256, 256)
    """mlp: width of each hidden layer."""
    channels: int = 64
    """resnet: width of the tower."""
    blocks: int = 6
    """resnet: residual blocks."""


@dataclasses.dataclass(frozen=True)
class SelfPlay:
    games: int = 256
    """Games in lock-step."""
    plies: int = 8
    """Moves in each game per iteration."""
    simulations: int = 32
    """Simulations per move."""
    max_considered: int = 16
    """Actions that the Gumbel search considers at the root (no more than the game has)."""
    random_plies: int = 8
    """The chance of a random move falls from 1 to `random_rate` over these plies, so that openings differ."""
    random_rate: float = 0.02
    """Chance of a random move later on."""
    trace: float = 0.9
    """Lambda of the value target: 1 for the game's outcome; below, it leans on the searched values."""
    window: int = 64
    """Plies that wait for the end of their game; longer games are bootstrapped from the root value."""


@dataclasses.dataclass(frozen=True)
class Learn:
    batch_size: int = 512
    """Rows per minibatch."""
    reuse: float = 4.0
    """How often a position is learned from, on average: minibatches follow from it."""
    learning_rate: float = 2e-3
    """Peak of AdamW's learning rate: warmed up, then a half cosine to 0 at the end of the budget."""
    warmup: int = 200
    """Minibatches of linear warm-up."""
    weight_decay: float = 1e-3
    """L2, decoupled (AdamW)."""
    average_decay: float = 0.998
    """Of the moving average of the parameters, which plays and is evaluated."""
    capacity: int = 400_000
    """Rows that the replay buffer holds."""
    newest: float = 0.6
    """Sample from this newest share of all positions so far (the early ones are the worst)."""
    start: int = 10_000
    """Positions to have before learning begins."""


@dataclasses.dataclass(frozen=True)
class Budget:
    minutes: float = 9.0
    """Wall-clock for self-play and learning, compilation included; the evaluation takes a minute or two more."""
    steps: int = 0
    """Stop after this many iterations (0: no limit)."""


@dataclasses.dataclass(frozen=True)
class Evaluate:
    games: int = 100
    """Against each opponent, half of them with each colour, from openings of two random moves."""
    simulations: int = 100
    """Simulations per move of ours."""
    rollouts: int = 1000
    """Simulations per move of UCT, a random playout each."""
    position_simulations: int = 64
    """Simulations on the exact positions."""


@dataclasses.dataclass(frozen=True)
class Config:
    game: str = "connect_four"
    """A two-player game that pgx knows."""
    folder: str = ""
    """Where the run lives. Default: runs/<game>."""
    seed: int = 0
    """Everything random follows from it (a wall-clock budget does not repeat exactly)."""
    save_minutes: float = 3.0
    """Time between checkpoints."""
    network: Network = Network()
    selfplay: SelfPlay = SelfPlay()
    learn: Learn = Learn()
    budget: Budget = Budget()
    evaluate: Evaluate = Evaluate()


# The defaults suit two CPU cores. Where there is an accelerator these take their place.
PRESETS = {
    "cpu": Config(),
    "gpu": Config(
        network=Network(kind="resnet", channels=64, blocks=6),
        selfplay=SelfPlay(games=1024, plies=16),
        learn=Learn(batch_size=2048, capacity=1_000_000),
    ),
}
FREE = ("budget", "evaluate", "save_minutes", "folder")  # may differ when a run is continued


def preset_by_looks() -> str:
    """Which preset will be right, without importing jax: `--help` is to answer at once."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    plugin = any(importlib.util.find_spec(name) for name in ("jax_cuda12_plugin", "jax_cuda13_plugin"))
    return "gpu" if plugin and glob.glob("/dev/nvidia[0-9]*") and platforms in ("", "cuda", "gpu") else "cpu"


# What lies outside these has no meaning.
RANGES = {
    (1, float("inf")): (
        "network.channels", "network.blocks", "selfplay.games", "selfplay.plies", "selfplay.simulations",
        "selfplay.max_considered", "selfplay.window", "learn.batch_size", "learn.capacity", "evaluate.games",
        "evaluate.simulations", "evaluate.rollouts", "evaluate.position_simulations",
    ),
    (0, float("inf")): (
        "selfplay.random_plies", "learn.learning_rate", "learn.reuse", "learn.warmup", "learn.weight_decay",
        "learn.start", "budget.steps", "save_minutes",
    ),
    (0, 1): ("selfplay.random_rate", "selfplay.trace", "learn.average_decay", "learn.newest"),
}  # fmt: skip


def parse(description: str | None, preset: str | None = None, arguments: list[str] | None = None) -> Config:
    """The settings from the command line, upon those of a preset (default: the one that looks right)."""
    config = tyro.cli(Config, default=PRESETS[preset or preset_by_looks()], args=arguments, description=description)
    for (low, high), names in RANGES.items():
        for name in names:
            value = operator.attrgetter(name)(config)
            if not low <= value <= high:
                allowed = f"between {low} and {high}" if high < float("inf") else f"{low} or more"
                raise SystemExit(f"train.py: --{name} {value:g} is out of range: {allowed}.")
    return config
