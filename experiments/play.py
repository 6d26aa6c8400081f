"""Play against jaxzero, in the terminal or through a front end.

    .venv/bin/python experiments/play.py --game connect_four          # against the network that comes along
    .venv/bin/python experiments/play.py --game connect_four --weights runs/connect_four --seconds 3
    .venv/bin/python experiments/play.py --gtp                        # 9x9 Go by random playouts, for GoGui, Sabaki ...

In the terminal: a move as the board names it; `hint`, `undo`, `swap` sides, `quit`.
"""

import sys

from play_config import Play, Player, parse

CONFIG = parse(__doc__) if __name__ == "__main__" else Play()  # before jax is imported: --help answers at once

import functools  # noqa: E402
import pathlib  # noqa: E402
from collections.abc import Callable  # noqa: E402

import jaxzero as jz  # noqa: E402
from jaxzero import games, models  # noqa: E402
from jaxzero.nets import weights  # noqa: E402
from jaxzero.play import gtp  # noqa: E402
from jaxzero.play.boards import drawn, names  # noqa: E402
from jaxzero.play.engine import Engine, Report  # noqa: E402
from jaxzero.train import progress  # noqa: E402

DEFAULT = 400  # simulations per move


def rules(player: Player, size: int, komi: float) -> games.Game:
    """The game of the settings, on a board of this size."""
    return games.go(size, komi) if player.game == "go" else games.from_pgx(player.game)


def engine(player: Player, size: int, komi: float) -> tuple[Engine, str]:
    """An engine for these settings, and what it plays with, in words.

    Raises:
        ValueError: no such game, or weights that are not for it.
    """
    game, file = rules(player, size, komi), player.weights
    if not file and game.id in {path.stem for path in weights.TRAINED.glob("*.safetensors")}:
        file = str(weights.trained(game.id))
    if not file:
        model, rule = models.rollout(game, player.rollouts), jz.avoid_proven(jz.ucb1(player.exploration))
        build = functools.partial(jz.uct, model, rule=rule, capacity=player.capacity)
        return Engine(game, lambda n, stop: build(n, stop=stop), seed=player.seed), (
            f"random playouts, {player.rollouts} per simulation"
        )
    path = pathlib.Path(file)
    net, params, about = weights.load(path / "weights.safetensors" if path.is_dir() else path, game)
    rule = jz.avoid_proven(jz.puct())
    build = functools.partial(
        jz.alphazero, models.perfect(game, net), rule=rule, dirichlet_fraction=0.0, act=jz.most_visited
    )
    build = functools.partial(build, capacity=player.capacity)
    words = f"the network of {path} (step {about.get('step', 'unknown')})"
    return Engine(game, lambda n, stop: build(n, stop=stop), params, seed=player.seed), words


def limits(player: Player) -> dict:
    """How long to think about a move."""
    simulations = DEFAULT if player.simulations is None and player.seconds is None else player.simulations
    return {"simulations": simulations, "seconds": player.seconds}


def in_words(report: Report, called: tuple[str, ...]) -> str:
    """What the engine thinks, in a line."""
    if not report.candidates:
        return "nothing yet"
    best = report.candidates[0]
    line = " ".join(called[a] for a in best.line)
    return f"{(best.value + 1) / 2:.0%} to win with {called[best.action]}, {report.visits:,} simulations; line: {line}"


def terminal(thinker: Engine, player: Player, second: bool, ask: Callable[[str], str] = input) -> None:
    """A game against whoever types."""
    called, limit, mine = names(thinker.game), limits(player), 0 if second else 1
    told = {name.lower(): action for action, name in enumerate(called)}
    while True:
        print("\n" + "\n".join(drawn(thinker.game, thinker.position(), thinker.first, _last(thinker))))
        if thinker.over():
            won = thinker.result()
            print("The game is a draw." if not won else f"{'X' if won > 0 else 'O'} has won.")
            word = ask("Another one? [y/N] or undo: ").strip().lower()
            if word == "undo":
                _back(thinker, mine)
                continue
            if word not in ("y", "yes"):
                return
            thinker.clear()
            continue
        if thinker.to_move() == mine:
            action = thinker.think(**limit)
            print(f"I play {called[action]}: {in_words(thinker.report(), called)}")
            thinker.play(action)
            if player.ponder:
                thinker.ponder()
            continue
        word = ask(f"Your move ({'XO'[1 - mine]}), hint, undo, swap or quit: ").strip().lower()
        if word in ("quit", "q"):
            return
        if word in ("swap", "s"):
            mine = 1 - mine
        elif word in ("undo", "u"):
            _back(thinker, mine)
        elif word in ("hint", "h"):
            thinker.think(**limit)
            print(in_words(thinker.report(), called))
        elif word in told and thinker.legal()[told[word]]:
            thinker.play(told[word])
        else:
            allowed = " ".join(name for name, ok in zip(called, thinker.legal()) if ok)
            print(f"{word!r} is no legal move. There are: {allowed}")


def _last(thinker: Engine) -> int | None:
    return thinker.moves[-1] if thinker.moves else None


def _back(thinker: Engine, mine: int) -> None:
    """To before the person's last move."""
    if not thinker.moves:
        print("There is no move to take back.")
    while thinker.moves:
        thinker.undo()
        if thinker.to_move() != mine:
            return


def protocol(player: Player) -> None:
    """Speaks GTP until the other side has had enough."""

    def make(size: int, komi: float) -> Engine:
        found, words = engine(player, size, komi)
        print(f"jaxzero plays {found.game.id} with {words}; compiling ...", file=sys.stderr, flush=True)
        found.warm_up()
        print("Ready.", file=sys.stderr, flush=True)
        return found

    def write(text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    is_go = player.game == "go"
    session = gtp.Session(
        make,
        size=player.size if is_go else rules(player, 0, 0).observation_shape[0],
        komi=player.komi if is_go else 0.0,
        sizes=tuple(range(2, 26)) if is_go else (),
        ponder=player.ponder,
        resign=player.resign,
        version=jz.__version__,
        write=write,
        **limits(player),
    )
    gtp.serve(session, sys.stdin.buffer, sys.stdout.buffer)


def main(config: Play) -> None:
    try:
        if config.gtp:
            return protocol(config.player)
        thinker, words = engine(config.player, config.player.size, config.player.komi)
    except (ValueError, ImportError) as error:
        sys.exit(f"play.py: {error}")
    print(f"You play {thinker.game.id} against {words}, on {progress.device()}.")
    with progress.announced("Compiling the search"):
        thinker.warm_up()
    terminal(thinker, config.player, config.second)


if __name__ == "__main__":
    try:
        main(CONFIG)
    except (KeyboardInterrupt, EOFError):
        print()
