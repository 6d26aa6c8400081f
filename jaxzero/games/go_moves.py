"""What stones do on a Go board: capture, live, make eyes and area.

No chain of stones is ever numbered. Whether a chain is alive is asked by spreading from the liberties through the
stones, a point at a time, until nothing changes: in random play some ten turns for the slowest of a thousand games.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from jaxzero.games.go_board import Board, Points, any_point, around, beside, count, down, fixed_set, like, spread, up

__all__ = ["Placed", "legal_points", "own_eyes", "place", "with_two_liberties", "winner"]


class Placed(NamedTuple):
    """What a stone does.

    Attributes:
        mine: the mover's stones, the new one among them.
        taken: the opponent's stones that it captures.
        alive: whether it has a liberty in the end; False: suicide.
        ko: the one point where the opponent may not take back at once; the empty set if there is none.
    """

    mine: Points
    taken: Points
    alive: Bool[Array, "..."]
    ko: Points


def place(board: Board, mine: Points, theirs: Points, at: Points) -> Placed:
    """A stone on the empty point `at`; nothing happens if that is the empty set.

    A chain lives if it is reached from the liberties that are left. Simple ko: a stone that took exactly one, and has
    no own stone and no other empty point beside it, must not be taken by a stone on that point.
    """
    mine = mine | at
    touched = around(board, at)
    liberties = like(board.full, mine) & ~(mine | theirs)
    near, hit = around(board, liberties), touched & theirs

    def unknown(reached: tuple[Points, ...]) -> Bool[Array, "..."]:
        return any_point(at & ~reached[0] | hit & ~reached[1])

    living, others = spread(board, (near & mine, near & theirs), (mine, theirs), unknown)
    captures = any_point(hit & ~others)
    taken = jnp.where(captures, theirs & ~others, jnp.uint32(0))
    alone = ~any_point(touched & ~theirs) & (count(taken) == 1)
    return Placed(mine, taken, any_point(at & living) | captures, jnp.where(alone, taken, jnp.uint32(0)))


def own_eyes(board: Board, mine: Points, theirs: Points) -> Points:
    """Empty points that a playout should leave empty.

    The usual test of light playouts (Gelly, Wang, Munos and Teytaud 2006, "Modification of UCT with patterns in
    Monte-Carlo Go"): all neighbours are own stones, and the opponent holds at most one of the diagonal points, none if
    the point is at the edge.
    """
    full, rim = like(board.full, mine), like(board.rim, mine)
    above, below = up(board, theirs), down(board, theirs)
    one, both = above | below, above & below
    left, right = beside(board, one)
    left_both, right_both = beside(board, both)
    false = left_both | right_both | left & right | (left | right) & rim
    return full & ~(mine | theirs | around(board, full & ~mine) | false)


def with_two_liberties(board: Board, mine: Points, theirs: Points) -> Points:
    """The stones, of both players, whose chains have more than one liberty.

    A chain has two different liberties where their numbers differ in some binary digit: where it is reached from
    the liberties with that digit 0 and from those with 1.
    """
    points = np.arange(board.size**2)
    digits = np.arange(max(1, (board.size**2 - 1).bit_length()))
    with_digit = (points >> digits[:, None] & 1)[:, None] == np.arange(2)[:, None]  # [digits, 2, points]
    sets = np.stack([[fixed_set(board.size, mask) for mask in pair] for pair in with_digit])
    sets = np.moveaxis(sets, -1, 0)[:, None]  # [W, 1, digits, 2]
    axes = sets.shape + (1,) * (mine.ndim - 1)
    liberties = (like(board.full, mine) & ~(mine | theirs))[:, None, None, None]
    stones = jnp.stack([mine, theirs], 1)[:, :, None, None]
    start = around(board, jnp.asarray(sets.reshape(axes)) & liberties) & stones
    (reached,) = spread(board, (start,), (stones,))
    both = reached[:, :, :, 0] & reached[:, :, :, 1]
    return jnp.bitwise_or.reduce(jnp.bitwise_or.reduce(both, axis=2), axis=1)


def legal_points(board: Board, mine: Points, theirs: Points) -> Points:
    """The empty points where a stone would not be without liberties; ko is not looked at."""
    several = with_two_liberties(board, mine, theirs)
    empty = like(board.full, mine) & ~(mine | theirs)
    return empty & around(board, empty | mine & several | theirs & ~several)


def winner(board: Board, black: Points, white: Points, komi: float, asked: Bool[Array, "..."]) -> Int[Array, "..."]:
    """1 where black's area is larger than white's and komi, −1 where it is smaller, 0 where equal or not asked.

    A player's area is the stones and the empty points from which the player's stones, and none of the other's, can be
    reached through empty points.
    """
    empty = jnp.where(asked, like(board.full, black) & ~(black | white), jnp.uint32(0))[:, None]
    stones = jnp.stack([black, white], 1)
    (near,) = spread(board, (around(board, stones) & empty,), (empty,))
    own = stones | near & ~near[:, ::-1]
    area = count(own)
    return jnp.where(asked, jnp.sign(area[0] - area[1] - komi), 0).astype(jnp.int32)
