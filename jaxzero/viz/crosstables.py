"""A crosstable: results of players against each other."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from jaxzero.viz.page import Picture
from jaxzero.viz.svg import BLUE, QUIET, sheet, tag, text_width, words

__all__ = ["crosstable"]

ROW, HEAD, CELL = 44, 34, 104


def crosstable(
    players: Sequence[str],
    wins: Int[np.ndarray, "players players"],
    draws: Int[np.ndarray, "players players"],
    losses: Int[np.ndarray, "players players"],
) -> Picture:
    """A table of results: wins, draws and losses of the row's player against the column's, and the share of points.

    Entered as for `play.ratings.ratings`: row i, column j are games of player i against player j. Further games of the
    two may be in row j, column i, as player j sees them. Each game is in only one of the two places.

    Args:
        players: their names.
        wins: of the row's player against the column's.
        draws: likewise.
        losses: likewise.

    Raises:
        ValueError: no players, or names that repeat; tables of another shape, with counts that are none, or with
            games of a player with itself.

    >>> from jaxzero import viz
    >>> zero = [[0, 0], [0, 0]]
    >>> picture = viz.crosstable(["new", "old"], [[0, 6], [0, 0]], [[0, 2], [0, 0]], zero)
    >>> "88 %" in picture.svg and "+6 =2 −0" in picture.svg
    True
    """
    players = tuple(players)
    table = _whole(players, wins, draws, losses)
    count = len(players)
    left = 46 + max(text_width(name, 14) for name in players)
    width, height = left + CELL * (count + 1) + 12, HEAD + ROW * count + 8
    heads = [*(str(j + 1) for j in range(count)), "all"]
    parts = [words(left + CELL * (j + 0.5), 22, head, 14, fill=QUIET) for j, head in enumerate(heads)]
    for i, name in enumerate(players):
        y = HEAD + ROW * i
        parts.append(tag("path", d=f"M8 {y}H{width - 8:.0f}", stroke="#d0d7de"))
        parts += [words(24, y + 27, i + 1, 14, "end", fill=QUIET), words(34, y + 27, name, 14, "start")]
        results = [*table[i], table[i].sum(0)]
        parts += [_cell(left + CELL * j, y, result, j == i) for j, result in enumerate(results)]
    return Picture(sheet(width, height, *parts))


def _whole(players: tuple[str, ...], *counts: object) -> np.ndarray:
    """Wins, draws and losses `[players, players, 3]`, both ways; raises a ValueError if they are none."""
    n = len(players)
    if not n or len(set(players)) < n:
        raise ValueError(f"crosstable: players {', '.join(map(str, players)) or '()'}: give each a name of its own.")
    found = []
    for name, given in zip(("wins", "draws", "losses"), counts):
        given = np.asarray(given, np.float64)
        if given.shape != (n, n):
            raise ValueError(f"crosstable: {name} of shape {list(given.shape)} for {n} players: give [{n}, {n}].")
        if not (np.isfinite(given).all() and (given >= 0).all() and (given == given.round()).all()):
            raise ValueError(f"crosstable: {name} count games: write whole numbers, 0 where there were none.")
        if np.diag(given).any():
            raise ValueError(f"crosstable: {name} of a player against itself: leave the diagonal 0.")
        found.append(given)
    wins, draws, losses = found
    return np.stack([wins + losses.T, draws + draws.T, losses + wins.T], -1).astype(int)


def _cell(x: float, y: float, result: np.ndarray, own: bool) -> str:
    """The share of the points, on blue where it is more than half, on orange where less; and the counts."""
    won, drawn, lost = (int(n) for n in result)
    games, box = won + drawn + lost, dict(x=x + 2, y=y + 2, width=CELL - 4, height=ROW - 4, rx=4)
    if not games:
        return tag("rect", **box, fill="#f0f2f4") if own else words(x + CELL / 2, y + 27, "–", 14, fill=QUIET)
    share, counts = (won + drawn / 2) / games, f"+{won:,} ={drawn:,} −{lost:,}"
    fill, strength = (BLUE if share >= 0.5 else "#f0902b"), 0.55 * abs(2 * share - 1)
    small = min(12.0, 12 * (CELL - 8) / text_width(counts, 12))
    return (
        tag("rect", **box, fill=fill, fill_opacity=strength)
        + words(x + CELL / 2, y + 19, f"{100 * share:.0f} %", 14, font_weight=600)
        + words(x + CELL / 2, y + 35, counts, small, fill="#3d444d")
    )
