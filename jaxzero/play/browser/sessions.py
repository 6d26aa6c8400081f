"""Sessions: several games in progress, which share one engine.

Whoever asks is answered at once: thinking is done in a thread of its own, and what a session shows meanwhile grows with
it. All changes of a session name the version of it that they are meant for, so of two that come at the same time one is
refused, and nothing is done twice.
"""

import collections
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from jaxzero.play.browser import board_json
from jaxzero.play.browser.search_thread import Job, Session, Thinker
from jaxzero.play.engine import Engine
from jaxzero.search.tree import Tree

__all__ = ["MOST_SIMULATIONS", "Refused", "Sessions"]

LOOK = 0.1  # seconds between two looks at a search in progress
REMEMBERED = 1000  # sessions that were closed and are still told so
MOST_SIMULATIONS = 1_000_000
PROBLEM = "{} failed; the terminal says why. Take a move back, or begin a new game."


class Refused(ValueError):
    """What was asked for cannot be done: a status of HTTP, and why."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


class Sessions:
    """All games, and the thread that thinks.

    Attributes:
        layout: what is shown of all of them alike, see `shown.layout`.

    Args:
        engine: each game has another one like it.
        simulations: of each thinking, to begin with; None: as many as the time allows.
        seconds: of each thinking at most; None: no limit.
        second: whether the engine moves first.
        seed: everything random follows from it.
        komi: of Go, for the score at the end.
        most: games that are kept. With one more, that which was not asked about for longest is closed.
        tell: is told, in a sentence, when all is compiled, and what fails.

    Raises:
        ValueError: no limit of thinking.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        simulations: int | None = 400,
        seconds: float | None = None,
        second: bool = False,
        seed: int = 0,
        komi: float | None = None,
        most: int = 16,
        tell: Callable[[str], Any] = lambda text: None,
    ):
        if simulations is None and seconds is None:
            raise ValueError("Sessions: give simulations, seconds or both.")
        self.layout = board_json.layout(engine.game)
        self._engine, self._simulations, self._seconds, self._second = engine, simulations, seconds, second
        self._seed, self._komi, self._most, self._tell = seed, komi, most, tell
        self._open: collections.OrderedDict[str, Session] = collections.OrderedDict()
        self._closed: collections.deque[str] = collections.deque(maxlen=REMEMBERED)
        self._kept = threading.Lock()
        self._thinker = Thinker(self._compile, self._think, self._failed)

    def close(self, patience: float | None = None) -> bool:
        """Ends all thinking; whether it has ended, within so many seconds (None: for certain)."""
        return self._thinker.close(patience)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def open(self) -> dict[str, Any]:
        """A new game; the longest unused one is closed if there are too many."""
        engine = self._engine.another(self._seed)
        session = Session(secrets.token_urlsafe(16), engine, int(self._second), self._simulations)
        with self._kept:
            self._open[session.id] = session
            gone = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - self._most)]
            self._closed.extend(other.id for other in gone)
        for other in gone:
            with other.claim:
                other.job = None
        with session.lock:
            self._show(session, 0)
        return self.view(session.id)

    def view(self, id: str) -> dict[str, Any]:
        """What is to be shown of a game now."""
        session = self._found(id)
        job, thinking = session.job, None
        if job is not None:
            thinking = {"kind": job.kind, "ahead": self._thinker.ahead(job), "compiling": not self._thinker.ready}
        more = {"id": id, "simulations": session.simulations, "seconds": self._seconds, "thinking": thinking}
        return session.seen | more

    def tree(self, id: str) -> Tree | None:
        """The search of a game's position; None: there is none."""
        return self._found(id).engine.tree()

    def play(self, id: str, version: int, action: int) -> dict[str, Any]:
        """The person's move; the engine begins to think of its answer."""

        def check(session: Session) -> None:
            _your_turn(session)
            if action not in session.seen["legal"]:
                called = self.layout["names"][action] if 0 <= action < len(self.layout["names"]) else action
                raise Refused(409, f"{called} is no legal move here.")

        return self._change(id, version, check, lambda session: _move(session, action))

    def undo(self, id: str, version: int) -> dict[str, Any]:
        """Back to before the person's last move."""

        def check(session: Session) -> None:
            if not session.seen["canUndo"]:
                raise Refused(409, "There is no move of yours to take back.")

        return self._change(id, version, check, _back)

    def new(self, id: str, version: int) -> dict[str, Any]:
        """The game begins anew; sides stay."""

        def anew(session: Session) -> None:
            session.engine.clear()
            session.movers, session.said = [], None

        return self._change(id, version, lambda session: None, anew)

    def swap(self, id: str, version: int) -> dict[str, Any]:
        """The person takes the other side."""

        def swap(session: Session) -> None:
            session.you = (session.you + 1) % len(self.layout["sides"])

        return self._change(id, version, lambda session: None, swap)

    def hint(self, id: str, version: int) -> dict[str, Any]:
        """The engine thinks about the person's move."""
        return self._change(id, version, _your_turn, lambda session: self._ask(session, "hint"))

    def enough(self, id: str) -> dict[str, Any]:
        """Thinking ends with what is known."""
        job = self._found(id).job
        if job is not None:
            job.enough.set()
        return self.view(id)

    def limit(self, id: str, simulations: int | None) -> dict[str, Any]:
        """How many simulations each thinking from now on shall take; None: as many as the time allows."""
        if simulations is None and self._seconds is None:
            raise Refused(400, f"Give a number of simulations, from 1 to {MOST_SIMULATIONS:,}.")
        if simulations is not None and not 1 <= simulations <= MOST_SIMULATIONS:
            raise Refused(400, f"{simulations:,} simulations: give from 1 to {MOST_SIMULATIONS:,}.")
        self._found(id).simulations = simulations
        return self.view(id)

    # --- changes -----------------------------------------------------------------------------------------------------

    def _found(self, id: str) -> Session:
        with self._kept:
            if id in self._open:
                self._open.move_to_end(id)
                return self._open[id]
            closed = id in self._closed
        if closed:
            raise Refused(410, f"This game was closed: {self._most} others were used since. Begin a new one.")
        raise Refused(404, "There is no such game: it ended with the program that held it. Begin a new one.")

    def _change(self, id: str, version: int, check: Callable[[Session], None], act: Callable[[Session], None]) -> dict:
        session = self._found(id)
        with session.claim:
            if not version == session.version == session.seen["version"]:
                raise Refused(409, "The game has gone on meanwhile. What you see now is how it stands.")
            check(session)
            session.version += 1
            version, session.job = session.version, None  # whatever is thought about it ends
        with session.lock:
            session.hint = None
            try:
                act(session)
                self._show(session, version)
            except Exception:
                session.seen = session.seen | {"version": version, "problem": PROBLEM.format("This")}
                raise
        return self.view(id)

    def _show(self, session: Session, version: int, kept: int = 0) -> None:
        """What is seen becomes what is, in this version; and the engine is asked for a move if it is its turn.

        `kept`: visits that were there before the thinking which is shown.
        """
        engine = session.engine
        seen = board_json.position(engine, self._komi) | {
            "version": version,  # not the session's: who waits for the lock has raised that one already
            "you": session.you,
            "canUndo": session.you in session.movers,
            "search": board_json.thoughts(engine, kept=kept),
            "said": session.said,
            "hint": session.hint,
            "problem": None,
        }
        if not seen["over"] and seen["toMove"] != session.you:
            self._ask(session, "move")
        session.seen = seen

    def _ask(self, session: Session, kind: str) -> None:
        job = Job(session, kind, threading.Event())
        with session.claim:
            session.job = job
        self._thinker.submit(job)

    # --- thinking, in its thread -------------------------------------------------------------------------------------

    def _compile(self) -> None:
        began = time.monotonic()
        self._engine.warm_up()
        self._tell(f"Ready: the search was compiled in {time.monotonic() - began:.1f} s.")

    def _think(self, job: Job) -> None:
        session, engine, base, last = job.session, job.session.engine, job.session.seen, [time.monotonic()]
        kept = engine.report(1).visits

        def look(thinker: Engine) -> bool:
            if time.monotonic() - last[0] >= LOOK:
                last[0] = time.monotonic()
                session.seen = base | {"search": board_json.thoughts(thinker, kept=kept)}
            return self._thinker.ended or job.enough.is_set() or session.job is not job

        action = engine.think(session.simulations, self._seconds, look)
        with session.claim:
            if session.job is not job or self._thinker.ended:
                return  # somebody has changed the game, and shows what became of it
            session.version += job.kind == "move"  # a hint leaves the game as it is
            version = session.version
        if job.kind == "move":
            name = self.layout["names"][action]
            session.said = {"name": name, "by": engine.to_move(), "search": board_json.thoughts(engine, kept=kept)}
            _move(session, action)
        else:
            session.hint = action
        self._show(session, version, kept if job.kind == "hint" else 0)
        self._over(job)

    def _failed(self, job: Job | None, error: Exception) -> None:
        self._tell(f"Thinking failed: {type(error).__name__}: {error}")
        if job is not None:
            session = job.session
            with session.claim:
                if session.job is job:  # else somebody has claimed a version, and shows what becomes of it
                    session.version += 1
                    problem = PROBLEM.format("Thinking")
                    session.seen = session.seen | {"version": session.version, "problem": problem}
            self._over(job)

    def _over(self, job: Job) -> None:
        with job.session.claim:
            if job.session.job is job:
                job.session.job = None


def _your_turn(session: Session) -> None:
    if session.seen["over"]:
        raise Refused(409, "The game is over.")
    if session.seen["toMove"] != session.you:
        raise Refused(409, "It is not your turn.")


def _move(session: Session, action: int) -> None:
    session.movers.append(session.engine.to_move())
    session.engine.play(action)


def _back(session: Session) -> None:
    """To before the person's last move."""
    while session.movers.pop() != session.you:
        session.engine.undo()
    session.engine.undo()
    session.said = None
