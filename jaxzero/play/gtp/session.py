"""A GTP session: one line in, one answer out.

Whatever is said, and whatever fails, the answer is well formed and the engine lives on; a command that fails changes
nothing. In Go a colour may move out of turn, which adds no pass, and the game goes on after two passes. Other
games have the same commands, and their own names of moves; there "black" is who moves first, and players take turns.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, Literal

from jaxzero.play import clock, scoring, sgf
from jaxzero.play.analysis import hopeless
from jaxzero.play.engine import Engine
from jaxzero.play.gtp.lines import COLOURS, action_of, colour_of, in_one_line, integer, number, told, words_of
from jaxzero.play.notation import drawn, names

__all__ = ["Session"]

PASSING = {  # commands after which the opponent is still the one to move: pondering goes on
    "protocol_version", "name", "version", "known_command", "list_commands", "showboard", "time_left", "final_score",
}  # fmt: skip


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
        self._meanwhile: Literal["", "pondering", "analysis"] = ""  # what goes on while nobody speaks
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
        mark, words = words_of(line)
        if not mark and not words:
            return ended
        try:
            if not words:
                raise ValueError("an id without a command")
            if words[0] not in self._commands:
                raise ValueError("unknown command")
            if words[0] not in PASSING:
                self._meanwhile = ""
            with self._all_or_nothing():
                said = self._commands[words[0]](words[1:])
        except (ValueError, RuntimeError, MemoryError) as error:  # the device's errors are RuntimeErrors
            return f"{ended}?{mark} {in_one_line(error)}\n\n"
        if self._meanwhile == "analysis":  # its lines end the answer, until somebody speaks
            return f"{ended}={mark}\n"
        return f"{ended}={mark} {said}".rstrip(" ") + "\n\n"

    def idle(self) -> None:
        """The answer is written, and nobody has anything to say: ponder or analyse, if that is what there is to do."""
        if self._meanwhile and not self.closed:
            self.engine.ponder(self._tell() if self._meanwhile == "analysis" else None)

    def ponder(self) -> None:
        """From now on `idle` thinks of the position, as it does after a move of the engine's with `ponder=True`."""
        self._meanwhile = "pondering"

    def _rest(self) -> str:
        """Stops what goes on in the background; the end of an analysis is an empty line."""
        self.engine.rest()
        if self._meanwhile != "analysis":
            return ""
        self._meanwhile = ""
        self.engine.turn_back()
        return "\n"

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What fails within leaves the board, the game and the komi as they were."""
        engine, size, komi = self.engine, self.size, self.komi
        moves, movers = list(engine.moves), list(engine.movers)
        try:
            yield
        except Exception:
            self.engine, self.size, self.komi = engine, size, komi
            engine.go_to(moves, movers)
            raise

    # --- commands ----------------------------------------------------------------------------------------------------

    def _quit(self, words: list[str]) -> str:
        self.closed = True
        return ""

    def _boardsize(self, words: list[str]) -> str:
        size = integer(words, 0, "a size")
        if size not in self._sizes:
            raise ValueError("unacceptable size")
        self._anew(size, self.komi)
        return ""

    def _set_komi(self, words: list[str]) -> str:
        komi = number(words, 0, "a number of points")
        if abs(komi) > 1000 or 2 * komi != int(2 * komi):
            raise ValueError(f"komi {komi:g}: give a whole or half number of points")
        moves, movers = list(self.engine.moves), list(self.engine.movers)
        self._anew(self.size, komi)
        self.engine.go_to(moves, movers)  # the position stays
        return ""

    def _clear(self, words: list[str]) -> str:
        self.engine.clear()
        return ""

    def _anew(self, size: int, komi: float) -> None:
        is_go = self.engine.game.id.startswith("go_")
        if size != self.size or (is_go and komi != self.komi):  # elsewhere komi has no meaning
            self.engine = self._make(size, komi)
        self.size, self.komi = size, komi
        self._clear([])

    def _play(self, words: list[str]) -> str:
        colour, action = colour_of(words), action_of(words, names(self.engine.game))
        try:
            self.engine.turn_to(colour)
            self.engine.play(action)
        except ValueError as error:
            raise ValueError(f"illegal move: {error}") from error
        return ""

    def _genmove(self, words: list[str]) -> str:
        colour = colour_of(words)
        self.engine.turn_to(colour)
        began = time.monotonic()
        action = self._decide(colour)
        if action is None:
            self.engine.turn_back()
            return "resign"
        self.engine.play(action)
        self._clocks[colour] = clock.spent(self._clocks[colour], time.monotonic() - began)
        self._meanwhile = "pondering" if self._ponders else ""
        return names(self.engine.game)[action]

    def _reg_genmove(self, words: list[str]) -> str:
        colour = colour_of(words)
        self.engine.turn_to(colour)
        action = self._decide(colour)
        self.engine.turn_back()
        return "resign" if action is None else names(self.engine.game)[action]

    def _undo(self, words: list[str]) -> str:
        if not self.engine.moves:
            raise ValueError("cannot undo")
        self.engine.undo()
        return ""

    def _showboard(self, words: list[str]) -> str:
        engine = self.engine
        last = engine.moves[-1] if engine.moves else None
        turn = "the game is over" if engine.over() else f"{('black (X)', 'white (O)')[engine.to_move()]} to move"
        return "\n".join(["", *drawn(engine.game, engine.position(), engine.first, last), turn])

    def _time_settings(self, words: list[str]) -> str:
        main, byo_time, byo_stones = (number(words, i, "a number of seconds or stones") for i in range(3))
        if min(main, byo_time, byo_stones) < 0 or byo_stones != int(byo_stones):
            raise ValueError("give main time, overtime and stones: numbers from 0, the last one whole")
        self._clocks = [clock.started(main, byo_time, int(byo_stones))] * 2
        return ""

    def _time_left(self, words: list[str]) -> str:
        colour = colour_of(words)
        left, stones = number(words, 1, "a number of seconds"), integer(words, 2, "a number of stones")
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
        until = integer(words, 1, "the number of a move") if len(words) > 1 else len(record.moves) + 1
        if record.size not in self._sizes:
            raise ValueError(f"cannot load file: a board of {record.size} is an unacceptable size")
        self._anew(record.size, self.komi if record.komi is None else record.komi)
        for ply, (colour, name) in enumerate(sgf.moves_of(record, self.engine.game, until - 1), 1):
            try:
                self._play([colour, name])
            except ValueError as error:
                raise ValueError(f"cannot load file: move {ply}, {name}: {error}") from error
        return ""

    # --- thinking ----------------------------------------------------------------------------------------------------

    def _decide(self, colour: int) -> int | None:
        """The move to make, or None to resign."""
        seconds = [x for x in (self._seconds, clock.share(self._clocks[colour])) if x is not None]
        simulations = self._simulations if self._simulations or seconds else 1000
        action = self.engine.think(simulations, min(seconds, default=None))
        return None if hopeless(self.engine.report(1), self._resign) else action

    def _analyze(self, words: list[str]) -> str:
        colour = colour_of(words) if words and words[0].lower() in COLOURS else self.engine.to_move()
        rest = [word for word in words if word.lower() not in COLOURS and word.isdigit()]
        if self.engine.over():
            raise ValueError("the game is over")
        self.engine.turn_to(colour)
        self._every = max(1, min(integer(rest, 0, "centiseconds"), 100_000) if rest else 100) / 100
        self._meanwhile = "analysis"
        return ""

    def _tell(self) -> Callable[[Engine], None]:
        """What looks at an analysis, and writes of it now and then."""
        last = [time.monotonic()]

        def look(engine: Engine) -> None:
            if time.monotonic() - last[0] >= self._every:
                last[0] = time.monotonic()
                self._write(told(engine.report(), names(engine.game)) + "\n")

        return look
