"""Where handicap stones go (section 4.1 of the specification).

Points are `(column, row)`, both from 0, the row from the bottom: C7 is `(2, 6)`.
"""

__all__ = ["Point", "fixed", "free", "most_fixed"]

Point = tuple[int, int]


def most_fixed(size: int) -> int:
    """How many stones have fixed places on a board: 9 on odd sizes from 9, 4 on 7 and on even sizes from 8, else 0.

    >>> [most_fixed(size) for size in (6, 7, 8, 9, 12, 19)]
    [0, 4, 4, 9, 4, 9]
    """
    if size < 7:
        return 0
    return 9 if size % 2 and size >= 9 else 4


def fixed(size: int, stones: int) -> list[Point]:
    """The fixed places (section 4.1.1): on the third lines up to 12 × 12, on the fourth lines of larger boards.

    Two stones are in opposite corners, and the centre has one where their number is odd.

    Args:
        size: points on a side.
        stones: from 2 to `most_fixed(size)`.

    Raises:
        ValueError: another number.

    >>> fixed(9, 3)
    [(2, 2), (6, 6), (2, 6)]
    """
    if not 2 <= stones <= most_fixed(size):
        raise ValueError("invalid number of stones")
    low = 2 if size <= 12 else 3
    middle, high = size // 2, size - 1 - low
    corners = [(low, low), (high, high), (low, high), (high, low)]
    sides = [(low, middle), (high, middle), (middle, low), (middle, high)]
    if stones <= 4:
        return corners[:stones]
    centre = [(middle, middle)] * (stones % 2)
    return corners + sides[: stones - 4 - len(centre)] + centre


def free(size: int, stones: int) -> list[Point]:
    """Places of our own choice (section 4.1.2): the fixed ones, then the points that are farthest from all stones.

    Those on the third line and further in are taken first, then those on the second line, then the edge.

    Args:
        size: points on a side.
        stones: at least 2, and one point must stay empty.

    Raises:
        ValueError: another number.

    >>> free(5, 3), len(set(free(9, 80)))
    ([(2, 2), (1, 1), (3, 1)], 80)
    """
    if not 2 <= stones < size * size:
        raise ValueError("invalid number of stones")
    placed = fixed(size, min(stones, most_fixed(size))) if most_fixed(size) else []
    left = [(column, row) for row in range(size) for column in range(size) if (column, row) not in placed]
    centre = (size - 1) / 2
    while len(placed) < stones:
        best = max(left, key=lambda point: _worth(point, size, placed or [(centre, centre)], first=not placed))
        left.remove(best)
        placed.append(best)
    return placed


def _worth(point: Point, size: int, placed: list, first: bool) -> tuple[int, float]:
    """The line of a point, counted up to the third, and its distance from the stones; for the first point, nearness."""
    column, row = point
    line = min(column, row, size - 1 - column, size - 1 - row)
    nearest = min((column - other) ** 2 + (row - another) ** 2 for other, another in placed)
    return min(line, 2 if size >= 7 else 1), -nearest if first else nearest
