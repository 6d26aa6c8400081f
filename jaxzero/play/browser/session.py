"""One game in progress: its record, its players, what is shown of it, and the changes that can be made."""

import dataclasses
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple

from jaxzero.play.browser import board_json
from jaxzero.play.browser.mistakes import first_share, mark
from jaxzero.play.browser.record import Record, begun, last_choice, line, moves, on_game, played, thought, without
from jaxzero.play.engine import Engine

__all__ = [
    "Job",
    "Review",
    "Session",
    "adopt",
    "begin_review",
    "engines_turn",
    "give_sides",
    "go_to",
    "make_move",
    "pause",
    "person_of",
    "plies",
    "restart",
    "resume",
    "take_back",
    "taken_back",
    "told",
]


class Job(NamedTuple):
    """A request to think.

    Attributes:
        session: the game. A job that is no longer its `session.job` was given up, and is skipped.
        kind: "move", which is then made, "hint", or "review": the next position of the session's review.
        enough: set when it shall end with the results so far.
        when: the earliest start, by `time.monotonic`; in a game that is watched there is a pause before each move.
    """

    session: "Session"
    kind: str
    enough: threading.Event
    when: float = 0.0


class Review(NamedTuple):
    """The search for mistakes.

    Attributes:
        nodes: positions of the record, in the order in which they are searched: the last one of the line first, because
            the result for a position helps to judge the move that led there.
        done: how many of them were searched.
    """

    nodes: tuple[int, ...]
    done: int = 0


@dataclasses.dataclass(eq=False)
class Session:
    """One game.

    Attributes:
        id: its name, which nobody can guess.
        engine: the position on the board and its search; used only by the holder of `lock`.
        scout: another engine, for positions of the review that are not on the board; likewise.
        engine_sides: the sides that the engine plays; 0 moves first. None: analysis; all: a game to watch.
        simulations: of each thinking; None: as many as the time allows.
        record: the positions that were seen.
        paused: whether the engine makes no moves for now.
        version: counts the changes.
        seen: what is shown of it; replaced as a whole. After a change its version differs until the change is shown.
        job: the current job; None: none.
        hint: the move that the engine would make in the position on the board.
        review: the search for mistakes, while it lasts.
        closed: whether it made room for another game; then there are no more jobs for it.
        lock: guards the engines and the record. It is held while thinking.
        claim: guards version, job and closed. It is never held for long.
    """

    id: str
    engine: Engine
    scout: Engine
    engine_sides: frozenset[int]
    simulations: int | None
    record: Record
    paused: bool = False
    version: int = 0
    seen: dict[str, Any] = dataclasses.field(default_factory=dict)
    job: Job | None = None
    hint: int | None = None
    review: Review | None = None
    closed: bool = False
    lock: threading.Lock = dataclasses.field(default_factory=threading.Lock)
    claim: threading.Lock = dataclasses.field(default_factory=threading.Lock)


def engines_turn(session: Session) -> bool:
    """Whether the engine is to make a move: at the end of the game only, for in variations people move for all."""
    record = session.record
    position = record.nodes[record.now].position
    if position["over"] or session.paused or record.now != record.game:
        return False
    return position["toMove"] in session.engine_sides


def person_of(session: Session) -> int | None:
    """The side of the person, if it is one only."""
    sides = [side for side in range(session.engine.game.num_players) if side not in session.engine_sides]
    return sides[0] if len(sides) == 1 else None


def make_move(session: Session, action: int, komi: float | None) -> None:
    """Makes a move in the position on the board, for whichever side is to move."""
    engine = session.engine
    engine.go_to(moves(session.record, session.record.now))  # a no-op, unless something failed
    mover = engine.to_move()
    engine.play(action)
    position, thoughts = board_json.position(engine, komi), board_json.thoughts(engine)
    session.record = played(session.record, action, mover, position, thoughts)


def go_to(session: Session, node: int) -> None:
    """Puts another position of the record on the board."""
    session.record = session.record._replace(now=node)
    session.engine.go_to(moves(session.record, node))
    if session.record.nodes[node].thoughts is None:  # the tree may have brought some along
        session.record = thought(session.record, node, board_json.thoughts(session.engine))


def adopt(session: Session) -> None:
    """Makes the position on the board the end of the game."""
    session.record = session.record._replace(game=session.record.now)


def taken_back(session: Session) -> int | None:
    """The position removed when a move is taken back; in a game that is only watched, and paused, the last one."""
    return last_choice(session.record, frozenset() if session.paused else session.engine_sides)


def take_back(session: Session) -> None:
    """Takes back the person's last move and all that followed; in a variation, one move."""
    session.record = without(session.record, taken_back(session))
    go_to(session, session.record.now)


def restart(session: Session, komi: float | None, number: int) -> None:
    """Begins another game, whose dice and deals follow from its number."""
    session.engine.clear(number=number)
    session.scout.clear(number=number)  # a review goes through the same positions
    session.record, session.paused = begun(board_json.position(session.engine, komi)), False


def give_sides(session: Session, sides: Iterable[int]) -> None:
    """Lets the engine play these sides."""
    session.engine_sides, session.paused = frozenset(sides), False


def pause(session: Session) -> None:
    """Stops the engine from making moves."""
    session.paused = True


def resume(session: Session) -> None:
    """Lets the engine make moves again, from the end of the game."""
    session.paused = False
    go_to(session, session.record.game)


def begin_review(session: Session) -> None:
    """Begins to search the positions of the line, from the last to the first."""
    over = lambda node: session.record.nodes[node].position["over"]
    session.review = Review(tuple(node for node in line(session.record)[::-1] if not over(node)))


def told(session: Session) -> dict[str, Any]:
    """What is shown of a session, except its version and the current search."""
    record = session.record
    here = record.nodes[record.now]
    return here.position | {
        "you": person_of(session),
        "engineSides": sorted(session.engine_sides),
        "engineMoves": engines_turn(session),
        "paused": session.paused,
        "canUndo": taken_back(session) is not None,
        "search": here.thoughts,
        "said": _last_move(record),
        "hint": session.hint,
        "problem": None,
        "now": record.now,
        "game": record.game,
        "onGame": on_game(record),
        "line": line(record),
        "plies": plies(record),
    }


def plies(record: Record) -> list[dict[str, Any]]:
    """All positions in short: the move that led there, who made it, what it lost, and the share of who moved first."""
    return [
        {
            "parent": node.parent,
            "name": node.position["moves"][-1] if node.parent >= 0 else None,
            "mover": node.mover,
            "first": first_share(node),
            "loss": node.loss,
            "mark": mark(node.loss),
        }
        for node in record.nodes
    ]


def _last_move(record: Record) -> dict[str, Any] | None:
    """The move that led to the position on the board, and what the search said when it was made."""
    here = record.nodes[record.now]
    if here.parent < 0:
        return None
    search = record.nodes[here.parent].thoughts
    return {"name": here.position["moves"][-1], "by": here.mover, "search": search, "loss": here.loss}
