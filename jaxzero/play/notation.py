"""Notation: names of actions, stones on squares, a board in letters."""

from typing import Any

import numpy as np

from jaxzero.games.game import Game

__all__ = ["drawn", "names", "stones"]

GO = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # without I
PLAIN = "abcdefghijklmnopqrstuvwxyz"


def names(game: Game) -> tuple[str, ...]:
    """What each action is called by custom.

    Go: columns from A without I, rows from the bottom, "pass". Othello and Hex: columns from a, rows from the top,
    "pass" and "swap-pieces". Connect Four: columns from 1. Other games on square boards as Hex, all others by numbers
    from 0.

    >>> from jaxzero import games
    >>> names(games.go(9))[:2], names(games.go(9))[-2:]
    (('A9', 'B9'), ('J1', 'pass'))
    >>> names(games.from_pgx("othello"))[19], names(games.from_pgx("connect_four"))
    ('d3', ('1', '2', '3', '4', '5', '6', '7'))
    """
    rows, columns = game.observation_shape[:2] if len(game.observation_shape) == 3 else (0, 0)
    left = game.num_actions - rows * columns
    if game.id == "connect_four":
        return tuple(str(column + 1) for column in range(columns))
    if game.id.startswith("go_") and left == 1:
        return (*(f"{GO[i % columns]}{rows - i // columns}" for i in range(rows * columns)), "pass")
    others = {"othello": ("pass",), "hex": ("swap-pieces",)}.get(game.id, ())
    if rows and left == len(others) and columns <= len(PLAIN):
        return (*(f"{PLAIN[i % columns]}{i // columns + 1}" for i in range(rows * columns)), *others)
    return tuple(str(i) for i in range(game.num_actions))


def stones(game: Game, state: Any, first: int) -> np.ndarray:
    """Who has a stone where, int8 `[rows, columns]`: 0 nobody, 1 who moved first, 2 the other.

    For games whose observation begins with the plane of the mover's stones and that of the other's, as those of pgx on
    boards and `games.go` do.

    Args:
        game: its rules.
        state: one position.
        first: who moved first, `game.to_play` of the beginning.

    Raises:
        ValueError: the observation is none of a board.
    """
    if len(game.observation_shape) != 3 or game.observation_shape[-1] < 2:
        raise ValueError(f"stones({game.id}): its observation {game.observation_shape} is not that of a board.")
    seen = np.asarray(game.observe(state))
    mine, theirs = (1, 2) if int(game.to_play(state)) == first else (2, 1)
    return np.where(seen[..., 0] > 0, mine, np.where(seen[..., 1] > 0, theirs, 0)).astype(np.int8)


def drawn(game: Game, state: Any, first: int, last: int | None = None) -> list[str]:
    r"""The board in letters, with its coordinates: X moved first, O second; the last move stands in brackets.

    >>> import jax
    >>> from jaxzero import games
    >>> game = games.from_pgx("connect_four")
    >>> start = game.init(jax.random.key(0))
    >>> print("\n".join(drawn(game, game.step(start, 3, jax.random.key(0)), int(game.to_play(start)))))
     . . . . . . .
     . . . . . . .
     . . . . . . .
     . . . . . . .
     . . . . . . .
     . . . X . . .
     1 2 3 4 5 6 7
    """
    board, called = stones(game, state, first), names(game)
    rows, columns = board.shape
    marked = [[(" ", ".XO"[x]) for x in row] for row in board]
    if game.id == "connect_four":
        if last is not None:
            top = int(np.argmax(board[:, last] > 0))
            marked[top][last] = ("(", marked[top][last][1])
        return [*map(_line, marked), " " + " ".join(called)]
    if last is not None and last < rows * columns:
        row, column = divmod(last, columns)
        marked[row][column] = ("(", marked[row][column][1])
    if len(called) < rows * columns or not called[0][0].isalpha():
        return [*map(_line, marked)]
    slanted = game.id == "hex"  # a board of hexagons leans to the right
    head = "   " + " ".join(name.rstrip("0123456789") for name in called[:columns])
    label = [called[row * columns].lstrip(GO + PLAIN) for row in range(rows)]
    return [head, *(" " * (i * slanted) + f"{label[i]:>2}" + _line(row) for i, row in enumerate(marked))]


def _line(row: list[tuple[str, str]]) -> str:
    text = "".join(before + stone for before, stone in row)
    for i, (before, _) in enumerate(row):  # a bracket that was opened is closed in place of the next blank
        if before == "(":
            end = 2 * i + 2
            text = text[:end] + ")" + text[end + 1 :]
    return text
