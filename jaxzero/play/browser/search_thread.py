"""One thread that searches for all games in progress, in the order of their requests."""

import collections
import dataclasses
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from jaxzero.play.engine import Engine

__all__ = ["Job", "Session", "Thinker"]


class Job(NamedTuple):
    """Thinking that was asked for.

    Attributes:
        session: whose; what no longer is its `session.job` was given up, and is passed by.
        kind: "move", which is then made, or "hint".
        enough: set when it shall end with what is known.
    """

    session: "Session"
    kind: str
    enough: threading.Event


@dataclasses.dataclass(eq=False)
class Session:
    """One game.

    Attributes:
        id: its name, which nobody can guess.
        engine: its position and its search; of whoever holds `lock`.
        you: the person's side; 0 moves first.
        simulations: of each thinking; None: as many as the time allows.
        version: counts the changes.
        seen: what is shown of it; replaced as a whole. Between a change and what is shown of it the versions differ.
        job: thinking that is not over; None: none.
        movers: who made each move.
        said: what the engine thought of its last move.
        hint: the move that it would make for the person.
        lock: of the engine. It is held while thinking.
        claim: of version and job. It is never held for long.
    """

    id: str
    engine: Engine
    you: int
    simulations: int | None
    version: int = 0
    seen: dict[str, Any] = dataclasses.field(default_factory=dict)
    job: Job | None = None
    movers: list[int] = dataclasses.field(default_factory=list)
    said: dict[str, Any] | None = None
    hint: int | None = None
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    claim: threading.Lock = dataclasses.field(default_factory=threading.Lock)


class Thinker:
    """The thread, and the queue before it.

    Attributes:
        ready: whether what comes first is done.
        ended: whether it has been told to end, which whoever thinks has to look at.

    Args:
        first: done before everything else.
        think: done for each job, while its session's `lock` is held.
        failed: is told `(job or None, error)` of whatever goes wrong in these; it goes on with the next job.
    """

    def __init__(
        self, first: Callable[[], Any], think: Callable[[Job], Any], failed: Callable[[Job | None, Exception], Any]
    ):
        self.ready = self.ended = False
        self._first, self._think, self._failed = first, think, failed
        self._changed = threading.Condition()
        self._queue: collections.deque[Job] = collections.deque()
        self._running: Job | None = None
        self._thread = threading.Thread(target=self._work, daemon=True, name="thinking")
        self._thread.start()

    def submit(self, job: Job) -> None:
        """It is the last in the queue now."""
        with self._changed:
            self._queue.append(job)
            self._changed.notify_all()

    def ahead(self, job: Job) -> int:
        """How many thoughts come before it; 0: none, or it is being thought."""
        with self._changed:
            before = [] if self._running in (None, job) else [self._running]
            before += [other for other in self._queue if other.session.job is other]
        return before.index(job) if job in before else 0

    def close(self, patience: float | None = None) -> bool:
        """Told to end; whether it has, within so many seconds (None: for certain)."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self._first()
        except Exception as error:  # whatever it is, whoever waits has to be told
            self._failed(None, error)
        self.ready = True
        while (job := self._next()) is not None:
            with job.session.lock:
                if job.session.job is job:
                    try:
                        self._think(job)
                    except Exception as error:
                        self._failed(job, error)

    def _next(self) -> Job | None:
        with self._changed:
            self._running = None
            self._changed.wait_for(lambda: self.ended or self._queue)
            self._running = None if self.ended else self._queue.popleft()
            return self._running
