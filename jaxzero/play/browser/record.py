"""The record of a game: a small tree of the positions that were seen, with the search's results for each.

A move where another one was made before begins a variation; both stay. All functions are pure: they take a record, and
return another one or a fact about it. A position is named by its index in `Record.nodes`; the beginning is 0, and a
parent comes before its children.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = [
    "Node",
    "Record",
    "begun",
    "child",
    "judged",
    "last_choice",
    "line",
    "moves",
    "on_game",
    "path",
    "played",
    "thought",
    "without",
]


class Node(NamedTuple):
    """A position, and the move that led there.

    Attributes:
        parent: the position before; −1: this is the beginning.
        action: the move; −1: none.
        mover: who made it, 0 who moved first; −1: nobody.
        position: as `board_json.position` tells it.
        thoughts: what the search said of this position, as `board_json.thoughts` tells it; None: nothing.
        loss: what the move lost against the best one, in points of 100; None: nobody has looked.
    """

    parent: int
    action: int
    mover: int
    position: dict[str, Any]
    thoughts: dict[str, Any] | None = None
    loss: float | None = None


class Record(NamedTuple):
    """All positions that were seen.

    Attributes:
        nodes: the positions, the beginning first.
        now: the one on the board.
        game: the last one of the game; positions that do not lead there belong to variations.
    """

    nodes: tuple[Node, ...]
    now: int = 0
    game: int = 0


def begun(position: dict[str, Any]) -> Record:
    """The record of a game without moves.

    >>> record = begun({})
    >>> for action in (4, 0):
    ...     record = played(record, action, len(path(record, record.now)) % 2, {})
    >>> record = played(record._replace(now=1), 8, 1, {})  # back by a move, and another one
    >>> path(record, record.game), path(record, record.now), line(record._replace(now=1))
    ([0, 1, 2], [0, 1, 3], [0, 1, 2])
    """
    return Record((Node(-1, -1, -1, position),))


def child(record: Record, node: int, action: int) -> int | None:
    """The position after a move that was made before; None: it was not made."""
    return next((i for i, n in enumerate(record.nodes) if n.parent == node and n.action == action), None)


def played(
    record: Record, action: int, mover: int, position: dict[str, Any], thoughts: dict[str, Any] | None = None
) -> Record:
    """Makes a move in the position on the board. A new move continues the game at its end, elsewhere a variation.

    Args:
        record: the record.
        action: the move.
        mover: who makes it.
        position: what follows.
        thoughts: what a search said of that so far, if it was not seen before.
    """
    found, nodes = child(record, record.now, action), record.nodes
    if found is None:
        found, nodes = len(nodes), (*nodes, Node(record.now, action, mover, position, thoughts))
    return Record(nodes, found, found if record.now == record.game else record.game)


def path(record: Record, node: int) -> list[int]:
    """The positions from the beginning to this one."""
    found = [node]
    while record.nodes[found[-1]].parent >= 0:
        found.append(record.nodes[found[-1]].parent)
    return found[::-1]


def moves(record: Record, node: int) -> list[int]:
    """The actions that lead to a position."""
    return [record.nodes[i].action for i in path(record, node)[1:]]


def on_game(record: Record) -> bool:
    """Whether the position on the board is one of the game."""
    return record.now in path(record, record.game)


def line(record: Record) -> list[int]:
    """The positions that can be stepped through: those up to the one on the board, and beyond.

    That is the game, or the variation to its end; where a variation branches, the move played first counts.
    """
    if on_game(record):
        return path(record, record.game)
    found = path(record, record.now)
    while (after := next((i for i, n in enumerate(record.nodes) if n.parent == found[-1]), None)) is not None:
        found.append(after)
    return found


def thought(record: Record, node: int, thoughts: dict[str, Any] | None) -> Record:
    """The record with the search's results for a position."""
    return _changed(record, {node: record.nodes[node]._replace(thoughts=thoughts)})


def judged(record: Record, losses: dict[int, float | None]) -> Record:
    """The record with the losses of the moves that led to these positions."""
    return _changed(record, {i: record.nodes[i]._replace(loss=loss) for i, loss in losses.items()})


def _changed(record: Record, nodes: dict[int, Node]) -> Record:
    return record._replace(nodes=tuple(nodes.get(i, node) for i, node in enumerate(record.nodes)))


def last_choice(record: Record, engine_sides: Iterable[int]) -> int | None:
    """The position to be removed to take a move back.

    At the end of the game it is the one after a person's last move, in a variation the one on the board. None: there is
    no such move, or an earlier position of the game is on the board.
    """
    sides = frozenset(engine_sides)
    if record.now == record.game:
        return next((i for i in path(record, record.now)[:0:-1] if record.nodes[i].mover not in sides), None)
    return None if on_game(record) else record.now


def without(record: Record, node: int) -> Record:
    """The record without a position and those that follow it; whoever was there is at the position before it."""
    if node == 0:
        raise ValueError("without(0): the beginning cannot be removed. Use begun(position) for a new game.")
    names, kept = {-1: -1}, []
    for i, one in enumerate(record.nodes):
        if i != node and one.parent in names:
            names[i] = len(kept)
            kept.append(one._replace(parent=names[one.parent]))
    parent = record.nodes[node].parent
    now, game = (names[i] if i in names else names[parent] for i in (record.now, record.game))
    return Record(tuple(kept), now, game)
