"""Shapes of boards and stones, as SVG in units of a square."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from jaxzero.games.game import Game
from jaxzero.play.notation import coordinates, family, has_board, names
from jaxzero.viz.svg import INK, dots, line, tag

__all__ = ["Ground", "cross_or_nought", "drawable", "ground_of", "named_by", "players", "stones_drawn"]


class Ground(NamedTuple):
    """How the board of a game looks.

    Attributes:
        kind: "go", "othello", "connect_four", "hex", "tic_tac_toe" or "plain".
        rows: of squares.
        columns: of squares.
        colours: fills of the stones of the player who moved first, and of the other.
        rims: their outlines.
        inks: what is written on them.
        called: the names of the players.
        mark: the colour of a search's marks on this board; None: that of the player to move.
    """

    kind: str
    rows: int
    columns: int
    colours: tuple[str, str]
    rims: tuple[str, str]
    inks: tuple[str, str]
    called: tuple[str, str]
    mark: str | None

    def centre(self, row: float, column: float) -> tuple[float, float]:
        """Where the middle of a square is."""
        if self.kind == "hex":
            return column + 0.5 * row + 0.58, 0.866 * row + 0.66
        return column + 0.5, row + 0.5

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        if self.kind == "hex":
            return self.columns + 0.5 * self.rows - 0.34, 0.866 * (self.rows - 1) + 1.32
        return float(self.columns), float(self.rows)


# As in the page that people play on, jaxzero/play/browser/page/board.css.
BLACK_WHITE = ("#23272e", "#ffffff"), ("#0d0f12", "#6e7681"), ("#fff", INK), ("Black", "White")
BLUE_ORANGE = ("#2a6fbb", "#f0902b"), ("#184a82", "#b45f06"), ("#fff", INK), ("Blue", "Orange")
CROSS_NOUGHT = ("#2a6fbb", "#d9780f"), ("#2a6fbb", "#d9780f"), ("#fff", "#14181d"), ("X", "O")
LOOKS = {
    "go": (*BLACK_WHITE, "#1f62ad"),
    "othello": (*BLACK_WHITE, "#123f75"),
    "connect_four": (*BLUE_ORANGE, None),
    "hex": (*BLUE_ORANGE, None),
    "tic_tac_toe": (*CROSS_NOUGHT, "#57606a"),
    "plain": (*BLACK_WHITE, "#1f62ad"),
}


def ground_of(game: Game) -> Ground | None:
    """The board of a game in which stones are put on squares; None for other games.

    >>> from jaxzero import games
    >>> ground_of(games.go(9)).kind, ground_of(games.hex_game(7)).kind, ground_of(games.from_pgx("kuhn_poker"))
    ('go', 'hex', None)
    """
    if not has_board(game):
        return None  # moving pieces, no squares at all, or the game draws its own picture
    rows, columns = game.observation_shape[:2]
    kind = family(game) if family(game) in LOOKS else "plain"
    return Ground(kind, rows, columns, *LOOKS[kind])


def drawable(function: str, game: Game) -> Ground:
    """The board of a game; raises a ValueError, which names `function`, if stones are not put on squares."""
    ground = ground_of(game)
    if ground is None and game.draw is not None:
        raise ValueError(
            f"{function}: {game.id} draws pictures of its own (Game.draw). Use viz.picture_of(game, state)."
        )
    if ground is None:
        raise ValueError(
            f"{function}: {game.id} has no board of stones that could be drawn. Games that have one are games.go(9), "
            "connect_four, othello, hex and tic_tac_toe of pgx, and others whose observation is [rows, columns, 2 or "
            "more planes], the stones of the two players first, with an action for each square. Give the game a "
            "Game.draw for pictures of its own, or use print(state), and viz.tree(out.tree) without draw."
        )
    return ground


def players(game: Game) -> tuple[str, ...]:
    """The names of the players of a game, by their colours where there are any; the one who moves first comes first.

    >>> from jaxzero import games
    >>> players(games.from_pgx("connect_four")), players(games.from_pgx("kuhn_poker"))
    (('Blue', 'Orange'), ('First player', 'Second player'))
    """
    if game.num_players != 2:
        return tuple(f"Player {i + 1}" for i in range(game.num_players))
    ground = ground_of(game)
    return ("First player", "Second player") if ground is None else ground.called


def named_by(game: Game, ground: Ground) -> tuple[list[str], list[str]]:
    """The names of the columns and of the rows; rows have none where actions are columns, and neither has other names.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> named_by(game, ground_of(game))
    (['a', 'b', 'c'], ['1', '2', '3'])
    """
    called = names(game)
    if ground.kind == "connect_four":
        return list(called), []
    return coordinates(called, ground.rows, ground.columns)


def stones_drawn(ground: Ground, board: np.ndarray, small: bool = False) -> str:
    """The board and its stones; `board`: 0 none, 1 of the player who moved first, 2 the other. `small`: fewer bytes."""
    found = [_hexagons(ground, small) if ground.kind == "hex" else DRAWN[ground.kind](ground)]
    for player in (1, 2):
        squares = [ground.centre(*square) for square in np.argwhere(board == player).tolist()]
        colour, rim = ground.colours[player - 1], ground.rims[player - 1]
        if squares and ground.kind == "tic_tac_toe":
            found.append(cross_or_nought(ground, player - 1, squares))
        elif squares:
            found += [line(dots(squares), rim, 0.86), line(dots(squares), colour, 0.76)]
    return "".join(found)


def cross_or_nought(ground: Ground, player: int, squares: Iterable[tuple[float, float]], **attributes: object) -> str:
    """The marks of a player of Tic-tac-toe; `squares`: their middles."""
    return line("".join(map(_circle if player else _cross, squares)), ground.colours[player], 0.13, **attributes)


def _cross(centre: tuple[float, float]) -> str:
    return f"M{centre[0] - 0.28:.2f} {centre[1] - 0.28:.2f}l.56 .56m0-.56l-.56 .56"


def _circle(centre: tuple[float, float]) -> str:
    return f"M{centre[0] - 0.3:.2f} {centre[1]:.2f}a.3 .3 0 1 0 .6 0a.3 .3 0 1 0-.6 0"


# -------------------------------------------------------------------------------------------------------- empty boards
def _back(ground: Ground, fill: str, round_by: float = 0.12) -> str:
    return tag("rect", width=ground.columns, height=ground.rows, rx=round_by, fill=fill)


def _go(ground: Ground) -> str:
    size = min(ground.rows, ground.columns)
    points = [(c + 0.5, r + 0.5) for r in _stars(ground.rows) for c in _stars(ground.columns) if _is_star(r, c, size)]
    across = "".join(f"M.5 {r + 0.5:g}h{ground.columns - 1}" for r in range(ground.rows))
    down = "".join(f"M{c + 0.5:g} .5v{ground.rows - 1}" for c in range(ground.columns))
    grid = line(across + down, "#7a5a24", 0.035)
    return _back(ground, "#f2d9a2") + grid + line(dots(points), "#5e4314", 0.2)


def _stars(size: int) -> list[int]:
    middle = {size // 2} if size % 2 else set()
    edge = 3 if size >= 13 else 2
    return sorted({edge, size - 1 - edge} | middle) if size >= 7 else sorted(middle)


def _is_star(row: int, column: int, size: int) -> bool:
    """Whether a point is a star point; on small boards the points halfway along the sides are not."""
    return size >= 15 or (row == size // 2) == (column == size // 2)


def _discs(ground: Ground) -> str:
    # A row of holes is a dashed line: its dashes have no length and round ends. A bit longer, for the last one.
    holes = "".join(f"M.5 {r + 0.5:g}h{ground.columns - 0.99:g}" for r in range(ground.rows))
    rims, empty = (
        line(holes, fill, size, stroke_dasharray="0 1") for fill, size in (("#a3b4cb", 0.86), ("#fff", 0.78))
    )
    return _back(ground, "#c3cfe0", 0.3) + rims + empty


def _three(ground: Ground) -> str:
    return _back(ground, "#fbfcfe") + line(_inner(ground, 0.08), "#8c959f", 0.05)


def _squares(fill: str, ink: str) -> Callable[[Ground], str]:
    return lambda ground: _back(ground, fill) + line(_inner(ground, 0.0), ink, 0.035)


def _inner(ground: Ground, margin: float) -> str:
    """The lines between squares."""
    across = "".join(f"M{margin:g} {r}h{ground.columns - 2 * margin:g}" for r in range(1, ground.rows))
    return across + "".join(f"M{c} {margin:g}v{ground.rows - 2 * margin:g}" for c in range(1, ground.columns))


DRAWN = {
    "go": _go, "othello": _squares("#8fc3a0", "#4f8562"), "connect_four": _discs, "tic_tac_toe": _three,
    "plain": _squares("#eef1f4", "#9aa4af"),
}  # fmt: skip


def _hexagons(ground: Ground, small: bool) -> str:
    """Hexagons, or discs if `small`; the sides have the colours of the players who have to join them."""
    rows, columns = range(ground.rows), range(ground.columns)
    if small:
        starts = "".join("M{:g} {:.2f}h{:g}".format(*ground.centre(r, 0), ground.columns - 0.99) for r in rows)
        cells = line(starts, "#d5dae0", 0.8, stroke_dasharray="0 1")
    else:
        outline = "m0-.577l.5 .289v.577l-.5 .289l-.5-.289v-.577z"
        path = "".join("M{:.2f} {:.2f}{}".format(*ground.centre(r, c), outline) for r in rows for c in columns)
        cells = tag("path", d=path, fill="#f3f4f6", stroke="#9aa4af", stroke_width=0.04)
    end, low = columns[-1], rows[-1]
    far, near = (0, end, 0.25, -0.43), (low, 0, -0.25, 0.43)  # the two corners in the middle of a hexagon's edge
    top = _side(ground, [*((0, c, dx, dy) for c in columns for dx, dy in ((-0.5, -0.29), (0, -0.58))), far])
    left = _side(ground, [*((r, 0, -0.5, dy) for r in rows for dy in (-0.29, 0.29)), near])
    bottom = _side(ground, [near, *((low, c, dx, dy) for c in columns for dx, dy in ((0, 0.58), (0.5, 0.29)))])
    right = _side(ground, [far, *((r, end, 0.5, dy) for r in rows for dy in (-0.29, 0.29))])
    one, other = ground.colours
    return cells + line(left + right, other, 0.15) + line(top + bottom, one, 0.15)


def _side(ground: Ground, corners: Iterable[tuple[float, float, float, float]]) -> str:
    """A path along corners: row, column, and how far from the middle."""
    points = ((x + dx, y + dy) for (x, y), dx, dy in ((ground.centre(r, c), dx, dy) for r, c, dx, dy in corners))
    return "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
