"""Directions on boards, as (rows, columns)."""

__all__ = ["AXES", "HEX_NEIGHBOURS", "SQUARE_NEIGHBOURS"]

AXES = (0, 1), (1, 0), (1, 1), (1, -1)
"""One direction of each kind of line on a board of squares."""

SQUARE_NEIGHBOURS = AXES + tuple((-down, -right) for down, right in AXES)
"""The eight squares around one; opposite ones are four apart."""

HEX_NEIGHBOURS = (0, -1), (1, -1), (1, 0), (0, 1), (-1, 1), (-1, 0)
"""The six hexagons around one, in cyclic order, on a board whose rows are each shifted by half a hexagon."""
