"""The Go Text Protocol, version 2 (Farnebäck 2002): how front ends and match runners speak with an engine.

https://www.lysator.liu.se/~gunnar/gtp/gtp2-spec-draft2/gtp2-spec.html

`Session.answer` takes one line and gives what is to be written, so that a transcript is a test; `serve` is the loop
over two streams. Whatever is said, the answer is well formed and the engine lives on. Games other than Go are played
with the same commands, and their own names of moves; there "black" is who moves first.
"""

import math
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from jaxzero.play import clock, scoring, sgf
from jaxzero.play.boards import drawn, names
from jaxzero.play.engine import Engine, Report

__all__ = ["Session", "hopeless", "serve"]

COLOURS = {"b": 0, "black": 0, "w": 1, "white": 1}
ENOUGH = 100  # visits before a position is given up
LONGEST = 10_000  # characters of a line that are looked at


class Session:
    """What one controller has said, and the engine that it is said to.

    Args:
        make: `(size, komi) -> Engine`; called again when one of them changes.
        size: points on a side, to begin with.
        komi: likewise; of other games than Go 0.
        sizes: those that `make` can take.
        simulations: for each move; None: as the clock says.
        seconds: for each move, at most.
        ponder: whether to think while the opponent does.
        resign: the win rate below which the engine gives up; 0: never.
        write: where lines of an analysis go, which come by themselves.
    """

    def __init__(
        self,
        make: Callable[[int, float], Engine],
        *,
        size: int,
        komi: float = 0.0,
        sizes: tuple[int, ...] = (),
        simulations: int | None = None,
        seconds: float | None = None,
        ponder: bool = False,
        resign: float = 0.0,
        version: str = "",
        write: Callable[[str], Any] = lambda text: None,
    ):
        self._make, self._sizes, self._version, self._write = make, sizes or (size,), version, write
        self._simulations, self._seconds, self._resign, self._ponders = simulations, seconds, resign, ponder
        self.size, self.komi, self.closed = size, komi, False
        self.engine = make(size, komi)
        self._clocks = [clock.Clock(), clock.Clock()]
        self._plies: list[int] = []  # of each move that was made, so that undo takes back what a command did
        self._analysing = self._pondering = False
        self._every = 1.0
        self._commands: dict[str, Callable[[list[str]], str]] = {
            "protocol_version": lambda _: "2",
            "name": lambda _: "jaxzero",
            "version": lambda _: self._version,
            "known_command": lambda words: str(bool(words) and words[0] in self._commands).lower(),
            "list_commands": lambda _: "\n".join(sorted(self._commands)),
            "quit": self._quit,
            "boardsize": self._boardsize,
            "komi": self._set_komi,
            "clear_board": self._clear,
            "play": self._play,
            "genmove": self._genmove,
            "reg_genmove": self._reg_genmove,
            "undo": self._undo,
            "showboard": self._showboard,
            "time_settings": self._time_settings,
            "time_left": self._time_left,
            "final_score": self._final_score,
            "loadsgf": self._loadsgf,
            "analyze": self._analyze,
            "lz-analyze": self._analyze,
        }

    # --- lines -------------------------------------------------------------------------------------------------------

    def answer(self, line: str) -> str:
        """What is to be written for a line: an answer, or nothing for a line that says nothing."""
        ended = self._rest()
        text = "".join(" " if c == "\t" else c for c in line[:LONGEST] if c == "\t" or (c >= " " and c != "\x7f"))
        words = text.split("#", 1)[0].split()
        if not words:
            return ended
        number = ""
        if words[0].isascii() and words[0].isdigit():
            number, words = words[0], words[1:]
        try:
            if not words:
                raise ValueError("an id without a command")
            if words[0] not in self._commands:
                raise ValueError("unknown command")
            said = self._commands[words[0]](words[1:])
        except ValueError as error:
            return f"{ended}?{number} {_in_one_line(str(error))}\n\n"
        if self._analysing:
            self._start_analysis()
            return f"{ended}={number}\n"
        return f"{ended}={number} {said}".rstrip(" ") + "\n\n"

    def idle(self) -> None:
        """Nobody has anything to say: think while the opponent does."""
        if self._pondering and not self._analysing and not self.closed:
            self.engine.ponder()

    def _rest(self) -> str:
        """Stops what goes on in the background; the end of an analysis is an empty line."""
        self.engine.rest()
        ended = "\n" if self._analysing else ""
        self._analysing = self._pondering = False
        return ended

    # --- commands ----------------------------------------------------------------------------------------------------

    def _quit(self, words: list[str]) -> str:
        self.closed = True
        return ""

    def _boardsize(self, words: list[str]) -> str:
        size = _integer(words, 0, "a size")
        if size not in self._sizes:
            raise ValueError("unacceptable size")
        self._anew(size, self.komi)
        return ""

    def _set_komi(self, words: list[str]) -> str:
        komi = _number(words, 0, "a number of points")
        if abs(komi) > 1000 or 2 * komi != int(2 * komi):
            raise ValueError(f"komi {komi:g}: give a whole or half number of points")
        moves, plies = list(self.engine.moves), list(self._plies)
        self._anew(self.size, komi)
        for action in moves:  # the position stays
            self.engine.play(action)
        self._plies = plies
        return ""

    def _clear(self, words: list[str]) -> str:
        self.engine.clear()
        self._plies.clear()
        return ""

    def _anew(self, size: int, komi: float) -> None:
        is_go = self.engine.game.id.startswith("go_")
        if size != self.size or (is_go and komi != self.komi):  # elsewhere komi has no meaning
            self.engine = self._make(size, komi)
        self.size, self.komi = size, komi
        self._clear([])

    def _play(self, words: list[str]) -> str:
        colour, action = self._colour(words), self._action(words)
        before = len(self.engine.moves)
        try:
            self._turn(colour)
            self.engine.play(action)
        except ValueError as error:
            while len(self.engine.moves) > before:
                self.engine.undo()
            raise ValueError(f"illegal move: {error}") from error
        self._plies.append(len(self.engine.moves) - before)
        return ""

    def _genmove(self, words: list[str]) -> str:
        colour, before = self._colour(words), len(self.engine.moves)
        self._turn(colour)
        began = time.monotonic()
        action = self._decide(colour)
        if action is None:
            while len(self.engine.moves) > before:
                self.engine.undo()
            return "resign"
        self.engine.play(action)
        self._plies.append(len(self.engine.moves) - before)
        self._clocks[colour] = clock.spent(self._clocks[colour], time.monotonic() - began)
        self._pondering = self._ponders
        return names(self.engine.game)[action]

    def _reg_genmove(self, words: list[str]) -> str:
        colour, before = self._colour(words), len(self.engine.moves)
        self._turn(colour)
        try:
            action = self._decide(colour)
        finally:
            while len(self.engine.moves) > before:
                self.engine.undo()
        return "resign" if action is None else names(self.engine.game)[action]

    def _undo(self, words: list[str]) -> str:
        if not self._plies:
            raise ValueError("cannot undo")
        for _ in range(self._plies.pop()):
            self.engine.undo()
        return ""

    def _showboard(self, words: list[str]) -> str:
        engine = self.engine
        last = engine.moves[-1] if engine.moves else None
        turn = "the game is over" if engine.over() else f"{('black (X)', 'white (O)')[engine.to_move()]} to move"
        return "\n".join(["", *drawn(engine.game, engine.position(), engine.first, last), turn])

    def _time_settings(self, words: list[str]) -> str:
        main, byo_time, byo_stones = (_number(words, i, "a number of seconds or stones") for i in range(3))
        if min(main, byo_time, byo_stones) < 0 or byo_stones != int(byo_stones):
            raise ValueError("give main time, overtime and stones: numbers from 0, the last one whole")
        self._clocks = [clock.started(main, byo_time, int(byo_stones))] * 2
        return ""

    def _time_left(self, words: list[str]) -> str:
        colour = self._colour(words)
        left, stones = _number(words, 1, "a number of seconds"), _integer(words, 2, "a number of stones")
        if stones < 0:
            raise ValueError("give a number of stones from 0")
        known = self._clocks[colour]
        self._clocks[colour] = known._replace(main=known.main or 0, left=max(left, 0.0), stones=stones)
        return ""

    def _final_score(self, words: list[str]) -> str:
        return scoring.final_score(self.engine.game, self.engine.position(), self.engine.first, self.komi)

    def _loadsgf(self, words: list[str]) -> str:
        if not self.engine.game.id.startswith("go_"):
            raise ValueError("cannot load file: records are read of Go only")
        if not words:
            raise ValueError("give the name of a file")
        try:
            with open(words[0], encoding="utf-8", errors="replace") as file:
                record = sgf.read(file.read(1_000_000))
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot load file: {error}") from error
        until = _integer(words, 1, "the number of a move") if len(words) > 1 else len(record.moves) + 1
        if record.size not in self._sizes:
            raise ValueError(f"cannot load file: a board of {record.size} is an unacceptable size")
        self._anew(record.size, self.komi if record.komi is None else record.komi)
        called = names(self.engine.game)
        place = lambda point: "pass" if point is None else called[point[1] * record.size + point[0]]
        moves = [("b", point) for point in record.setup] + list(record.moves[: max(until - 1, 0)])
        for number, (colour, point) in enumerate(moves):
            try:
                self._play([colour, place(point)])
            except ValueError as error:
                raise ValueError(f"cannot load file: move {number + 1}, {place(point)}: {error}") from error
        return ""

    # --- thinking ----------------------------------------------------------------------------------------------------

    def _decide(self, colour: int) -> int | None:
        """The move to make, or None to resign."""
        if self.engine.over():
            raise ValueError("the game is over")
        seconds = [x for x in (self._seconds, clock.share(self._clocks[colour])) if x is not None]
        simulations = self._simulations if self._simulations or seconds else 1000
        action = self.engine.think(simulations, min(seconds, default=None))
        return None if hopeless(self.engine.report(1), self._resign) else action

    def _analyze(self, words: list[str]) -> str:
        colour = self._colour(words) if words and words[0].lower() in COLOURS else self.engine.to_move()
        rest = [word for word in words if word.lower() not in COLOURS and word.isdigit()]
        if self.engine.over():
            raise ValueError("the game is over")
        if colour != self.engine.to_move():
            raise ValueError("it is the other's turn")
        self._every = max(1, min(_integer(rest, 0, "centiseconds"), 100_000) if rest else 100) / 100
        self._analysing = True
        return ""

    def _start_analysis(self) -> None:
        last = [time.monotonic()]

        def look(engine: Engine) -> None:
            if time.monotonic() - last[0] >= self._every:
                last[0] = time.monotonic()
                self._write(told(engine.report(), names(engine.game)) + "\n")

        self.engine.ponder(look)

    def _turn(self, colour: int) -> None:
        """Makes it this colour's turn: in Go a pass of the other does. Other games have no such moves."""
        engine = self.engine
        if engine.over():
            raise ValueError("the game is over")
        if engine.to_move() == colour:
            return
        if not engine.game.id.startswith("go_"):
            raise ValueError("it is the other's turn")
        engine.play(engine.game.num_actions - 1)
        if engine.over():
            engine.undo()
            raise ValueError("it is the other's turn, and a pass would end the game")

    def _colour(self, words: list[str]) -> int:
        if not words or words[0].lower() not in COLOURS:
            raise ValueError("syntax error: give a colour, black or white")
        return COLOURS[words[0].lower()]

    def _action(self, words: list[str]) -> int:
        called = {name.lower(): i for i, name in enumerate(names(self.engine.game))}
        word = words[1].lower() if len(words) > 1 else ""
        if word not in called:
            raise ValueError(f"invalid vertex: give a move like {names(self.engine.game)[0]}")
        return called[word]


def hopeless(report: Report, resign: float) -> bool:
    """Whether enough is known, and the best move's win rate is below `resign`."""
    best = report.candidates[:1]
    return bool(best) and report.visits >= ENOUGH and (best[0].value + 1) / 2 < resign


def told(report: Report, called: tuple[str, ...]) -> str:
    """An analysis as Leela Zero writes it, which front ends read: win rates and priors in parts of ten thousand."""
    return " ".join(
        f"info move {called[c.action]} visits {c.visits} winrate {round(5000 * (c.value + 1))} "
        f"prior {round(10_000 * c.prior)} order {order} pv {' '.join(called[a] for a in c.line)}"
        for order, c in enumerate(report.candidates)
    )


def serve(session: Session, stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Answers line by line until `quit` or the end of the input."""
    while not session.closed:
        line = stdin.readline(LONGEST)
        if not line:
            break
        while line and not line.endswith(b"\n") and (more := stdin.readline(LONGEST)):
            line = line[:LONGEST] + b"\n" * more.endswith(b"\n")  # what is longer is read, and left
        answer = session.answer(line.decode("utf-8", errors="replace"))
        stdout.write(answer.encode("ascii", errors="replace"))
        stdout.flush()
        session.idle()
    session.engine.rest()


def _in_one_line(text: str) -> str:
    return " ".join(text.split())[:500] or "failed"


def _integer(words: list[str], index: int, what: str) -> int:
    word = words[index] if index < len(words) else ""
    if not word.lstrip("-").isdigit() or not word.isascii() or len(word) > 12:
        raise ValueError(f"syntax error: give {what}, a whole number")
    return int(word)


def _number(words: list[str], index: int, what: str) -> float:
    try:
        number = float(words[index])
    except (IndexError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"syntax error: give {what}")
    return number
