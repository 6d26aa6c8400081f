"""Game records in SGF (Smart Game Format, file format 4): writes games, and reads the main line of a Go file.

Only what the protocol of engines needs: no variations, no markup. https://www.red-bean.com/sgf/
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, NamedTuple

from jaxzero.play.notation import family, names

if TYPE_CHECKING:
    from jaxzero.games.game import Game

__all__ = ["Record", "moves_of", "read", "written"]

KINDS = {"go": 1, "othello": 2, "hex": 11}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
PROPERTY = re.compile(r"([A-Z]+)\s*((?:\[(?:\\.|[^\]\\])*\]\s*)+)", re.DOTALL)
VALUE = re.compile(r"\[((?:\\.|[^\]\\])*)\]", re.DOTALL)


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
        setup += [_point(value, int(size)) for value in node.get("AB", ())]
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
    """A game as SGF. Games that SGF has no kind for have their moves by name.

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
    size, called = game.observation_shape[0], names(game)
    head = {
        "FF": 4,
        "GM": kind,
        "CA": "UTF-8",
        "SZ": size,
        "KM": komi,
        "PB": players[0],
        "PW": players[1],
        "RE": result,
    }
    text = "".join(f"{name}[{_escaped(str(value))}]" for name, value in head.items() if value not in (None, ""))
    for mover, action in zip(movers, moves, strict=True):
        row, column = divmod(action, size)
        place = f"{LETTERS[column]}{LETTERS[row]}" if row < size else ""
        text += f";{'BW'[mover]}[{place if kind == 1 else called[action]}]"
    return f"(;{text})\n"


def _main_line(text: str) -> list[dict[str, list[str]]]:
    """Nodes of the first game, by the first variation wherever there are several."""
    nodes, at, depth, closed = [], text.find("("), 0, False
    while 0 <= at < len(text):
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


def _point(value: str, size: int) -> tuple[int, int] | None:
    value = value.strip()
    if value == "" or (value == "tt" and size <= 19):
        return None
    if len(value) != 2 or any(letter not in LETTERS[:size] for letter in value):
        raise ValueError(f"[{value[:20]}] is not a point of a board of size {size}")
    return LETTERS.index(value[0]), LETTERS.index(value[1])


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
