"""The tree: a frozen record of fixed-size arrays.

Every fact is stored once. A node, with the edge into it, has three rows: `stats` changes with every visit, `frontier`
with every new child, `facts` never. The edges out of a node have two arrays `[B, N, W]`: the children, in the order
of their expansion, and the prior, by action.
"""

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt16

from jaxzero.search.node_storage import (
    HEAD,
    Facts,
    Frontier,
    Stats,
    Tile,
    pack,
    take,
    unpack_facts,
    unpack_frontier,
    unpack_stats,
)
from jaxzero.types import Path, State, Step, field_in_short, in_short

__all__ = ["COMPACT", "Hooks", "Layout", "RootData", "Status", "Tree", "new_tree"]

NONE = -1  # no node, no action, no player
# Children kept in a node's own row, for quick access; most nodes never have more. If there can be only a few more, all
# are kept there.
AT_HAND, ALL_AT_HAND = 7, 12


class Status(enum.IntFlag):
    """What went wrong in a game, as bits of `tree.status`; each has a defined, harmless outcome.

    Attributes:
        FULL: a walk found no room for its node: it ended above and backed up the raw value there again.
        NON_FINITE: the model returned NaN or infinity, replaced by uniform logits, or by a value, reward or discount of
            0 (a `to_play` outside 0 ... P-1 looks the same). Or `explore` returned numbers that are not finite: the
            clean prior is used. Or the root's rule scored its first child, or the edge tried next, by NaN when the
            search began: such edges are not chosen.
        NO_LEGAL_ACTION: the root has no legal action although it is not terminal: action 0, uniform weights.
        NOT_IN_TREE: `advance` was given an action that is illegal or unvisited: nothing was kept of the game's tree.
    """

    FULL = 1
    NON_FINITE = 2
    NO_LEGAL_ACTION = 4
    NOT_IN_TREE = 8

    def where(self, mask: Array) -> Int[Array, "..."]:
        """The bit where the mask says so, else 0; 32 bits wide in 64-bit mode, too."""
        return jnp.where(mask, jnp.int32(self.value), jnp.int32(0))


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class PriorKind:
    """What a tree keeps of the logits. It is static, so that JAX treats trees of another kind as another type.

    Attributes:
        probabilities: `Tree.prior` is probabilities, else logits; None: not known.
        mass: `Frontier.unvisited_mass` is kept.
        by_prior: so is `Frontier.next_action`, at every node.
    """

    probabilities: bool | None
    mass: bool
    by_prior: bool

    def __str__(self) -> str:
        """In words, for error messages."""
        kind = {True: "probabilities", False: "logits", None: "its own kind of prior"}[self.probabilities]
        return kind + (" and their mass" if self.mass else "")


def _no_data(tree: Any, step: Step) -> None:
    del tree, step


def _nothing_stored(tree: Any, path: Path, node: Array, data: None) -> Any:
    del path, node, data
    return tree


def _as_returned(tree: Any, nodes: Array, stats: Stats, returns: Array, tile: Tile | None, counted: bool) -> Array:
    del tree, nodes, stats, tile, counted
    return returns


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Hooks:
    """What an option adds to a search, kept with the tree; the defaults add nothing.

    Attributes:
        node_data: `(tree, step) -> data` that the option keeps of new nodes.
        grown: `(tree, path, node [B], data) -> tree`, when the new nodes have been written; N: the tree did not grow.
        corrected: `(tree, nodes, stats, returns, tile, counted) -> returns` to back up from these nodes, whose `stats`
            are those before this visit; `counted`: the statistics of the nodes below on the walk include it already.
    """

    node_data: Callable[..., Any] = _no_data
    grown: Callable[..., Any] = _nothing_stored
    corrected: Callable[..., Any] = _as_returned


class Layout(NamedTuple):
    """How the two big arrays are stored.

    Attributes:
        index: the type of child indices; None: int16 if that can number the nodes, else int32.
        prior: the type of priors; None: as the value, float32 at least. bfloat16 is stored as its bits, uint16, because
            where XLA has no bfloat16 arithmetic, as on CPUs, it would convert the whole array in every simulation.
    """

    index: Any = None
    prior: Any = None


#: 4 bytes per edge instead of 6, for at most 32,767 nodes; priors keep 8 bits of precision.
COMPACT = Layout(index=jnp.int16, prior=jnp.bfloat16)


@chex.dataclass(frozen=True)
class RootData:
    """What the root's rule needs, and what must be kept when a search is resumed; one entry per game.

    Attributes:
        simulations: simulations since this node became the root.
        prior: the prior in force at the root (with noise, Gumbel draws, temperature), by action; None: the stored
            one, which stays clean in any case.
        brought: visits that each action brought along from the search before, in a tree that `advance` made. Games
            then hold different numbers of nodes, and each takes slots of its own. None: the root was planted.
        returns: the least and the greatest possible return, if values are proven; see `jaxzero.options.solver`.
    """

    simulations: Int[Array, "B"]
    prior: Float[Array, "B W"] | None = None
    brought: Int[Array, "B W"] | None = None
    returns: Float[Array, "B 2"] | None = None

    __repr__ = in_short


class Graph(NamedTuple):
    """The further arrays of a graph; see `jaxzero.options.graph_search`.

    Attributes:
        node: per slot, the node of the position that its edge leads to: the slot itself, or an earlier one.
        visits: per node, 1 and the visits of all its edges. (In `Tree.stats` are the visits of the edge into a slot.)
        ply: per node, how many moves below the root.
        key: per node, the key of its position.
        table: nodes by key; −1: free.
    """

    node: Int[Array, "B N+1"]
    visits: Float[Array, "B N+1"]
    ply: Int[Array, "B N+1"]
    key: Array
    table: Int[Array, "B T"]


@chex.dataclass(frozen=True)
class Tree:
    """B search trees of N node slots and W edge slots; node 0 is the root. P is 1 unless values are per player.

    The arrays have one more row than there are nodes. Row N is scratch: masked writes go there, so no write needs a
    bounds check. Rows hold small integers as floats, which are exact up to 2^24: no more visits are counted.

    Attributes:
        stats: per node, a packed `Stats`.
        best_child: per node, the child that the rule chooses; −1: it wants the next action, which is not expanded yet.
        frontier: per node, a packed `Frontier`.
        facts: per node, a packed `Facts`; one entry longer where the model knows of chance.
        state: per node, the model's embedding.
        later_children: per node, the children after the first K, which are in `frontier`; None if K = W, up to 12.
        prior: what the rule prepared from the logits, by action, of the edges not yet expanded; −inf where illegal
            or expanded (the prior of an expanded edge is with the node below it). Its bits, where it is bfloat16.
        size: node slots in use; a simulation takes one in every game, needed or not. (In a tree that `advance` made it
            takes one only where it adds a node; a game of size 0 has no root yet.)
        status: bits of `Status`.
        overflows: walks that found the tree full.
        root: see `RootData`.
        bounds: per node, the proven lower and upper bound of its value; None: the search does not prove.
        graph: which positions are the same, in a graph search; else None.
        in_flight: per node, walks that wait for their evaluation, while lanes walk; else None.
        prior_kind: what is kept of the logits; None: not known.
        hooks: what an option adds to each simulation.
    """

    stats: Float[Array, "B N+1 2+P"]
    best_child: Int[Array, "B N+1"]
    frontier: Float[Array, "B N+1 4+K"]
    facts: Float[Array, "B N+1 6+2P"]
    state: State
    later_children: Int[Array, "B N+1 W-K"] | None
    prior: Float[Array, "B N+1 W"] | UInt16[Array, "B N+1 W"]
    size: Int[Array, "B"]
    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    root: RootData
    bounds: Float[Array, "B N+1 2"] | None = None
    graph: Graph | None = None
    in_flight: Int[Array, "B N+1"] | None = None
    prior_kind: PriorKind | None = None
    hooks: Hooks = Hooks()

    @property
    def capacity(self) -> int:
        """N, the node slots of each tree."""
        return self.prior.shape[-2] - 1

    @property
    def num_edges(self) -> int:
        """W, the edge slots of each node."""
        return self.prior.shape[-1]

    @property
    def num_players(self) -> int:
        """P, the entries of a value; 1: it is for the player to move."""
        return self.stats.shape[-1] - 2

    @property
    def children(self) -> Int[Array, "B N W"]:
        """Node indices in the order of expansion; meaningless from `num_children` on."""
        first, later = unpack_frontier(self.frontier[..., :-1, :]).children, self.later_children
        return first if later is None else jnp.concatenate([first, later[..., :-1, :].astype(jnp.int32)], -1)

    @property
    def visits(self) -> Int[Array, "B N"]:
        """Simulations that passed each node, its own evaluation included; 0 in unused slots."""
        return unpack_stats(self.stats[..., :-1, :]).visits.astype(jnp.int32)

    @property
    def value(self) -> Float[Array, "B N P"]:
        """Mean return from each node, for the player to move there, or for every player."""
        return unpack_stats(self.stats[..., :-1, :]).value

    @property
    def raw_value(self) -> Float[Array, "B N P"]:
        """What the model said of each node; 0 at a terminal one."""
        return unpack_facts(self.facts[..., :-1, :]).raw_value

    def __repr__(self) -> str:
        """Its size and how full it is, not its content, which would be thousands of numbers."""
        if not hasattr(self.prior, "shape"):  # leaves may be anything after `jax.tree.map`
            return "Tree(...)"
        sizes = f"capacity={self.capacity}, num_edges={self.num_edges}, num_players={self.num_players}"
        return f"Tree({sizes}, size={field_in_short(self.size)}, status={field_in_short(self.status)})"


def new_tree(step: Step, state: State, prior: Float[Array, "B W"], capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree that holds the evaluated root only; the root chooses when the first simulation begins.

    Args:
        step: the model's Step of the root, as `checked` returns it.
        state: the root's embedding.
        prior: the root's clean prior, from `Rule.prepare`.
        capacity: N, one more than the simulations that it shall hold.
        layout: how the edge arrays are stored.

    Raises:
        ValueError: if the layout's index type, or a float's integers, cannot number the nodes.
    """
    index_type = layout.index or (jnp.int16 if capacity <= jnp.iinfo(jnp.int16).max else jnp.int32)
    most = min(jnp.iinfo(index_type).max, 2**24)
    if capacity > most:
        raise ValueError(
            f"a tree of {capacity} nodes with {jnp.dtype(index_type).name} indices: at most {most} fit. "
            "Use fewer simulations" + (", or Layout(index=jnp.int32)." if most < 2**24 else ".")
        )
    batch, width = prior.shape
    dtype = step.value.dtype
    zero, index = jnp.zeros(batch, dtype), jnp.zeros(batch, jnp.int32)  # arrays may not share memory: hence + 0 below
    at_hand = width if width <= ALL_AT_HAND else AT_HAND
    value = step.value.reshape(batch, -1)

    def first(row: Array) -> Array:
        others = jnp.zeros((batch, capacity, *row.shape[1:]), row.dtype)
        return jnp.concatenate([row[:, None], others], 1)  # XLA sees through reads of this

    stuck = ~step.terminal & jnp.all(jnp.isneginf(prior), -1)
    nobody, reward = index + NONE, jnp.zeros_like(value)
    facts = Facts(nobody, zero, nobody, zero, reward, player_to_move(step), step.terminal, value, step.chance)
    return Tree(
        stats=first(pack(Stats(zero + 1, zero, value), dtype)),
        best_child=jnp.full((batch, capacity + 1), NONE, jnp.int32),
        frontier=first(pack(Frontier(index + NONE, index, zero, zero, jnp.zeros((batch, at_hand), jnp.int32)), dtype)),
        facts=first(pack(facts, dtype)),
        state=jax.tree.map(first, state),
        later_children=jnp.zeros((batch, capacity + 1, width - at_hand), index_type) if width > at_hand else None,
        prior=first(as_stored(prior, _stored_type(layout.prior or dtype))),
        size=index + 1,
        overflows=index + 0,
        status=Status.NO_LEGAL_ACTION.where(stuck),
        root=RootData(simulations=index + 0),
    )


def _stored_type(prior: Any) -> jnp.dtype:
    return jnp.dtype(jnp.uint16 if jnp.dtype(prior) == jnp.bfloat16 else prior)


def as_stored(prior: Float[Array, "... W"], dtype: jnp.dtype) -> Float[Array, "... W"] | UInt16[Array, "... W"]:
    """A prior as `Tree.prior` of that type stores it; only −inf becomes −inf, which closes an edge."""
    as_bits = dtype == jnp.uint16
    kept = jnp.bfloat16 if as_bits else dtype
    if jnp.finfo(kept).min > jnp.finfo(prior.dtype).min:
        prior = jnp.where(jnp.isneginf(prior), -jnp.inf, jnp.maximum(prior, float(jnp.finfo(kept).min)))
    prior = prior.astype(kept)
    return jax.lax.bitcast_convert_type(prior, jnp.uint16) if as_bits else prior


def as_read(stored: Array, dtype: jnp.dtype) -> Float[Array, "... W"]:
    """The inverse of `as_stored`."""
    as_bits = stored.dtype == jnp.uint16
    return (jax.lax.bitcast_convert_type(stored, jnp.bfloat16) if as_bits else stored).astype(dtype)


def player_to_move(step: Step) -> Int[Array, "B"]:
    """`step.to_play`, or −1 where the model does not say."""
    if step.to_play is None:
        return jnp.full(step.prior_logits.shape[0], NONE, jnp.int32)
    return step.to_play.astype(jnp.int32)


class Rows(NamedTuple):
    """The rows of some nodes, read once.

    The rows stay packed. Unpacking costs nothing where a part is used; passing the parts to a branch would cost a
    kernel for each.

    Attributes:
        nodes: their indices; None: the roots.
        stats: their rows of `Tree.stats`.
        facts: their rows of `Tree.facts`.
        frontier: their rows of `Tree.frontier`, with or without the children.
        tile: the games that they are of; None: all.
    """

    nodes: Int[Array, "G ..."] | None
    stats: Float[Array, "G ... 2+P"]
    facts: Float[Array, "G ... 6+2P"]
    frontier: Float[Array, "G ... 4+K"]
    tile: Tile | None = None

    @property
    def games(self) -> Int[Array, "G ..."]:
        """The games that they are of."""
        shape = self.stats.shape[:-1]
        games = jnp.arange(shape[0], dtype=jnp.int32) if self.tile is None else self.tile.games
        return jnp.broadcast_to(games.reshape(-1, *(1,) * (len(shape) - 1)), shape)

    @property
    def visits(self) -> Float[Array, "G ..."]:
        """Simulations that passed."""
        return unpack_stats(self.stats).visits

    @property
    def value(self) -> Float[Array, "G ... P"]:
        """Mean return from here."""
        return unpack_stats(self.stats).value

    @property
    def raw_value(self) -> Float[Array, "G ... P"]:
        """What the model said."""
        return unpack_facts(self.facts).raw_value

    @property
    def next_action(self) -> Int[Array, "G ..."]:
        """The unvisited edge that is wanted first; −1: none."""
        return unpack_frontier(self.frontier).next_action

    @property
    def num_children(self) -> Int[Array, "G ..."]:
        """How many edges were expanded."""
        return unpack_frontier(self.frontier).num_children


def rows_of(tree: Tree, nodes: Int[Array, "G ..."] | None = None, tile: Tile | None = None) -> Rows:
    """The rows of `nodes` (default: the roots) of the games of `tile` (default: all), the children left out."""
    stats, facts = take(tree.stats, nodes, tile), take(tree.facts, nodes, tile)
    return Rows(nodes, stats, facts, take(tree.frontier, nodes, tile, HEAD), tile)
