"""The settings of `jaxzero play`, and of the engine in `jaxzero match`. No jax here: mistakes are answered at once."""

import dataclasses
import difflib
import math
import pathlib
import sys

import tyro

__all__ = ["KOMI", "PLAYOUTS", "SIZE", "TRAINED", "Play", "Player", "check", "komi", "limits", "means_trained", "parse"]

DESCRIPTION = """Play against jaxzero, in the terminal, in the browser or through a front end.

    jaxzero play --game connect_four                        # against the network that comes with jaxzero
    jaxzero play --game connect_four --weights runs/connect_four --seconds 3
    jaxzero play --game connect_four --browser
    jaxzero play --game mygame:game                         # a game of your own: `game` in mygame.py
    jaxzero play --weights runs/mygame                      # the game of the run
    jaxzero play --game 2048                                # alone, with hints; --game 2048 --help lists its flags
    jaxzero gtp                                             # 9x9 Go, for GoGui, Sabaki ...

In the terminal, type a move as the board names it, or `hint`, `undo`, `swap` (sides), `quit`, `help`. In the browser,
click. The page draws the search's estimates on the board, and shows its tree. There you can also step back, try
variations, let the engine play all sides, and let it find the mistakes of a game.
"""

GTP_DESCRIPTION = """Speak the Go Text Protocol on standard input and output.

    jaxzero gtp                                             # 9x9 Go, the network that comes with jaxzero
    jaxzero gtp --weights runs/go_9x9 --seconds 2 --ponder
    jaxzero gtp --game othello --weights runs/othello

For front ends like GoGui and Sabaki: give the whole command, with the full path of jaxzero, as the engine.
"""

DEFAULT = 400  # simulations per move
SIZE, KOMI = 9, 7.0  # of Go, by default
PLAYOUTS = "none"  # value of --weights: no network, even if one comes with jaxzero
TRAINED = "trained"  # value of --weights: the network that comes with jaxzero
PGX_KOMI = 7.5  # of its games of Go, which have no other


@dataclasses.dataclass(frozen=True)
class Player:
    """Who plays: the game, the network, and how long it thinks."""

    game: str = ""
    """go (of any size, see --size), connect_four, othello, hex_7x7 (hex: 11x11), tic_tac_toe, another game of pgx, or
    your own as module:attribute. Default: the game of --weights, else go."""
    weights: str = ""
    """A weights file or a run's folder; none: random playouts; trained: the network that comes with jaxzero, or an
    error. Default: that network if the game has one, else random playouts."""
    size: int | None = None
    """go: board size. Default: that of the weights, else 9."""
    komi: float | None = None
    """go: white's points for moving second; in pgx's go 7.5. Default: that of the weights, else 7."""
    simulations: int | None = None
    """Simulations per move. Default: as many as --seconds allows, or 400."""
    seconds: float | None = None
    """Seconds per move, at most."""
    rollouts: int = 4
    """Without a network (--weights none): playouts per simulation, in parallel."""
    exploration: float | None = None
    """Exploration constant; smaller: the search follows its values more closely. Default: 1.25 with a network (PUCT),
    0.5 with random playouts (UCB1)."""
    average_symmetries: bool = False
    """Average the network's output over all symmetric forms of a position (AlphaGo's ensemble). A simulation takes 1.3
    times as long in Othello and Hex, 5 times in Go. What it gains: see experiments/strength/README.md."""
    capacity: int = 20_000
    """Positions that the tree can hold."""
    resign: float = 0.0
    """In matches and in GTP: resign below this win rate; 0: never."""
    ponder: bool = False
    """Think while the opponent thinks; not in the browser."""
    seed: int = 0
    """Random seed."""


@dataclasses.dataclass(frozen=True)
class Play:
    """A player, and where it plays."""

    player: tyro.conf.OmitArgPrefixes[Player] = Player()
    gtp: bool = False
    """Speak the Go Text Protocol on standard input and output, for front ends and match runners."""
    browser: bool = False
    """Play and analyse in a browser on this machine, with the search's estimates drawn on the board."""
    port: int | None = None
    """--browser: the port of the page. Default: 8000, or any free one if that is taken."""
    second: bool = False
    """In the terminal and in the browser: the engine moves first."""


def parse(arguments: list[str] | None = None) -> Play:
    """The settings from the command line."""
    asked = sys.argv[1:] if arguments is None else arguments
    name, description = ("gtp", GTP_DESCRIPTION) if "--gtp" in asked else ("play", DESCRIPTION)
    config = tyro.cli(Play, args=arguments, prog=f"jaxzero {name}", description=description)
    check(name, config.player)
    if config.browser and config.gtp:
        raise SystemExit("play: --browser and --gtp: give one of them.")
    if config.browser and config.player.ponder:
        raise SystemExit("play: --browser --ponder: the games there share one device; leave --ponder out.")
    if config.port is not None and not config.browser:
        raise SystemExit(f"play: --port {config.port}: it is the port of the page, so give --browser, too.")
    if config.port is not None and not 1 <= config.port <= 65535:
        raise SystemExit(f"play: --port {config.port}: give a port from 1 to 65535.")
    return config


def komi(player: Player) -> float | None:
    """White's points for moving second, as the rules have it; None: the game is not Go.

    >>> komi(Player("go", komi=5.5)), komi(Player("go_9x9", komi=5.5)), komi(Player("othello"))
    (5.5, 7.5, None)
    """
    return player.komi if player.game == "go" else PGX_KOMI if player.game.startswith("go_") else None


def limits(player: Player) -> dict:
    """How long to think about a move."""
    simulations = DEFAULT if player.simulations is None and player.seconds is None else player.simulations
    return {"simulations": simulations, "seconds": player.seconds}


def of_go_alone(game: str, size: int | None, komi: float | None) -> None:
    """Raises a ValueError if settings that only our own Go has are given for another game."""
    sized = f"hex_{size or 7}x{size or 7}"
    hints = {"hex": f" Hex of another size is --game {sized}.", "go_": " Those of pgx are fixed."}
    hint = next((said for start, said in hints.items() if game.startswith(start)), "")
    for name, value in (("size", size), ("komi", komi)):
        if value is not None and game != "go":
            raise ValueError(f"--{name} {value:g} is for --game go only, not for {game}.{hint}")


def usual_opening_plies(game: str) -> int:
    """How many random moves the games of a match begin with, by default."""
    return 1 if game == "tic_tac_toe" else 4


def check(script: str, player: Player) -> None:
    """Ends the script with a sentence if a setting has no meaning."""
    for name, least in (("simulations", 1), ("rollouts", 1), ("capacity", 2)):
        value = getattr(player, name)
        if value is not None and value < least:
            raise SystemExit(f"{script}: --{name} {value} is out of range: {least} or more.")
    if player.seconds is not None and not 0 < player.seconds < math.inf:
        raise SystemExit(
            f"{script}: --seconds {player.seconds:g}: give a finite time above 0. For a search without a clock "
            "leave it out, and give --simulations."
        )
    if not 0 <= player.resign < 1:
        raise SystemExit(f"{script}: --resign {player.resign:g}: give a win rate from 0 (never) to below 1.")
    if player.exploration is not None and not 0 <= player.exploration < float("inf"):
        raise SystemExit(f"{script}: --exploration {player.exploration:g}: give 0 or more; 1.25 is PUCT's default.")
    try:
        of_go_alone(player.game or "go", player.size, player.komi)
    except ValueError as error:
        raise SystemExit(f"{script}: {error}") from None
    if player.size is not None and not 2 <= player.size <= 25:
        raise SystemExit(f"{script}: --size {player.size}: give 2 to 25.")
    komi = player.komi or 0.0
    if not abs(komi) <= 1000 or 2 * komi != round(2 * komi):
        raise SystemExit(f"{script}: --komi {komi:g}: give a whole or half number of points.")
    if player.weights not in ("", PLAYOUTS, TRAINED) and not pathlib.Path(player.weights).exists():
        raise SystemExit(f"{script}: --weights {player.weights}: {no_such_path(player.weights)}")


def means_trained(weights: str) -> bool:
    """Whether the network that comes with jaxzero is meant, and no file or folder of that name."""
    return weights == TRAINED and not pathlib.Path(weights).exists()


def no_such_path(given: str) -> str:
    """The error message for a missing file or folder, with the most similar name next to it."""
    path = pathlib.Path(given)
    try:
        beside = [other.name for other in path.parent.iterdir()]
    except OSError:  # no such folder, or not ours to read
        beside = []
    nearest = difflib.get_close_matches(path.name, [*beside, TRAINED, PLAYOUTS], n=1)
    hint = f" Did you mean {path.parent / nearest[0]}?" if nearest else ""
    return f"there is no such file or folder.{hint}"
