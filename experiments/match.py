"""A match against any program that speaks the Go Text Protocol.

    .venv/bin/python experiments/match.py --opponent "gnugo --mode gtp --level 10" --simulations 1000
    .venv/bin/python experiments/match.py --opponent "gtp-rhino" --game othello --seconds 1

Colours alternate, openings vary, the records of the games are saved. The result is the other program's where it scores
(GNU Go takes dead stones off), and says where ours differs.
"""

from match_config import Config, parse

CONFIG = parse(__doc__) if __name__ == "__main__" else None  # before jax is imported: --help answers at once

import dataclasses  # noqa: E402
import json  # noqa: E402
import queue  # noqa: E402
import random  # noqa: E402
import shlex  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from typing import NamedTuple  # noqa: E402

from play import engine, limits  # noqa: E402

from jaxzero.play import scoring, sgf  # noqa: E402
from jaxzero.play.arena import Score, interval, share  # noqa: E402
from jaxzero.play.boards import names  # noqa: E402
from jaxzero.play.engine import Engine  # noqa: E402
from jaxzero.play.gtp import hopeless  # noqa: E402
from jaxzero.train import progress  # noqa: E402

COLOURS = "black", "white"


class Refused(RuntimeError):
    """The other program said no, or nothing at all."""


class Program:
    """Another program, to be asked."""

    def __init__(self, command: str, patience: float):
        self._patience, self._lines = patience, queue.Queue()
        self._process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line.rstrip("\r\n"))
        self._lines.put(None)

    def ask(self, command: str) -> str:
        """The answer to a command.

        Raises:
            Refused: it was no, or there was none in time.
        """
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            lines = [self._line(command)]
            while lines[-1] or len(lines) == 1:
                lines.append(self._line(command))
        except OSError as error:
            raise Refused(f"the other program has ended ({command})") from error
        text = "\n".join(lines).strip()
        if not text.startswith("="):
            raise Refused(f"{command}: {text or 'no answer'}")
        return text[1:].strip()

    def _line(self, command: str) -> str:
        try:
            line = self._lines.get(timeout=self._patience)
        except queue.Empty as error:
            raise Refused(f"{command}: no answer in {self._patience:g} s") from error
        if line is None:
            raise Refused(f"the other program has ended ({command})")
        return line

    def close(self) -> None:
        """Say good-bye, and see that it goes."""
        try:
            self.ask("quit")
            self._process.wait(5)
        except (Refused, subprocess.TimeoutExpired):
            self._process.kill()


class Game(NamedTuple):
    """One game: who was black, the actions, "B+3.5" or the like, and how it ended."""

    ours: int
    moves: list[int]
    result: str
    how: str


def play(thinker: Engine, other: Program, config: Config, ours: int, opening: list[int]) -> Game:
    """One game with us as black (0) or white (1)."""
    called = names(thinker.game)
    told = {name.lower(): action for action, name in enumerate(called)}
    thinker.clear()
    start(other, config)
    for action in opening:
        other.ask(f"play {COLOURS[thinker.to_move()]} {called[action]}")
        thinker.play(action)
    while not thinker.over() and len(thinker.moves) < config.max_moves:
        turn = thinker.to_move()
        if turn == ours:
            action = thinker.think(**limits(config.player))
            if hopeless(thinker.report(1), config.player.resign):
                return Game(ours, thinker.moves.copy(), f"{'WB'[turn]}+R", "we resigned")
            other.ask(f"play {COLOURS[turn]} {called[action]}")
        else:
            if config.player.ponder:
                thinker.ponder()
            word = other.ask(f"genmove {COLOURS[turn]}").lower()
            if word == "resign":
                return Game(ours, thinker.moves.copy(), f"{'WB'[turn]}+R", "the other resigned")
            action = told.get(word, -1)
        try:
            thinker.play(action)
        except ValueError:
            return Game(ours, thinker.moves.copy(), f"{'WB'[turn]}+F", "the other made a move that is none here")
    return ended(thinker, other, config, ours)


def ended(thinker: Engine, other: Program, config: Config, ours: int) -> Game:
    """The result of a game that came to its end, as the other program has it."""
    moves = thinker.moves.copy()
    if not thinker.over():
        return Game(ours, moves, "Void", f"stopped after {len(moves)} moves")
    own = scoring.final_score(thinker.game, thinker.position(), thinker.first, config.player.komi)
    try:
        theirs = other.ask("final_score")
    except Refused:
        return Game(ours, moves, own, "scored by us")
    same = theirs[:1] == own[:1]
    return Game(ours, moves, theirs, "both agree" if same else f"as the board stands it is {own}")


def start(other: Program, config: Config) -> None:
    """A new game on the other side. What a program need not know (Othello's have no komi) it may refuse."""
    if config.player.game == "go":
        other.ask(f"boardsize {config.player.size}")
        other.ask("clear_board")
        other.ask(f"komi {config.player.komi:g}")
    else:
        other.ask("clear_board")


def openings(thinker: Engine, config: Config, number: int) -> list[int]:
    """Random moves, without passes: the same for both games of a pair."""
    draw, passes = random.Random(f"{config.player.seed} {number}"), {"pass", "swap-pieces"}
    called, actions = names(thinker.game), []
    thinker.clear()
    for _ in range(config.opening):
        free = [a for a, ok in enumerate(thinker.legal()) if ok and called[a] not in passes]
        if not free:
            break
        actions.append(draw.choice(free))
        thinker.play(actions[-1])
    return actions


def points(game: Game) -> float | None:
    """Ours: 1, 0 or a half; None: unfinished."""
    if game.result[:1] in "BW" and game.result[1:2] == "+":
        return float((game.result[0] == "B") == (game.ours == 0))
    return None if game.result == "Void" else 0.5


def main(config: Config) -> None:
    try:
        thinker, words = engine(config.player, config.player.size, config.player.komi)
    except (ValueError, ImportError) as error:
        sys.exit(f"match.py: {error}")
    print(f"{config.games} games of {thinker.game.id}: {words}, against {config.opponent}, on {progress.device()}.")
    with progress.announced("Compiling the search"):
        thinker.warm_up()
    config.folder.mkdir(parents=True, exist_ok=True)
    other, played, began = Program(config.opponent, config.patience), [], time.monotonic()
    opponent, problem = config.opponent, ""
    try:
        opponent = f"{other.ask('name')} {other.ask('version')}"
        for number in range(config.games):
            game = play(thinker, other, config, number % 2, openings(thinker, config, number // 2))
            played.append(game)
            save(config, thinker, game, number, opponent)
            left = (time.monotonic() - began) / len(played) * (config.games - len(played))
            print(
                f"{number + 1:3}/{config.games}  we are {COLOURS[game.ours]}  {game.result:8} {game.how}; "
                f"{sum(points(g) or 0 for g in played):g} points so far, {left / 60:.0f} min left",
                flush=True,
            )
    except Refused as error:
        problem = str(error)
    finally:
        other.close()
    if played:
        summary(config, played, words, opponent)
    if problem:
        sys.exit(f"match.py: the match ended after {len(played)} of {config.games} games: {problem}.")


def save(config: Config, thinker: Engine, game: Game, number: int, opponent: str) -> None:
    """The record of a game."""
    players = ("jaxzero", opponent) if game.ours == 0 else (opponent, "jaxzero")
    komi = config.player.komi if config.player.game == "go" else None
    text = sgf.written(thinker.game, game.moves, game.result, players, komi)
    (config.folder / f"{number + 1:03}.sgf").write_text(text)


def summary(config: Config, played: list[Game], words: str, opponent: str) -> None:
    """Who won how often, with an interval, and all of it as JSON."""
    got = [points(game) for game in played]
    score = Score(*(got.count(x) for x in (1.0, 0.5, 0.0, None)))
    low, high = interval(score)
    print(
        f"{share(score):.1%} ({low:.0%}-{high:.0%}) for {words} against {opponent}: +{score.wins} ={score.draws} "
        f"-{score.losses}, {score.unfinished} unfinished. Records: {config.folder}"
    )
    results = {
        "settings": json.loads(json.dumps(dataclasses.asdict(config), default=str)),
        "we": words,
        "opponent": opponent,
        "score": score._asdict(),
        "games": [game._asdict() for game in played],
    }
    (config.folder / "result.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main(CONFIG)
    except KeyboardInterrupt:
        sys.exit("Stopped; the records of the games that ended are kept.")
