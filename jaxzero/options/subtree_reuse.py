"""Subtree reuse: keeps the tree below the move that was played.

    out  = policy(params, keys, state)
    tree = jaxzero.advance(out.tree, out.action, reset=ended)      # and for the opponent's reply: [B, 2] actions
    out  = policy(params, keys, next_state, tree=tree)             # games without a tree are planted from the state

There are two ways to reuse, both published:

* *Keep statistics* (AlphaGo Zero, Silver et al. 2017): the visits and values of the subtree are kept. The next search
  is deeper for the same number of simulations, and targets made from visits count the old ones, too. The policy's
  `num_simulations` is the number of new simulations; `stop=total_visits(n)` counts the old ones as well.
* *Keep evaluations only* (see `jaxzero.options.evaluation_reuse`): the statistics start anew, and known positions are
  not evaluated again. The search equals that of a new tree, visit for visit, with fewer calls of the network. A call is
  saved only if all games of a batch find their position in the tree: it pays with one game, or a few.

The cost of `advance` is one pass over the tree: log₂(N) small gathers to find what is below the new root, and one
permutation of the rows. Nodes are stored in the order of their expansion, so a parent comes before its children, also
afterwards. If the network's parameters change, the kept evaluations are still those of the old parameters.

Learned dynamics (`models.learned`) know legal actions at the root only. Below it the tree treated every action as
legal. A policy that is given the moved tree and the state closes the illegal actions of the new root, and what was
below them no longer counts.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.options.slot_actions import Slots, parts_of, slot_of
from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import by_action, edge_view, parents, take_edges, visited_edges
from jaxzero.search.node_storage import HEAD, pack, places, put, take, unpack_facts, unpack_stats
from jaxzero.search.tree import NONE, Status, Tree, as_read, as_stored, rows_of

__all__ = ["action_and_outcome", "advance", "with_legal_root"]


def advance(tree: Tree, action: Int[Array, "B"] | Int[Array, "B L"], reset: Bool[Array, "B"] | None = None) -> Tree:
    """Makes the subtree below an action, or below several in a row, the tree; for all games at once.

    What it does, when it helps and what it costs: `help(jaxzero.options.subtree_reuse)`.

    Statistics are kept as they are. The root's noise is dropped (a policy draws new noise, for the clean prior), its
    count of simulations begins at 0, and `tree.root.brought` holds the visits that its actions brought along. A game
    whose action is illegal or was never visited keeps nothing, which `Status.NOT_IN_TREE` reports; a game in `reset`
    keeps nothing either. Such a game has size 0: hand the tree to a policy together with the states, and it is planted
    anew.

    Args:
        tree: the trees.
        action: what was played from the root: `[B]`, or `[B, L]` for L plies, own move and reply; −1: no move was
            made, stay there. In a tree over slots, too, these are actions (`with_continuous_actions`: arrays, `[B,
            ...]`). An action that leads to a chance node (`models.chance`) is half a ply: the outcome's slot is the
            other half, see `action_and_outcome`. Without it chance would be to move at the root, and a policy plants
            such games anew.
        reset: games that ended, or are given up for another reason.

    Raises:
        ValueError: actions or reset of another shape, or not of integers; a graph, of `transpositions()`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # three arms, which pay 0, 0.5 and 1, again and again
    ...     zeros = jnp.zeros(action.shape)
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros + 0.5), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> policy = jax.jit(jz.gumbel(jz.Model(root, step), num_simulations=16, capacity=40))
    >>> keys, state = jax.random.split(jax.random.key(0), 2), jnp.zeros(2)
    >>> out = policy((), keys, state)
    >>> tree = jz.advance(out.tree, out.action, reset=jnp.array([False, True]))
    >>> [int(n) for n in tree.root.brought.sum(-1)] == [int(out.info.summary.visits[0].max()) - 1, 0]
    True
    >>> policy((), keys, state, tree=tree).info.size.tolist() == (tree.size + 16 + (tree.size == 0)).tolist()
    True
    """
    check_tree("advance: tree", tree)
    if tree.graph is not None:
        raise ValueError(
            "advance: the tree is a graph, of simulate=transpositions(...), in which a position can have several "
            "parents. Search the next position anew, or without transpositions."
        )
    batch = tree.size.shape[0]
    action = slot_of(tree, action) if parts_of(tree.state, Slots) else jnp.asarray(action)
    if action.ndim not in (1, 2) or action.shape[0] != batch or not jnp.issubdtype(action.dtype, jnp.integer):
        raise ValueError(
            f"advance: actions of shape {action.shape} and type {action.dtype} for {batch} games: give integers, "
            f"[{batch}] for one ply or [{batch}, L] for L plies."
        )
    if reset is not None and (jnp.shape(reset) != (batch,) or jnp.asarray(reset).dtype != bool):
        raise ValueError(
            f"advance: reset of shape {jnp.shape(reset)} and type {jnp.asarray(reset).dtype}: give bools, [{batch}]."
        )
    new_root, found = _follow(tree, action if action.ndim == 2 else action[:, None])
    over = jnp.zeros_like(found) if reset is None else jnp.asarray(reset)
    keep = _below(tree, new_root) & (found & ~over)[:, None]
    tree = _compact(tree, keep)
    stays = tree.status & Status.NON_FINITE.value  # replaced numbers may be in the part that is kept
    status = jnp.where(found & ~over, stays, Status.NOT_IN_TREE.where(~over))
    return _as_planted(tree.replace(status=status))


def action_and_outcome(tree: Tree, action: Int[Array, "B"], outcome: Int[Array, "B"]) -> Int[Array, "B 2"]:
    """Actions and outcomes of chance, as `advance` takes them: no outcome (−1) where no chance node follows.

    Where chance follows only some actions, `advance` would take a superfluous outcome for a move.

    Args:
        tree: of a model that knows of chance.
        action: what was played from the root.
        outcome: the slot of the outcome that occurred; anything where chance had no part.

    Raises:
        ValueError: a tree of a model that does not know of chance.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # action 0 pays 0.4; action 1 tosses a coin, which pays 0 or 1
    ...     after, none = jnp.where((state == 0) & (action == 1), 1, 2), jnp.zeros(len(state))
    ...     reward = jnp.where(state == 1, action * 1.0, jnp.where(action == 0, 0.4, 0))
    ...     done = dict(terminal=after == 2, chance=after == 1)
    ...     return jz.Step(jnp.zeros((len(state), 2)), none, reward, none + 1, **done), after
    >>> def root(params, keys, state):
    ...     none, no = jnp.zeros(len(state)), state < 0
    ...     return jz.Step(jnp.zeros((len(state), 2)), none, none, none + 1, terminal=no, chance=no), state
    >>> policy = jz.uct(jz.Model(root, step), num_simulations=32)
    >>> out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(2, int))
    >>> jz.options.action_and_outcome(out.tree, jnp.array([0, 1]), jnp.array([1, 1])).tolist()
    [[0, -1], [1, 1]]
    """
    check_tree("action_and_outcome: tree", tree)
    node, found = _follow(tree, (slot_of(tree, action) if parts_of(tree.state, Slots) else action)[:, None])
    chance = unpack_facts(take(tree.facts, node)).chance
    if chance is None:
        raise ValueError(
            "action_and_outcome: the tree's model has no chance nodes (Step.chance is None). Use advance(tree, action)."
        )
    return jnp.stack([action, jnp.where(found & chance, outcome, NONE)], 1)


def _follow(tree: Tree, actions: Int[Array, "B L"]) -> tuple[Int[Array, "B"], Bool[Array, "B"]]:
    """The node that the actions lead to, and whether there is one."""
    node, found = jnp.zeros_like(tree.size), tree.size > 0
    for ply in range(actions.shape[1]):
        action = actions[:, ply]
        inside = (action >= 0) & (action < tree.num_edges)
        below = jnp.take_along_axis(by_action(tree, node), jnp.where(inside, action, 0)[:, None], 1)[:, 0]
        stays = action == NONE
        known = (below >= 0) & (unpack_stats(take(tree.stats, jnp.maximum(below, 0))).visits > 0)  # not closed since
        found = found & (stays | (inside & known))
        node = jnp.where(found & ~stays, below, node)
    return node, found


def _below(tree: Tree, new_root: Int[Array, "B"]) -> Bool[Array, "B N"]:
    """The nodes of the subtree of `new_root`, by pointer jumping: each iteration doubles how far up a node sees."""
    nodes, up = jnp.arange(tree.capacity, dtype=jnp.int32), parents(tree)
    tops = (up < 0) | (nodes[None] == new_root[:, None])  # where the way up ends: there, at the old root, or in no tree
    up = jnp.where(tops, nodes, up)

    def jump(carry: tuple) -> tuple:
        up, _ = carry
        further = take(up, up)
        return further, jnp.any(further != up)

    up, _ = jax.lax.while_loop(lambda carry: carry[1], jump, (up, jnp.bool_(True)))
    return up == new_root[:, None]


def _compact(tree: Tree, keep: Bool[Array, "B N"]) -> Tree:
    """Moves the kept nodes to the front in their old order, and updates everything that points to them."""
    size = jnp.sum(keep, -1, dtype=jnp.int32)
    order = jnp.argsort(~keep, -1, stable=True).astype(jnp.int32)
    order = jnp.pad(order, ((0, 0), (0, 1)), constant_values=tree.capacity)
    index = jnp.where(keep, jnp.cumsum(keep, -1, dtype=jnp.int32) - 1, 0)
    index = jnp.pad(index, ((0, 0), (0, 1)))
    used = places(tree.capacity + 1, 2) < size[:, None]

    def moved(x: Array) -> Array:
        return take(x, order)

    def renamed(x: Array) -> Array:  # meaningless entries may be anything: they become arbitrary nodes
        old = jnp.clip(x.astype(jnp.int32), 0, tree.capacity)
        return take(index, old.reshape(len(old), -1)).reshape(x.shape).astype(x.dtype)

    returns = tree.root.returns
    frontier, best, later = moved(tree.frontier), moved(tree.best_child), tree.later_children
    nothing = jnp.array([NONE, 0, 0, 0], frontier.dtype)
    head = jnp.where(used[..., None], frontier[..., HEAD], nothing)
    return tree.replace(
        stats=jnp.where(used[..., None], moved(tree.stats), 0),
        best_child=jnp.where(used & (best >= 0), renamed(best), NONE),
        frontier=jnp.concatenate([head, renamed(frontier[..., HEAD.stop :])], -1),
        facts=moved(tree.facts),
        state=jax.tree.map(moved, tree.state),
        later_children=None if later is None else renamed(moved(later)),
        prior=moved(tree.prior),
        bounds=None if tree.bounds is None else jnp.where(used[..., None], moved(tree.bounds), returns[:, None]),
        size=size,
        overflows=jnp.zeros_like(size),
    )


def with_legal_root(tree: Tree, legal: Bool[Array, "B W"]) -> Tree:
    """The tree without the subtrees of the root's illegal actions, for a model that masks actions at the root only.

    Below the root such a model, and so the tree, treats every action as legal, until a node becomes the root. Then the
    root's visits, mean and prior are reduced to those of its legal actions.
    """
    edges = visited_edges(tree, rows_of(tree))
    open_ = jnp.take_along_axis(legal, jnp.minimum(edges.action, tree.num_edges - 1), 1)
    closed = edges.seen & ~open_ & (tree.size > 0)[:, None]
    stats, facts = unpack_stats(take_edges(tree.stats, edges.child)), unpack_facts(take_edges(tree.facts, edges.child))
    visits = jnp.where(closed, stats.visits, 0)[..., None]
    lost = jnp.sum(visits * (facts.reward + facts.discount[..., None] * stats.value), 1)
    root, gone = unpack_stats(tree.stats[:, 0]), jnp.sum(visits, 1)
    left = jnp.maximum(root.visits[:, None] - gone, 1)
    mean = jnp.where(gone > 0, (root.value * root.visits[:, None] - lost) / left, root.value)
    prior = jnp.where(legal, as_read(tree.prior[:, 0], tree.stats.dtype), -jnp.inf)
    edge_prior = jnp.where(closed, -jnp.inf, facts.edge_prior)
    if tree.prior_kind is not None and tree.prior_kind.probabilities:
        total = jnp.sum(jnp.maximum(prior, 0), -1) + jnp.sum(jnp.where(edges.seen & ~closed, facts.edge_prior, 0), -1)
        prior, edge_prior = (x / jnp.where(total > 0, total, 1)[:, None] for x in (prior, edge_prior))
    where, none = jnp.where(edges.seen, edges.child, tree.capacity), jnp.where(closed, edges.child, tree.capacity)
    new_root = pack(root._replace(visits=left[:, 0], value=mean), tree.stats.dtype)
    new_facts = pack(facts._replace(edge_prior=edge_prior), tree.facts.dtype)
    return tree.replace(
        stats=put(tree.stats.at[:, 0].set(new_root), none, jnp.zeros_like(take_edges(tree.stats, none))),
        facts=put(tree.facts, where, new_facts),
        prior=tree.prior.at[:, 0].set(as_stored(prior, tree.prior.dtype)),
        root=tree.root.replace(brought=jnp.where(legal, tree.root.brought, 0)),
        status=tree.status | Status.NO_LEGAL_ACTION.where((tree.size > 0) & ~jnp.any(legal, -1)),
    )


def _as_planted(tree: Tree) -> Tree:
    """The new root, with no edge above it."""
    facts = unpack_facts(tree.facts[:, 0])
    none, zero = jnp.full_like(tree.size, NONE), jnp.zeros_like(facts.discount)
    facts = facts._replace(action=none, edge_prior=zero, mover=none, discount=zero, reward=jnp.zeros_like(facts.reward))
    tree = tree.replace(facts=tree.facts.at[:, 0].set(pack(facts, tree.facts.dtype)))
    view, kept = edge_view(tree), tree.size > 0
    brought = jnp.where(kept[:, None], view.visits, 0)
    stuck = kept & ~facts.terminal & jnp.all(jnp.isneginf(view.prior), -1)
    tree = tree.replace(status=tree.status | Status.NO_LEGAL_ACTION.where(stuck))
    return tree.replace(root=tree.root.replace(simulations=jnp.zeros_like(tree.size), prior=None, brought=brought))
