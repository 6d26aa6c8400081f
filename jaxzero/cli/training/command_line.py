"""The command line of `jaxzero train`, for games with rules. No jax here: a mistyped flag is answered at once."""

import operator
import sys
from typing import Any

import tyro

from jaxzero.cli.playing.play_settings import of_go_alone
from jaxzero.cli.training.presets import PRESETS, defaults, preset_by_looks
from jaxzero.cli.training.settings import Config
from jaxzero.cli.training.variant import learned_only, refuse_network_beside_weights, values_of

__all__ = ["check_numbers", "check_seed", "parse"]

DESCRIPTION = """Learn a board game by self-play: AlphaZero with the Gumbel search, on all available devices.

    jaxzero train                                           # Connect Four, with the defaults
    jaxzero train --budget.minutes 3                        # shorter
    jaxzero train --game tic_tac_toe --budget.minutes 2
    jaxzero train --game go --size 9 --budget.minutes 30
    jaxzero train --game backgammon --budget.minutes 60     # dice: the search has chance nodes
    jaxzero train --game mygame:game                        # a game of your own: `game` in mygame.py
    jaxzero train --help                                    # every setting
    jaxzero train --model learned --help                    # settings of MuZero, which learns the model, too

The same command continues the run in its folder (Ctrl-C and SIGTERM save first), and a larger budget extends a finished
run: the result is as if it had never been interrupted. At the end, a table compares the networks before and after:
games against a random player and UCT, and, for Connect Four, the share of outcome mistakes on exactly solved positions.
"""

# Numbers outside these ranges have no meaning.
RANGES = {
    (1, float("inf")): (
        "network.window", "network.channels", "network.blocks", "selfplay.games", "selfplay.plies",
        "selfplay.simulations",
        "selfplay.max_considered", "selfplay.window", "learn.batch_size", "learn.capacity", "learn.hold",
        "learn.parts", "evaluate.simulations", "evaluate.rollouts",
    ),
    (0, float("inf")): (
        "selfplay.max_opening_plies", "selfplay.random_plies", "learn.learning_rate", "learn.reuse", "learn.warmup",
        "learn.weight_decay", "learn.value_weight", "learn.start", "budget.steps", "save_minutes", "evaluate.games",
        "evaluate.every",
    ),
    (0.5, 10): ("learn.policy_temperature",),
    (1e-3, 10): ("selfplay.value_scale",),
    (1e-3, float("inf")): ("selfplay.tolerance",),
    (0, 1): (
        "selfplay.random_rate", "selfplay.trace", "selfplay.softness", "learn.average_decay", "learn.playing_decay",
        "learn.newest",
    ),
}  # fmt: skip


def parse(arguments: list[str] | None = None, preset: str | None = None) -> Config:
    """The settings from the command line, over those of a preset: the one asked for, or the one that looks right.

    >>> [parse(["--game", name], "laptop").selfplay.tolerance for name in ("connect_four", "hex_7x7")]
    [0.4, None]
    """
    words = sys.argv[1:] if arguments is None else arguments
    asked = _asked_for(words)
    game = [Config.game, *values_of(words, "--game")][-1]
    default = defaults(preset or asked or preset_by_looks(), game)
    given = _spelled_out(words, "selfplay.rescale_values")
    config = tyro.cli(Config, default=default, args=given, prog="jaxzero train", description=DESCRIPTION)
    check_numbers(config, RANGES)
    if learned_only(config.game):
        raise SystemExit(f"train: --game {config.game} needs a learned model: give --model learned.")
    typed = lambda name: getattr(config, name) if values_of(words, f"--{name}") else None
    try:
        of_go_alone(config.game, typed("size"), typed("komi"))
    except ValueError as error:
        raise SystemExit(f"train: {error}") from None
    refuse_network_beside_weights(words)
    if config.network.blocks > 40 or len(config.network.hidden) > 32:
        raise SystemExit("train: --network: a weights file holds at most 40 blocks, or 32 hidden layers.")
    return config


def _spelled_out(words: list[str], name: str) -> list[str]:
    """The arguments, with a value after the flag of a setting that may be None: tyro has no --no-... for these.

    >>> _spelled_out(["--a.no-b", "--a.b", "--c", "1"], "a.b")
    ['--a.b', 'False', '--a.b', 'True', '--c', '1']
    >>> _spelled_out(["--a.b", "None"], "a.b")
    ['--a.b', 'None']
    """
    group, last = name.replace("_", "-").split(".")
    on, off = f"--{group}.{last}", f"--{group}.no-{last}"
    arguments = []
    for word, following in zip(words, [*words[1:], ""]):
        flag = word.replace("_", "-")
        has_value = flag == on and following in ("None", "True", "False")
        arguments += [on, str(flag == on)] if flag in (on, off) and not has_value else [word]
    return arguments


def check_numbers(config: Any, ranges: dict[tuple[float, float], tuple[str, ...]]) -> None:
    """Refuses numbers that have no meaning, for any kind of training.

    Args:
        config: the settings.
        ranges: the names of settings by the least and the largest number that they may be.
    """
    for (low, high), names in ranges.items():
        for name in names:
            value = operator.attrgetter(name)(config)
            if value is not None and not low <= value <= high:
                allowed = f"between {low} and {high}" if high < float("inf") else f"{low} or more"
                raise SystemExit(f"train: --{name} {value:g} is out of range: {allowed}.")
    check_seed(config.seed)
    if config.evaluate.games % 2:
        raise SystemExit(
            f"train: --evaluate.games {config.evaluate.games} is odd: give an even number, for both colours."
        )
    for n in config.evaluate.position_simulations:
        if n < 1:
            raise SystemExit(f"train: --evaluate.position_simulations {n} is out of range: 1 or more.")
    if not config.budget.minutes > 0:
        raise SystemExit(f"train: --budget.minutes {config.budget.minutes:g}: a run needs some time, like 3.")


def check_seed(seed: int) -> None:
    """Refuses seeds beyond 32 bits: jax takes them modulo 2^32, if at all, so two of them would be the same run."""
    if not 0 <= seed < 2**32:
        raise SystemExit(f"train: --seed {seed} is out of range: between 0 and {2**32 - 1}.")


def _asked_for(arguments: list[str]) -> str | None:
    """The preset among the arguments, if any: the defaults of the others depend on it, so it is looked for first."""
    return next((value for value in values_of(arguments, "--preset")[-1:] if value in PRESETS), None)
