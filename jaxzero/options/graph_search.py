"""Graph search: positions that are reached in several ways share one node.

Each expansion makes a slot for the edge, with its own prior, reward and visits. If the position that it leads to is
known already, the slot is linked to the node of that position, and what was found there holds for both paths at once.
So the visits of a node are not those of one edge into it. A node's value is recomputed from its edges whenever a walk
passes it or ends there:

    V(s) = (U(s) + Σ N(s, a) · (r + γ V(s′))) / (1 + Σ N(s, a))        U: the network's value of s

with the edges' own visits N(s, a). Counting a simulation for all parents, or rating edges by the visits of the nodes
below, is unsound (D. Wu, "Monte-Carlo graph search from first principles", KataGo's documentation, 2021). Parents off
the path keep their values until a walk passes them. Rules, noise and proven values are those of tree search; bounds are
updated at every node passed.

    policy = jaxzero.alphazero(model, 800, simulate=jaxzero.transpositions())

It helps in games where the order of moves matters little. It costs two more gathers per level, one level at a time, and
a look-up per simulation. Positions are found by a 64-bit key in a table of fixed size, one per game, then compared in
full: a collision of keys, or a full neighbourhood in the table, costs a duplicate and never merges different positions.
The number of plies is part of the key by default, which makes the graph acyclic. Without it, a walk that returns to one
of its own nodes ends there.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, UInt32

from jaxzero.options.chance_expectation import refuse_expectations
from jaxzero.options.solver import closer, from_edges
from jaxzero.search.action_selection import choose, choose_at_root, remember
from jaxzero.search.backup import counted
from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import linked, take_edges, visited_edges
from jaxzero.search.expansion import expand
from jaxzero.search.node_storage import Stats, pack, places, put, take, unpack_facts, unpack_stats
from jaxzero.search.search import longest_walk, paired
from jaxzero.search.tree import NONE, Graph, Tree, rows_of
from jaxzero.types import Keys, Model, Params, Path, Rule, State

__all__ = ["hash_state", "num_positions", "transpositions"]

ROOM = 2  # entries of the table for each slot of the tree, at least
PROBES = 16  # entries of the table that are tried: in a half-full table longer runs are rare

Key = Callable[[State], UInt32[Array, "B 2"]]


class Transpositions(NamedTuple):
    """A `simulate` function that merges equal positions; see `transpositions`."""

    canonical: Callable[[State], State]
    key: Key
    by_ply: bool

    def prepare(self, tree: Tree, rule: Rule) -> Tree:
        """The tree with the table of a graph, before the first simulation.

        Raises:
            ValueError: a tree that was moved on; values that cannot be proven. (A tree that was searched without a
                graph is accepted, but the positions that it holds already are not found again.)
        """
        if tree.root.brought is not None:
            raise ValueError(
                "transpositions() cannot continue a tree of advance(...) or of rounds. Search the position anew."
            )
        if rule.returns is not None and not self.by_ply:
            raise ValueError(
                "avoid_proven with transpositions(by_ply=False): where positions repeat, a value can depend on the "
                "path, so it proves nothing. Use transpositions(), or the rule without avoid_proven."
            )
        refuse_expectations("transpositions", tree)
        return _with_graph(tree, self) if tree.graph is None else tree

    def __call__(
        self,
        params: Params,
        keys: Keys,
        tree: Tree,
        path: Path,
        model: Model,
        rule: Rule,
        root_rule: Rule,
        max_depth: int | None = None,
    ) -> tuple[Tree, Path]:
        """Arguments and results as those of `jaxzero.search.simulate`."""
        tree = choose_at_root(tree, paired(rule, root_rule))
        path, repeats = _descend(tree, path, max_depth, self.by_ply)
        last = take(path.nodes, path.length - 1)
        inner = path._replace(nodes=_with_end(path, take(tree.graph.node, last)))
        if repeats is not None:
            inner = inner._replace(going=~repeats if path.going is None else path.going & ~repeats)
        slot = jnp.minimum(tree.size, tree.capacity)  # the games of a graph grow alike
        tree, _ = expand(params, keys, tree, inner, model, rule, max_depth)
        new = (slot < tree.capacity) & (unpack_stats(take(tree.stats, slot)).visits > 0)
        tree = _link(tree, slot, new, path.length, self)
        nodes = put(path.nodes, path.length, jnp.where(new, slot, tree.capacity))
        path = path._replace(nodes=nodes, length=path.length + new.astype(jnp.int32))
        return counted(_carry_up(tree, path, new, rule), path), path


def transpositions(
    canonical: Callable[[State], State] | None = None, key: Key | None = None, by_ply: bool = True
) -> Transpositions:
    """Equal positions are merged: to be given as `simulate=transpositions()`.

    What it does, when it helps and what it costs: `help(jaxzero.options.graph_search)`.

    Args:
        canonical: gives the parts of the embeddings, `[B, ...]`, that decide whether two positions are the same;
            default: everything. Leave out what the future does not depend on, like the last move.
        key: a 64-bit key of what `canonical` gives, `[B, 2]` of uint32; default `hash_state`. It affects only the
            speed: positions with equal keys are compared.
        by_ply: positions are the same only after the same number of moves.

    Raises:
        ValueError: something else in place of functions; when searching, a tree of `advance`, and `avoid_proven` with
            by_ply=False.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    >>> policy = jz.alphazero(model, 500, dirichlet_fraction=0.0, simulate=jz.transpositions())
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> out = jax.jit(policy)((), keys, jax.vmap(game.init)(keys))
    >>> bool(jz.options.num_positions(out.tree)[0] < 400)  # of 501 edges and the root
    True
    """
    for name, function in (("canonical", canonical), ("key", key)):
        if function is not None and not callable(function):
            raise ValueError(f"transpositions({name}={function!r}): give a function of embeddings, or None.")
    return Transpositions(
        (lambda state: state) if canonical is None else canonical, hash_state if key is None else key, by_ply
    )


def num_positions(tree: Tree) -> Int[Array, "B"]:
    """How many different positions each graph holds.

    Raises:
        ValueError: a tree without a graph.
    """
    check_tree("num_positions: tree", tree)
    if tree.graph is None:
        raise ValueError(
            "num_positions of a tree that merges no positions: give one of simulate=transpositions(). In any other, "
            "tree.size counts the nodes."
        )
    return jnp.sum(tree.graph.visits[:, :-1] > 0, -1, dtype=jnp.int32)


def hash_state(state: State) -> UInt32[Array, "B 2"]:
    """A 64-bit key of all bits of a state.

    Each 32-bit word is scrambled with its place (lowbias32, C. Wellons, hash-prospector, 2018), and the results added.
    """
    words = jnp.concatenate([_words(x) for x in jax.tree.leaves(state)], -1)
    place = places(words.shape[-1], 2).astype(jnp.uint32)
    place = place * jnp.uint32(0x9E3779B9)
    halves = [_scramble(_scramble(words + jnp.uint32(seed)) ^ place) for seed in (1, 0x51ED27)]
    return jnp.stack([_scramble(jnp.sum(half, -1, dtype=jnp.uint32)) for half in halves], -1)


def _words(x: Array) -> UInt32[Array, "B W"]:
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        x = jax.random.key_data(x)
    x = x.reshape(len(x), -1)
    if jnp.issubdtype(x.dtype, jnp.floating):
        x = x + 0  # so that 0 and -0, which are equal, have the same key
        x = jax.lax.bitcast_convert_type(x.astype(jnp.float32), jnp.uint32)
    return x.astype(jnp.uint32)


def _scramble(x: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def _with_graph(tree: Tree, how: Transpositions) -> Tree:
    """A tree of roots, with the table in which they are the first entries."""
    batch, nodes = tree.best_child.shape
    size = 1 << int(ROOM * nodes - 1).bit_length()
    zero = jnp.zeros((batch, nodes), jnp.int32)
    graph = Graph(
        node=zero + places(nodes, 2),
        visits=unpack_stats(tree.stats).visits,
        ply=zero,
        key=jnp.zeros((batch, nodes, 2), jnp.uint32),
        table=jnp.full((batch, size), NONE, jnp.int32),
    )
    root = jnp.zeros_like(tree.size)
    return _link(tree.replace(graph=graph), root, root == 0, root, how)


def _descend(tree: Tree, path: Path, max_depth: int | None, by_ply: bool) -> tuple[Path, Bool[Array, "B"] | None]:
    """Walks along the remembered choices, from edge to node to edge; tells which walks met one of their own nodes."""
    longest = longest_walk(tree, max_depth)

    def turn(carry: tuple) -> tuple:
        depth, slot, path, repeats = carry
        inside, node = slot >= 0, take(tree.graph.node, jnp.maximum(slot, 0))
        following = jnp.where(inside, take(tree.best_child, node), NONE)
        if not by_ply:
            passed = places(path.nodes.shape[1], 2) < jnp.minimum(path.length, depth)[:, None]
            again = jnp.any(passed & (take(tree.graph.node, jnp.where(passed, path.nodes, 0)) == node[:, None]), -1)
            repeats = repeats | (again & inside)
            following = jnp.where(again, NONE, following)
        nodes = jax.lax.dynamic_update_slice_in_dim(path.nodes, slot[:, None], depth, 1)
        return depth + 1, following, path._replace(nodes=nodes, length=path.length + inside.astype(jnp.int32)), repeats

    def going(carry: tuple) -> Array:
        return jnp.any(carry[1] >= 0) & (carry[0] < longest)

    start = jnp.zeros_like(tree.size)
    if path.going is not None:
        start = jnp.where(path.going, start, tree.capacity)
    first = jnp.int32(0), start, path._replace(length=jnp.zeros_like(start)), start < 0
    _, _, path, repeats = jax.lax.while_loop(going, turn, first)
    if path.going is not None:
        path = path._replace(length=jnp.where(path.going, path.length, 1))
    return path, None if by_ply else repeats


def _with_end(path: Path, node: Int[Array, "B"]) -> Int[Array, "B D"]:
    return put(path.nodes, path.length - 1, node)


def _link(tree: Tree, slot: Int[Array, "B"], new: Bool[Array, "B"], ply: Int[Array, "B"], how: Transpositions) -> Tree:
    """Links each new slot to the node of its position, or enters it as the first of its kind."""
    graph = tree.graph
    here = how.canonical(jax.tree.map(lambda x: take(x, slot), tree.state))
    if not any(x.size for x in jax.tree.leaves(here)):
        raise ValueError(
            "transpositions() with embeddings that hold no arrays: positions cannot be distinguished. Have the model "
            "return the position as its embedding; canonical=... may return a part of it."
        )
    key = jnp.asarray(how.key(here), jnp.uint32)
    if key.shape != (len(slot), 2):
        raise ValueError(
            f"transpositions(key=...): keys of shape {key.shape} for {len(slot)} games: give two uint32 each, [B, 2]."
        )
    if how.by_ply:
        key = jnp.stack([key[:, 0] + _scramble(ply.astype(jnp.uint32) + 1), key[:, 1]], -1)
    size = graph.table.shape[1]
    probed = key[:, :1] + places(PROBES, 2).astype(jnp.uint32)
    near = (probed & jnp.uint32(size - 1)).astype(jnp.int32)
    entries = jnp.take_along_axis(graph.table, near, 1)
    matches = (entries >= 0) & jnp.all(take(graph.key, jnp.maximum(entries, 0)) == key[:, None], -1)
    known, other = jnp.any(matches, -1), jnp.max(jnp.where(matches, entries, 0), -1)
    there = how.canonical(jax.tree.map(lambda x: take(x, other), tree.state))
    same = new & known & (take(graph.ply, other) == ply if how.by_ply else True)
    for x, y in zip(jax.tree.leaves(here), jax.tree.leaves(there)):
        same = same & jnp.all((x == y).reshape(len(slot), -1), -1)
    free = entries < 0
    enters = new & ~known & jnp.any(free, -1)
    place = jnp.take_along_axis(near, jnp.argmax(free, -1)[:, None], 1)[:, 0]
    games = jnp.arange(len(slot))
    kept = jnp.where(enters, slot, graph.table[games, place])
    slot = jnp.where(new, slot, tree.capacity)
    own = jnp.where(same, tree.capacity, slot)
    stats, raw = unpack_stats(take(tree.stats, own)), unpack_facts(take(tree.facts, own)).raw_value
    return tree.replace(
        stats=put(tree.stats, own, pack(stats._replace(value=raw), tree.stats.dtype)),
        graph=Graph(
            node=put(graph.node, slot, jnp.where(same, other, slot)),
            visits=put(graph.visits, own, jnp.ones_like(stats.visits)),
            ply=put(graph.ply, own, ply),
            key=put(graph.key, own, key),
            table=graph.table.at[games, place].set(kept),
        ),
    )


def _carry_up(tree: Tree, path: Path, new: Bool[Array, "B"], rule: Rule) -> Tree:
    """Counts the edges of each walk; then its nodes, from the last one up, are updated from below, and choose.

    `new`: the last edge of the path is new, and its first visit is counted already.
    """

    def turn(carry: tuple[Array, Tree]) -> tuple[Array, Tree]:
        i, tree = carry
        slot = jax.lax.dynamic_index_in_dim(path.nodes, i, 1, False)
        slot = jnp.where(i < path.length, slot, tree.capacity)
        stats = unpack_stats(take(tree.stats, slot))
        passed = (~new | (i < path.length - 1)).astype(stats.visits.dtype)
        stats = pack(stats._replace(visits=stats.visits + passed), tree.stats.dtype)
        node = take(tree.graph.node, slot)
        tree = _take_in(tree.replace(stats=put(tree.stats, slot, stats)), node)
        inner = (node > 0) & (node < tree.capacity)
        choice = choose(tree, rows_of(tree, node), rule, inner)
        return i - 1, remember(tree, jnp.where(inner, node, tree.capacity), choice)

    return jax.lax.while_loop(lambda carry: carry[0] >= 0, turn, (jnp.max(path.length) - 1, tree))[1]


def _take_in(tree: Tree, node: Int[Array, "B"]) -> Tree:
    """Recomputes visits, value and bounds of nodes from their edges; N: of no node."""
    at = rows_of(tree, node)
    old, facts = unpack_stats(at.stats), unpack_facts(at.facts)
    edges = visited_edges(tree, at)
    below = unpack_facts(take_edges(tree.facts, edges.child))
    visits = jnp.where(edges.seen, unpack_stats(take_edges(tree.stats, edges.child)).visits, 0)[..., None]
    value = unpack_stats(take_edges(tree.stats, linked(tree, edges.child))).value
    returns = visits * (below.reward + below.discount[..., None] * value)
    total = jnp.sum(visits, -2)
    mean = (facts.raw_value + jnp.sum(jnp.where(visits > 0, returns, 0), -2)) / (1 + total)
    if tree.bounds is not None:
        bounds = closer(take(tree.bounds, node), from_edges(tree, node))
        mean = jnp.where((bounds[:, :1] == bounds[:, 1:]), bounds[:, :1], mean)
        tree = tree.replace(bounds=put(tree.bounds, node, bounds))
    stats = Stats(jnp.where(node == 0, 1 + total[:, 0], old.visits), old.edge_value, mean)
    graph = tree.graph._replace(visits=put(tree.graph.visits, node, 1 + total[:, 0]))
    return tree.replace(stats=put(tree.stats, node, pack(stats, tree.stats.dtype)), graph=graph)
