"""Input features of Hex: the distances of each square from both players' edges."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games.directions import HEX_NEIGHBOURS

__all__ = ["connection_features"]

FAR = 60  # no path; two of them still fit int8
SECOND = 2  # the plane of an observation that is 1 for the second player
# A bridge, and the two squares between its ends: if the opponent takes one of them, the owner takes the other.
BRIDGES = tuple(
    ((one[0] + other[0], one[1] + other[1]), one, other)
    for one, other in zip(HEX_NEIGHBOURS, HEX_NEIGHBOURS[1:] + HEX_NEIGHBOURS[:1], strict=True)
)
RIM = 2  # how far a bridge leads


def connection_features(observation: Float[Array, "B n n F"]) -> Float[Array, "B n n 8"]:
    """Distances for both players, for observations like Hex's: own stones, the other's, ones for the second player.

    The distance of a square from an edge is the number of empty squares that a player still has to fill on the way, the
    square included; own stones and bridges over empty pairs of squares cost nothing. Such shortest paths are an old way
    to evaluate positions (Anshelevich 2002, "A hierarchical approach to computer Hex", uses resistances; van Rijswijck
    2002, "Search and evaluation in Hex", second-best distances). A network of windows sees small parts of the board,
    and learns more quickly with these planes (experiments/strength/what_was_tried/input_features.md).
    Bridges are counted as if independent: two that share a square both count. Paths of more than 2 n steps (from square
    to square, or over a bridge) are not found: they wind along chains on boards that are nearly full.

    Returns:
        Four planes of the mover, and four of the other player. The first two are 1 / (1 + distance), for one edge and
        for the other. The third is 1 / (1 + how much longer the shortest path through the square is than the shortest
        path of all), the fourth 1 / (1 + the length of the shortest path of all), everywhere. Where there is no path
        they are 0.

    >>> empty = connection_features(jnp.zeros((1, 3, 3, 4)))[0]
    >>> (1 / empty - 1).round().astype(int)[:, 1].T.tolist()[:4]  # the middle column, from the top and from the bottom
    [[1, 1, 2], [2, 1, 1], [1, 0, 1], [1, 1, 1]]
    """
    size = observation.shape[1]
    stones = jnp.moveaxis(observation[..., :2] > 0, 0, -1)  # the batch last, so that a CPU works on whole vectors
    second = observation[:, 0, 0, SECOND] > 0
    down = jnp.where(second, stones[:, :, 1], stones[:, :, 0])  # the player whose edges are above and below
    across = jnp.where(second, stones[:, :, 0], stones[:, :, 1])
    views = [(down, across), (_turned(down), _turned(across))]
    views += [(y.swapaxes(0, 1), x.swapaxes(0, 1)) for x, y in views]
    # Views have an axis of their own, because the last one, the batch, may be split among devices.
    own, others = (jnp.stack(view, 2) for view in zip(*views, strict=True))
    found = _distances(own, others, 2 * size)
    top, bottom, left, right = (found[:, :, view] for view in range(4))
    vertical = _planes(top, _turned(bottom), down, across)
    horizontal = _planes(left.swapaxes(0, 1), _turned(right).swapaxes(0, 1), across, down)
    mine = jnp.where(second, horizontal, vertical)
    planes = jnp.concatenate([mine, jnp.where(second, vertical, horizontal)])
    return jnp.moveaxis(planes, (0, -1), (-1, 0)).astype(jnp.promote_types(observation.dtype, jnp.bfloat16))


def _turned(board: Array) -> Array:
    """The board, turned by half a turn."""
    return board[::-1, ::-1]


def _distances(own: Bool[Array, "n n V B"], others: Bool[Array, "n n V B"], steps: int) -> Int[Array, "n n V B"]:
    """Distances of all squares from the upper edge, which counts as a row of own stones above the board."""
    size = len(own)
    around = lambda board, least: jnp.pad(board, [(RIM, RIM)] * 2 + [(0, 0)] * 2, constant_values=least)
    at = lambda padded, offset: padded[RIM + offset[0] :, RIM + offset[1] :][:size, :size]
    cost = jnp.where(others, FAR, jnp.where(own, 0, 1)).astype(jnp.int8)
    empty = around(~own & ~others, False)
    barred = [jnp.where(at(empty, one) & at(empty, other), 0, FAR).astype(jnp.int8) for _, one, other in BRIDGES]

    def step(_, found: Int[Array, "n n V B"]) -> Int[Array, "n n V B"]:
        there = around(found, FAR).at[RIM - 1].set(0)
        ways = [at(there, beside) for beside in HEX_NEIGHBOURS]
        ways += [jnp.maximum(at(there, end), bar) for (end, *_), bar in zip(BRIDGES, barred, strict=True)]
        least = jax.tree.reduce(jnp.minimum, ways)
        return jnp.minimum(jnp.minimum(found, least + cost), jnp.int8(FAR))

    return jax.lax.fori_loop(0, steps, step, jnp.full(own.shape, FAR, jnp.int8))


def _planes(
    one: Int[Array, "n n B"], other: Int[Array, "n n B"], own: Bool[Array, "n n B"], others: Bool[Array, "n n B"]
) -> Float[Array, "4 n n B"]:
    """The four planes of the player who has `own`, from the distances to both edges."""
    one, other = one.astype(jnp.float32), other.astype(jnp.float32)
    barred = others | (one >= FAR) | (other >= FAR)
    through = jnp.where(barred, 2 * FAR, one + other - jnp.where(own, 0, 1))
    least = through.min((0, 1))
    longer, shortest = through - least, jnp.broadcast_to(least, one.shape)
    blocked = jnp.stack([one >= FAR, other >= FAR, barred, shortest >= FAR])
    return jnp.where(blocked, 0.0, 1 / (1 + jnp.stack([one, other, longer, shortest])))
