"""A match against another program that speaks the Go Text Protocol."""

import dataclasses
import json
import queue
import random
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

import jax

import jaxzero as jz
from jaxzero.atomic_files import write_whole
from jaxzero.cli.playing.gtp_match_settings import Config, opening_plies
from jaxzero.cli.playing.play import engine, limits, resolved
from jaxzero.cli.playing.play_settings import komi
from jaxzero.cli.training.reporting.console import warnings_said
from jaxzero.compilation_cache import keep_programs
from jaxzero.play import scoring
from jaxzero.play.analysis import hopeless
from jaxzero.play.arena import Score, interval, share
from jaxzero.play.engine import Engine
from jaxzero.play.gtp import sgf
from jaxzero.play.notation import names
from jaxzero.runs import progress_display

COLOURS = "black", "white"
STOPPED = "it was stopped"
SCORE = re.compile(r"[BW]\+|0|DRAW|JIGO")  # any other answer does not say who has won


class Refused(RuntimeError):
    """The other program refused a command, or did not answer."""


class Program:
    """The other program, as a process that is asked in GTP."""

    def __init__(self, command: str, patience: float):
        self._patience, self._lines = patience, queue.Queue()
        self._process = subprocess.Popen(  # in its own session: Ctrl-C reaches only us, and we then close it
            shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
            start_new_session=True, errors="replace",
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line.rstrip("\r\n"))
        self._lines.put(None)

    def introduce(self) -> str:
        """Its name and version. Here it turns out if a program does not speak the protocol."""
        try:
            return f"{self.ask('name')} {self.ask('version')}"
        except Refused as error:
            raise Refused(f"{error}: it may need a flag to speak the protocol, like gnugo --mode gtp") from error

    def ask(self, command: str) -> str:
        """The answer to a command.

        Raises:
            Refused: the program refused, or did not answer in time.
        """
        try:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()
            lines = [self._line(command) or self._line(command)]  # some send an empty line first
            while lines[0][:1] in ("=", "?") and lines[-1]:
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
        """Ask the program to quit, and kill it if it does not within seconds."""
        self._patience = min(self._patience, 5)
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
    start(thinker, other, config)
    for action in opening:
        tell(thinker, other, called[action])
        thinker.play(action)
    while not thinker.over() and len(thinker.moves) < config.max_moves:
        turn = thinker.to_move()
        if turn == ours:
            action = thinker.think(**limits(config.player))
            if hopeless(thinker.report(1), config.player.resign):
                return Game(ours, thinker.moves.copy(), f"{'WB'[turn]}+R", "we resigned")
            tell(thinker, other, called[action])
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
            if len(thinker.moves) < len(opening) + 2:  # its first move
                legal = [name for name, ok in zip(called, thinker.legal()) if ok][:4]
                here = f"{thinker.game.id} here ({', '.join(legal)} ...)"
                raise Refused(f"it answered {word}, which is no move in {here}: it may play another game") from None
            return Game(ours, thinker.moves.copy(), f"{'WB'[turn]}+F", "the other made an illegal move")
    return ended(thinker, other, config, ours)


def tell(thinker: Engine, other: Program, move: str) -> None:
    """Tells the other program a move. Some of Othello's (GRhino) have no word for a pass, and pass by themselves."""
    try:
        other.ask(f"play {COLOURS[thinker.to_move()]} {move}")
    except Refused:
        if move != "pass" or thinker.game.id.startswith("go_"):
            raise


def ended(thinker: Engine, other: Program, config: Config, ours: int) -> Game:
    """The result of a finished or stopped game: the other program's, or ours if it does not give one."""
    moves = thinker.moves.copy()
    if not thinker.over():
        return Game(ours, moves, "Void", f"stopped after {len(moves)} moves")
    own = scoring.final_score(thinker.game, thinker.position(), thinker.first, komi(config.player) or 0.0)
    try:
        theirs = other.ask("final_score").upper()
    except Refused:
        theirs = ""
    if not SCORE.match(theirs):
        return Game(ours, moves, own, "scored by us")
    same = theirs[:1] == own[:1]
    return Game(ours, moves, theirs, "both agree" if same else f"we score it {own}")


def start(thinker: Engine, other: Program, config: Config) -> None:
    """Begins a new game in the other program. Size and komi are sent for Go only: Othello programs have no komi."""
    points = komi(config.player)
    if points is None:
        other.ask("clear_board")
    else:
        other.ask(f"boardsize {thinker.game.observation_shape[0]}")
        other.ask("clear_board")
        other.ask(f"komi {points:g}")


def openings(thinker: Engine, config: Config, number: int) -> list[int]:
    """Random moves, without passes: the same for both games of a pair."""
    draw, passes = random.Random(f"{config.player.seed} {number}"), {"pass", "swap-pieces"}
    called, actions = names(thinker.game), []
    thinker.clear()
    for _ in range(opening_plies(config)):
        free = [a for a, ok in enumerate(thinker.legal()) if ok and called[a] not in passes]
        if not free:
            break
        actions.append(draw.choice(free))
        thinker.play(actions[-1])
    return actions


def points(game: Game) -> float | None:
    """Our points: 1, 0 or a half; None: unfinished."""
    if game.result[:1] in "BW" and game.result[1:2] == "+":
        return float((game.result[0] == "B") == (game.ours == 0))
    return None if game.result == "Void" else 0.5


def main(config: Config) -> None:
    """Plays the games, and saves each."""
    keep_programs()
    try:
        config = dataclasses.replace(config, player=resolved(config.player))
        config = dataclasses.replace(config, opening_plies=opening_plies(config))  # as the game of the weights has it
        with warnings_said():
            thinker, words = engine(config.player, config.player.size, config.player.komi)
    except (ValueError, ImportError) as error:
        sys.exit(f"match: {error}")
    print(
        f"{config.games} games of {thinker.game.id}: {words}, against {config.opponent}, "
        f"on {progress_display.device()}."
    )
    other, played = Program(config.opponent, config.patience), []
    opponent, problem = config.opponent, ""
    try:
        with progress_display.announced(f"Asking the other program for its name, for up to {config.patience:g} s"):
            opponent = other.introduce()
        with progress_display.announced("Compiling the search"):
            thinker.warm_up()
        config.folder.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        for number in range(config.games):
            game = play(thinker, other, config, number % 2, openings(thinker, config, number // 2))
            played.append(game)
            save(config, thinker, game, number, opponent)
            result(config, played, words, opponent)
            left = (time.monotonic() - began) / len(played) * (config.games - len(played))
            print(
                f"{number + 1:3}/{config.games}  we are {COLOURS[game.ours]}  {game.result:8} {game.how}; "
                f"{sum(points(g) or 0 for g in played):g} points so far, {left / 60:.0f} min left",
                flush=True,
            )
    except Refused as error:
        problem = str(error)
    except KeyboardInterrupt:
        problem = STOPPED
        print()
    finally:
        try:
            thinker.rest()  # it may still ponder if the other resigned or failed; a thread must not outlive the program
        finally:
            other.close()
    if played:
        result(config, played, words, opponent)
        print(summary(config, played, words, opponent))
    if problem:
        words = f"match: the match ended after {len(played)} of {config.games} games: {problem}."
        if problem != STOPPED:
            sys.exit(words)
        print(words, file=sys.stderr)
        sys.exit(130)  # the shells' status for Ctrl-C


def save(config: Config, thinker: Engine, game: Game, number: int, opponent: str) -> None:
    """The record of a game."""
    players = ("jaxzero", opponent) if game.ours == 0 else (opponent, "jaxzero")
    text = sgf.written(thinker.game, game.moves, game.result, players, komi(config.player))
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
    write_whole(config.folder / "result.json", [json.dumps(results, indent=1).encode(), b"\n"])


def run(config: Config) -> None:
    """`jaxzero match` with these settings."""
    handler = signal.getsignal(signal.SIGINT)  # shells make background jobs ignore it
    signal.signal(signal.SIGTERM, handler if callable(handler) else signal.default_int_handler)
    try:
        main(config)
    except KeyboardInterrupt:
        print("match: stopped. The finished games are in the folder.", file=sys.stderr)
        sys.exit(130)
