"""The search overlay on a board picture, and the report behind it."""

import math
from collections.abc import Callable

import jax
import numpy as np

from jaxzero.games.game import Game
from jaxzero.options.slot_actions import Slots, parts_of
from jaxzero.play.analysis import Report, known, reported
from jaxzero.play.browser.board_json import in_shares, share
from jaxzero.play.notation import names
from jaxzero.search.tree import Tree
from jaxzero.viz.board_shapes import Ground, cross_or_nought
from jaxzero.viz.search_tree.visible_nodes import one_game
from jaxzero.viz.svg import INK, tag, words

__all__ = ["caption", "expected", "overlay", "place_of", "report_of"]

NUMBERED = 8  # plies of the expected play that are numbered on the board
VALUED = 12  # moves whose value is written, and the least share of the visits for a value to be written
LEAST = 0.01
At = Callable[[float, float], tuple[float, float]]


# ---------------------------------------------------------------------------------------------------------- the report
def report_of(tree: Tree, game_index: int = 0) -> Report:
    """The results of a search, as an `Engine` reports them; values are for the player to move.

    Args:
        tree: of a policy's output, `out.tree`.
        game_index: which game of the batch.

    Raises:
        ValueError: no tree, or one without the axis of games; a game that is not there; actions that are arrays.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models, viz
    >>> game = games.from_pgx("tic_tac_toe")
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> states = jax.vmap(game.init)(keys)
    >>> for action in (0, 3, 1, 4):  # both have two in a row: who is to move wins by the third
    ...     states = jax.vmap(game.step)(states, jnp.full(2, action), keys)
    >>> out = jax.jit(jz.uct(models.rollout(game), 64))((), keys, states)
    >>> report = viz.report_of(out.tree, 1)
    >>> report.visits, report.candidates[0].action, report.candidates[0].value
    (64, 2, 1.0)
    """
    one, _ = one_game("report_of", tree, game_index)
    slots = parts_of(one.state, Slots)
    if slots and not np.issubdtype(slots[0].action.dtype, np.integer):
        raise ValueError("report_of: the actions of this tree are arrays, a report has numbers. Use viz.tree.")
    return reported(jax.device_get(_known(one)))


_known = jax.jit(known)


# ------------------------------------------------------------------------------------------------------- on the board
def place_of(ground: Ground, seen: np.ndarray, action: int, played: bool = False) -> tuple[int, int] | None:
    """The square of an action; None for one beside the board, like a pass. In Connect Four, where the disc falls."""
    if ground.kind == "connect_four":
        row = ground.rows - int((seen[:, action] > 0).sum()) - (0 if played else 1)
        return (row, action) if 0 <= row < ground.rows else None
    return divmod(action, ground.columns) if action < ground.rows * ground.columns else None


def expected(value: float) -> str:
    """The expected points in per cent for a value between −1 and 1; a draw is half a point.

    >>> expected(0.5), expected(-1.0000001), expected(float("nan"))
    ('75', '0', '?')
    """
    return f"{100 * share(value):.0f}" if math.isfinite(value) else "?"


def in_figures(value: float, shares: bool, places: int = 2) -> str:
    """A value as expected points in per cent, or, where wins pay more or less, as it is.

    >>> in_figures(-0.5, True), in_figures(-0.5, False)
    ('25 %', '−0.50')
    """
    if shares or not math.isfinite(value):
        return expected(value) + (" %" if shares else "")
    return f"{value:.{places}f}".replace("-", "−")


def caption(game: Game, ground: Ground, report: Report, mover: int) -> list[str]:
    """The lines of text below a board."""
    called, who, shares = names(game), ground.called[mover], in_shares(game)
    if not report.candidates:
        return [f"{who} to move; nothing was searched"]
    visits = f"{report.visits:,} visit{'s' if report.visits > 1 else ''}"
    worth = in_figures(report.value, shares)
    said = [
        f"{who} to move: {f'{worth} of the points expected' if shares else f'value {worth}'}, {visits}",
        "Expected play: " + " ".join(called[a] for a in report.candidates[0].line),
    ]
    beside = [
        c for c in report.candidates if ground.kind != "connect_four" and c.action >= ground.rows * ground.columns
    ]
    said += [
        f"{called[c.action]}: {in_figures(c.value, shares)}, {100 * c.visits / report.visits:.0f} % of the visits"
        for c in beside
    ]
    number = "expected points in %" if shares else "value"
    return [*said, f"Disc: share of the visits · number: {number} · ring: best move"]


def overlay(
    ground: Ground, seen: np.ndarray, report: Report, mover: int, at: At, cell: float, shares: bool = True
) -> str:
    """The moves as discs with their values, the best with a ring, the expected play in small numbers.

    `shares`: values are shown as expected points in per cent.
    """
    most = max((c.visits for c in report.candidates), default=1)
    colour = ground.mark or ground.colours[mover]
    places = [(place_of(ground, seen, c.action), c) for c in report.candidates]
    valued = {where for where, c in places[:VALUED] if where and c.visits >= LEAST * report.visits or c is places[0][1]}
    line = _line(ground, seen, report, mover)
    discs, rings, values = [], [], []
    for where, one in places:
        if where is None or (where in line and where not in valued):
            continue
        (x, y), part = at(*where), one.visits / most
        radius = cell * max(0.07, 0.44 * math.sqrt(part))
        discs.append(tag("circle", cx=x, cy=y, r=radius, fill=colour, fill_opacity=0.22 + 0.33 * part))
        if one is report.candidates[0]:
            rings.append(tag("circle", cx=x, cy=y, r=0.45 * cell, fill="none", stroke=INK, stroke_width=3))
        if where in valued:
            said = expected(one.value) if shares else in_figures(one.value, False, 1)
            values.append(_value(x, y, said, cell, one is report.candidates[0]))
    shades = [_shade(ground, at(*where), line[where], cell) for where in line if where not in valued]
    badges = [_badge(ground, at(*where), *line[where], cell) for where in line]
    return "".join((*shades, *discs, *rings, *values, *badges))


def _value(x: float, y: float, said: str, cell: float, best: bool) -> str:
    size = max(10.0, min(22.0, 0.36 * cell))
    halo = dict(stroke="#fff", stroke_width=3, stroke_linejoin="round", paint_order="stroke")
    return words(x, y + 0.36 * size, said, size, font_weight=700 if best else 500, **halo)


def _line(ground: Ground, seen: np.ndarray, report: Report, mover: int) -> dict[tuple[int, int], tuple[int, int]]:
    """The squares of the expected play, with ply and player; a square that is played twice counts once."""
    board, found = seen.copy(), {}
    for ply, action in enumerate(report.candidates[0].line[:NUMBERED] if report.candidates else ()):
        where, player = place_of(ground, board, action), (mover + ply) % 2
        if where is not None and where not in found:
            found[where], board[where] = (ply, player), player + 1
    return found


def _shade(ground: Ground, centre: tuple[float, float], step: tuple[int, int], cell: float) -> str:
    """The stone of a step of the expected play, paler than those on the board."""
    if ground.kind == "tic_tac_toe":
        place = f"translate({centre[0]:.1f} {centre[1]:.1f})scale({cell:.4g})"
        return cross_or_nought(ground, step[1], [(0.0, 0.0)], stroke_opacity=0.35, transform=place)
    fill, rim = ground.colours[step[1]], ground.rims[step[1]]
    return tag("circle", cx=centre[0], cy=centre[1], r=0.38 * cell, fill=fill, fill_opacity=0.35, stroke=rim,
               stroke_opacity=0.5)  # fmt: skip


def _badge(ground: Ground, centre: tuple[float, float], ply: int, player: int, cell: float) -> str:
    radius, fill = max(7.0, 0.17 * cell), ground.colours[player]
    x, y = centre[0] + 0.33 * cell, centre[1] - 0.33 * cell
    disc = tag("circle", cx=x, cy=y, r=radius, fill=fill, stroke=ground.rims[player])
    return disc + words(x, y + 0.42 * radius, ply + 1, 1.2 * radius, fill=ground.inks[player], font_weight=600)
