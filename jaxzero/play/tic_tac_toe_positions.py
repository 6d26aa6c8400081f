"""All positions of tic-tac-toe, with the value of every move."""

import functools
from typing import Any

from jaxzero.play.outcome_mistakes import Positions, played

__all__ = ["tic_tac_toe_positions"]

LINES = (0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)
Board = tuple[int, ...]  # 0: empty, 1: of the player to move, 2: of the other


def tic_tac_toe_positions(game: Any) -> Positions:
    """The 4,520 positions in which a move can be made.

    Args:
        game: tic-tac-toe, whose actions are the squares row by row.

    >>> from jaxzero import games
    >>> positions = tic_tac_toe_positions(games.from_pgx("tic_tac_toe"))
    >>> len(positions.scores), positions.scores[0].tolist()  # the empty board: whatever is played, it is a draw
    (4520, [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """
    seen: dict[Board, str] = {(0,) * 9: ""}
    for board in (waiting := [*seen]):  # breadth first: each with the shortest game that leads there
        for square in _free(board):
            after = _after(board, square)
            if after not in seen and not _lost(after) and 0 in after:
                seen[after] = seen[board] + str(square + 1)
                waiting.append(after)
    records = [
        {
            "phase": ("opening", "middle", "end")[min(len(moves) // 3, 2)],
            "kind": "all",
            "moves": moves,
            "scores": {str(square + 1): -_value(_after(board, square)) for square in _free(board)},
        }
        for board, moves in seen.items()
    ]
    return played(game, records, "all positions")


@functools.cache
def _value(board: Board) -> int:
    """1 the player to move wins, 0 it is a draw, −1 it is lost."""
    return -1 if _lost(board) else max((-_value(_after(board, square)) for square in _free(board)), default=0)


def _lost(board: Board) -> bool:
    return any(all(board[i] == 2 for i in line) for line in LINES)


def _free(board: Board) -> list[int]:
    return [i for i in range(9) if board[i] == 0]


def _after(board: Board, square: int) -> Board:
    """Seen by the other player, who moves next."""
    return tuple((0, 2, 1)[x] for x in (*board[:square], 1, *board[square + 1 :]))
