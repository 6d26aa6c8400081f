"""Light playouts of Go: random moves that do not fill the player's own eyes.

The player to move takes a uniformly random legal point that is not an own eye (`moves.own_eyes`), and passes when
there is none, only then (Gelly, Wang, Munos and Teytaud 2006). Such games end by themselves, after about 110 moves on
an empty 9×9 board, with nothing left to count but eyes; uniformly random ones fill them and go on.

Legal points are never computed. A loop iteration draws one of the points that are empty, no eye, and not forbidden by
ko, and tries it. If that is suicide, the game makes no move in this iteration, and draws among the others in the next.
The distribution is the same, and it costs one flood fill instead of one for every chain. The lanes go in lock-step
until the longest playout ends.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxzero.games.go_game.bitboard import Board, Points, like
from jaxzero.games.go_game.moves import own_eyes, place
from jaxzero.games.playout_tiles import scramble

__all__ = ["Lanes", "playouts", "random_point"]


class Lanes(NamedTuple):
    """Playouts under way, L of them.

    Attributes:
        mine: stones of the player to move.
        theirs: the other's.
        ko: the point that may not be taken back.
        tried: points that were found to be suicide since the last move.
        moves: how many were made in the game, passes included.
        passes: how many of the last ones were passes.
        over: whether the game has ended.
    """

    mine: UInt32[Array, "W L"]
    theirs: UInt32[Array, "W L"]
    ko: UInt32[Array, "W L"]
    tried: UInt32[Array, "W L"]
    moves: Int[Array, "L"]
    passes: Int[Array, "L"]
    over: Bool[Array, "L"]


def playouts(board: Board, seeds: UInt32[Array, "L"], lanes: Lanes, last_move: Int[Array, "L"] | int) -> Lanes:
    """Plays on until every lane has two passes in a row, or `last_move` moves.

    Args:
        board: the board.
        seeds: random bits, one word per lane.
        lanes: where to begin.
        last_move: the number of moves at which a lane stops.
    """

    def turn(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        count, lanes = carry
        return count + 1, _attempt(board, lanes, scramble(seeds, count), last_move)

    lanes = lanes._replace(over=lanes.over | (lanes.moves >= last_move))
    return jax.lax.while_loop(lambda carry: ~carry[1].over.all(), turn, (jnp.int32(0), lanes))[1]


def _attempt(board: Board, lanes: Lanes, bits: UInt32[Array, "L"], last_move: Int[Array, "L"] | int) -> Lanes:
    """Every lane makes a move, or finds that a point is suicide."""
    mine, theirs = lanes.mine, lanes.theirs
    taboo = mine | theirs | lanes.ko | lanes.tried | own_eyes(board, mine, theirs)
    at, found = random_point(like(board.full, mine) & ~taboo, bits)
    placed = place(board, mine, theirs, at)
    moves = ~lanes.over & (placed.alive | ~found)
    passes = jnp.where(found, 0, lanes.passes + 1)
    number = lanes.moves + 1
    nothing = jnp.uint32(0)
    return Lanes(
        mine=jnp.where(moves, theirs & ~placed.taken, mine),
        theirs=jnp.where(moves, placed.mine, theirs),
        ko=jnp.where(moves, placed.ko, lanes.ko),
        tried=jnp.where(moves, nothing, lanes.tried | at),
        moves=jnp.where(moves, number, lanes.moves),
        passes=jnp.where(moves, passes, lanes.passes),
        over=lanes.over | moves & ((passes >= 2) | (number >= last_move)),
    )


def random_point(points: Points, bits: UInt32[Array, "L"]) -> tuple[Points, Bool[Array, "L"]]:
    """One point of the set, each with the same probability, to within 2⁻¹³; and whether there is one.

    The k-th in order: its word from their counts, its bit by halving the word five times.
    """
    counts = jax.lax.population_count(points).astype(jnp.int32)
    before = [jnp.zeros_like(counts[0])]
    for of_word in counts:
        before.append(before[-1] + of_word)
    total = before.pop()
    k = ((bits >> 10) * total.astype(jnp.uint32) >> 22).astype(jnp.int32)  # at most 1,023 points
    rank = k[None] - jnp.stack(before)
    here = (rank >= 0) & (rank < counts)

    def halve(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rank, rest, position = carry
        half = (16 >> i).astype(jnp.uint32)
        low = rest & (jnp.uint32(1) << half) - 1
        in_low = jax.lax.population_count(low).astype(jnp.int32)
        high = rank >= in_low
        rank, rest = jnp.where(high, rank - in_low, rank), jnp.where(high, rest >> half, low)
        return rank, rest, jnp.where(high, position + half, position)

    # A loop and no unrolled chain: XLA would fuse that with what makes `points`, and compute this many times over.
    position = jax.lax.fori_loop(0, 5, halve, (rank, points, jnp.zeros_like(points)))[2]
    return jnp.where(here, jnp.uint32(1) << position, jnp.uint32(0)), total > 0
