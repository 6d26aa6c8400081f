"""The games of two players of a tournament, and whether their openings suffice."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.cli.evaluation_search import draws
from jaxzero.cli.playing.tournament_players import Player
from jaxzero.cli.playing.tournament_settings import Config, openings
from jaxzero.play import arena, match_programs
from jaxzero.runs import progress_display

__all__ = [
    "Result", "different_openings", "games_of", "match", "matches", "played", "points", "warn_of_repeated_openings",
    "why_not_as_many",
]  # fmt: skip


class Result(NamedTuple):
    """Results of two players, as the first sees them; `pairs`: how many gave it 0, 1/2, 1, 3/2 and 2 points."""

    first: str
    second: str
    wins: int
    draws: int
    losses: int
    unfinished: int
    pairs: list[int]


def points(result: Result) -> float:
    """Points of the first player. A game that was stopped counts as drawn."""
    return result.wins + (result.draws + result.unfinished) / 2


def played(result: Result) -> int:
    """The number of games."""
    return result.wins + result.draws + result.losses + result.unfinished


def games_of(config: Config, game: Any) -> int:
    """Games of a pairing: an equal number for each seat of each of the two."""
    each = multiple(game)
    return max(config.games // each, 1) * each


def multiple(game: Any) -> int:
    """Games come in multiples of this: both colours of an opening; with more players, all seats in both halves."""
    return 2 * (1 if game.num_players == 2 else game.num_players)


def why_not_as_many(config: Config, game: Any) -> str:
    """The explanation where a pairing does not have as many games as the settings ask for; else empty."""
    if games_of(config, game) == config.games:
        return ""
    return f" (--games {config.games}, in multiples of {multiple(game)}, for equally many in each seat)"


def match(config: Config, game: Any, between: Callable, one: Player, other: Player, *numbers: int) -> Callable:
    """The function that plays two players' games: `batch -> Result`. Randomness follows from `numbers` and the batch.

    In games for more than two, a player has one seat in half of the games, and all other seats in the other half. The
    player who holds the winning seat has won.

    Args:
        config: the settings.
        game: the game.
        between: its matches, see `matches`.
        one: the first player.
        other: the second.
        numbers: of this match.
    """
    programs, params = (one.program, other.program), (one.params, other.params)

    def run(batch: int) -> Result:
        key = functools.reduce(jax.random.fold_in, (*numbers, batch), jax.random.key(config.seed))
        keys = jax.random.split(key, games_of(config, game) // multiple(game))
        score = between(programs, params, keys).score
        if game.num_players > 2:
            among = between(programs[::-1], params[::-1], keys).score
            score = jax.tree.map(jnp.add, score, among._replace(wins=among.losses, losses=among.wins))
        score = jax.tree.map(lambda x: np.asarray(x).sum(0), score)  # of each opening
        pairs = np.bincount(arena.half_points(score), minlength=5).tolist() if game.num_players == 2 else []
        return Result(one.name, other.name, *(int(x.sum()) for x in score), pairs)

    return run


def matches(config: Config, game: Any) -> Callable:
    """How games are played here, compiled once for all matches."""
    return match_programs.between(game, openings(config), config.max_plies)


def different_openings(config: Config, game: Any, games: int) -> float:
    """The number of different openings of so many games; infinite where chance varies the games anyway."""
    if draws(game):
        return np.inf
    keys = jax.random.split(jax.random.key(config.seed), max(games // game.num_players, 1))
    return arena.different_openings(game, keys, openings(config))


def warn_of_repeated_openings(config: Config, game: Any, games: int, different: float) -> None:
    """Says that openings repeat, if so many games have more than twice as many openings as there are different ones.

    Each opening is played once by each seat. It matters where two networks meet (see `repeats`).
    """
    played = games // game.num_players
    if 2 * different < played:
        progress_display.console.print(
            f"[bold yellow]Only {different} different opening(s) among {played}, after {openings(config)} random "
            "move(s). Two networks repeat their game from the same opening, so the intervals are too narrow. Use "
            f"--opening-plies {openings(config) + 2}."
        )
