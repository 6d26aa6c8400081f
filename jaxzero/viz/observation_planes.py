"""An observation as a picture: planes as colours, a list of numbers as bars."""

import numpy as np
from jaxtyping import Float

from jaxzero.viz.learning_curves import COLOURS
from jaxzero.viz.page import Picture
from jaxzero.viz.svg import BLUE, QUIET, sheet, tag, words

__all__ = ["planes"]

SIDE = 260  # of the picture, in pixels


def planes(observation: Float[np.ndarray, "..."]) -> Picture:
    """An observation `[H, W, F]`: each square in the colour of its greatest plane; other shapes: a bar per number.

    >>> picture = planes(np.eye(3)[:, :, None])
    >>> picture.svg.count("<rect")  # the ground, and three squares
    4
    """
    seen = np.asarray(observation, float)
    return Picture(_board(seen) if seen.ndim == 3 else _bars(seen.reshape(-1)))


def _board(seen: Float[np.ndarray, "H W F"]) -> str:
    height, width, _ = seen.shape
    size = SIDE / max(height, width)
    highest = max(float(seen.max()), 1e-9)
    cells = []
    for i, j in zip(*np.nonzero(seen.max(2) > 0)):
        plane = int(seen[i, j].argmax())
        shade = 0.25 + 0.75 * float(seen[i, j, plane]) / highest
        place = dict(x=float(j * size), y=float(i * size), width=float(size - 1), height=float(size - 1))
        cells.append(tag("rect", **place, fill=COLOURS[plane % len(COLOURS)], fill_opacity=shade))
    return sheet(width * size, height * size, *cells)


def _bars(numbers: Float[np.ndarray, "n"]) -> str:
    middle, length, row = SIDE / 2, SIDE / 2 - 60, 22
    widest = max(float(np.abs(numbers).max(initial=0)), 1e-9)
    drawn = []
    for i, x in enumerate(numbers[:32]):
        wide = abs(float(x)) / widest * length
        drawn.append(
            tag("rect", x=middle - (wide if x < 0 else 0), y=float(i * row + 4), width=wide, height=14.0, fill=BLUE)
        )
        drawn.append(words(SIDE - 4, i * row + 16, f"{x:.3g}", 12, "end", fill=QUIET))
    return sheet(SIDE, row * min(len(numbers), 32) + 4, *drawn)
