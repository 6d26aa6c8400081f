"""The settings of `play.py` and of the engine in `match.py`: no jax here, so mistakes are answered at once."""

import dataclasses
import pathlib

import tyro

__all__ = ["Player", "Play", "check", "parse"]


@dataclasses.dataclass(frozen=True)
class Player:
    game: str = "go"
    """go (of any size, see --size), or a two-player game that pgx knows."""
    weights: str = ""
    """A weights file or a run's folder. Default: what comes with jaxzero for the game, else random playouts."""
    size: int = 9
    """go: points on a side."""
    komi: float = 7.0
    """go: white's points for moving second."""
    simulations: int | None = None
    """Per move. Default: as many as --seconds allows, or 400."""
    seconds: float | None = None
    """Per move, at most."""
    rollouts: int = 4
    """Without a network: playouts per simulation, which run at once."""
    exploration: float = 0.5
    """Without a network: UCB1's constant, for win rates."""
    capacity: int = 20_000
    """Positions that a tree has room for."""
    resign: float = 0.0
    """--gtp: gives up below this win rate; 0: never."""
    ponder: bool = False
    """Think while the opponent does."""
    seed: int = 0
    """Everything random follows from it."""


@dataclasses.dataclass(frozen=True)
class Play:
    player: tyro.conf.OmitArgPrefixes[Player] = Player()
    gtp: bool = False
    """Speak the Go Text Protocol on standard input and output, for front ends and match runners."""
    second: bool = False
    """In the terminal: the engine moves first."""


def parse(description: str | None, arguments: list[str] | None = None) -> Play:
    """The settings from the command line."""
    config = tyro.cli(Play, args=arguments, description=description)
    check("play.py", config.player)
    return config


def check(script: str, player: Player) -> None:
    """Ends the script, in a sentence, where a setting has no meaning."""
    for name, least in (("simulations", 1), ("rollouts", 1), ("capacity", 2)):
        value = getattr(player, name)
        if value is not None and value < least:
            raise SystemExit(f"{script}: --{name} {value} is out of range: {least} or more.")
    if player.seconds is not None and not player.seconds > 0:
        raise SystemExit(f"{script}: --seconds {player.seconds:g}: give a time above 0.")
    if not 0 <= player.resign < 1:
        raise SystemExit(f"{script}: --resign {player.resign:g}: give a win rate from 0 (never) to below 1.")
    if not 2 <= player.size <= 25:
        raise SystemExit(f"{script}: --size {player.size}: give 2 to 25.")
    if 2 * player.komi != round(2 * player.komi) or abs(player.komi) > 1000:
        raise SystemExit(f"{script}: --komi {player.komi:g}: give a whole or half number of points.")
    if player.weights and not pathlib.Path(player.weights).exists():
        raise SystemExit(f"{script}: --weights {player.weights}: there is no such file or folder.")
