"""Solver: proves values from the ends of games upwards.

Every node keeps two bounds, a proven lower and a proven upper bound of its value. A terminal node is exact. The lower
bound of a node is the greatest lower bound of its edges, the upper bound the greatest upper bound. So a win is proven
by one winning move, a loss by all moves losing, and a draw by a draw and nothing better. Rewards on the way and
discounts are allowed, because bounds are bounds of returns. Where bounds meet,

* the node's past visits are re-valued, and the difference is backed up along the path;
* an edge that is proven to be worse than another is hidden from the rule (`avoid_proven`), is not played in the end,
  and has no weight in the policy's target;
* a proven root can end its game's search: `stop=jaxzero.solved`.

    policy = jaxzero.alphazero(model, 800, rule=jaxzero.avoid_proven(jaxzero.puct()))

It helps where games end within reach of the search: tactics, endgames, and small games, which it solves. A simulation
that ends at the end of a game looks at the edges of the node above, and further up only as long as that changes bounds.
A node costs 8 bytes more. The model must tell the end of the game (`Step.terminal`), which learned dynamics do not
know. Three things are not proven: an end by a move limit, if `Step.truncated` marks it; the value of a chance node, if
`Step.chance` marks it, because its outcomes may be samples; and anything further in a game in which a non-finite number
was replaced (`Status.NON_FINITE`).

After Winands, Björnsson and Saito 2008, "Monte-Carlo tree search solver"; two-sided bounds as Cazenave and Saffidine
2010, "Score bounded Monte-Carlo tree search"; re-valuing as in Leela Chess Zero's sticky endgames. Nodes must have one
value: with more than two players, a player's result depends on how the others choose among equal moves.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.root.proven_edges import worse
from jaxzero.search.checks.argument_checks import check_rule, check_tree
from jaxzero.search.edge_view import edge_bounds, take_edges, visited_edges
from jaxzero.search.node_storage import Stats, Tile, put, take, unpack_facts, unpack_stats
from jaxzero.search.tree import Hooks, Tree, as_read, rows_of
from jaxzero.types import EdgeView, Path, Rule, Step

__all__ = [
    "avoid_proven",
    "bounds",
    "closer",
    "from_edges",
    "new_bounds",
    "prove",
    "revalued",
    "seek_proof",
    "solved",
    "with_bounds",
]


def avoid_proven(rule: Rule, least: float = -1.0, greatest: float = 1.0) -> Rule:
    """The same rule with proofs of values; it follows no edge that is proven to be worse than another.

    What it does, when it helps and what it costs: `help(jaxzero.options.solver)`.

    If all moves lose, or at a solved node, the rule chooses among the moves that are as good as any.

    Args:
        rule: what chooses among the other edges.
        least: the least return of the game, for the player to move: −1 for a loss.
        greatest: the greatest: 1 for a win. Where players take turns, both must hold for each of them: −1 and 1, not 0
            and 1.

    Raises:
        ValueError: numbers that leave no range between them; a rule that proves already.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> states = jax.vmap(game.init)(keys)
    >>> for action in (0, 3, 1, 4):  # both have two in a row: who is to move wins by the third
    ...     states = jax.vmap(game.step)(states, jnp.full(1, action), keys)
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    >>> policy = jz.alphazero(model, 64, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0, stop=jz.solved)
    >>> out = jax.jit(policy)((), keys, states)
    >>> jz.options.bounds(out.tree).tolist(), out.action.tolist(), bool(out.tree.root.simulations[0] < 64)
    ([[1.0, 1.0]], [2], True)
    """
    return _without(rule, worse, least, greatest)


def seek_proof(rule: Rule, least: float = -1.0, greatest: float = 1.0) -> Rule:
    """As `avoid_proven`, but follows only edges that may be better than what is proven of the others.

    Every walk then ends where something can be learned, and games are solved with far fewer simulations. But visits and
    means lose their meaning: the best move, once solved, gets no more visits. So it is for solving, not for targets.
    (A policy wraps a `root_rule` that proves nothing itself in `avoid_proven`. Wrap it in `seek_proof` yourself if it
    shall seek proofs, too.)

    Args:
        rule: what chooses among the other edges.
        least: the least return of the game, for the player to move.
        greatest: the greatest.

    Raises:
        ValueError: as `avoid_proven`.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> keys = jax.random.split(jax.random.key(0), 1)
    >>> model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    >>> how = dict(rule=jz.options.seek_proof(jz.puct()), simulate=jz.transpositions(), stop=jz.solved)
    >>> policy = jz.alphazero(model, 8000, dirichlet_fraction=0.0, **how)
    >>> jz.options.bounds(jax.jit(policy)((), keys, jax.vmap(game.init)(keys)).tree).tolist()  # from the start: a draw
    [[0.0, 0.0]]
    """

    def nothing_to_learn(view: EdgeView) -> Array:
        legal = ~jnp.isneginf(view.prior)
        low = jnp.max(jnp.where(legal, view.lower, -jnp.inf), -1, keepdims=True)
        better = legal & (view.upper > low)  # if none is, the node is solved
        return worse(view) | (jnp.any(better, -1, keepdims=True) & ~better)

    return _without(rule, nothing_to_learn, least, greatest)


def _without(rule: Rule, closed: Callable[[EdgeView], Array], least: float, greatest: float) -> Rule:
    check_rule("avoid_proven, seek_proof: rule", rule)
    if rule.returns is not None:
        raise ValueError("the rule proves values already. Use avoid_proven or seek_proof only once.")
    if rule.on_plant is not None:
        raise ValueError(
            "avoid_proven or seek_proof of expected_outcomes(rule): values cannot be proven where chance moves. Use "
            "only one of them."
        )
    if not least < greatest:
        raise ValueError(
            f"returns between {least} and {greatest}: the first must be smaller. Give the least and the greatest "
            "return of the game, -1 and 1 by default."
        )

    def score(view: EdgeView) -> Array:
        shut = closed(view)
        open_prior = jnp.where(shut, -jnp.inf, view.prior)
        return jnp.where(shut, -jnp.inf, rule.score(view._replace(prior=open_prior)))

    returns = float(least), float(greatest)
    return rule._replace(score=score, returns=returns, on_plant=lambda tree, step: with_bounds(tree, returns, step))


def with_bounds(tree: Tree, returns: tuple[float, float], step: Step) -> Tree:
    """A tree of roots only that keeps bounds between these returns.

    Raises:
        ValueError: values for several players, or a model that does not tell the end of the game.
    """
    if tree.num_players > 1:
        raise ValueError(
            "avoid_proven with one value per player: proven values need one value per node, for the player to move, as "
            "models of one or two players give. Use the rule without avoid_proven."
        )
    if step.terminal is None:
        raise ValueError(
            "avoid_proven with a model that does not mark the end of the game (Step.terminal is None), as learned ones "
            "do not: nothing can be proven. Use the rule without avoid_proven, or a model of the game's rules."
        )
    batch, nodes = tree.best_child.shape
    per_game = jnp.broadcast_to(jnp.asarray(returns, tree.stats.dtype), (batch, 2))
    rows = jnp.zeros((batch, nodes, 2), per_game.dtype).at[:, 0].set(new_bounds(per_game, step))
    return tree.replace(bounds=rows, root=tree.root.replace(returns=per_game), hooks=HOOKS)


def new_bounds(returns: Float[Array, "B 2"], step: Step) -> Float[Array, "B 2"]:
    """The bounds of a new node: 0 at the end of the game, whose result was paid on the way there; else the widest."""
    over = step.terminal if step.truncated is None else step.terminal & ~step.truncated
    return jnp.where(over[:, None], 0, returns)


def prove(tree: Tree, path: Path, node: Int[Array, "B"]) -> Tree:
    """Backs up the bounds of the new nodes, or where there is none (N) of the ends of the paths.

    It goes up as long as bounds change.
    """
    grew = node < tree.capacity
    low, high = jnp.moveaxis(take(tree.bounds, jnp.where(grew, node, take(path.nodes, path.length - 1))), -1, 0)
    news = (grew | (path.length > 1)) & (low == high)
    news = news if path.going is None else news & path.going

    def turn(carry: tuple) -> tuple:
        depth, rows, news = carry
        node = take(path.nodes, jnp.maximum(depth, 0))
        old = take(rows, node)
        new = closer(old, from_edges(tree.replace(bounds=rows), node))
        news = news & (depth >= 0) & jnp.any(new != old, -1)
        return depth - 1, put(rows, jnp.where(news, node, tree.capacity), new), news

    start = path.length - jnp.where(grew, 1, 2), tree.bounds, news
    return tree.replace(bounds=jax.lax.while_loop(lambda carry: jnp.any(carry[2]), turn, start)[1])


def closer(old: Float[Array, "B 2"], new: Float[Array, "B 2"]) -> Float[Array, "B 2"]:
    """The intersection of two bounds."""
    return jnp.stack([jnp.maximum(old[:, 0], new[:, 0]), jnp.minimum(old[:, 1], new[:, 1])], -1)


def from_edges(tree: Tree, node: Int[Array, "B"]) -> Float[Array, "B 2"]:
    """The bounds of nodes from those of their edges; the widest for nodes without edges."""
    edges = visited_edges(tree, rows_of(tree, node))
    facts = unpack_facts(take(tree.facts, edges.child))
    low, high = edge_bounds(tree, edges.child, facts.reward[..., 0], facts.discount, None)
    left = as_read(take(tree.prior, node), tree.stats.dtype)  # an expanded edge's prior is with its child
    unvisited = jnp.any(left > -jnp.inf, -1)
    known, waits = edges.seen, None
    if tree.in_flight is not None:  # nothing is known yet of nodes that other lanes wait for
        waits = edges.seen & (unpack_stats(take_edges(tree.stats, edges.child)).visits == 0)
        known = known & ~waits
    lower = jnp.max(jnp.where(known, low, -jnp.inf), -1)
    upper = jnp.max(jnp.where(known, high, -jnp.inf), -1)
    least, greatest = tree.root.returns[:, 0], tree.root.returns[:, 1]
    unvisited = unvisited | ~jnp.any(edges.seen, -1) | (False if waits is None else jnp.any(waits, -1))
    found = jnp.stack([jnp.maximum(lower, least), jnp.where(unvisited, greatest, jnp.minimum(upper, greatest))], -1)
    chance = unpack_facts(take(tree.facts, node)).chance
    return found if chance is None else jnp.where(chance[:, None], tree.root.returns, found)


def revalued(
    tree: Tree,
    nodes: Int[Array, "G ..."],
    stats: Stats,
    ret: Float[Array, "G ... 1"],
    tile: Tile | None = None,
    counted: bool = False,
) -> Float[Array, "G ... 1"]:
    """The return to back up at the nodes passed: at solved ones, the one that makes their mean the proven value.

    It is this visit's return plus the total error of the visits before; backed up along the path, it corrects the means
    above in the same way.
    """
    del counted
    low, high = jnp.moveaxis(take(tree.bounds, nodes, tile), -1, 0)
    exact = low * (stats.visits + 1) - stats.value[..., 0] * stats.visits
    return jnp.where((low == high)[..., None], exact[..., None], ret)


def bounds(tree: Tree) -> Float[Array, "B 2"]:
    """The proven lower and upper bound of the root's value, for the player to move; if equal, it is solved."""
    check_tree("bounds: tree", tree)
    if tree.bounds is None:
        raise ValueError("the tree keeps no bounds: search with a rule of avoid_proven(...).")
    return tree.bounds[:, 0]


def solved(tree: Tree, remaining: Any = None) -> Bool[Array, "B"]:
    """The games whose root is solved, to be used as `stop=solved`."""
    low, high = jnp.moveaxis(bounds(tree), -1, 0)
    return low == high


def _bounds_of_new(tree: Tree, step: Step) -> Float[Array, "B 2"]:
    return new_bounds(tree.root.returns, step)


def _store_and_prove(tree: Tree, path: Path, node: Int[Array, "B"], data: Float[Array, "B 2"]) -> Tree:
    tree = tree.replace(bounds=put(tree.bounds, node, data))
    return tree if tree.graph is not None else prove(tree, path, node)  # a graph carries bounds up with its values


HOOKS = Hooks(node_data=_bounds_of_new, grown=_store_and_prove, corrected=revalued)
