"""Scoring: who has won, and by how much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxzero.play.notation import family, stones

if TYPE_CHECKING:
    from jaxzero.games.game import Game

__all__ = ["area", "final_score", "regions"]


def final_score(game: Game, state: Any, first: int, komi: float = 0.0) -> str:
    """The result in the words of engines: "B+3.5", "W+12", "0"; black is who moved first.

    Go is scored by area (Tromp and Taylor's rules) at any time, and all stones on the board are alive. Othello counts
    discs. Other games have a winner only, known at the end of the game. Where the rules end a game otherwise than by
    its score, as pgx's Go does when a position is repeated, the result is theirs, without a number.

    Raises:
        ValueError: the game is not over, and has no score before that.
    """
    over = bool(game.terminal(state))
    if not over and family(game) != "go":
        raise ValueError("cannot score: the game is not over")
    lead = _lead(game, state, first, komi)
    paid = float(np.asarray(game.rewards(state))[first]) if over else lead
    if lead is None or np.sign(lead) != np.sign(paid):
        return "0" if paid == 0 else "B+" if paid > 0 else "W+"
    return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead):g}"


def _lead(game: Game, state: Any, first: int, komi: float) -> float | None:
    """By how many points black leads; None: the game has no points."""
    if family(game) == "go":
        black, white = area(stones(game, state, first))
        return black - white - komi
    if game.id == "othello":
        board = stones(game, state, first)
        return float((board == 1).sum()) - float((board == 2).sum())
    return None


def area(board: np.ndarray) -> tuple[int, int]:
    """Points of black and of white: their stones, and empty points from which only those can be reached.

    >>> area(np.array([[0, 1, 0], [1, 1, 2], [0, 2, 2]]))
    (4, 3)
    """
    points = [0, 0]
    for region, borders in regions(board):
        colour = int(board[region[0]])
        if colour or len(borders) == 1:
            points[(colour or borders.pop()) - 1] += len(region)
    return points[0], points[1]


def regions(board: np.ndarray) -> Iterator[tuple[list[tuple[int, int]], set[int]]]:
    """The connected parts of a board whose points hold the same, and what is held by the points next to each.

    Args:
        board: int `[rows, columns]`.

    Returns:
        In the order of their first points, row by row: the points `(row, column)`, and the values beside them.

    >>> list(regions(np.array([[1, 0, 0]])))
    [([(0, 0)], {0}), ([(0, 1), (0, 2)], {1})]
    """
    seen = np.zeros(board.shape, bool)
    for start in np.ndindex(board.shape):
        if seen[start]:
            continue
        region, borders, queue = [], set(), [start]
        while queue:
            row, column = queue.pop()
            if not (0 <= row < board.shape[0] and 0 <= column < board.shape[1]):
                continue
            if board[row, column] != board[start]:
                borders.add(int(board[row, column]))
            elif not seen[row, column]:
                seen[row, column] = True
                region.append((row, column))
                queue += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        yield region, borders
