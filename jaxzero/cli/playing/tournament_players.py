"""The players of a tournament, built from their words on the command line."""

import json
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

import jaxzero as jz
from jaxzero import models
from jaxzero.cli.evaluation_search import to_win
from jaxzero.cli.playing import network_models
from jaxzero.cli.playing.tournament_settings import Entrant, is_trained
from jaxzero.cli.training.settings import VALUE_SCALE
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.nets import weights
from jaxzero.play import arena, match_programs, perfect_player
from jaxzero.runs import progress_display

__all__ = ["Player", "player", "repeats", "sharing_programs"]


class Player(NamedTuple):
    """A player of a tournament: a policy with its parameters, and its program, which all its matches share."""

    name: str
    policy: Callable
    params: Any = None
    rates: bool = False  # it rates moves, so its mistakes are of interest
    about: Any = None  # what its file says of it
    program: match_programs.Program | None = None


def player(entrant: Entrant, game: Any, rules: str = "", value_scale: float = VALUE_SCALE) -> Player:
    """A player of this game; `rules`: its name on the command line; `value_scale`: see `to_win`.

    Raises:
        ValueError: its file is damaged or of another game; the game is too large for perfect play.
    """
    found = _without_program(entrant, game, rules, value_scale)
    return found._replace(program=match_programs.program(found.policy))


def _without_program(entrant: Entrant, game: Any, rules: str, value_scale: float) -> Player:
    word, kind, number, file, considered, averaged = entrant
    if kind == "random":
        return Player(word, arena.random_player(game))
    if kind == "uct":
        search = lambda model: jz.uct(model, number)
        return Player(word, with_listed_outcomes(search, models.rollout(game), game), rates=True)
    if kind == "perfect":
        try:
            with progress_display.announced(f"Solving {game.id}"):
                return Player(word, perfect_player.perfect_player(game, perfect_player.solve(game)))
        except ValueError as error:
            raise ValueError(f"perfect plays small games only, like tic_tac_toe: {error}") from error
    if is_trained(entrant):
        file = network_models.comes_along(game, rules or game.id) or _none_comes_along(word, rules or game.id)
    model, params, about, learned = network_models.load(file, game, averaged)
    if kind == "raw":
        policy = arena.raw_network(model)
    else:
        few = min(considered, number)
        if learned:
            policy = jz.gumbel(model, number, max_considered=few, gumbel_scale=0.0)
        else:
            policy = to_win(game, model, number, few, value_scale)
    return Player(word, policy, params, True, about)


def _none_comes_along(word: str, rules: str) -> NoReturn:
    there = [weights.read_about(file) for file in sorted(weights.TRAINED.glob("*.safetensors"))]
    known = ", ".join(dict.fromkeys(str(about.get("rules", about["game"])) for about in there))
    raise ValueError(f"{word}: no network comes with jaxzero for --game {rules} of this size, but for {known} (go: 9).")


def sharing_programs(entrants: dict[str, Entrant], players: dict[str, Player]) -> dict[str, Player]:
    """The players; those whose networks differ only in their weights share a program.

    For this, a network's policy must be determined by the word without its file, and by the file's description of the
    network.
    """
    programs: dict[tuple, match_programs.Program] = {}

    def sharing(entrant: Entrant, one: Player) -> Player:
        if one.about is None or "environment" in one.about:  # without weights, or with a learned model
            return one
        key = entrant._replace(word="", file=pathlib.Path()), json.dumps(one.about["network"], sort_keys=True)
        return one._replace(program=programs.setdefault(key, one.program))

    return {word: sharing(entrants[word], one) for word, one in players.items()}


def repeats(players: Iterable[Player]) -> bool:
    """Whether two of the players would repeat their game from an equal opening.

    Networks do, with and without a search. Random, perfect and UCT players draw some of their moves.
    """
    return sum(one.about is not None for one in players) > 1
