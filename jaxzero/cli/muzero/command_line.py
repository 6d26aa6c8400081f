"""The command line of `jaxzero train --model learned`. No jax here: a mistyped flag is answered at once."""

import sys

import tyro

from jaxzero.cli.muzero.presets import PRESETS, preset_for
from jaxzero.cli.muzero.settings import Config
from jaxzero.cli.training.command_line import check_numbers
from jaxzero.cli.training.variant import refuse_weights, values_of

__all__ = ["RANGES", "parse"]

DESCRIPTION = """Learn without the rules, or in a simulator: MuZero with the Gumbel search, on all available devices.

    jaxzero train --game cartpole                            # solved in about a minute
    jaxzero train --game cartpole --learn.reanalyse 0.5      # from fewer steps in the environment
    jaxzero train --game pendulum                            # continuous actions: Sampled MuZero
    jaxzero train --game gymnax:Breakout-MinAtar             # an hour; needs: pip install '.[gymnax]'
    jaxzero train --game gymnasium:CartPole-v1               # needs: pip install '.[gymnasium]'
    jaxzero train --game tic_tac_toe --model learned         # three minutes; the search does not know the rules
    jaxzero train --game connect_four --model learned        # an hour; --budget.minutes 20 is shorter
    jaxzero train --game 2048 --model stochastic             # a game of chance; its outcomes are learned, too
    jaxzero train --game 2048 --model simulator              # the search steps the game itself, and knows its chances
    jaxzero train --game my_module:environment --model learned   # an Environment of your own

The same command continues the run in its folder (Ctrl-C and SIGTERM save first), and a larger budget extends a finished
run. For the papers' terms see notebooks/choosing.md.
"""

# Numbers outside these ranges have no meaning.
RANGES = {
    (1, float("inf")): (
        "network.embedding", "network.width", "network.depth", "network.channels",
        "network.blocks", "acting.environments",
        "acting.steps", "acting.simulations", "acting.max_considered", "learn.batch_size", "learn.unroll",
        "learn.returns", "learn.hold", "learn.capacity", "learn.parts", "evaluate.simulations", "evaluate.rollouts",
        "evaluate.longest", "network.codes",
    ),
    (2, 10_000): ("network.bins", "network.policy_bins"),
    (1e-9, float("inf")): ("network.limit", "acting.range_floor", "learn.reuse", "learn.clip_norm"),
    (0, float("inf")): (
        "acting.openings", "learn.priority", "network.window",
        "learn.correction", "learn.value_weight", "learn.reward_weight", "learn.consistency", "learn.learning_rate",
        "learn.reconstruction", "learn.code_entropy",
        "learn.warmup", "learn.weight_decay", "learn.start", "budget.steps", "save_minutes",
        "evaluate.episodes", "evaluate.final", "evaluate.every", "evaluate.games",
    ),
    (0, 1): ("acting.random_rate", "learn.trace", "learn.reanalyse", "learn.average_decay"),
}  # fmt: skip


def parse(arguments: list[str] | None = None, preset: str | None = None) -> Config:
    """The settings from the command line, over those of a preset: the one asked for, or the one for game and model."""
    words = sys.argv[1:] if arguments is None else arguments
    asked = [x for x in values_of(words, "--preset")[-1:] if x in PRESETS]
    game, model = ([getattr(Config, name), *values_of(words, f"--{name}")][-1] for name in ("game", "model"))
    refuse_weights(words)
    default = PRESETS[preset or (asked[-1] if asked else preset_for(game, model))]
    config = tyro.cli(Config, default=default, args=words, prog="jaxzero train", description=DESCRIPTION)
    check_numbers(config, RANGES)
    if config.model == "stochastic" and config.network.codes < 2:
        raise SystemExit(f"train: --network.codes {config.network.codes}: give 2 or more outcomes.")
    if config.model == "stochastic" and (config.network.window or config.learn.consistency):
        raise SystemExit(
            "train: --model stochastic has no windows and no consistency loss: leave --network.window and "
            "--learn.consistency out."
        )
    if config.model == "simulator" and (config.learn.consistency or config.learn.reanalyse):
        raise SystemExit(
            "train: --model simulator learns no dynamics, and cannot search observations again: leave "
            "--learn.consistency and --learn.reanalyse out."
        )
    return config
