"""Thinking on the clock: the gain from pondering, how fast thinking stops for a command, and whether time limits hold.

    .venv/bin/python experiments/bench_pondering.py --player.weights jaxzero/nets/trained/connect_four_small.safetensors
    .venv/bin/python experiments/bench_pondering.py --player.game go --player.weights none --seconds 60

Plays whole games by GTP in one process, against an opponent that takes a second for each move, without pondering and
with it. Measures for each of our moves the simulations at the root when it was made, per second of our own time. Then
it asks for the engine's name again and again, while the engine ponders or analyses.
"""

import dataclasses
import json
import pathlib
import statistics
import sys
import time

import tyro

from jaxzero.cli.playing.play_settings import Player, check


@dataclasses.dataclass(frozen=True)
class Config:
    player: Player = Player(game="connect_four")
    seconds: float = 20.0
    """The time for all moves of a game."""
    opponent: float = 1.0
    """Seconds that the opponent takes for a move."""
    games: int = 2
    """Games with pondering, and as many without; we begin in every other one."""
    questions: int = 100
    """Questions asked while the engine is thinking."""
    json: pathlib.Path | None = None
    """A new file for the figures."""


CONFIG = tyro.cli(Config, description=__doc__) if __name__ == "__main__" else Config()

import random  # noqa: E402

import jaxzero as jz  # noqa: E402
from jaxzero.cli.circumstances import circumstances  # noqa: E402
from jaxzero.cli.playing.play import engine, resolved  # noqa: E402
from jaxzero.play import gtp  # noqa: E402
from jaxzero.play.engine import Engine  # noqa: E402
from jaxzero.play.notation import names  # noqa: E402
from jaxzero.runs import progress_display  # noqa: E402
from jaxzero.runs.run_folder import write_whole  # noqa: E402

COLOURS = "black", "white"


def session(thinker: Engine, player: Player, ponder: bool) -> gtp.Session:
    """Speaks GTP with an engine that is already compiled."""
    size = player.size if player.game == "go" else thinker.game.observation_shape[0]
    komi = player.komi if player.game == "go" else 0.0
    return gtp.Session(lambda size, komi: thinker, size=size, komi=komi, ponder=ponder, seconds=player.seconds)


def noted(thinker: Engine) -> list[int]:
    """A list that collects the visits of the root whenever a move is chosen."""
    known, think = [], thinker.think

    def thinking(*limits):
        action = think(*limits)
        known.append(thinker.report(1).visits)
        return action

    thinker.think = thinking
    return known


def game(config: Config, thinker: Engine, visits: list[int], ponder: bool, ours: int, seed: int) -> list[dict]:
    """One game; for each of our moves its time, and the simulations when it was made."""
    talk, moves, draw = session(thinker, config.player, ponder), [], random.Random(seed)
    talk.answer("clear_board")
    talk.answer(f"time_settings {config.seconds:g} 0 0")
    left = config.seconds
    while not thinker.over() and len(thinker.moves) < 200:
        turn = thinker.to_move()
        if turn != ours:
            talk.idle()
            time.sleep(config.opponent)
            answered(talk, reply(thinker, turn, draw))
            continue
        began = time.monotonic()
        answered(talk, f"genmove {COLOURS[ours]}")
        took = time.monotonic() - began
        left -= took
        moves.append({"seconds": took, "left": left, "visits": visits[-1]})
        answered(talk, f"time_left {COLOURS[ours]} {max(left, 0):.2f} 0")
    talk.answer("clear_board")
    return moves


def reply(thinker: Engine, turn: int, draw: random.Random) -> str:
    """The opponent's move: the one that our search expects, now and then another."""
    thinker.rest()
    found = thinker.report(1).candidates
    legal = [action for action, ok in enumerate(thinker.legal()) if ok]
    action = found[0].action if found and draw.random() < 0.7 else draw.choice(legal)
    return f"play {COLOURS[turn]} {names(thinker.game)[action]}"


def answered(talk: gtp.Session, line: str) -> None:
    """Ends the measurement if the engine refuses."""
    said = talk.answer(line)
    if not said.startswith("="):
        sys.exit(f"bench_pondering.py: {line}: {said.strip()}")


def interruptions(config: Config, thinker: Engine) -> list[float]:
    """Seconds from a question to its answer, while the engine thinks in the background."""
    talk, took = session(thinker, config.player, True), []
    talk.answer("clear_board")
    answered(talk, "play black " + next(n for n, ok in zip(names(thinker.game), thinker.legal()) if ok))
    for number in range(config.questions):
        if number % 2:
            talk.answer("lz-analyze 10")
        else:
            talk.ponder()
        talk.idle()
        time.sleep(0.15)
        began = time.monotonic()
        talk.answer("name")
        took.append(time.monotonic() - began)
    talk.answer("clear_board")
    return took


def main(config: Config) -> None:
    check("bench_pondering.py", config.player)
    if config.json and config.json.exists():
        sys.exit(f"bench_pondering.py: --json {config.json} exists: name a new file.")
    try:
        config = dataclasses.replace(config, player=resolved(config.player))
        thinker, words = engine(config.player, config.player.size, config.player.komi)
    except (ValueError, ImportError) as error:
        sys.exit(f"bench_pondering.py: {error}")
    print(f"{thinker.game.id}, {words}, on {progress_display.device()}: {config.seconds:g} s for a game.")
    with progress_display.announced("Compiling the search"):
        thinker.warm_up()
    visits, rows, all_moves = noted(thinker), {}, []
    for ponder in (False, True):
        moves = []
        for number in range(config.games):
            print(f"Game {number + 1} of {config.games}, {'with' if ponder else 'without'} pondering ...", flush=True)
            moves.append(game(config, thinker, visits, ponder, number % 2, number))
        each = [move["visits"] / move["seconds"] for one in moves for move in one]
        rows[ponder] = statistics.median(each)
        all_moves += moves
        print(f"  {rows[ponder]:,.0f} simulations per second of our own, median of {len(each)} moves")
    took = sorted(interruptions(config, thinker))
    least = min(one[-1]["left"] for one in all_moves)
    over = sum(move["left"] < 0 for one in all_moves for move in one)
    print(f"Pondering: {rows[True] / rows[False]:.2f} times as many simulations per second of our own.")
    print(
        f"Answer time while thinking: {1e3 * statistics.median(took):.0f} ms in the median, {1e3 * took[-1]:.0f} at "
        "most."
    )
    print(f"Time: {over} overruns in {sum(map(len, all_moves))} moves; {least:.1f} s were left at the least.")
    if config.json:
        config.json.parent.mkdir(parents=True, exist_ok=True)
        figures = circumstances() | {
            "settings": json.loads(json.dumps(dataclasses.asdict(config), default=str)),
            "jaxzero": jz.__version__, "simulations per second": {str(k): v for k, v in rows.items()},
            "seconds to an answer": took, "games": all_moves, "overruns": over,
        }  # fmt: skip
        write_whole(config.json, json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main(CONFIG)
