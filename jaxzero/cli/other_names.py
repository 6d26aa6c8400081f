"""Flag names of other tools, and the flags of jaxzero that do the same."""

import dataclasses
import difflib
import typing
from collections.abc import Iterator
from typing import Any

from jaxzero.cli.training.variant import values_of

__all__ = ["did_you_mean", "flags", "no_such_model"]

# Flags of jaxzero, and the names that other tools have for them. Of several flags, the first that the command has is
# meant.
SAME = {
    ("json", "folder"): "out output output-file results",
    ("folder", "weights"): (
        "run run-dir run-folder run-name dir directory path out-dir outdir output-dir output-folder logdir log-dir log "
        "workdir work-dir save-dir checkpoint-dir exp-name resume restore continue"
    ),
    ("weights", "players", "folder"): "load checkpoint ckpt network net nn model-path params",
    ("game",): "env environment env-name env-id env-name task",
    ("seed",): "random-seed rng-seed rng",
    ("size",): "board-size boardsize",
    ("second",): "play-second engine-first",
    ("seconds", "budget.minutes"): "time time-limit movetime time-per-move",
    ("budget.steps",): "iterations iters num-iterations n-iterations epochs num-epochs max-steps num-steps",
    ("acting.simulations", "selfplay.simulations", "simulations"): (
        "sims n-sims num-sims num-simulations n-simulations mcts-sims playouts visits"
    ),
    ("acting.environments", "selfplay.games"): "envs num-envs n-envs num-actors selfplay-games",
    ("evaluate.games", "games"): "eval-games num-games n-games matches rounds",
    ("learn.learning-rate",): "lr step-size",
    ("learn.capacity",): "buffer-size buffer replay-size replay-capacity memory-size",
    ("learn.optimiser",): "optimizer",
    ("network.normalisation",): "normalization",
    ("selfplay.trace", "learn.trace"): "lambda td-lambda",
}
OTHERS = {name: here for here, names in SAME.items() for name in names.split()}
# All values that --model may have; each settings class knows only some of them.
MODELS = ("rules", "learned", "stochastic", "simulator")
# The flag that a first word without a flag is likely to belong to: the first of these that the command has.
WORDS, PATHS = ("opponent", "players", "game"), ("opponent", "players", "weights", "folder")


def flags(settings: Any, prefix: str = "") -> Iterator[str]:
    """The flags of a settings class, as `--help` lists them, without the dashes.

    >>> from jaxzero.cli.afterstates.settings import Config
    >>> [name for name in flags(Config) if name.startswith(("folder", "learn"))]
    ['folder', 'learn.tuples', 'learn.games', 'learn.moves', 'learn.learning-rate']
    """
    for name, kind in typing.get_type_hints(settings, include_extras=True).items():
        plain, unprefixed = getattr(kind, "__origin__", kind), hasattr(kind, "__metadata__")
        if dataclasses.is_dataclass(plain):
            yield from flags(plain, prefix if unprefixed else f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}".replace("_", "-")


def did_you_mean(command: str, arguments: list[str], settings: Any) -> list[str]:
    """A suggestion for each argument that the settings do not have, but that has another name here.

    Args:
        command: the command's name.
        arguments: what follows it on the command line.
        settings: the class of its settings.

    >>> from jaxzero.cli.playing.play_settings import Play
    >>> did_you_mean("play", ["--run", "runs/go", "--seed", "3"], Play)
    ['jaxzero play has no --run. Did you mean --weights?']
    """
    own, lines = list(flags(settings)), []
    if arguments and not arguments[0].startswith("-"):
        here = next(name for name in (PATHS if "/" in arguments[0] else WORDS) if name in own)
        lines.append(f"jaxzero {command} {arguments[0]}: did you mean --{here} {arguments[0]}?")
    for given in (word.partition("=")[0] for word in arguments if word.startswith("--")):
        name = given.removeprefix("--").replace("_", "-")
        here = [x for x in OTHERS.get(name, ()) if x in own]
        if name not in own and here:
            lines.append(f"jaxzero {command} has no {given}. Did you mean --{here[0]}?")
    return lines


def no_such_model(arguments: list[str]) -> str:
    """The error message for an unknown `--model` of `jaxzero train`; empty if it is known.

    >>> no_such_model(["--model", "stochastc"])
    'jaxzero train: --model stochastc: one of rules, learned, stochastic, simulator. Did you mean stochastic?'
    >>> no_such_model(["--model", "learned"]), no_such_model([])
    ('', '')
    """
    model = "".join(values_of(arguments, "--model")[-1:])
    if not model or model in MODELS:
        return ""
    hint = "".join(f" Did you mean {x}?" for x in difflib.get_close_matches(model, MODELS, n=1))
    return f"jaxzero train: --model {model}: one of {', '.join(MODELS)}.{hint}"
