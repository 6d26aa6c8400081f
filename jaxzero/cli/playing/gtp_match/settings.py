"""The settings of `jaxzero match`. No jax here: mistakes are answered at once."""

import dataclasses
import pathlib
import shlex
import shutil

import tyro

from jaxzero.atomic_files import free_name
from jaxzero.cli.playing.play_settings import Player, check, usual_opening_plies

__all__ = ["Config", "opening_plies", "parse"]

LONGEST = 1_000_000  # seconds of patience; Python cannot wait for much more

DESCRIPTION = """A match against any program that speaks the Go Text Protocol.

    jaxzero match --opponent "gnugo --mode gtp --chinese-rules --capture-all-dead"
    jaxzero match --opponent "gtp-rhino" --game othello --seconds 1

Colours alternate, and openings vary. Records and results are saved after each game: Ctrl-C loses only the current one.
If the other program scores a game (GNU Go removes dead stones), its result counts; a note says where ours differs.
A game in which it refuses a move that is legal here, as superko may forbid it, counts as unfinished.
"""


@dataclasses.dataclass(frozen=True)
class Config:
    """A match."""

    opponent: str
    """The other program, as a command: "gnugo --mode gtp --level 10"."""
    player: tyro.conf.OmitArgPrefixes[Player] = Player()
    games: int = 20
    """An even number of games, half with each colour."""
    opening_plies: int | None = None
    """Random moves at the start, the same in both games of a pair. Default: 4, and 1 in tic-tac-toe."""
    max_moves: int = 500
    """Moves after which a game is stopped, and counts as unfinished."""
    patience: float = 300.0
    """Seconds to wait for each answer of the other program."""
    folder: pathlib.Path = pathlib.Path("runs/match")
    """A new folder for the records of the games, and the result."""


def opening_plies(config: Config) -> int:
    """How many random moves a game begins with."""
    if config.opening_plies is not None:
        return config.opening_plies
    return usual_opening_plies(config.player.game)


def parse(arguments: list[str] | None = None) -> Config:
    """The settings from the command line. Invalid ones are reported here, before jax is imported."""
    config = tyro.cli(Config, args=arguments, prog="jaxzero match", description=DESCRIPTION)
    check("match", config.player)
    if config.games < 2 or config.games % 2:
        raise SystemExit(f"match: --games {config.games}: give an even number, so that colours are swapped.")
    if opening_plies(config) < 0 or config.max_moves <= opening_plies(config) or not 0 < config.patience <= LONGEST:
        raise SystemExit(
            "match: give --opening-plies of 0 or more, --max-moves above it, and --patience above 0 and up to "
            f"{LONGEST:,} seconds."
        )
    try:
        words = shlex.split(config.opponent)
    except ValueError as error:
        raise SystemExit(
            f"match: --opponent {config.opponent!r}: {error}. Close each quotation, or leave the mark out."
        ) from error
    if not words or shutil.which(words[0]) is None:
        name = words[0] if words else ""
        raise SystemExit(
            f"match: --opponent {config.opponent!r}: there is no program {name!r}. Install it, or give its full path."
        )
    if config.folder.exists() and not config.folder.is_dir():
        raise SystemExit(f"match: --folder {config.folder} is a file: name a new folder.")
    if config.folder.exists() and any(config.folder.iterdir()):
        raise SystemExit(
            f"match: --folder {config.folder} is not empty, and nothing is overwritten. Name another: "
            f"--folder {free_name(config.folder)}"
        )
    return config
