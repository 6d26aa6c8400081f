"""Which kind of training or playing the arguments of a command ask for. No jax here: see `settings`."""

import json
import pathlib

__all__ = ["learned_only", "plays_2048", "refuse_network_beside_weights", "refuse_weights", "values_of", "variant"]

# Environments with one agent: they are trained with a learned model.
LEARNED_ONLY, FAMILIES = ("cartpole", "pendulum"), ("gymnax:", "gymnasium:", "minatar-")
# One agent, and chance. With a learned model by default; with its rules, values of afterstates are learned.
AFTERSTATES = ("2048",)


def variant(arguments: list[str]) -> str:
    """The kind of training: "rules" or "learned", by --model, else by what suits --game; or "afterstates".

    >>> variant(["--game", "connect_four"]), variant(["--game=cartpole"]), variant(["--model", "learned"])
    ('rules', 'learned', 'learned')
    >>> variant(["--game", "2048"]), variant(["--game", "2048", "--model", "rules"])
    ('learned', 'afterstates')
    """
    asked, game = values_of(arguments, "--model"), values_of(arguments, "--game")
    if asked and asked[-1] == "rules" and game and game[-1] in AFTERSTATES:
        return "afterstates"
    if asked:
        return "learned" if asked[-1] in ("learned", "stochastic", "simulator") else "rules"
    return "learned" if game and learned_only(game[-1]) else "rules"


def learned_only(game: str) -> bool:
    """Whether the name is of an environment that cannot be trained by its rules."""
    return game in LEARNED_ONLY + AFTERSTATES or game.startswith(FAMILIES)


def plays_2048(arguments: list[str]) -> bool:
    """Whether the game to play is 2048: by --game; without it, by the settings beside the --weights.

    >>> plays_2048(["--game", "2048"]), plays_2048(["--game=2048", "--game", "go"]), plays_2048([])
    (True, False, False)
    """
    game, weights = values_of(arguments, "--game"), values_of(arguments, "--weights")
    if game or not weights:
        return bool(game) and game[-1] == "2048"
    path = pathlib.Path(weights[-1])
    try:
        kept = json.loads(((path if path.is_dir() else path.parent) / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return False  # the command that plays reports what is wrong with it
    return isinstance(kept, dict) and kept.get("game") == "2048"


def refuse_weights(arguments: list[str]) -> None:
    """Refuses `--weights` for runs that cannot begin with any.

    >>> refuse_weights(["--game", "cartpole", "--weights", "trained"])
    Traceback (most recent call last):
    SystemExit: train: --weights trained: only board games with --model rules can start from weights. Leave it out.
    """
    given = _weights(arguments)
    if given:
        raise SystemExit(
            f"train: --weights {given}: only board games with --model rules can start from weights. Leave it out."
        )


def refuse_network_beside_weights(arguments: list[str]) -> None:
    """Refuses `--network.*` where `--weights` says what the network is.

    >>> refuse_network_beside_weights(["--weights", "trained", "--network.blocks", "2"])
    Traceback (most recent call last):
    SystemExit: train: --network.blocks with --weights: the weights determine the network. ...
    """
    beside = ", ".join(word.split("=")[0] for word in arguments if word.startswith("--network."))
    if beside and _weights(arguments):
        raise SystemExit(f"train: {beside} with --weights: the weights determine the network. Leave --network.* out.")


def _weights(arguments: list[str]) -> str:
    """The value of --weights; empty where help is asked for."""
    return "" if {"--help", "-h"} & set(arguments) else "".join(values_of(arguments, "--weights")[-1:])


def values_of(arguments: list[str], flag: str) -> list[str]:
    """The values of a flag on a command line, as `--flag value` or `--flag=value`; of several, the last counts."""
    return [
        following if word == flag else word.removeprefix(f"{flag}=")
        for word, following in zip(arguments, [*arguments[1:], ""])
        if word == flag or word.startswith(f"{flag}=")
    ]
