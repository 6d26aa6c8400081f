"""Checks of what can be done in a game: each raises Refused with the reason, or lets a change happen."""

from jaxzero.play.browser.http_messages import Refused
from jaxzero.play.browser.session import Session, taken_back

__all__ = ["may_change", "may_go", "may_move", "may_play", "may_review", "may_undo"]


def may_change(session: Session) -> None:
    """Allows any change at any time."""


def may_move(session: Session) -> None:
    """Allows a move where the game goes on, and the engine is not about to move."""
    if session.seen["over"]:
        raise Refused(409, "The game is over.")
    if session.seen["engineMoves"]:
        raise Refused(409, "It is not your turn.")


def may_play(session: Session, action: int, names: list[str]) -> None:
    """Allows this move where it is legal."""
    may_move(session)
    if action not in session.seen["legal"]:
        called = names[action] if 0 <= action < len(names) else action
        raise Refused(409, f"{called} is no legal move here.")


def may_undo(session: Session) -> None:
    """Allows taking back where there is a person's move to be taken back."""
    if session.seen["onGame"] and session.seen["now"] != session.seen["game"]:
        raise Refused(409, "An earlier position is shown. Go back to the game to take a move back.")
    if taken_back(session) is None:
        raise Refused(409, "There is no move of yours to take back.")


def may_go(session: Session, node: int) -> None:
    """Allows going to positions that were seen."""
    if node >= len(session.record.nodes):
        raise Refused(409, f"There is no position {node} in this game.")


def may_review(session: Session) -> None:
    """Allows a review where moves were made, and the engine is not about to move."""
    if session.seen["engineMoves"]:
        raise Refused(409, "The engine is about to move. Look for mistakes after its move, or after the game.")
    if len(session.seen["line"]) < 2:
        raise Refused(409, "No move was made yet, so there is nothing to look for.")
