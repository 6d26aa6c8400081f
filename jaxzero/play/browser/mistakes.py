"""Mistakes: how much the moves of a game lost against the best ones, as the search sees it.

Points are hundredths of a game: a win is 100, a draw 50. A move's loss is how much better the best move of its position
is, for the player who made it. A search knows little of a move that it sees for the first time, so the move gets the
better of two values: that of its row in the table, and that of the next position's own search.
"""

from typing import Any

from jaxzero.play.browser.record import Node, Record

__all__ = ["CLASSES", "first_share", "loss", "losses", "mark"]

#: Names, and the least loss in points, of the classes of mistakes.
CLASSES = (("inaccuracy", 5), ("mistake", 10), ("blunder", 20))

FEW = 10  # visits: a search with fewer, kept from an earlier one, says nothing


def mark(lost: float | None) -> str | None:
    """The class of a mistake; None: it is none, or nobody has looked.

    >>> [mark(x) for x in (None, 4.9, 5, 12, 40)]
    [None, None, 'inaccuracy', 'mistake', 'blunder']
    """
    found = [name for name, least in CLASSES if lost is not None and lost >= least]
    return found[-1] if found else None


def loss(thoughts: dict[str, Any], action: int, after: float | None = None, over: bool = False) -> float | None:
    """What a move lost, in points; None: the search has said nothing of it.

    Args:
        thoughts: what the search said of the position, the best move first.
        action: the move that was made.
        after: the share of the mover, by what is known of the next position; None: nothing is known.
        over: whether `after` is the result of the game, so that nothing else counts.

    >>> said = {"candidates": [{"action": 3, "share": 0.75}, {"action": 0, "share": 0.5}]}
    >>> loss(said, 3), loss(said, 0), loss(said, 0, after=0.625), loss(said, 1), loss(said, 1, after=0.0, over=True)
    (0.0, 25.0, 12.5, None, 75.0)
    """
    best = thoughts["candidates"][0]
    if action == best["action"] and not over:
        return 0.0
    rows = [] if over else [one["share"] for one in thoughts["candidates"] if one["action"] == action]
    known = rows + ([] if after is None else [after])
    return max(0.0, 100 * (best["share"] - max(known))) if known else None


def first_share(node: Node) -> float | None:
    """The first player's share, by the result or by the search; None: too little is known, or more than two play."""
    if node.position["over"]:
        return node.position["result"]
    return None if node.thoughts is None or node.thoughts["visits"] < FEW else node.thoughts["first"]


def losses(record: Record, node: int) -> dict[int, float | None]:
    """The losses of the moves made in a position, by the positions that they led to."""
    said, found = record.nodes[node].thoughts, {}
    for i, one in enumerate(record.nodes):
        if one.parent == node and said is not None:
            first = first_share(one)
            after = None if first is None else first if one.mover == 0 else 1 - first
            found[i] = loss(said, one.action, after, one.position["over"] and first is not None)
    return found
