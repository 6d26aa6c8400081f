"""Moves of Go: captures, liberties, eyes, area.

Chains of stones are never numbered. The effect of a move on chains is found by flood fill, point by point, until
nothing relevant changes. `place` fills from the liberties through the stones, for positions of which only the stones
are known; `place_and_count` fills from the new stone, for positions that know which chains have two liberties.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.games.go_game.bitboard import (
    Board,
    Points,
    any_point,
    around,
    beside,
    count,
    down,
    like,
    settle,
    spread,
    up,
)

__all__ = ["Placed", "legal_points", "own_eyes", "place", "place_and_count", "winner"]


class Placed(NamedTuple):
    """The effect of a stone.

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

    def unknown(reached: tuple[Points, ...], added: tuple[Points, ...]) -> Bool[Array, "..."]:
        return any_point(added[0] | added[1]) & any_point(at & ~reached[0] | hit & ~reached[1])

    living, others = spread(board, (near & mine, near & theirs), (mine, theirs), unknown)
    captures = any_point(hit & ~others)
    taken = jnp.where(captures, theirs & ~others, jnp.uint32(0))
    alone = ~any_point(touched & ~theirs) & (count(taken) == 1)
    return Placed(mine, taken, any_point(at & living) | captures, jnp.where(alone, taken, jnp.uint32(0)))


def place_and_count(board: Board, mine: Points, theirs: Points, several: Points, at: Points) -> tuple[Placed, Points]:
    """What `place` finds, and the next `several`: the stones whose chains have at least two liberties.

    Every chain has a liberty before the move, so the captured chains are those beside `at` that are not in `several`;
    that needs no flood fill. Then the new stone's chain, and each of the opponent's beside it, is followed from where
    it touches `at` until two liberties are found; the rest of the chain does not matter. Chains that turn out to have
    one liberty were followed to their ends, and leave `several`. Own chains with one liberty enter it if they join a
    chain that has two, or stand beside a captured stone: that point is their second liberty.
    """
    mine, touched, nothing = mine | at, around(board, at), jnp.uint32(0)
    empty = like(board.full, mine) & ~(mine | theirs)
    doomed, short = theirs & ~several, mine & ~(several | at)
    neighbours = up(board, at), down(board, at), *beside(board, at)
    chains = jnp.stack([at | touched & mine, *(one & theirs & several for one in neighbours)], 1)
    through = jnp.stack([mine, theirs, theirs, theirs, theirs], 1)

    def further(sets: tuple[Points, ...]) -> tuple[Points, ...]:
        chains, taken, freed = (points | around(board, points) for points in sets)
        return chains & through, taken & doomed, (freed | taken) & short

    def few(chains: Points, taken: Points) -> Bool[Array, "5 ..."]:
        """Which chains have fewer than two liberties so far."""
        return count(around(board, chains) & (empty | taken)[:, None]) < 2

    def waiting(sets: tuple[Points, ...], added: tuple[Points, ...]) -> Bool[Array, "..."]:
        longer, *rest = map(any_point, added)
        return any_point(longer & few(*sets[:2])) | rest[0] | rest[1]

    chains, taken, freed = settle(further, (chains, touched & doomed, touched & short), waiting)
    ends = jnp.bitwise_or.reduce(jnp.where(few(chains, taken), chains, nothing), axis=1)
    alive = any_point(touched & (empty | mine & several | doomed))
    alone = ~any_point(touched & ~theirs) & (count(taken) == 1)
    return Placed(mine, taken, alive, jnp.where(alone, taken, nothing)), (several | at | freed) & ~ends


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


def legal_points(board: Board, mine: Points, theirs: Points, several: Points) -> Points:
    """The empty points where a stone would have a liberty; ko is ignored.

    Beside such a point is another empty point, an own chain that has one more liberty, or a chain to capture.
    """
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
    return jnp.where(asked, jnp.sign((area[0] - area[1]).astype(jnp.float32) - komi), 0).astype(jnp.int32)
