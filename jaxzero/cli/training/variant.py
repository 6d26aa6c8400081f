"""Which kind of training is meant: by the rules of a game, or by a learned model. No jax here: see `settings`."""

__all__ = ["learned_only", "values_of", "variant"]

# Environments of one agent, whose training looks ahead with a model that is learned, too.
LEARNED_ONLY, FAMILIES = ("cartpole", "2048"), ("gymnax:", "gymnasium:", "minatar-")


def variant(arguments: list[str]) -> str:
    """What --model says, "rules" or "learned"; else what the --game can be trained with.

    >>> variant(["--game", "connect_four"]), variant(["--game=cartpole"]), variant(["--model", "learned"])
    ('rules', 'learned', 'learned')
    """
    asked, game = values_of(arguments, "--model"), values_of(arguments, "--game")
    if asked:
        return "learned" if asked[-1] == "learned" else "rules"
    return "learned" if game and learned_only(game[-1]) else "rules"


def learned_only(game: str) -> bool:
    """Whether it is an environment that cannot be trained by its rules."""
    return game in LEARNED_ONLY or game.startswith(FAMILIES)


def values_of(arguments: list[str], flag: str) -> list[str]:
    """What the flag is given on a command line, as `--flag value` or `--flag=value`; of several, the last holds."""
    return [
        following if word == flag else word.removeprefix(f"{flag}=")
        for word, following in zip(arguments, [*arguments[1:], ""])
        if word == flag or word.startswith(f"{flag}=")
    ]
