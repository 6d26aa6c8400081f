"""The jobs of the search thread: to find a move or a hint, or to search a position of a review.

Each function is called with the session's lock held, and searches until it is done, or until its result is no longer
wanted.
"""

import time
from collections.abc import Callable
from typing import Any

from jaxzero.play.analysis import spread
from jaxzero.play.browser import board_json
from jaxzero.play.browser.mistakes import losses
from jaxzero.play.browser.record import judged, moves, thought
from jaxzero.play.browser.session import Job
from jaxzero.play.engine import Engine

__all__ = ["find_move", "review_position"]

LOOK = 0.1  # seconds between two looks at a search in progress


def find_move(job: Job, seconds: float | None, ended: Callable[[], bool]) -> tuple[int, dict[str, Any] | None]:
    """The move that the engine would make in the position on the board, and what it thinks of the position.

    Meanwhile the results so far are shown.
    """
    session, engine, base, last = job.session, job.session.engine, job.session.seen, [time.monotonic()]
    engine.go_to(moves(session.record, session.record.now))  # a no-op, unless something failed
    kept, simulations, least = engine.report(1).visits, session.simulations, 0
    if job.kind == "hint":
        simulations, least = spread(simulations, int(engine.legal().sum()))

    def look(thinker: Engine) -> bool:
        if time.monotonic() - last[0] >= LOOK:
            last[0] = time.monotonic()
            session.seen = base | {"search": board_json.thoughts(thinker, None, kept, least)}
        return ended() or job.enough.is_set() or session.job is not job

    action = engine.think(simulations, seconds, look, least)
    return action, board_json.thoughts(engine, None, kept, least)


def review_position(job: Job, seconds: float | None, ended: Callable[[], bool]) -> bool:
    """Searches the next position of the review, and judges the moves made there; returns whether the review goes on.

    Looking at another position does not end the review, but interrupts this search, which is then repeated.
    """
    session, scout = job.session, job.session.scout
    node = session.review.nodes[session.review.done]
    interrupted = lambda: session.version != session.seen["version"]
    given_up = lambda: ended() or job.enough.is_set() or session.job is not job
    scout.go_to(moves(session.record, node))
    simulations, least = spread(session.simulations, int(scout.legal().sum()))
    scout.think(simulations, seconds, lambda thinker: interrupted() or given_up(), least)
    if given_up():
        return False
    if not interrupted():
        found = thought(session.record, node, board_json.thoughts(scout, None, 0, least))
        session.record = judged(found, losses(found, node))
        session.review = session.review._replace(done=session.review.done + 1)
    return session.review.done < len(session.review.nodes)
