"""A GTP session: one line in, one answer out.

Whatever the input is, and whatever fails, the answer is well formed and the engine lives on; a command that fails
changes nothing. Go is played by the rules of `games.go`. Other games have the same commands, except those of handicap,
records and life and death, and their own names of moves; there "black" is the player who moves first.

Importing this imports no jax, and nothing is compiled before a command needs it, so that a front end gets the names of
many engines at once.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from jaxzero.play.gtp import administration, clock, judging, playing, setting_up
from jaxzero.play.gtp.lines import analysis_line, in_one_line, words_of
from jaxzero.play.notation import names

if TYPE_CHECKING:
    from jaxzero.play.engine import Engine

__all__ = ["Session"]

COMMANDS = {**administration.COMMANDS, **setting_up.COMMANDS, **playing.COMMANDS, **judging.COMMANDS}
OF_GO = {**setting_up.OF_GO, **judging.OF_GO}
PASSING = {  # commands after which the opponent is still the one to move: pondering goes on
    "protocol_version", "name", "version", "known_command", "list_commands", "showboard", "time_left", "final_score",
    "final_status_list",
}  # fmt: skip
KEPT = 3  # engines: one for each of the last sizes and komis


class Session:
    """A conversation with one controller: the state that its commands have set, and the engine.

    Attributes:
        size, komi: of the game.
        sizes: those that can be played.
        commands: by name, functions of the session and the words after the name.
        settled: how many of the engine's moves cannot be undone: those of handicap stones, and those before them.
        time: each player's time for a game, by `time_settings`.
        clocks: black's and white's current clocks.
        meanwhile: what goes on between commands: "pondering", "analysis", or nothing.
        closed: whether `quit` was received.

    Args:
        make: `(size, komi) -> Engine`; called when an engine is first needed, and for a size and komi that
            none of the last few engines has.
        size: points on a side, at first.
        komi: likewise; 0 for games other than Go.
        sizes: those that `make` can take.
        go: whether the game is Go by the rules of `games.go`, which alone allows moves out of turn.
        prepare: compiles what an engine thinks with; called before it thinks first.
        simulations: for each move; None: as the clock says.
        seconds: for each move, at most.
        ponder: whether to think while the opponent does.
        resign: the win rate below which the engine gives up; 0: never.
        version: of the program.
        write: receives the lines of an analysis, which come between commands.
    """

    def __init__(
        self,
        make: Callable[[int, float], Engine],
        *,
        size: int,
        komi: float = 0.0,
        sizes: tuple[int, ...] = (),
        go: bool = True,
        prepare: Callable[[Engine], Any] = lambda engine: None,
        simulations: int | None = None,
        seconds: float | None = None,
        ponder: bool = False,
        resign: float = 0.0,
        version: str = "",
        write: Callable[[str], Any] = lambda text: None,
    ):
        self._make, self._prepare, self._write = make, prepare, write
        self._engine: Engine | None = None
        self._engines: dict[tuple[int, float], Engine] = {}  # by size and komi, the one used last at the end
        self._prepared: weakref.WeakSet[Engine] = weakref.WeakSet()
        self.size, self.komi, self.sizes, self.version = size, komi, sizes or (size,), version
        self.simulations, self.seconds, self.resign, self.ponders = simulations, seconds, resign, ponder
        self.commands: dict[str, Callable[[Session, list[str]], str]] = {**COMMANDS, **(OF_GO if go else {})}
        self.settled, self.closed, self.every = 0, False, 1.0
        self.time = clock.Clock()
        self.clocks = [self.time, self.time]
        self.meanwhile: Literal["", "pondering", "analysis"] = ""

    # --- lines -------------------------------------------------------------------------------------------------------

    def answer(self, line: str) -> str:
        """The text to be written for a line: an answer, or nothing for an empty line."""
        ended = self._end_of_analysis()
        mark, words = words_of(line)
        if not mark and not words:
            return ended
        try:
            if not words:
                raise ValueError("syntax error: an id without a command")
            if words[0] not in self.commands:
                raise ValueError("unknown command")
            if words[0] not in PASSING:
                self.meanwhile = ""
            with self._all_or_nothing():
                said = self.commands[words[0]](self, words[1:])
        except Exception as error:  # of any kind: the conversation goes on
            return f"{ended}?{mark} {in_one_line(error)}\n\n"
        if self.meanwhile == "analysis":  # its lines belong to the answer, until the next command
            return f"{ended}={mark}\n"
        return f"{ended}={mark} {said}".rstrip(" ") + "\n\n"

    def idle(self) -> None:
        """To be called when the answer is written and no command waits: ponders or analyses, if asked for."""
        if self.meanwhile and not self.closed:
            self.engine.ponder(self._tell() if self.meanwhile == "analysis" else None)

    def ponder(self) -> None:
        """From now on `idle` ponders, as it does after an engine's move with `ponder=True`."""
        self.meanwhile = "pondering"

    def rest(self) -> None:
        """Stops what goes on in the background."""
        if self._engine is not None:
            self._engine.rest()

    def _end_of_analysis(self) -> str:
        """Ends an analysis, if one is going on; returns the empty line that ends its output."""
        self.rest()
        if self.meanwhile != "analysis":
            return ""
        self.meanwhile = ""
        self.engine.turn_back()
        return "\n"

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Within, a failure restores the board, the game, the komi and the clocks."""
        kept = dict(self._engines)
        engine, size, komi, settled, clocks = self._engine, self.size, self.komi, self.settled, self.clocks[:]
        moves, movers = ([], []) if engine is None else (list(engine.moves), list(engine.movers))
        try:
            yield
        except Exception:
            made = self._engine if (size, komi) == (self.size, self.komi) else None  # kept: it took seconds to make
            self._engine = made if engine is None else engine
            self._engines = kept
            if self._engine is not None:
                self._engines[size, komi] = self._engine
            self.size, self.komi, self.settled, self.clocks = size, komi, settled, clocks
            if self._engine is not None:
                self._engine.go_to(moves, movers)
            raise

    # --- the engine --------------------------------------------------------------------------------------------------

    @property
    def engine(self) -> Engine:
        """The engine, which is made when it is first needed."""
        if self._engine is None:
            self._engine = self._engine_of(self.size, self.komi)
        return self._engine

    @property
    def started(self) -> bool:
        """Whether there is an engine; without one the board is empty."""
        return self._engine is not None

    def ready(self) -> Engine:
        """The engine, with all that thinking needs compiled."""
        if self.engine not in self._prepared:
            self._prepare(self.engine)
            self._prepared.add(self.engine)
        return self.engine

    def begin(self, size: int, komi: float) -> None:
        """Begins a new game: an empty board of this size, full clocks, and another engine for another size or komi."""
        if (size, komi) != (self.size, self.komi):
            if self._engine is not None:
                self._engine.clear(keep_memory=False, number=0)
            self._engine = self._engine_of(size, komi)
        self.size, self.komi, self.settled, self.clocks = size, komi, 0, [self.time, self.time]
        if self._engine is not None:
            self._engine.clear(number=0)  # the same lines have the same answers, whatever was played before
        if self.time != clock.Clock():
            self.ready()  # no clock should run while the search is compiled

    def _engine_of(self, size: int, komi: float) -> Engine:
        """One of the last few engines, if it has this size and komi, with its compiled programs; else a new one."""
        engine = self._engines.pop((size, komi), None) or self._make(size, komi)
        self._engines[size, komi] = engine
        while len(self._engines) > KEPT:
            del self._engines[next(iter(self._engines))]
        return engine

    # --- in the background -------------------------------------------------------------------------------------------

    def _tell(self) -> Callable[[Engine], None]:
        """The callback that writes an analysis now and then."""
        last = [time.monotonic()]

        def look(engine: Engine) -> None:
            if time.monotonic() - last[0] >= self.every:
                last[0] = time.monotonic()
                self._write(analysis_line(engine.report(), names(engine.game)) + "\n")

        return look
