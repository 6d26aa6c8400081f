"""Node storage: the rows of nodes, packed into floats, and how they are read and written.

A row holds what changes at the same time, so that one gather reads it and one scatter writes it.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.backend_tuning import machine

Rows = TypeVar("Rows")
Carry = TypeVar("Carry")

__all__ = [
    "EDGE",
    "HEAD",
    "Facts",
    "Frontier",
    "Stats",
    "Tile",
    "children_at_hand",
    "held",
    "in_this_turn",
    "of_tile",
    "pack",
    "per_game",
    "places",
    "put",
    "put_column",
    "put_entry",
    "repeat",
    "take",
    "unpack_facts",
    "unpack_frontier",
    "unpack_stats",
    "visited",
]

HEAD = slice(4)  # of a row of `frontier`: all but the children
# Indices here are never negative or out of bounds, so neither is checked.
AS_GIVEN = dict(mode="promise_in_bounds", wrap_negative_indices=False)
EDGE = slice(2)  # of a row of `facts`: `action` and `edge_prior`, which a parent needs of its edge


class Stats(NamedTuple):
    """What changes with every visit: a row of `Tree.stats`.

    Attributes:
        visits: simulations that passed, the node's own evaluation included; 0 in unused slots.
        edge_value: of the edge into the node: reward + discount × value, for the player who took it.
        value: mean return from here, for the player to move here, or for every player.
    """

    visits: Float[Array, "..."]
    edge_value: Float[Array, "..."]
    value: Float[Array, "... P"]


class Frontier(NamedTuple):
    """What changes with every new child: a row of `Tree.frontier`.

    Attributes:
        next_action: the unvisited edge to try next; −1: none (terminal, nothing legal, all expanded). For a rule that
            does not promise `by_prior` it is known only where it is the current choice: −1 where a child is.
        num_children: how many edges were expanded.
        next_prior: the clean prior of `next_action`.
        unvisited_mass: sum of `Rule.mass` over the unvisited edges, kept for a `by_prior` rule that has one.
        children: the first K nodes below, in the order of expansion; meaningless from `num_children` on.
    """

    next_action: Array
    num_children: Array
    next_prior: Float[Array, "..."]
    unvisited_mass: Float[Array, "..."]
    children: Int[Array, "... K"]


class Facts(NamedTuple):
    """What never changes: a row of `Tree.facts`. The first five concern the edge into the node.

    Attributes:
        action: its slot in the parent; −1 at the root.
        edge_prior: its clean prior in the parent.
        mover: the player who took it; −1: unknown.
        discount: signed, see `Step.discount`.
        reward: of the step.
        to_play: the player to move; −1: unknown.
        terminal: whether the episode is over here.
        raw_value: the model's value of the node; 0 at a terminal one.
        chance: whether chance moves here; None, and no part of the row, where the model never says so.
    """

    action: Array
    edge_prior: Float[Array, "..."]
    mover: Array
    discount: Float[Array, "..."]
    reward: Float[Array, "... P"]
    to_play: Array
    terminal: Array
    raw_value: Float[Array, "... P"]
    chance: Array | None = None


def unpack_stats(row: Float[Array, "... 2+P"]) -> Stats:
    """Takes rows of `Tree.stats` apart."""
    return Stats(row[..., 0], row[..., 1], row[..., 2:])


def unpack_frontier(row: Float[Array, "... 4+K"]) -> Frontier:
    """Takes rows of `Tree.frontier` apart; indices become integers."""
    next_action, num_children, children = (x.astype(jnp.int32) for x in (row[..., 0], row[..., 1], row[..., 4:]))
    return Frontier(next_action, num_children, row[..., 2], row[..., 3], children)


def unpack_facts(row: Float[Array, "... 6+2P"]) -> Facts:
    """Takes rows of `Tree.facts` apart; indices become integers. A row of 7 + 2P knows of chance."""
    p = (row.shape[-1] - 6) // 2
    chance = row[..., 6 + 2 * p] > 0 if row.shape[-1] % 2 else None
    action, mover, to_play = (row[..., i].astype(jnp.int32) for i in (0, 2, 4 + p))
    reward, terminal, raw_value = row[..., 4 : 4 + p], row[..., 5 + p] > 0, row[..., 6 + p : 6 + 2 * p]
    return Facts(action, row[..., 1], mover, row[..., 3], reward, to_play, terminal, raw_value, chance)


def visited(old: Stats, facts: Facts, ret: Float[Array, "... P"]) -> Stats:
    """The statistics of nodes after one more visit, with return `ret`."""
    visits = old.visits + 1
    mean = (old.value * old.visits[..., None] + ret) / visits[..., None]
    edge = facts.reward + facts.discount[..., None] * mean
    if edge.shape[-1] > 1:
        edge = jnp.take_along_axis(edge, jnp.maximum(facts.mover, 0)[..., None], -1)
    return Stats(visits, edge[..., 0], mean)


def children_at_hand(frontier: Float[Array, "... 4+K"]) -> int:
    """K, how many children the rows of `Tree.frontier` have room for."""
    return frontier.shape[-1] - HEAD.stop


def pack(row: Stats | Frontier | Facts, dtype: jnp.dtype) -> Float[Array, "... F"]:
    """Puts a row together."""
    parts = [x for x in row if x is not None]
    axes = max(x.ndim for x in parts)
    return jnp.concatenate([(x if x.ndim == axes else x[..., None]).astype(dtype) for x in parts], -1)


def per_game(x: Array, like: Array) -> Array:
    """`x [B]` with trailing axes, to be broadcast with `like [B, ...]`."""
    return x.reshape(x.shape + (1,) * (like.ndim - x.ndim))


def places(width: int, axes: int) -> Int[Array, "... W"]:
    """The indices 0 ... W−1 as the last of so many axes: with fewer, jax_numpy_rank_promotion="raise" refuses them."""
    return jnp.arange(width, dtype=jnp.int32).reshape((1,) * (axes - 1) + (width,))


class Tile(NamedTuple):
    """Neighbouring games that are handled together: `size` of them, from `first` on."""

    first: Int[Array, ""]
    size: int

    @property
    def games(self) -> Int[Array, "G"]:
        """Their indices."""
        return self.first + jnp.arange(self.size, dtype=jnp.int32)


def of_tile(x: Array, tile: Tile | None) -> Array:
    """The entries of `x [B, ...]` of these games (None: all)."""
    return x if tile is None else jax.lax.dynamic_slice_in_dim(x, tile.first, tile.size)


def take(x: Array, nodes: Int[Array, "G ..."] | None, tile: Tile | None = None, columns: slice | None = None) -> Array:
    """Rows of `x [B, N+1, ...]` at `nodes` (None: at the root) of the games of `tile` (default: all).

    Of each row `columns`, if given.

    It uses one merged index: a pair of indices would first be written to memory side by side, which is one more kernel.
    Unwanted parts are cut off first, because XLA's CPU backend shares the work on a large array among threads, however
    few rows are read, and handing over costs more than reading.
    """
    x = of_tile(x, tile)
    x = x if columns is None else x[..., columns]
    if nodes is None:
        return x[:, 0]
    index = nodes + x.shape[1] * per_game(jnp.arange(nodes.shape[0], dtype=jnp.int32), nodes)
    return _merged(x).at[index].get(**AS_GIVEN)


def held(rows: Rows) -> Rows:
    """The same rows, read here and not again later.

    Materialises a gather before its array is updated in place. XLA's GPU backend would repeat the gather in every
    kernel that uses it, also in those after the update, and copy the whole array for them. On a CPU it does not, and
    a barrier would only prevent fusion.
    """
    return jax.lax.optimization_barrier(rows) if machine().waits else rows


def in_this_turn(x: Int[Array, ""], k: Int[Array, ""]) -> Int[Array, ""]:
    """The same x >= 0, tied to a loop's counter k >= 0.

    Otherwise XLA sees that x does not change in the loop, and copies the games at x out of the tree before it.
    """
    return jnp.maximum(x, -k)


def repeat(
    turn: Callable[[Carry], tuple[Carry, Bool[Array, ""]]], start: Carry, needed: Bool[Array, ""] | bool = True
) -> Carry:
    """A do-while loop: `turn` returns (carry, whether to continue).

    The predicate is part of the carry, because a loop's own predicate costs extra kernels. If the host waits for it,
    the first iteration is always made, even if it is not `needed`; it must then change nothing.
    """
    first = turn(start) if machine().waits else (start, jnp.asarray(needed))
    return jax.lax.while_loop(lambda carry: carry[1], lambda carry: turn(carry[0]), first)[0]


def put(x: Array, nodes: Int[Array, "G ..."] | None, rows: Array, tile: Tile | None = None) -> Array:
    """`x [B, N+1, ...]` with `rows` at `nodes` (None: at the root) of the games of `tile` (default: all)."""
    rows = rows.astype(x.dtype)
    if nodes is None:
        return put_column(x, jnp.int32(0), rows)
    if nodes.shape == (1,) and tile is None:  # one game: fewer kernels
        return put_column(x, nodes[0], rows)
    games = jnp.arange(nodes.shape[0], dtype=jnp.int32) if tile is None else tile.games
    if nodes.ndim == 1:  # in the array's own shape: a column may follow, which XLA then writes in place
        return x.at[games, nodes].set(rows, **AS_GIVEN)
    index = nodes + x.shape[1] * per_game(games, nodes)
    return _merged(x).at[index].set(rows, **AS_GIVEN).reshape(x.shape)


def _merged(x: Array) -> Array:
    """`x [B, N+1, ...]` with games and nodes as one axis, of explicit length because rows may be empty."""
    return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])


def put_entry(x: Array, nodes: Int[Array, "B"], columns: Int[Array, "B"], entries: Array) -> Array:
    """`x [B, N+1, W]` with `entries [B]`, or one for all, at `columns` of `nodes`."""
    batch = nodes.shape[0]
    entries = jnp.broadcast_to(jnp.asarray(entries, x.dtype), batch)
    if batch == 1:
        return jax.lax.dynamic_update_slice(
            x, entries.reshape(1, 1, 1), (jnp.zeros_like(nodes[0]), nodes[0], columns[0])
        )
    return x.at[jnp.arange(batch), nodes, columns].set(entries, **AS_GIVEN)


def put_column(x: Array, node: Int[Array, ""] | Int[Array, "B"], rows: Array) -> Array:
    """`x [B, N+1, ...]` with `rows [B, ...]` at the same node of every game, or at each game's own."""
    if jnp.ndim(node):
        return put(x, node, rows)
    return jax.lax.dynamic_update_slice_in_dim(x, rows[:, None].astype(x.dtype), node, 1)
