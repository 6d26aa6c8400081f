"""Sizes that follow from the settings, and the check that the numbers fit one another."""

from typing import Any

from jaxzero.cli.muzero.settings import Config
from jaxzero.train.muzero.reanalyse import reanalysed

__all__ = ["check", "least_steps", "minibatches", "ring_length", "room", "unrolled"]


def minibatches(config: Config) -> int:
    """Per iteration."""
    steps = config.acting.environments * config.acting.steps
    return max(1, round(steps * config.learn.reuse / config.learn.batch_size))


def ring_length(config: Config) -> int:
    """Steps that the ring of one environment holds: a multiple of the steps written at a time."""
    chunk = config.acting.steps
    return max(1, round(config.learn.capacity / (config.acting.environments * chunk))) * chunk


def room(config: Config) -> int:
    """Steps that all rings hold: the capacity, as nearly as rings of this length can."""
    return ring_length(config) * config.acting.environments


def unrolled(config: Config) -> int:
    """Steps that the loss unrolls the model; none where the search steps the environment itself."""
    return 0 if config.model == "simulator" else config.learn.unroll


def window(config: Config) -> int:
    """Steps that the targets of one unroll need."""
    return unrolled(config) + config.learn.returns + 1


def least_steps(config: Config) -> int:
    """Steps to have before learning begins: those asked for, and a window in each ring."""
    return max(config.learn.start, window(config) * config.acting.environments)


def check(config: Config, environment: Any) -> None:
    """Raises a ValueError for numbers that do not fit one another, or the environment."""
    own, learn = config.acting, config.learn
    if window(config) > ring_length(config):
        raise ValueError(
            f"--learn.unroll {unrolled(config)} and --learn.returns {learn.returns} need windows of {window(config)} "
            f"steps, and the replay holds {ring_length(config)} of each of {own.environments} environments: use "
            f"--learn.capacity {-(-window(config) // own.steps) * own.steps * own.environments} or more, or shorter "
            "returns."
        )
    if least_steps(config) > room(config):
        raise ValueError(
            f"--learn.start {learn.start} with --learn.capacity {learn.capacity}: learning would never begin. "
            f"Use --learn.start {room(config)} or less, or a larger capacity."
        )
    each = learn.batch_size // learn.parts
    if learn.reanalyse and not reanalysed(learn.reanalyse, each):
        raise ValueError(
            f"--learn.reanalyse {learn.reanalyse:g} of the {each} windows in each of {learn.parts} parts of a batch "
            f"rounds to none: use --learn.reanalyse {1 / each:.3g} or more, a larger --learn.batch-size, or 0."
        )
    if config.budget.until is not None and environment.num_players == 2:
        raise ValueError(
            f"--budget.until {config.budget.until:g} is a mean return, but {environment.id} has two players, and is "
            "measured by a rating: leave it out."
        )
    if config.budget.until is not None and not (config.evaluate.episodes and config.evaluate.every != 0):
        raise ValueError(
            f"--budget.until {config.budget.until:g} needs greedy episodes during training: give "
            "--evaluate.episodes and --evaluate.every 1 or more, or leave it out."
        )
