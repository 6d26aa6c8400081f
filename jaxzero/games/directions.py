"""Directions on boards, as (rows, columns)."""

__all__ = ["ACROSS_HEXAGONS", "ALONG_LINES", "LINES"]

LINES = (0, 1), (1, 0), (1, 1), (1, -1)
"""One direction of each kind of line on a board of squares."""

ALONG_LINES = LINES + tuple((-down, -right) for down, right in LINES)
"""All eight; opposite ones are four apart."""

ACROSS_HEXAGONS = (0, -1), (1, -1), (1, 0), (0, 1), (-1, 1), (-1, 0)
"""From a hexagon to those beside it, on a board whose rows are each shifted by half a hexagon: one after another around
it, so that two that follow each other are beside each other, too."""
