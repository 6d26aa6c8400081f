"""Sets of points of a Go board as bits: whole rows packed into 32-bit words, `[W, ...]`.

A 9×9 board is three words of three rows each; a 19×19 board nineteen words of one row. The axes behind the words are
for games (or whatever else there are many of): all that follows is bitwise and element by element, which a CPU does for
sixteen games in one instruction.
"""

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt32

from jaxzero.backend_tuning import machine

__all__ = [
    "Board",
    "Points",
    "any_point",
    "around",
    "beside",
    "board",
    "count",
    "down",
    "fixed_set",
    "games_last",
    "like",
    "point_index",
    "point_set",
    "settle",
    "spread",
    "squares",
    "up",
]

Points = UInt32[Array, "W ..."]
Step = Callable[[tuple[Points, ...]], tuple[Points, ...]]
Waiting = Callable[[tuple[Points, ...], tuple[Points, ...]], Bool[Array, "..."]]


class Board(NamedTuple):
    """A board's size, and sets of points `[W]` that depend on nothing else.

    Attributes:
        size: n, of n × n points; point i is in row i // n and column i % n.
        rows: rows in a word; the last word may hold fewer.
        full: every point.
        not_first: every point but those of the first column.
        not_last: every point but those of the last column.
        rim: the points at the edge.
    """

    size: int
    rows: int
    full: np.ndarray
    not_first: np.ndarray
    not_last: np.ndarray
    rim: np.ndarray

    @property
    def width(self) -> int:
        """Points in a word."""
        return self.rows * self.size


def board(size: int) -> Board:
    """A board of size × size points, 2 ≤ size ≤ 32."""
    points = np.arange(size * size)
    row, column = points // size, points % size
    rim = (row == 0) | (row == size - 1) | (column == 0) | (column == size - 1)
    masks = points >= 0, column > 0, column < size - 1, rim
    return Board(size, min(32 // size, size), *(fixed_set(size, mask) for mask in masks))


def fixed_set(size: int, mask: np.ndarray) -> np.ndarray:
    """The set of the points where a mask `[size²]` says so, `[W]`."""
    rows, points = min(32 // size, size), np.arange(size * size)
    words = np.zeros(-(-size // rows), np.uint32)
    np.bitwise_or.at(
        words, points // (rows * size), mask.astype(np.uint32) << (points % (rows * size)).astype(np.uint32)
    )
    return words


def like(mask: np.ndarray, points: Points) -> np.ndarray:
    """A board's own set, shaped to be combined with `points`."""
    return mask.reshape(mask.shape + (1,) * (points.ndim - 1))


def _shifted(points: Points, words: int) -> Points:
    """Every word moved by so many places, zeros coming in."""
    return jax.lax.pad(points, jnp.uint32(0), [(words, -words, 0)] + [(0, 0, 0)] * (points.ndim - 1))


def up(board: Board, points: Points) -> Points:
    """The set, moved by one row towards the first."""
    carried = _shifted(points, -1) << (board.width - board.size)
    return carried if board.rows == 1 else (points >> board.size | carried) & like(board.full, points)


def down(board: Board, points: Points) -> Points:
    """The set, moved by one row away from the first."""
    carried = _shifted(points, 1) >> (board.width - board.size)
    return carried if board.rows == 1 else (points << board.size | carried) & like(board.full, points)


def beside(board: Board, points: Points) -> tuple[Points, Points]:
    """The set, moved to the left, and to the right."""
    return (points & like(board.not_first, points)) >> 1, (points & like(board.not_last, points)) << 1


def around(board: Board, points: Points) -> Points:
    """The points next to these, up, down, left or right."""
    left, right = beside(board, points)
    return up(board, points) | down(board, points) | left | right


def any_point(points: Points) -> Bool[Array, "..."]:
    """Whether there is one."""
    found = functools.reduce(operator.or_, list(points))  # not a reduction, which XLA's CPU backend does one by one
    return found.astype(bool)


def count(points: Points) -> Int[Array, "..."]:
    """How many there are."""
    return functools.reduce(operator.add, list(jax.lax.population_count(points).astype(jnp.int32)))


def point_set(board: Board, point: Int[Array, "..."]) -> Points:
    """The set of this point; the empty set for a number that is none."""
    point = point.astype(jnp.uint32)  # divided in fewer steps; negative numbers are large ones
    word = like(np.arange(len(board.full), dtype=np.uint32), point[None])
    bit = jnp.uint32(1) << point % board.width
    return jnp.where(word == (point // board.width)[None], bit[None], jnp.uint32(0)) & like(board.full, point[None])


def point_index(board: Board, points: Points) -> Int[Array, "..."]:
    """The number of the one point in the set; −1 for the empty set."""
    word = like(np.arange(len(board.full)), points)
    index = word * board.width + jax.lax.population_count(points - 1).astype(jnp.int32) + 1
    return functools.reduce(operator.add, list(jnp.where(points != 0, index, 0))) - 1


def squares(board: Board, points: UInt32[Array, "W"]) -> Bool[Array, "n n"]:
    """The set as a mask, for one board."""
    bits = points[:, None] >> np.arange(board.width, dtype=np.uint32)[None] & 1
    return bits.reshape(-1)[: board.size**2].reshape(board.size, board.size) != 0


def spread(
    board: Board, starts: tuple[Points, ...], within: tuple[Points, ...], waiting: Waiting | None = None
) -> tuple[Points, ...]:
    """What can be reached from each of `starts` through its own `within`, neighbour by neighbour.

    Args:
        board: the board.
        starts: where to begin, each all in its `within`.
        within: where to go.
        waiting: see `settle`.
    """
    further = lambda reached: tuple(now | around(board, now) & limits for now, limits in zip(reached, within))
    return settle(further, starts, waiting)


def settle(further: Step, sets: tuple[Points, ...], waiting: Waiting | None = None) -> tuple[Points, ...]:
    """The sets, grown by `further` again and again, until no game waits for more.

    A loop iteration takes as many steps as suit the machine; steps beyond the end add nothing. On an accelerator the
    first iteration comes before the loop: with many steps it is nearly always the only one.

    Args:
        further: one step: the sets, with what it adds to them.
        sets: where to begin.
        waiting: `(sets, added) -> bool`: the games that wait for more, by the sets so far and by what the last step
            added. None: those where it added something.
    """
    steps = machine().go_steps
    waiting = waiting or (lambda sets, added: any_point(functools.reduce(operator.or_, added)))

    def turn(carry: tuple[tuple[Points, ...], Array]) -> tuple[tuple[Points, ...], Array]:
        sets = carry[0]
        for _ in range(steps):
            before, sets = sets, further(sets)
        return sets, jnp.any(waiting(sets, tuple(new ^ old for new, old in zip(sets, before))))

    start = sets, jnp.any(waiting(sets, sets))
    # Not on a CPU, where XLA would recompute the sets for each of their readers.
    start = start if steps == 1 else turn(start)
    return jax.lax.while_loop(lambda carry: carry[1], turn, start)[0]


def games_last(function: Callable) -> Callable:
    """Makes `vmap` put the axis of games behind the words, not before them; for a function of one game's sets.

    The same word of many games then lies side by side, and a CPU works on all at once. A loop goes on until all games
    are done, instead of freezing each game where it was done.
    """
    mapped = jax.custom_batching.custom_vmap(function)

    @mapped.def_vmap
    def _(size: int, batched: list[bool], *given: Array) -> tuple:
        spread_out = lambda x: jnp.broadcast_to(x[..., None], (*x.shape, size))
        last = [jnp.moveaxis(x, 0, -1) if has else spread_out(x) for x, has in zip(given, batched)]
        result = jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0), mapped(*last))
        return result, jax.tree.map(lambda _: True, result)

    return mapped
