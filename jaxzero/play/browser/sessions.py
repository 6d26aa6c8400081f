"""Sessions: several games in progress, which share one engine.

Requests are answered at once: thinking is done in a thread of its own, and a session shows its results as they grow.
All changes name the version of the session that they are meant for. So of two changes that come at the same time one is
refused, and nothing is done twice.
"""

import collections
import itertools
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

from jaxzero.play.browser import board_json, jobs
from jaxzero.play.browser import session as one
from jaxzero.play.browser.http_messages import Refused
from jaxzero.play.browser.record import begun, thought
from jaxzero.play.browser.refusals import may_change, may_go, may_move, may_play, may_review, may_undo
from jaxzero.play.browser.search_thread import Thinker
from jaxzero.play.browser.session import Job, Session
from jaxzero.play.engine import Engine
from jaxzero.search.tree import Tree

__all__ = ["MOST_SIMULATIONS", "Sessions"]

REMEMBERED = 1000  # closed games whose names are kept, to explain why they are gone
MOST_SIMULATIONS = 1_000_000
PACE = 0.7  # seconds before each move of a game that is watched
PROBLEM = "{} failed; see the terminal. Take a move back, or begin a new game."


class Sessions:
    """All games, and the thread that thinks.

    Attributes:
        layout: what is shown of all of them alike, see `board_json.layout`.

    Args:
        engine: each game has another one like it.
        simulations: of each thinking, to begin with; None: as many as the time allows.
        seconds: of each thinking at most; None: no limit.
        second: whether the engine moves first.
        seed: everything random follows from it.
        komi: of Go, for the score at the end.
        most: games that are kept. One more closes the least recently used.
        pace: seconds before each move of a game that is watched.
        tell: receives a sentence when everything is compiled, and when something fails.

    Raises:
        ValueError: thinking has no limit.
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
        pace: float = PACE,
        tell: Callable[[str], Any] = lambda text: None,
    ):
        if simulations is None and seconds is None:
            raise ValueError("Sessions: give simulations, seconds or both.")
        self.layout = board_json.layout(engine.game)
        self._engine, self._simulations, self._seconds, self._second = engine, simulations, seconds, second
        self._seed, self._komi, self._most, self._pace, self._tell = seed, komi, most, pace, tell
        self._open: collections.OrderedDict[str, Session] = collections.OrderedDict()
        self._closed: collections.deque[str] = collections.deque(maxlen=REMEMBERED)
        self._numbers = itertools.count()  # of games, so that no two have the same dice
        self._kept = threading.Lock()
        self._sides = frozenset(range(engine.game.num_players))
        self._thinker = Thinker(self._compile, self._think, self._failed)

    def close(self, patience: float | None = None) -> bool:
        """Ends all thinking; waits at most `patience` seconds (None: no limit), and returns whether it has ended."""
        return self._thinker.close(patience)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def open(self) -> dict[str, Any]:
        """A new game; closes the least recently used one if there are too many."""
        number = self._number()
        engine, scout = (self._engine.another(self._seed, number) for _ in range(2))
        sides = self._sides - {int(self._second)}
        record = begun(board_json.position(engine, self._komi))
        session = Session(secrets.token_urlsafe(16), engine, scout, sides, self._simulations, record)
        with self._kept:
            self._open[session.id] = session
            gone = [self._open.popitem(last=False)[1] for _ in range(len(self._open) - self._most)]
            self._closed.extend(other.id for other in gone)
        for other in gone:
            with other.claim:
                other.closed, other.job = True, None
        with session.lock:
            self._show(session, 0)
        return self.view(session.id)

    def view(self, id: str) -> dict[str, Any]:
        """What is to be shown of a game now."""
        session = self._found(id)
        job, review, thinking = session.job, session.review, None
        if job is not None:
            thinking = {"kind": job.kind, "ahead": self._thinker.ahead(job), "compiling": not self._thinker.ready}
            if job.kind == "review" and review is not None:
                thinking |= {"done": review.done, "of": len(review.nodes)}
        more = {"id": id, "simulations": session.simulations, "seconds": self._seconds, "thinking": thinking}
        return session.seen | more

    def tree(self, id: str) -> Tree | None:
        """The search of a game's position; None: there is none."""
        return self._found(id).engine.tree()

    def play(self, id: str, version: int, action: int) -> dict[str, Any]:
        """A move of the person; the engine begins to think of its answer, if it plays the other side."""
        check = lambda session: may_play(session, action, self.layout["names"])
        return self._change(id, version, check, lambda session: one.make_move(session, action, self._komi))

    def undo(self, id: str, version: int) -> dict[str, Any]:
        """Takes back the person's last move and what followed; in a variation, one move."""
        return self._change(id, version, may_undo, one.take_back)

    def new(self, id: str, version: int) -> dict[str, Any]:
        """Begins another game; sides stay."""
        return self._change(id, version, may_change, lambda session: one.restart(session, self._komi, self._number()))

    def go(self, id: str, version: int, node: int) -> dict[str, Any]:
        """Another position of the record is shown; a review goes on meanwhile."""
        check = lambda session: may_go(session, node)
        return self._change(id, version, check, lambda session: one.go_to(session, node), keep="review")

    def adopt(self, id: str, version: int) -> dict[str, Any]:
        """The position that is shown becomes the end of the game, and what was played there before a variation."""
        return self._change(id, version, may_change, one.adopt)

    def swap(self, id: str, version: int) -> dict[str, Any]:
        """The person takes the next side."""
        turned = lambda session: {(side + 1) % len(self._sides) for side in session.engine_sides}
        return self._change(id, version, may_change, lambda session: one.give_sides(session, turned(session)))

    def players(self, id: str, version: int, engine: int) -> dict[str, Any]:
        """Who plays: side i is the engine's where bit i of the number is set; 0: analysis, all: a game to watch."""
        if not 0 <= engine < 1 << len(self._sides):
            raise Refused(400, f"engine: give a bit mask of sides, from 0 to {(1 << len(self._sides)) - 1}.")
        sides = {side for side in self._sides if engine >> side & 1}
        return self._change(id, version, may_change, lambda session: one.give_sides(session, sides))

    def pause(self, id: str, version: int) -> dict[str, Any]:
        """The engine makes no moves until `resume`."""
        return self._change(id, version, may_change, one.pause)

    def resume(self, id: str, version: int) -> dict[str, Any]:
        """The engine goes on from the end of the game."""
        return self._change(id, version, may_change, one.resume)

    def hint(self, id: str, version: int) -> dict[str, Any]:
        """The engine thinks about the person's move, and about every legal one."""
        return self._change(id, version, may_move, lambda session: self._ask(session, "hint"))

    def review(self, id: str, version: int) -> dict[str, Any]:
        """All positions of the line are searched, and mistakes are found."""

        def begin(session: Session) -> None:
            one.begin_review(session)
            self._ask(session, "review")

        return self._change(id, version, may_review, begin)

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

    def _number(self) -> int:
        """The number of the next game."""
        with self._kept:
            return next(self._numbers)

    def _found(self, id: str) -> Session:
        with self._kept:
            if id in self._open:
                self._open.move_to_end(id)
                return self._open[id]
            closed = id in self._closed
        if closed:
            raise Refused(410, f"This game was closed, as {self._most} others were used after it. Begin a new one.")
        raise Refused(404, "There is no such game: the program was restarted. Begin a new one.")

    def _change(
        self,
        id: str,
        version: int,
        check: Callable[[Session], None],
        act: Callable[[Session], None],
        keep: str | None = None,
    ) -> dict:
        """Makes a change that was meant for this version; ends the current job, unless it is of the kind to keep."""
        session = self._found(id)
        with session.claim:
            if not version == session.version == session.seen["version"]:
                raise Refused(409, "The game has changed meanwhile. You now see its current position.")
            check(session)
            session.version += 1
            version = session.version
            if session.job is not None and session.job.kind != keep:
                session.job = None  # whatever is thought about it ends
        with session.lock:
            session.hint = None
            try:
                act(session)
                self._show(session, version)
            except Exception:
                session.seen = session.seen | {"version": version, "problem": PROBLEM.format("This")}
                raise
        return self.view(id)

    def _show(self, session: Session, version: int) -> None:
        """Shows the current state as this version, and asks the engine for a move if it is its turn.

        The session's own version may be higher already: a change that waits for the lock raises it first.
        """
        if one.engines_turn(session):
            watched = session.engine_sides == self._sides
            self._ask(session, "move", self._pace if watched else 0.0)
        session.seen = one.told(session) | {"version": version}

    def _ask(self, session: Session, kind: str, delay: float = 0.0) -> None:
        job = Job(session, kind, threading.Event(), time.monotonic() + delay if delay else 0.0)
        with session.claim:
            if session.closed:
                return
            session.job = job
        self._thinker.submit(job)

    # --- thinking, in its thread -------------------------------------------------------------------------------------

    def _compile(self) -> None:
        began = time.monotonic()
        self._engine.warm_up()
        self._tell(f"Ready: the search was compiled in {time.monotonic() - began:.1f} s.")

    def _think(self, job: Job) -> None:
        session, ended = job.session, lambda: self._thinker.ended
        if job.kind == "review":
            going = jobs.review_position(job, self._seconds, ended)
            if session.job is job:
                self._show(session, session.seen["version"])
            return self._thinker.submit(job) if going else self._over(job)
        action, found = jobs.find_move(job, self._seconds, ended)
        with session.claim:
            if session.job is not job or self._thinker.ended:
                return  # the game was changed meanwhile, and that change shows the result
            session.version += job.kind == "move"  # a hint leaves the game as it is
            version = session.version
        session.record = thought(session.record, session.record.now, found)
        if job.kind == "move":
            one.make_move(session, action, self._komi)
        else:
            session.hint = action
        self._show(session, version)
        self._over(job)

    def _failed(self, job: Job | None, error: Exception) -> None:
        self._tell(f"Thinking failed: {type(error).__name__}: {error}")
        if job is not None:
            session = job.session
            with session.claim:
                # Stepping to a position claims a version but keeps the job of a review; other changes remove the job.
                # A change that has claimed a version also shows the result.
                claimed = job.kind == "review" and session.version != session.seen["version"]
                if session.job is job and not claimed:
                    session.version += 1
                    problem = PROBLEM.format("Thinking")
                    session.seen = session.seen | {"version": session.version, "problem": problem}
            self._over(job)

    def _over(self, job: Job) -> None:
        with job.session.claim:
            if job.session.job is job:
                job.session.job = None
