"""The tree: a frozen record of fixed-size arrays, and the functions that read it.

Every fact is stored once, where it belongs: what concerns a node, or the one edge into it, is an array
`[B, N]`; what concerns each edge out of a node is `[B, N, W]`, and there are only two of those: the children,
listed in the order in which they were expanded, and the prior, by action.
"""
import enum
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import EdgeView, State, Step

__all__ = ["COMPACT", "Layout", "RootData", "Status", "Summary", "Tree", "by_action", "edge_view", "new_tree",
           "parents", "principal_variation", "qvalues", "summary"]

NONE = -1  # no node, no action


class Status(enum.IntFlag):
    """What went wrong in a game, as bits of `tree.status`; each has a defined, harmless outcome."""

    FULL = 1  # a walk found no room for its node: it ended above and backed up the raw value there again
    NON_FINITE = 2  # the model returned NaN or infinity: uniform logits, value, reward and discount 0 instead
    NO_LEGAL_ACTION = 4  # the root has no legal action though it is not terminal: action 0, uniform weights


class Layout(NamedTuple):
    """How the two big arrays are stored."""

    index: Any = jnp.int32
    prior: Any = None  # None: as the model returns it


#: 4 bytes per edge instead of 8, for at most 32,767 nodes: priors keep 8 bits of precision.
COMPACT = Layout(index=jnp.int16, prior=jnp.bfloat16)


@chex.dataclass(frozen=True)
class RootData:
    """What the root's rule needs and must survive a resume; one entry per game.

    Attributes:
        simulations: simulations since this node became the root.
        prior: prior in force at the root (noise, temperature), or None: the stored one. The stored one stays clean.
        gumbel: Gumbel draws, or None.
    """

    simulations: Int[Array, "B"]
    prior: Float[Array, "B W"] | None = None
    gumbel: Float[Array, "B W"] | None = None


@chex.dataclass(frozen=True)
class Tree:
    """B search trees of N node slots and W edge slots; node 0 is the root.

    Per node `[B, N]`; those marked † speak of the edge into the node:
        visits: simulations that passed, the node's own evaluation included; 0 in unused slots.
        value: mean return from here, for the player to move here (`[B, N, P]`: for every player).
        raw_value: what the model said (0 at a terminal node).
        edge_value †: reward + discount × value, for the player to move above.
        reward †, discount †: of the step into the node, the discount signed (see `Step.discount`).
        action †: edge slot taken in the parent; −1 at the root.
        edge_prior †: the parent's prior for it.
        to_play: the player to move; None if the model does not say.
        terminal: the episode is over here.
        best_child: where the rule goes on from here; −1: it wants `next_action`, not yet expanded.
        next_action: the unvisited edge that is wanted first; −1: none (terminal, nothing legal, all expanded).
        num_children: how many edges were expanded.
        state: the model's embedding, `[B, N, ...]`.

    Per edge `[B, N, W]`:
        children: node indices in the order of expansion, meaningless from `num_children` on.
        prior: what the rule prepared from the logits, by action; −inf where illegal.

    Per game: `size [B]` nodes in use; `status [B]`, bits of `Status`; `overflows [B]`, walks that found the tree
    full; `root`, see `RootData`.
    """

    visits: Int[Array, "B N"]
    value: Float[Array, "B N"] | Float[Array, "B N P"]
    raw_value: Float[Array, "B N"] | Float[Array, "B N P"]
    edge_value: Float[Array, "B N"]
    reward: Float[Array, "B N"] | Float[Array, "B N P"]
    discount: Float[Array, "B N"]
    action: Int[Array, "B N"]
    edge_prior: Float[Array, "B N"]
    to_play: Int[Array, "B N"] | None
    terminal: Bool[Array, "B N"]
    best_child: Int[Array, "B N"]
    next_action: Int[Array, "B N"]
    num_children: Int[Array, "B N"]
    state: State
    children: Int[Array, "B N W"]
    prior: Float[Array, "B N W"]
    size: Int[Array, "B"]
    status: Int[Array, "B"]
    overflows: Int[Array, "B"]
    root: RootData

    @property
    def capacity(self) -> int:
        """N, the node slots of each tree."""
        return self.visits.shape[1]

    @property
    def num_edges(self) -> int:
        """W, the edge slots of each node."""
        return self.prior.shape[2]


def new_tree(step: Step, state: State, prior: Float[Array, "B W"], capacity: int, layout: Layout = Layout()) -> Tree:
    """A tree that holds the evaluated root only; its choice is made when a search enters.

    Args:
        step: what the model says of the root, checked.
        state: the root's embedding.
        prior: the root's clean prior, from `Rule.prepare`.
        capacity: N, one more than the simulations that it shall hold.
        layout: how the edge arrays are stored.

    Raises:
        ValueError: if the layout's index type cannot number the nodes.
    """
    if capacity - 1 > jnp.iinfo(layout.index).max:
        raise ValueError(f"a tree of {capacity} nodes with {jnp.dtype(layout.index).name} indices: at most "
                         f"{jnp.iinfo(layout.index).max + 1} fit. Use Layout(index=jnp.int32).")
    batch, width = prior.shape
    dtype = step.value.dtype

    def node(fill: Any, like: Array) -> Array:
        return jnp.full((batch, capacity) + like.shape[1:], fill, like.dtype)

    def first(like: Array) -> Array:
        return node(0, like).at[:, 0].set(like)

    scalar, index = jnp.zeros(batch, dtype), jnp.zeros(batch, jnp.int32)
    terminal = jnp.zeros(batch, bool) if step.terminal is None else step.terminal
    stuck = ~terminal & jnp.all(jnp.isneginf(prior), -1)
    return Tree(
        visits=first(index + 1), value=first(step.value), raw_value=first(step.value), edge_value=node(0, scalar),
        reward=node(0, step.reward), discount=node(0, step.discount), action=node(NONE, index),
        edge_prior=node(0, prior[:, 0]), terminal=first(terminal),
        to_play=None if step.to_play is None else first(step.to_play.astype(jnp.int32)),
        best_child=node(NONE, index), next_action=node(NONE, index), num_children=node(0, index),
        state=jax.tree.map(first, state),
        children=jnp.full((batch, capacity, width), NONE, layout.index),
        prior=first(prior.astype(layout.prior or prior.dtype)),
        size=index + 1, status=jnp.where(stuck, Status.NO_LEGAL_ACTION.value, 0), overflows=index,
        root=RootData(simulations=index))


def batch_rows(nodes: Int[Array, "B ..."]) -> Int[Array, "B ..."]:
    """Game indices that pair with `nodes` in a gather or scatter: `x[batch_rows(nodes), nodes]`."""
    return jnp.arange(nodes.shape[0]).reshape((-1,) + (1,) * (nodes.ndim - 1))


def for_mover(value: Array, tree: Tree, nodes: Int[Array, "B ..."]) -> Float[Array, "B ..."]:
    """The component of `value` (`[..., P]`, or a scalar already) that belongs to the player to move at `nodes`."""
    if value.ndim == nodes.ndim:
        return value
    mover = tree.to_play[batch_rows(nodes), nodes]
    return jnp.take_along_axis(value, mover[..., None], -1)[..., 0]


def visited_edges(tree: Tree, nodes: Int[Array, "B ..."], width: int) -> tuple[Array, Array, Array]:
    """The first `width` expanded edges of nodes: child (0 in padding), action slot, and which are no padding."""
    rows = batch_rows(nodes)
    seen = jnp.arange(width) < tree.num_children[rows, nodes][..., None]
    child = jnp.where(seen, tree.children[rows, nodes, :width].astype(jnp.int32), 0)
    return child, tree.action[rows[..., None], child], seen


def edge_view(tree: Tree, nodes: Int[Array, "B ..."], width: int | None = None) -> EdgeView:
    """All W edges of `nodes`, by action.

    Args:
        tree: the trees.
        nodes: node indices, `[B]` or `[B, K]`.
        width: an upper bound on the expanded edges of these nodes, W if not given; a small one is cheaper.
    """
    child, action, seen = visited_edges(tree, nodes, width or tree.num_edges)
    rows = batch_rows(nodes)
    action = jnp.where(seen, action, tree.num_edges)
    index = tuple(jnp.arange(n).reshape((-1,) + (1,) * (action.ndim - i - 1)) for i, n in enumerate(nodes.shape))

    def spread(x: Array) -> Array:
        zeros = jnp.zeros(nodes.shape + (tree.num_edges,), x.dtype)
        return zeros.at[(*index, action)].set(x, mode="drop", unique_indices=True)

    return _view(tree, nodes, tree.prior[rows, nodes].astype(tree.edge_prior.dtype), child, spread)


def candidate_view(tree: Tree, nodes: Int[Array, "B ..."], full: Bool[Array, "B"], width: int) -> tuple[EdgeView, Array]:
    """The visited edges of `nodes` and the next one to be tried, in `width` slots, and the slots' actions.

    All other slots look like illegal, unvisited edges; `width` exceeds the number of expanded edges, or is W.
    """
    child, action, seen = visited_edges(tree, nodes, width)
    rows = batch_rows(nodes)
    wanted = tree.next_action[rows, nodes]
    next_prior = tree.prior[rows, nodes, jnp.maximum(wanted, 0)].astype(tree.edge_prior.dtype)
    open_ = (wanted >= 0) & ~full.reshape(rows.shape)
    next_prior = jnp.where(open_, next_prior, -jnp.inf)
    last = jnp.arange(width) == tree.num_children[rows, nodes][..., None]
    unseen = jnp.where(last, next_prior[..., None], -jnp.inf)
    prior = jnp.where(seen, tree.edge_prior[rows[..., None], child], unseen)
    action = jnp.where(seen, action, jnp.where(last, wanted[..., None], tree.num_edges))
    view = _view(tree, nodes, prior, child, lambda x: jnp.where(seen, x, jnp.zeros_like(x)))
    return view, action


def _view(tree: Tree, nodes: Array, prior: Array, child: Array, place: Any) -> EdgeView:
    """Gathers what is asked for below the edges; what a rule does not read, the compiler drops."""
    rows = batch_rows(nodes)

    def below(x: Array) -> Array:
        x = x[rows[..., None], child]
        if x.ndim > child.ndim:  # one per player: the mover's
            mover = tree.to_play[rows, nodes]
            x = jnp.take_along_axis(x, mover[..., None, None], -1)[..., 0]
        return place(x)

    return EdgeView(
        prior=prior, visits=below(tree.visits), value=below(tree.edge_value), reward=below(tree.reward),
        discount=below(tree.discount), child_value=below(tree.value), node_visits=tree.visits[rows, nodes],
        node_value=for_mover(tree.value[rows, nodes], tree, nodes),
        raw_value=for_mover(tree.raw_value[rows, nodes], tree, nodes), root=tree.root)


def by_action(tree: Tree, nodes: Int[Array, "B ..."]) -> Int[Array, "B ... W"]:
    """The child under every action of `nodes`; −1 where none was expanded."""
    child, action, seen = visited_edges(tree, nodes, tree.num_edges)
    match = (action[..., None] == jnp.arange(tree.num_edges)) & seen[..., None]
    return jnp.max(jnp.where(match, child[..., None], NONE), -2)


def parents(tree: Tree) -> Int[Array, "B N"]:
    """The parent of every node; −1 for the root and for unused slots."""
    batch, capacity, width = tree.children.shape
    used = jnp.arange(width) < tree.num_children[..., None]
    target = jnp.where(used, tree.children.astype(jnp.int32), capacity).reshape(batch, -1)
    source = jnp.broadcast_to(jnp.arange(capacity, dtype=jnp.int32)[:, None], (capacity, width)).reshape(1, -1)
    return jnp.full((batch, capacity), NONE, jnp.int32).at[batch_rows(target), target].set(
        jnp.broadcast_to(source, target.shape), mode="drop")


class Summary(NamedTuple):
    """What a search found at the root.

    Attributes:
        visits: simulations through each action.
        visit_probs: their shares; uniform over legal actions if there are none.
        qvalues: mean return of each action for the player to move; 0 if unvisited.
        value: the root's mean value, for the player to move.
    """

    visits: Int[Array, "B W"]
    visit_probs: Float[Array, "B W"]
    qvalues: Float[Array, "B W"]
    value: Float[Array, "B"]


def qvalues(tree: Tree, nodes: Int[Array, "B"] | None = None) -> Float[Array, "B W"]:
    """Mean return of each action at `nodes` (default: the roots), for the player to move; 0 if unvisited."""
    return edge_view(tree, jnp.zeros_like(tree.size) if nodes is None else nodes).value


def summary(tree: Tree) -> Summary:
    """Visits, their shares, Q-values and value at the root of each game."""
    view = edge_view(tree, jnp.zeros_like(tree.size))
    total = jnp.sum(view.visits, -1, keepdims=True)
    legal = legal_actions(tree).astype(view.value.dtype)
    uniform = legal / jnp.sum(legal, -1, keepdims=True)
    shares = view.visits / jnp.maximum(total, 1).astype(view.value.dtype)
    return Summary(view.visits, jnp.where(total > 0, shares, uniform), view.value, view.node_value)


def legal_actions(tree: Tree) -> Bool[Array, "B W"]:
    """The root's legal actions; all of them where there is none, so that what follows stays defined."""
    legal = ~jnp.isneginf(tree.prior[:, 0])
    return legal | ~jnp.any(legal, -1, keepdims=True)


def principal_variation(tree: Tree, max_length: int) -> Int[Array, "B L"]:
    """The most visited action, then the most visited reply, and so on; −1 after the last.

    Args:
        tree: the trees.
        max_length: L, how many actions to follow.
    """

    def step(node: Array, _: None) -> tuple[Array, Array]:
        inner = jnp.maximum(node, 0)
        visits = jnp.where((node >= 0)[:, None], edge_view(tree, inner).visits, 0)
        action = jnp.argmax(visits, -1).astype(jnp.int32)
        visited = jnp.max(visits, -1) > 0
        below = jnp.take_along_axis(by_action(tree, inner), action[:, None], 1)[:, 0]
        return jnp.where(visited, below, NONE), jnp.where(visited, action, NONE)

    _, actions = jax.lax.scan(step, jnp.zeros_like(tree.size), None, length=max_length)
    return actions.T
