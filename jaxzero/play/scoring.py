"""Scoring: who has won, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jaxzero.play.notation import family, stones

if TYPE_CHECKING:
    from jaxzero.games.game import Game

__all__ = ["area", "final_score"]


def final_score(game: Game, state: Any, first: int, komi: float = 0.0) -> str:
    """The result in the words of engines: "B+3.5", "W+12", "0"; black is who moved first.

    Go is scored by area (Tromp and Taylor's rules) at any time, and all stones on the board are alive. Othello counts
    discs. Other games have a winner only, known at the end of the game.

    Raises:
        ValueError: the game is not over, and has no score before that.
    """
    if family(game) == "go":
        black, white = area(stones(game, state, first))
        lead = black - white - komi
    elif not bool(game.terminal(state)):
        raise ValueError("cannot score: the game is not over")
    elif game.id == "othello":
        board = stones(game, state, first)
        lead = float((board == 1).sum()) - float((board == 2).sum())
    else:
        paid = float(np.asarray(game.rewards(state))[first])
        return "0" if paid == 0 else "B+" if paid > 0 else "W+"
    return "0" if lead == 0 else f"{'B' if lead > 0 else 'W'}+{abs(lead):g}"


def area(board: np.ndarray) -> tuple[int, int]:
    """Points of black and of white: their stones, and empty points from which only those can be reached.

    >>> area(np.array([[0, 1, 0], [1, 1, 2], [0, 2, 2]]))
    (4, 3)
    """
    points, seen = [int((board == 1).sum()), int((board == 2).sum())], board != 0
    for start in np.argwhere(board == 0):
        region, borders, queue = 0, set(), [tuple(start)]
        while queue:
            row, column = queue.pop()
            if not (0 <= row < board.shape[0] and 0 <= column < board.shape[1]):
                continue
            if board[row, column]:
                borders.add(int(board[row, column]))
            elif not seen[row, column]:
                seen[row, column] = True
                region += 1
                queue += [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
        if len(borders) == 1:
            points[borders.pop() - 1] += region
    return points[0], points[1]
