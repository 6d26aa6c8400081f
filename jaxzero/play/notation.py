"""Notation: names of actions and players, stones on squares, a board in letters, results in words."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # it imports jax: a front end that only asks for a program's name must not wait
    from jaxzero.games.game import Game

__all__ = [
    "actions_by_name",
    "coordinates",
    "drawn",
    "has_board",
    "names",
    "own_picture",
    "result_in_words",
    "side_of",
    "stones",
]

GO = "ABCDEFGHJKLMNOPQRSTUVWXYZ"  # without I
NAMESPACE = 'xmlns="http://www.w3.org/2000/svg"'  # an image needs it, an element of a page does not
DIGITS = "0123456789"
PLAIN = "abcdefghijklmnopqrstuvwxyz"


def names(game: Game) -> tuple[str, ...]:
    """The customary name of each action.

    Go: columns from A without I, rows from the bottom, "pass". Othello and Hex: columns from a, rows from the top,
    "pass" and "swap-pieces". Connect Four: columns from 1. Other games on square boards: as Hex. All others: numbers
    from 0. A game with `action_names` has those.

    >>> from jaxzero import games
    >>> names(games.go(9))[:2], names(games.go(9))[-2:]
    (('A9', 'B9'), ('J1', 'pass'))
    >>> names(games.from_pgx("othello"))[19], names(games.from_pgx("connect_four"))
    ('d3', ('1', '2', '3', '4', '5', '6', '7'))
    """
    if game.action_names:
        return game.action_names
    rows, columns = game.observation_shape[:2] if len(game.observation_shape) == 3 else (0, 0)
    left = game.num_actions - rows * columns
    if game.id == "connect_four":
        return tuple(str(column + 1) for column in range(columns))
    if family(game) == "go" and left == 1:
        return (*(f"{GO[i % columns]}{rows - i // columns}" for i in range(rows * columns)), "pass")
    others = {"othello": ("pass",), "hex": ("swap-pieces",)}.get(family(game), ())
    if rows and left == len(others) and columns <= len(PLAIN):
        return (*(f"{PLAIN[i % columns]}{i // columns + 1}" for i in range(rows * columns)), *others)
    return tuple(str(i) for i in range(game.num_actions))


def actions_by_name(called: Sequence[str]) -> dict[str, int]:
    """The action of each name in lower case, for what people and programs type in letters of either case.

    >>> actions_by_name(("A1", "pass"))
    {'a1': 0, 'pass': 1}
    """
    return {name.lower(): action for action, name in enumerate(called)}


def family(game: Game) -> str:
    """The game's id without the size of its board.

    >>> from jaxzero import games
    >>> family(games.go(9)), family(games.hex_game(7)), family(games.from_pgx("connect_four"))
    ('go', 'hex', 'connect_four')
    """
    return re.sub(r"_\d+x\d+$", "", game.id)


def has_board(game: Game) -> bool:
    """Whether it is a board game for two, without `Game.draw`, in which each move puts a stone on a square, or passes.

    >>> from jaxzero import games
    >>> has_board(games.go(9)), has_board(games.from_pgx("kuhn_poker"))
    (True, False)
    """
    shape = game.observation_shape
    if len(shape) != 3 or shape[-1] < 2 or game.num_players != 2 or game.draw is not None:
        return False
    drops = game.id == "connect_four" and game.num_actions == shape[1]
    return drops or 0 <= game.num_actions - shape[0] * shape[1] <= 1


def own_picture(game: Game, state: Any) -> str:
    """The picture by `Game.draw` as a standalone SVG; a sentence in SVG where it fails.

    >>> from jaxzero import games
    >>> own_picture(games.go(9)._replace(draw=lambda state: "<svg/>"), None)
    '<svg xmlns="http://www.w3.org/2000/svg"/>'
    """
    if game.draw is None:
        raise ValueError(f"own_picture: {game.id} has no draw. Use viz.picture_of, which shows any game.")
    try:
        svg = str(game.draw(state)).strip()
    except Exception as error:  # whatever the user's function raises
        return _sentence(f"draw of {game.id} failed: {type(error).__name__}: {error}")
    if not svg.startswith("<svg"):
        return _sentence(f"draw of {game.id} returned {svg[:40]!r}, not an <svg> element.")
    return svg if NAMESPACE in svg else svg.replace("<svg", f"<svg {NAMESPACE}", 1)


def _sentence(text: str) -> str:
    head = f'<svg {NAMESPACE} viewBox="0 0 600 40" width="600" height="40">'
    return f'{head}<text x="8" y="25" font-size="14" font-family="sans-serif">{html.escape(text[:90])}</text></svg>'


def side_of(game: Game, player: int, first: int) -> int:
    """A player's number in the order of moving: 0 for the player who moved first."""
    return (player - first) % game.num_players


def result_in_words(called: Sequence[str], paid: Sequence[float]) -> str:
    """How a game has ended: the names of the players, and what each was paid in all.

    >>> result_in_words(("X", "O"), (-1, 1)), result_in_words(("X", "O"), (0, 0))
    ('O has won.', 'The game is a draw.')
    >>> result_in_words(("One", "Two", "Three"), (0.5, 0.5, -1))
    'One and Two share the first place.'
    """
    best = [name for name, x in zip(called, paid) if x == max(paid)]
    if len(best) == len(called):
        return "The game is a draw."
    return f"{best[0]} has won." if len(best) == 1 else f"{' and '.join(best)} share the first place."


def stones(game: Game, state: Any, first: int) -> np.ndarray:
    """The stones on a board, int8 `[rows, columns]`: 0 none, 1 of the player who moved first, 2 of the other.

    For games whose observation begins with the plane of the mover's stones and that of the other's, as those of pgx on
    boards and `games.go` do.

    Args:
        game: its rules.
        state: one position.
        first: the player who moved first, `game.to_play` of the beginning.

    Raises:
        ValueError: the observation is not that of a board.
    """
    if len(game.observation_shape) != 3 or game.observation_shape[-1] < 2:
        raise ValueError(f"stones({game.id}): its observation {game.observation_shape} is not that of a board.")
    seen = np.asarray(game.observe(state))
    mine, theirs = (1, 2) if int(game.to_play(state)) == first else (2, 1)
    return np.where(seen[..., 0] > 0, mine, np.where(seen[..., 1] > 0, theirs, 0)).astype(np.int8)


def coordinates(called: Sequence[str], rows: int, columns: int) -> tuple[list[str], list[str]]:
    """The names of the columns and of the rows, if those of all squares are made of them: letters, then a number.

    >>> coordinates(("a1", "b1", "a2", "b2", "pass"), 2, 2), coordinates(("NW", "NE", "SW", "SE"), 2, 2)
    ((['a', 'b'], ['1', '2']), ([], []))
    """
    letters = [name.rstrip(DIGITS) for name in called[:columns]]
    numbers = [name.removeprefix(letters[0]) for name in called[: rows * columns : columns]]
    made = [letter + number for number in numbers for letter in letters]
    named = all(letter.isalpha() for letter in letters) and all(number.isdecimal() for number in numbers)
    distinct = len(set(letters)) == columns and len(set(numbers)) == rows
    return (letters, numbers) if named and distinct and made == list(called[: rows * columns]) else ([], [])


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
    letters, numbers = coordinates(called, rows, columns)
    if not letters:
        return [*map(_line, marked)]
    slanted = family(game) == "hex"  # a board of hexagons leans to the right
    lines = (" " * (i * slanted) + f"{numbers[i]:>2}" + _line(row) for i, row in enumerate(marked))
    return ["   " + " ".join(letters), *lines]


def _line(row: list[tuple[str, str]]) -> str:
    text = "".join(before + stone for before, stone in row)
    for i, (before, _) in enumerate(row):  # the closing bracket replaces the next blank
        if before == "(":
            end = 2 * i + 2
            text = text[:end] + ")" + text[end + 1 :]
    return text
