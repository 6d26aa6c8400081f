"""One thread that searches for all games in progress, in the order of their requests."""

import collections
import threading
import time
from collections.abc import Callable
from typing import Any

from jaxzero.play.browser.session import Job

__all__ = ["Thinker"]


class Thinker:
    """The thread, and the queue before it.

    Attributes:
        ready: whether `first` is done.
        ended: whether `close` was called; `think` must check it, and stop.

    Args:
        first: done before everything else.
        think: done for each job, while its session's `lock` is held.
        failed: receives `(job or None, error)` when one of these fails; the thread goes on with the next job.
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
        """Puts a job at the end of the queue."""
        with self._changed:
            self._queue.append(job)
            self._changed.notify_all()

    def ahead(self, job: Job) -> int:
        """How many jobs will be done before this one; 0 if it is the next, or in progress."""
        with self._changed:
            before = [] if self._running in (None, job) else [self._running]
            before += [other for other in self._queue if other.session.job is other and other.when <= job.when]
        return before.index(job) if job in before else 0

    def close(self, patience: float | None = None) -> bool:
        """Ends the thread; waits at most `patience` seconds (None: no limit), and returns whether it has ended."""
        with self._changed:
            self.ended = True
            self._changed.notify_all()
        self._thread.join(patience)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self._first()
        except Exception as error:  # whatever it is, those who wait must be told
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
        """The first job whose time has come, as soon as there is one; None once `close` was called."""
        with self._changed:
            self._running = None
            while not self.ended:
                now = time.monotonic()
                if (job := next((job for job in self._queue if job.when <= now), None)) is not None:
                    self._queue.remove(job)
                    self._running = job
                    return job
                later = [job.when - now for job in self._queue]
                self._changed.wait(min(later) if later else None)
            return None
