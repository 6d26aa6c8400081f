"""The tree: a frozen record of fixed-size arrays, and the functions that read it.

Every fact is stored once, where it belongs. What concerns a node, or the one edge into it, is a column of
`stats` (numbers) or `links` (indices), so that a node is read and written as one row; what concerns each edge out
of a node is `[B, N, W]`, and there are two of those: the children, in the order in which they were expanded,
and the prior, by action.
"""
import enum
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import State, Step

__all__ = ["COMPACT", "Layout", "RootData", "Status", "Tree", "new_tree"]

NONE = -1  # no node, no action, no player


class Status(enum.IntFlag):
    """What went wrong in a game, as bits of `tree.status`; each has a defined, harmless outcome."""

    FULL = 1  # a walk found no room for its node: it ended above and backed up the raw value there again
    NON_FINITE = 2  # the model returned NaN or infinity: uniform logits, value, reward and discount 0 instead
    NO_LEGAL_ACTION = 4  # the root has no legal action though it is not terminal: action 0, uniform weights


class Layout(NamedTuple):
    """How the two big arrays are stored."""

    index: Any = jnp.int32
    prior: Any = None  # None: as the model returns it


#: 4 bytes per edge instead of 8, for at most 32,767 nodes; priors keep 8 bits of precision.
COMPACT = Layout(index=jnp.int16, prior=jnp.bfloat16)


@chex.dataclass(frozen=True)
class RootData:
    """What the root's rule needs and must survive a resume; one entry per game.

    Attributes:
        simulations: simulations since this node became the root.
        prior: the prior in force at the root (with noise, Gumbel draws, temperature), by action; None: the stored
            one, which stays clean in any case.
    """

    simulations: Int[Array, "B"]
    prior: Float[Array, "B W"] | None = None


class Link(enum.IntEnum):
    """Columns of `Tree.links`."""

    BEST_CHILD = 0  # where the rule goes on from here; −1: it wants NEXT_ACTION, which is not expanded yet
    NEXT_ACTION = 1  # the unvisited edge that is wanted first; −1: none (terminal, nothing legal, all expanded)
    NUM_CHILDREN = 2  # how many edges were expanded
    ACTION = 3  # edge into the node: its slot in the parent; −1 at the root
    MOVER = 4  # edge into the node: the player who took it; −1 unknown
    TO_PLAY = 5  # the player to move; −1 unknown
    TERMINAL = 6  # 1 where the episode is over


@chex.dataclass(frozen=True)
class Tree:
    """B search trees of N node slots and W edge slots; node 0 is the root. P is 1 unless values are per player.

    The arrays have one row more than there are nodes: row N is nowhere, and what must not be written goes there.
    That spares every write a bounds check.

    Attributes:
        stats: per node, see the properties `visits`, `edge_value`, `value`, `next_prior`,
            `unvisited_mass`, `edge_prior`, `discount`, `reward`, `raw_value`.
        links: per node, one column for each `Link`.
        state: per node, the model's embedding.
        children: node indices in the order of expansion; meaningless from `num_children` on.
        prior: what the rule prepared from the logits, by action; −inf where illegal.
        size: node slots in use.
        status: bits of `Status`.
        overflows: walks that found the tree full.
        root: see `RootData`.
    """

    stats: Float[Array, "B N+1 F"]
    links: Int[Array, "B N+1 7"]
    state: State
    children: Int[Array, "B N+1 W"]
    prior: Float[Array, "B N+1 W"]
    size: Int[Array, "B"]
    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    root: RootData

    @property
    def capacity(self) -> int:
        """N, the node slots of each tree."""
        return self.children.shape[-2] - 1

    @property
    def num_edges(self) -> int:
        """W, the edge slots of each node."""
        return self.children.shape[-1]

    @property
    def num_players(self) -> int:
        """P, the entries of a value; 1: it is for the player to move."""
        return num_players(self.stats)

    @property
    def visits(self) -> Int[Array, "B N"]:
        """Simulations that passed, the node's own evaluation included; 0 in unused slots."""
        return unpack(self.stats[..., :-1, :]).visits.astype(jnp.int32)

    @property
    def value(self) -> Float[Array, "B N P"]:
        """Mean return from here, for the player to move here, or for every player."""
        return unpack(self.stats[..., :-1, :]).value

    @property
    def raw_value(self) -> Float[Array, "B N P"]:
        """What the model said of the node; 0 at a terminal one."""
        return unpack(self.stats[..., :-1, :]).raw_value

    @property
    def edge_value(self) -> Float[Array, "B N"]:
        """Of the edge into the node: reward + discount × value, for the player who took it."""
        return unpack(self.stats[..., :-1, :]).edge_value

    @property
    def next_prior(self) -> Float[Array, "B N"]:
        """The prior of the unvisited edge that a `by_prior` rule wants first."""
        return unpack(self.stats[..., :-1, :]).next_prior

    @property
    def unvisited_mass(self) -> Float[Array, "B N"]:
        """Sum of `Rule.mass` over the unvisited edges, kept for a `by_prior` rule that asks for it."""
        return unpack(self.stats[..., :-1, :]).unvisited_mass

    @property
    def edge_prior(self) -> Float[Array, "B N"]:
        """Of the edge into the node: its prior in the parent."""
        return unpack(self.stats[..., :-1, :]).edge_prior

    @property
    def reward(self) -> Float[Array, "B N P"]:
        """Of the edge into the node."""
        return unpack(self.stats[..., :-1, :]).reward

    @property
    def discount(self) -> Float[Array, "B N"]:
        """Of the edge into the node, signed: see `Step.discount`."""
        return unpack(self.stats[..., :-1, :]).discount


class Stats(NamedTuple):
    """A row of `Tree.stats`, taken apart; the first three fields change with every visit."""

    visits: Float[Array, "..."]
    edge_value: Float[Array, "..."]
    value: Float[Array, "... P"]
    next_prior: Float[Array, "..."]
    unvisited_mass: Float[Array, "..."]
    edge_prior: Float[Array, "..."]
    discount: Float[Array, "..."]
    reward: Float[Array, "... P"]
    raw_value: Float[Array, "... P"]


def num_players(row: Float[Array, "... F"]) -> int:
    """P, from the length of a row: six numbers and three values."""
    return (row.shape[-1] - 6) // 3


def unpack(row: Float[Array, "... F"]) -> Stats:
    """Takes rows of `Tree.stats` apart."""
    p = num_players(row)
    return Stats(row[..., 0], row[..., 1], row[..., 2:2 + p], row[..., 2 + p], row[..., 3 + p], row[..., 4 + p],
                 row[..., 5 + p], row[..., 6 + p:6 + 2 * p], row[..., 6 + 2 * p:])


def pack(stats: Stats) -> Float[Array, "... F"]:
    """Puts rows of `Tree.stats` together."""
    dtype = stats.value.dtype
    columns = [x if x.ndim == stats.value.ndim else x[..., None].astype(dtype) for x in stats]
    return jnp.concatenate(columns, -1)


def new_tree(step: Step, state: State, prior: Float[Array, "B W"], capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree that holds the evaluated root only; its choice is made when a search enters.

    Args:
        step: what the model says of the root, as `checked` leaves it.
        state: the root's embedding.
        prior: the root's clean prior, from `Rule.prepare`.
        capacity: N, one more than the simulations that it shall hold.
        layout: how the edge arrays are stored.

    Raises:
        ValueError: if the layout's index type, or a float's integers, cannot number the nodes.
    """
    most = min(jnp.iinfo(layout.index).max, 2**24)
    if capacity > most:
        raise ValueError(f"a tree of {capacity} nodes with {jnp.dtype(layout.index).name} indices: at most {most} fit. "
                         "Use fewer simulations" + (", or Layout(index=jnp.int32)." if most < 2**24 else "."))
    batch, width = prior.shape
    zero, index = jnp.zeros(batch, step.value.dtype), jnp.zeros(batch, jnp.int32)
    value = step.value.reshape(batch, -1)
    stats = Stats(zero + 1, zero, value, zero, zero, zero, zero, jnp.zeros_like(value), value)
    links = [index + NONE, index + NONE, index, index + NONE, index + NONE, player_to_move(step), step.terminal]

    def first(row: Array) -> Array:
        return jnp.zeros((batch, capacity + 1, *row.shape[1:]), row.dtype).at[:, 0].set(row)

    stuck = ~step.terminal & jnp.all(jnp.isneginf(prior), -1)
    return Tree(
        stats=first(pack(stats)), links=first(jnp.stack(links, -1).astype(jnp.int32)),
        state=jax.tree.map(first, state), children=jnp.zeros((batch, capacity + 1, width), layout.index),
        prior=first(prior.astype(layout.prior or prior.dtype)), size=index + 1, overflows=index,
        status=jnp.where(stuck, Status.NO_LEGAL_ACTION.value, 0).astype(jnp.int32), root=RootData(simulations=index))


def player_to_move(step: Step) -> Int[Array, "B"]:
    """`step.to_play`, or −1 where the model does not say."""
    if step.to_play is None:
        return jnp.full(step.prior_logits.shape[0], NONE, jnp.int32)
    return step.to_play.astype(jnp.int32)


# --------------------------------------------------------------------------------------------- reading and writing rows
def per_game(x: Array, like: Array) -> Array:
    """`x [B]` with trailing axes, to be broadcast with `like [B, ...]`."""
    return x.reshape(x.shape + (1,) * (like.ndim - x.ndim))


def take(x: Array, nodes: Int[Array, "B ..."], width: int | None = None) -> Array:
    """Rows of `x [B, N+1, ...]` at `nodes`; of each row the first `width` entries, if given.

    One merged index: a pair of indices would first be written to memory side by side, a kernel more.
    """
    index = nodes + x.shape[1] * per_game(jnp.arange(nodes.shape[0], dtype=jnp.int32), nodes)
    flat = x.reshape(-1, *x.shape[2:]).at
    return (flat[index] if width is None else flat[index, :width]).get(mode="promise_in_bounds")


def put(x: Array, nodes: Int[Array, "B ..."], rows: Array) -> Array:
    """`x [B, N+1, ...]` with `rows` at `nodes`."""
    games = per_game(jnp.arange(nodes.shape[0]), nodes)
    return x.at[games, nodes].set(rows.astype(x.dtype), mode="promise_in_bounds")
