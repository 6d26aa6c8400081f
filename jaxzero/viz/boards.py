"""Board pictures: coordinates, the last move, and the results of a search."""

import operator
from collections.abc import Callable

import jax
import numpy as np

from jaxzero.games.game import Game, check_game
from jaxzero.play.analysis import Report
from jaxzero.play.browser.board_json import in_shares
from jaxzero.play.notation import own_picture, stones
from jaxzero.types import State
from jaxzero.viz.board_shapes import Ground, drawable, ground_of, named_by, stones_drawn
from jaxzero.viz.overlay import At, caption, overlay, place_of
from jaxzero.viz.page import Picture
from jaxzero.viz.svg import INK, QUIET, sheet, tag, text_width, words

__all__ = ["board", "drawer", "picture_of", "without_board"]

WIDE = 448  # width of a board; large boards are wider, so that a square has room for a number
SQUARE = 28, 84


def board(
    game: Game, state: State, first: int | None = None, report: Report | None = None, last: int | None = None
) -> Picture:
    """A position as a picture, with the results of a search.

    Each move that was searched has a disc, whose area is its share of the visits. In it are the expected points of the
    move in per cent, (1 + value) / 2, which is the chance to win where there are no draws; in a game with
    `Game.outcomes`, where wins may pay more or less, it is the value itself. Both are left out where a move got less
    than 1 % of the visits. The best move has a ring; the small numbers are the expected play.

    Args:
        game: its rules: of a game whose moves put stones on the squares of a board.
        state: one position, without a batch.
        first: the player who moved first, `game.to_play` of the beginning. None: derived from the number of moves, if
            the state counts them as those of pgx and `games.go` do, else player 0.
        report: of an `Engine`, or of a tree by `viz.report_of`. None: the position only.
        last: the action that led here, to be marked.

    Raises:
        ValueError: something else in place of a game, a single position, or a report; a last action that is none; a
            game without a board of stones.

    >>> import jax
    >>> from jaxzero import games, viz
    >>> game = games.from_pgx("tic_tac_toe")
    >>> state = game.step(game.init(jax.random.key(0)), 4, jax.random.key(0))
    >>> viz.board(game, state, last=4).svg.count("<path")  # the lines, and a cross
    2
    """
    check_game("board", game)
    if report is not None and not isinstance(report, Report):
        raise ValueError(
            f"board: report is a {type(report).__name__}: give engine.report() or viz.report_of(out.tree)."
        )
    for name, given, most, of, is_what in (
        ("last", last, game.num_actions, "actions", "the action that led here"),
        ("first", first, game.num_players, "players", "the player who moved first"),
    ):
        if given is not None and not (hasattr(given, "__index__") and 0 <= operator.index(given) < most):
            raise ValueError(f"board: {name}={given!r} is not one of {most} {of}: give {is_what}, or None.")
    ground = drawable("board", game)
    mover, first, seen = _read(game, state, first)
    return Picture(_picture(game, ground, seen, report, int(mover != first), last))


def _read(game: Game, state: State, first: int | None) -> tuple[int, int, np.ndarray]:
    """The player to move, the one who moved first, and the stones.

    Raises:
        ValueError: it is no single position of this game.
    """
    try:
        movers = np.asarray(game.to_play(state))
        if movers.ndim == 0 and first is None:
            count = getattr(state, "_step_count", getattr(state, "moves", None))
            first = 0 if count is None else (int(movers) + int(count)) % 2
        seen = stones(game, state, first or 0) if movers.ndim == 0 else None
    except Exception as error:  # whatever a game raises for something that is no state of it
        raise ValueError(
            f"board: the state is a {type(state).__name__}, not a position of {game.id} ({type(error).__name__}). Give "
            "one position of this game, as game.init(key) and game.step make them."
        ) from error
    if seen is None:
        raise ValueError("board: this is a batch of positions. Give one: jax.tree.map(lambda x: x[0], state).")
    return int(movers), first or 0, seen


def drawer(game: Game, first: int) -> Callable[[State], str]:
    """A function that draws positions small and in few bytes: for the nodes of `viz.tree`.

    Args:
        game: its rules.
        first: the player who moved first.

    Returns:
        `state -> str`, an `<svg>` element.

    Raises:
        ValueError: something else in place of a game; a game without a board of stones.

    >>> import jax
    >>> from jaxzero import games, viz
    >>> game = games.go(9)
    >>> len(viz.drawer(game, first=0)(game.init(jax.random.key(0)))) < 1_000
    True
    """
    check_game("drawer", game)
    if game.draw is not None:
        return lambda state: picture_of(game, state).svg
    ground = drawable("drawer", game)
    quick = game._replace(observe=jax.jit(game.observe), to_play=jax.jit(game.to_play))
    box = "0 0 {:g} {:g}".format(*ground.size)

    def draw(state: State) -> str:
        inside = stones_drawn(ground, stones(quick, state, first), small=True)
        return tag("svg", inside, xmlns="http://www.w3.org/2000/svg", viewBox=box)

    return draw


def picture_of(
    game: Game, state: State, first: int | None = None, report: Report | None = None, last: int | None = None
) -> Picture:
    """The picture of a position: by the game's own `draw`, as a `board`, or a sentence that there is neither.

    Called like `board`. If `draw` fails, the picture says so, so that no long run ends because of a picture.

    >>> import jax
    >>> from jaxzero import games, viz
    >>> game = games.from_pgx("tic_tac_toe")._replace(draw=lambda state: 1 / 0)
    >>> "ZeroDivisionError" in viz.picture_of(game, game.init(jax.random.key(0))).svg
    True
    """
    check_game("picture_of", game)
    if game.draw is None:
        return without_board(game) or board(game, state, first, report, last)
    return Picture(own_picture(game, state))


def _sentence(text: str) -> Picture:
    return Picture(sheet(24 + text_width(text, 15), 36, words(8, 23, text, 15, "start")))


def without_board(game: Game) -> Picture | None:
    """A sentence in place of the board, for a page that shows any game; None: the game has one.

    >>> from jaxzero import games
    >>> "kuhn_poker has no board" in without_board(games.from_pgx("kuhn_poker")).svg, without_board(games.go(9))
    (True, None)
    """
    if ground_of(game) is not None:
        return None
    return _sentence(f"{game.id} has no board of stones that could be drawn.")


def _picture(game: Game, ground: Ground, seen: np.ndarray, report: Report | None, mover: int, last: int | None) -> str:
    """The board in the middle, names of columns and rows around it, the caption below."""
    cell = min(SQUARE[1], max(SQUARE[0], WIDE / max(ground.size)))
    wide, high = (x * cell for x in ground.size)
    columns, rows = named_by(game, ground)
    said = [] if report is None else caption(game, ground, report, mover)
    below = ground.kind in ("connect_four", "go")
    left, top = 30 if rows else 8, 26 if columns and not below else 8
    width = max(left + wide + 8, *(text_width(x, 13) + 16 for x in said), 0)
    left += (width - left - wide - 8) / 2
    bottom = top + high + (26 if columns and below else 10)

    def at(row: float, column: float) -> tuple[float, float]:
        x, y = ground.centre(row, column)
        return left + x * cell, top + y * cell

    parts = [tag("g", stones_drawn(ground, seen), transform=f"translate({left:.1f} {top})scale({cell:.4g})")]
    lean = 0.29 * cell if ground.kind == "hex" else 0
    for c, name in enumerate(columns):
        parts.append(words(at(0, c)[0] - lean, top + high + 18 if below else top - 8, name, fill=QUIET))
    for r, name in enumerate(rows):
        parts.append(words(at(r, 0)[0] - 0.5 * cell - 14, at(r, 0)[1] + 5, name, fill=QUIET))
    if report is not None:
        parts.append(overlay(ground, seen, report, mover, at, cell, in_shares(game)))
    if last is not None:
        parts.append(_last(ground, seen, last, at, cell))
    for i, sentence in enumerate(said):
        look = dict(font_weight=600) if i == 0 else dict(fill=QUIET) if i == len(said) - 1 else {}
        parts.append(words(width / 2, bottom + 14 + 20 * i, sentence, **look))
    return sheet(width, bottom + 20 * len(said), *parts)


def _last(ground: Ground, seen: np.ndarray, last: int, at: At, cell: float) -> str:
    """A mark on the stone of the last move; none on a pass."""
    where = place_of(ground, seen, last, played=True)
    if where is None:
        return ""
    x, y = at(*where)
    if ground.kind == "tic_tac_toe":
        size = dict(x=x - 0.45 * cell, y=y - 0.45 * cell, width=0.9 * cell, height=0.9 * cell, rx=6)
        return tag("rect", **size, fill="none", stroke=QUIET, stroke_width=2, stroke_dasharray="5 4")
    ink = ground.inks[int(seen[where]) - 1] if seen[where] else INK
    return tag("circle", cx=x, cy=y, r=0.17 * cell, fill="none", stroke=ink, stroke_width=2.4)
