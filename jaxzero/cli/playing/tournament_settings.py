"""The settings of `jaxzero tournament`, and what words for players mean. No jax here: mistakes are answered at once."""

import dataclasses
import pathlib
import re
from typing import NamedTuple

import tyro

from jaxzero.cli.playing.play_settings import means_trained, of_go_alone, usual_opening_plies
from jaxzero.cli.training.settings import VALUE_SCALE

__all__ = ["WEIGHTS", "Config", "Entrant", "is_trained", "openings", "parse", "read"]

DESCRIPTION = """A round-robin tournament, or a sequential test (SPRT) of two players.

    jaxzero tournament --players random uct:100 uct:1000 runs/connect_four
    jaxzero tournament --players raw:a.safetensors a.safetensors:64 b.safetensors:64 --mistakes
    jaxzero tournament --game tic_tac_toe --opening-plies 1 --players random uct:50 perfect
    jaxzero tournament --game othello --players uct:1000 raw:trained trained:400
    jaxzero tournament --sprt a.safetensors:64 b.safetensors:64 --elo0 0 --elo1 20

    random          any legal move
    uct:1000        UCT with this many random playouts per move
    perfect         plays perfectly; for games with few positions, like tic_tac_toe
    FILE:64         Gumbel search with the network in a file, this many simulations per move (default: --simulations)
    FILE:64:4       the same, with the network's 4 best moves considered at the root (default: 16)
    raw:FILE        that network's most probable move, without search
    trained:64      the network that comes with jaxzero for the --game; raw:trained, without search
    mean:FILE:64    the network's output averaged over all symmetric forms; also mean:raw:FILE, mean:trained:64

FILE is a weights file of `jaxzero.nets.weights`, or the folder of a training run with a weights.safetensors, whose step
is printed at the start. The checkpoints of a run are not read.

All games of a pairing are played in parallel, in pairs: one random opening, both colours. Ratings are maximum
likelihood, with one extra draw per pairing; the 95 % intervals are of the difference to the anchor. `--sprt A B` plays
until it is clear whether B is stronger than A by `--elo1` (H1) or only by `--elo0` (H0). `--mistakes` also accepts a
single player; with `--games 0` no games are played.

Result of `--players random uct:100 uct:1000 --games 200`, after two minutes on two cores: uct:100 is 661 Elo above
random (507 to 815), uct:1000 1001 (835 to 1167). In tic-tac-toe nobody scores more than half against perfect.
"""

CONSIDERED = 16  # moves at the root, as Danihelka et al. 2022 have it
WEIGHTS = "weights.safetensors"  # in the folder of a run


@dataclasses.dataclass(frozen=True)
class Config:
    """A tournament."""

    players: tuple[str, ...] = ()
    """The players: see above."""
    game: str = ""
    """A game of pgx, go (of any size), hex_7x7 (or another size), or your own as module:attribute. Default: that of the
    first player with weights, else connect_four."""
    size: int | None = None
    """go: board size. Default: that of the weights, else 9."""
    komi: float | None = None
    """go: white's points for moving second. Default: that of the weights, else 7."""
    games: int = 100
    """Games of each pairing; with --sprt, of each batch. An even number; with --mistakes it may be 0."""
    simulations: int = 100
    """Simulations per move for networks given without a number."""
    value_scale: float = VALUE_SCALE
    """c_scale: weight of search values relative to the network's policy, for networks that know the rules, in
    two-player games without chance. In Othello, 1 did better with jaxzero's network."""
    opening_plies: int | None = None
    """Random moves at the start. With few, deterministic players repeat games, and intervals are too narrow; with many,
    they decide the game. Default: 4, and 1 in tic-tac-toe."""
    max_plies: int = 1000
    """Plies after which a game is stopped, and counts as drawn."""
    anchor: str = ""
    """The player whose rating is fixed. Default: the first player."""
    anchor_rating: float = 0.0
    """The anchor's rating."""
    sprt: tuple[str, ...] = ()
    """A and B: is B stronger than A? With or without --players."""
    elo0: float = 0.0
    """sprt: how much stronger B is under H0."""
    elo1: float = 20.0
    """sprt: how much stronger B is under H1."""
    alpha: float = 0.05
    """sprt: probability of accepting H1 when H0 holds."""
    beta: float = 0.05
    """sprt: probability of accepting H0 when H1 holds."""
    max_games: int = 20_000
    """sprt: games after which it ends undecided."""
    mistakes: bool = False
    """Count outcome mistakes on exactly solved positions, too (connect_four only)."""
    seed: int = 0
    """Random seed of openings and random choices."""
    json: pathlib.Path | None = None
    """A new file for the results."""


def openings(config: Config) -> int:
    """How many random moves a game begins with."""
    if config.opening_plies is not None:
        return config.opening_plies
    return usual_opening_plies(config.game)


def parse(arguments: list[str] | None = None) -> Config:
    """The settings from the command line. Invalid ones are reported here, before jax is imported."""
    config = tyro.cli(Config, args=arguments, prog="jaxzero tournament", description=DESCRIPTION)
    try:
        _check(config)
        if config.game:
            of_go_alone(config.game, config.size, config.komi)
        for word in (*config.players, *config.sprt):
            read(word, config.simulations)
    except ValueError as error:
        raise SystemExit(f"tournament: {error}") from None
    return config


def _check(config: Config) -> None:
    """Raises a ValueError that says what is wrong with the settings."""
    players, file = config.players, config.json
    if len(players) < (1 if config.mistakes else 2) and (players or not config.sprt):
        raise ValueError(
            f"{len(players)} player(s): give two or more, like --players random uct:1000, or --sprt A B, or one with "
            "--mistakes."
        )
    for words in (players, config.sprt):
        if len(set(words)) < len(words):
            raise ValueError(f"{' '.join(words)}: a player is named twice. Name each once.")
    if config.anchor and config.anchor not in players:
        raise ValueError(f"--anchor {config.anchor}: choose one of the players, {', '.join(players) or 'none here'}.")
    games = 0 if config.mistakes and not config.sprt else 2
    if len(config.sprt) not in (0, 2):
        raise ValueError(f"--sprt {' '.join(config.sprt)}: give two players, A and B.")
    opening = openings(config)
    for name, given, least in (
        ("games", config.games, games), ("simulations", config.simulations, 1), ("opening-plies", opening, 0),
        ("max-plies", config.max_plies, 1),
    ):  # fmt: skip
        if given < least:
            raise ValueError(f"--{name} {given}: at least {least}.")
    if not 0 < config.value_scale < float("inf"):
        raise ValueError(f"--value-scale {config.value_scale:g}: above 0, like 0.5.")
    if config.max_plies <= opening:
        raise ValueError(
            f"--max-plies {config.max_plies} --opening-plies {opening}: no player would make a move. Give "
            f"--max-plies {opening + 1} or more."
        )
    if config.games % 2:
        raise ValueError(f"--games {config.games}: give an even number; games are played in pairs.")
    if config.sprt and config.max_games < config.games:
        raise ValueError(f"--max-games {config.max_games}: at least {config.games}, the --games of one batch.")
    if not config.elo0 < config.elo1:
        raise ValueError(f"--elo0 {config.elo0:g} --elo1 {config.elo1:g}: elo1 must be above elo0.")
    for name in ("alpha", "beta"):
        if not 0 < getattr(config, name) < 0.5:
            raise ValueError(f"--{name} {getattr(config, name):g}: above 0 and below 0.5.")
    if config.mistakes and config.game not in ("", "connect_four"):
        raise ValueError(f"--mistakes with --game {config.game}: the solved positions are of connect_four only.")
    if file is not None and (file.exists() or not file.absolute().parent.is_dir()):
        what = "exists already, and is not overwritten" if file.exists() else "would be in a folder that does not exist"
        raise ValueError(f"--json {file}: it {what}. Name a new file.")


class Entrant(NamedTuple):
    """A player, as a word on the command line names it."""

    word: str
    kind: str  # random, perfect, uct, raw or search
    number: int = 0  # rollouts or simulations per move
    file: pathlib.Path = pathlib.Path()
    considered: int = CONSIDERED  # moves at the root of a Gumbel search
    averaged: bool = False  # over the symmetric forms of a position


def read(word: str, simulations: int) -> Entrant:
    """Reads a player's word; a file without a number searches with `simulations` per move.

    Raises:
        ValueError: no such player, or no such file.
    """
    kind, colon, rest = word.partition(":")
    if kind == "mean" and colon and not pathlib.Path(word).exists():
        return _averaged(word, read(rest, simulations))
    numbered = re.fullmatch(r"(.+?):(\d+)(?::(\d+))?", word)
    if numbered and pathlib.Path(word.rpartition(":")[0]).exists():  # a name with a colon in it
        numbered = re.fullmatch(r"(.+):(\d+)()", word)
    if word in ("random", "perfect"):
        return Entrant(word, word)
    if kind == "uct":
        if not rest.isdecimal() or int(rest) < 1:
            raise ValueError(f"{word}: write the rollouts per move, 1 or more, like uct:1000.")
        return Entrant(word, "uct", int(rest))
    if kind == "raw" and colon:
        return _checked(Entrant(word, "raw", 0, pathlib.Path(rest)))
    if not numbered or pathlib.Path(word).exists():
        return _checked(Entrant(word, "search", simulations, pathlib.Path(word)))
    if int(numbered[2]) < 1:
        raise ValueError(f"{word}: at least one simulation per move, or raw:{numbered[1]} for none.")
    considered = int(numbered[3] or CONSIDERED)
    if considered < 1 or numbered[3] and considered > int(numbered[2]):
        raise ValueError(f"{word}: the root considers at least 1 move, and no more than there are simulations.")
    return _checked(Entrant(word, "search", int(numbered[2]), pathlib.Path(numbered[1]), considered))


def is_trained(entrant: Entrant) -> bool:
    """Whether the network that comes with jaxzero is meant, and no file of that name."""
    return means_trained(str(entrant.file))


def _averaged(word: str, entrant: Entrant) -> Entrant:
    if entrant.kind not in ("raw", "search") or entrant.averaged:
        raise ValueError(f"{word}: mean: is for a network, like mean:FILE:64 or mean:raw:FILE.")
    return entrant._replace(word=word, averaged=True)


def _checked(entrant: Entrant) -> Entrant:
    word, file = entrant.word, entrant.file
    if is_trained(entrant):
        return entrant
    if not file.exists() or not str(file).strip("."):
        raise ValueError(
            f"{word}: no such player, and no file or folder {str(file)!r}. Write random, perfect, uct:1000, raw:FILE, "
            "FILE, FILE:200 or trained:200."
        )
    if file.is_dir() and not (file / WEIGHTS).is_file():
        raise ValueError(f"{word}: no {WEIGHTS} in {file}: give the folder of a training run that has saved once.")
    return entrant
