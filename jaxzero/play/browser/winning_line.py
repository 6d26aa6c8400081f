"""The winning stones: three or four in a row, or the chain between two sides."""

import collections
from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Int

from jaxzero.games.directions import HEX_NEIGHBOURS
from jaxzero.games.input_features.lines import lines

__all__ = ["winning_stones"]

Square = tuple[int, int]
RUNS = {"connect_four": 4, "tic_tac_toe": 3}  # stones in a row


def winning_stones(kind: str, stones: Int[np.ndarray, "rows columns"]) -> list[Square]:
    """The squares of the line that wins, row by row; none where nobody has one, and in other games.

    Args:
        kind: the game, as `board_json.layout` tells it.
        stones: 0 no stone, 1 of the player who moved first, 2 of the other. In Hex the first joins top and bottom.

    >>> board = np.zeros((3, 3), int)
    >>> board[[0, 1, 2], [2, 1, 0]] = 2
    >>> winning_stones("tic_tac_toe", board)
    [(0, 2), (1, 1), (2, 0)]
    """
    if kind in RUNS:
        return _in_a_row(stones, RUNS[kind])
    if kind == "hex":
        rows, columns = stones.shape
        top, left = [(0, i) for i in range(columns)], [(i, 0) for i in range(rows)]
        chain = _chain(stones == 1, top, lambda at: at[0] == rows - 1)
        return sorted(chain or _chain(stones == 2, left, lambda at: at[1] == columns - 1))
    return []


def _in_a_row(stones: Int[np.ndarray, "rows columns"], length: int) -> list[Square]:
    """The squares of all lines of `length` stones of one player."""
    every = lines(*stones.shape, length)
    full = [(every <= (stones == player).ravel()).all(1) for player in (1, 2)]
    won = every[full[0] | full[1]].any(0).reshape(stones.shape)
    return [(int(row), int(column)) for row, column in zip(*np.nonzero(won))]


def _chain(mine: np.ndarray, start: Iterable[Square], arrived: Callable[[Square], bool]) -> list[Square]:
    """A shortest chain of neighbours from one side to the other, by breadth first; none: there is no chain."""
    before: dict[Square, Square | None] = {square: None for square in start if mine[square]}
    queue = collections.deque(before)
    while queue:
        at: Square | None = queue.popleft()
        if arrived(at):
            chain = []
            while at is not None:
                chain.append(at)
                at = before[at]
            return chain
        for down, right in HEX_NEIGHBOURS:
            square = at[0] + down, at[1] + right
            inside = 0 <= square[0] < mine.shape[0] and 0 <= square[1] < mine.shape[1]
            if inside and mine[square] and square not in before:
                before[square] = at
                queue.append(square)
    return []
