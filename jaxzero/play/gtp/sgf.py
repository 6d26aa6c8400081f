"""Game records in SGF (Smart Game Format, file format 4): writes games, and reads the main line of a Go file.

Only what the protocol of engines needs: no variations, no markup. https://www.red-bean.com/sgf/
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from jaxzero.play.notation import family, has_board, names

if TYPE_CHECKING:
    from jaxzero.games.game import Game

__all__ = ["Record", "moves_of", "read", "result_of", "written"]

KINDS = {"go": 1, "othello": 2, "hex": 11}
OTHER = 0  # no game has this number. Without one, a record is of Go
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROPERTY = re.compile(r"([A-Z]+)\s*((?:\[(?:\\.|[^\]\\])*\]\s*)+)", re.DOTALL)
VALUE = re.compile(r"\[((?:\\.|[^\]\\])*)\]", re.DOTALL)
BEGINNING = re.compile(r"\(\s*;")  # any text may stand before it
RESULT = re.compile(r"([BW])\+(?:(R(?:esign)?|T(?:ime)?|F(?:orfeit)?)|([0-9]+(?:\.[0-9]*)?))?(?![^\s(])", re.IGNORECASE)
DRAW = re.compile(r"(?:0(?:\.0*)?|DRAW|JIGO)(?![^\s(])", re.IGNORECASE)


class Record(NamedTuple):
    """The main line of a file.

    Attributes:
        size: points on a side.
        komi: None: it does not say.
        setup: black's handicap stones, `(column, row)` from the top left.
        moves: `(colour, point)`: "b" or "w"; None is a pass.
    """

    size: int
    komi: float | None
    setup: tuple[tuple[int, int], ...]
    moves: tuple[tuple[str, tuple[int, int] | None], ...]


def read(text: str) -> Record:
    """The main line of the first game of a Go file.

    Raises:
        ValueError: it is no SGF of Go, sets up white stones, or sets up stones after a move.

    >>> read("(;GM[1]SZ[9]KM[5.5];B[ee];W[gc](;B[])(;B[cc]))").moves
    (('b', (4, 4)), ('w', (6, 2)), ('b', None))
    """
    nodes = _main_line(text)
    if not nodes:
        raise ValueError("there is no game in it: it should begin with '(;'")
    root = nodes[0]
    if root.get("GM", ["1"])[0].strip() not in ("1", ""):
        raise ValueError(f"it is a record of another game (GM[{root['GM'][0][:20]}]), and Go is GM[1]")
    size = root.get("SZ", ["19"])[0].strip()
    if not size.isdigit() or not 2 <= int(size) <= 25:
        raise ValueError(f"SZ[{size[:20]}] is not a board size from 2 to 25")
    komi, setup, moves = None, [], []
    for node in nodes:
        if "AW" in node or "AE" in node:
            raise ValueError("it sets up stones other than black's handicap (AW or AE)")
        if "AB" in node and moves:
            raise ValueError("it sets up stones after a move (AB)")
        setup += [point for value in node.get("AB", ()) for point in _points(value, int(size))]
        for name in ("B", "W"):
            moves += [(name.lower(), _point(value, int(size))) for value in node.get(name, ())]
    if "KM" in root:
        try:
            komi = float(root["KM"][0])
        except ValueError:
            komi = math.nan
        if not math.isfinite(komi):
            raise ValueError(f"KM[{root['KM'][0][:20]}] is not a number")
    if None in setup:
        raise ValueError("a handicap stone is not on the board")
    return Record(int(size), komi, tuple(setup), tuple(moves))


def moves_of(record: Record, game: Game, most: int) -> list[tuple[str, str]]:
    """Colours and names of a record's moves: black's handicap, and at most so many moves after it.

    >>> from jaxzero import games
    >>> moves_of(read("(;SZ[5]AB[aa];W[bb];B[])"), games.go(5), 1)
    [('b', 'A5'), ('w', 'B4')]
    """
    called = names(game)
    place = lambda point: "pass" if point is None else called[point[1] * record.size + point[0]]
    handicap = [("b", place(point)) for point in record.setup]
    return handicap + [(colour, place(point)) for colour, point in record.moves[: max(most, 0)]]


def written(
    game: Game, moves: list[int], result: str = "", players: tuple[str, str] = ("", ""), komi=None, movers=None
) -> str:
    """A game as SGF. Games that SGF has no number for have GM[0], their `id` as GN, and their moves by name.

    Args:
        game: its rules.
        moves: the actions, the first player's first.
        result: "B+3.5", "W+R", "0" and so on.
        players: black, and white.
        komi: of Go.
        movers: who made each move, 0 or 1, as `Engine.movers`; None: by turns.
    """
    movers = [ply % 2 for ply in range(len(moves))] if movers is None else movers
    kind = KINDS.get(family(game))
    called = names(game)
    head = {
        "FF": 4,
        "GM": OTHER if kind is None else kind,
        "GN": game.id if kind is None else None,
        "CA": "UTF-8",
        "SZ": _size(game),
        "KM": komi,
        "PB": players[0],
        "PW": players[1],
        "RE": result,
    }
    text = "".join(f"{name}[{_escaped(str(value))}]" for name, value in head.items() if value not in (None, ""))
    for mover, action in zip(movers, moves, strict=True):
        text += f";{'BW'[mover]}[{_vertex(game, action) if kind == 1 else _escaped(called[action])}]"
    return f"(;{text})\n"


def result_of(answer: str) -> str | None:
    """A result as SGF has it, from the words of an engine: "B+3.5", "W+R", "B+", "0"; None: they name no winner.

    What follows the result is left out, like GNU Go's bounds of an estimate.

    >>> [result_of(said) for said in ("b+3.5", "W+Resign", "JIGO", "W+7.5 (upper bound: -4, lower: -11)", "unknown")]
    ['B+3.5', 'W+R', '0', 'W+7.5', None]
    """
    said = answer.strip()
    found = RESULT.match(said)
    if DRAW.match(said) or found and found[3] and float(found[3]) == 0:
        return "0"
    if not found:
        return None
    how = (found[2] or "")[:1].upper() or (f"{float(found[3]):g}" if found[3] else "")
    return f"{found[1].upper()}+{how}"


def _size(game: Game) -> str | None:
    """Points on a side, or columns and rows; None: there is no board."""
    if not has_board(game):
        return None
    rows, columns = game.observation_shape[:2]
    return str(rows) if rows == columns else f"{columns}:{rows}"


def _vertex(game: Game, action: int) -> str:
    """A move of Go in two letters; a pass is empty."""
    size = game.observation_shape[0]
    row, column = divmod(action, size)
    return f"{LETTERS[column]}{LETTERS[row]}" if row < size else ""


def _main_line(text: str) -> list[dict[str, list[str]]]:
    """Nodes of the first game, by the first variation wherever there are several."""
    begun = BEGINNING.search(text)
    nodes, at, depth, closed = [], begun.start() if begun else len(text), 0, False
    while at < len(text):
        character = text[at]
        if character == "(":
            depth += 1
            if closed:
                break  # another variation: the first one is the main line
        elif character == ")":
            closed, depth = True, depth - 1
            if depth <= 0:
                break
        elif character == ";":
            nodes.append({})
        elif found := PROPERTY.match(text, at):
            if nodes:
                values = [re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL) for value in VALUE.findall(found[2])]
                nodes[-1].setdefault(found[1], []).extend(values)
            at = found.end() - 1
        elif not character.isspace():
            raise ValueError(f"{character!r} at character {at} is not part of SGF")
        at += 1
    return nodes


def _points(value: str, size: int) -> list[tuple[int, int] | None]:
    """A point, or all points of a rectangle, which two opposite corners stand for: "aa:cc"."""
    ends = [_point(corner, size) for corner in value.split(":", 1)]
    if None in ends:
        return [None]
    (left, right), (top, bottom) = (sorted((ends[0][i], ends[-1][i])) for i in (0, 1))
    return [(column, row) for row in range(top, bottom + 1) for column in range(left, right + 1)]


def _point(value: str, size: int) -> tuple[int, int] | None:
    value = value.strip()
    if value == "" or (value == "tt" and size <= 19):
        return None
    if len(value) != 2 or any(letter not in LETTERS[:size] for letter in value):
        raise ValueError(f"[{value[:20]}] is not a point of a board of size {size}")
    return LETTERS.index(value[0]), LETTERS.index(value[1])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
