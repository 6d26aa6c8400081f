"""`jaxzero gtp`: speaks the Go Text Protocol on standard input and output.

Nothing slow is imported here, and nothing is compiled before a command needs it: front ends ask a program for
its name before anything else, and some do not wait long.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import TYPE_CHECKING

import jaxzero as jz
from jaxzero.cli.playing.play_settings import KOMI, PLAYOUTS, SIZE, Play, Player, komi, limits
from jaxzero.play import gtp

if TYPE_CHECKING:
    from jaxzero.play.engine import Engine

__all__ = ["main", "run", "session"]

SIZES = tuple(range(2, 26))  # of Go, where no weights are named


def session(player: Player) -> gtp.Session:
    """A GTP session with this player. Whatever needs a look at a file or at another game is settled here.

    Raises:
        ImportError: the game needs a package that is not installed.
        ValueError: invalid weights or an invalid game; a game without a board.
    """
    common = dict(
        prepare=_compile, ponder=player.ponder, resign=player.resign, version=jz.__version__, write=_write,
        **limits(player),
    )  # fmt: skip
    if player.weights in ("", PLAYOUTS) and player.game in ("", "go"):
        size, points = player.size or SIZE, KOMI if player.komi is None else player.komi
        player = dataclasses.replace(player, game="go", size=size, komi=points)
        talk = gtp.Session(functools.partial(_engine, player), size=size, komi=points, sizes=SIZES, **common)
        if player.average_symmetries:
            talk.engine  # noqa: B018  # built now, to report at once if there is no network of this size
        return talk

    from jaxzero.cli.playing import play

    player = play.resolved(player)
    make = functools.partial(_engine, player)
    if player.game == "go":  # a network knows one size
        size, points = player.size, player.komi
        talk = gtp.Session(make, size=size, komi=points, **common)
    else:
        size = _board_size(play.rules(player, 0, 0))
        make = functools.partial(_of_fixed_komi, player, functools.cache(make))
        talk = gtp.Session(make, size=size, komi=komi(player) or 0.0, go=False, **common)
    talk.engine  # noqa: B018  # built now, to report at once what is wrong with the weights
    return talk


def _engine(player: Player, size: int, points: float) -> Engine:
    from jaxzero.cli.playing import play
    from jaxzero.compilation_cache import keep_programs

    keep_programs()
    found, words = play.engine(player, size, points)
    print(f"jaxzero plays {found.game.id} with {words}.", file=sys.stderr, flush=True)
    return found


def _of_fixed_komi(player: Player, make, size: int, points: float) -> Engine:
    """The only engine of a game whose rules fix the komi. A game without komi accepts any."""
    known = komi(player)
    if known is not None and points != known:
        raise ValueError(f"komi {points:g}: the rules of {player.game} have {known:g}")
    return make(size, known or 0.0)


def _board_size(game) -> int:
    from jaxzero.play.notation import has_board

    if not has_board(game):
        raise ValueError(f"--gtp: {game.id} is not a two-player game of stones on a board.")
    return game.observation_shape[0]


def _compile(engine: Engine) -> None:
    print("Compiling the search: up to a minute ...", file=sys.stderr, flush=True)
    engine.warm_up()
    print("Ready.", file=sys.stderr, flush=True)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def main(config: Play) -> None:
    """Serves GTP until the other side ends the session."""
    try:
        talk = session(config.player)
    except (ValueError, ImportError) as error:
        sys.exit(f"gtp: {error}")
    gtp.serve(talk, sys.stdin.buffer, sys.stdout.buffer)


def run(config: Play) -> None:
    """`jaxzero gtp` with these settings."""
    try:
        main(config)
    except KeyboardInterrupt:
        print(file=sys.stderr)
