"""The games of a match with another program: points, records, and the results in a file."""

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator
from typing import NamedTuple

import jax

import jaxzero as jz
from jaxzero.atomic_files import write_whole
from jaxzero.cli.playing.gtp_match.program import Failed
from jaxzero.cli.playing.gtp_match.settings import Config
from jaxzero.cli.playing.play_settings import komi
from jaxzero.play.arena import Score, interval, share
from jaxzero.play.engine import Engine
from jaxzero.play.gtp import sgf
from jaxzero.runs import progress_display

__all__ = ["Game", "points", "result", "save", "summary", "writing"]


class Game(NamedTuple):
    """One game: who was black, the actions, "B+3.5" or the like, and how it ended."""

    ours: int
    moves: list[int]
    result: str
    how: str


def points(game: Game) -> float | None:
    """Our points: 1, 0 or a half; None: unfinished."""
    if game.result[:1] in "BW" and game.result[1:2] == "+":
        return float((game.result[0] == "B") == (game.ours == 0))
    return None if game.result == "Void" else 0.5


@contextlib.contextmanager
def writing(config: Config) -> Iterator[None]:
    """Within, what cannot be written ends the match."""
    try:
        yield
    except OSError as error:
        raise Failed(f"--folder {config.folder}: {error.strerror or error}") from error


def save(config: Config, thinker: Engine, game: Game, number: int, opponent: str) -> None:
    """The record of a game."""
    players = ("jaxzero", opponent) if game.ours == 0 else (opponent, "jaxzero")
    text = sgf.written(thinker.game, game.moves, game.result, players, komi(config.player))
    with writing(config):
        write_whole(config.folder / f"{number + 1:03}.sgf", [text.encode()])


def counted(played: list[Game]) -> Score:
    """How often we won, drew and lost."""
    got = [points(game) for game in played]
    return Score(*(got.count(x) for x in (1.0, 0.5, 0.0, None)))


def summary(config: Config, played: list[Game], words: str, opponent: str) -> str:
    """Who won how often, with an interval."""
    score = counted(played)
    low, high = interval(score)
    return (
        f"{share(score):.1%} ({low:.0%}-{high:.0%}) for {words} against {opponent}: +{score.wins} ={score.draws} "
        f"-{score.losses}, {score.unfinished} unfinished. Records: {config.folder}"
    )


def result(config: Config, played: list[Game], words: str, opponent: str) -> None:
    """Writes all results so far as JSON, in place of the earlier file."""
    results = {
        "settings": json.loads(json.dumps(dataclasses.asdict(config), default=str)),
        "we": words,
        "opponent": opponent,
        "score": counted(played)._asdict(),
        "device": progress_display.device(),
        "jax": jax.__version__,
        "jaxzero": jz.__version__,
        "date": time.strftime("%Y-%m-%d"),
        "games": [game._asdict() for game in played],
    }
    with writing(config):
        write_whole(config.folder / "result.json", [json.dumps(results, indent=1).encode(), b"\n"])
