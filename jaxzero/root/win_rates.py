"""Win rates of edges, for every player, between 0 and 1."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import edge_view, linked, take_edges, visited_edges
from jaxzero.search.node_storage import unpack_facts, unpack_stats
from jaxzero.search.tree import Tree, rows_of

__all__ = ["win_rates"]


def win_rates(
    tree: Tree, nodes: Int[Array, "B"] | None = None, num_players: int | None = None
) -> Float[Array, "B W P"]:
    """Every player's mean outcome of each edge as a win rate, (q + 1)/2 (Gelly and Wang 2006).

    With outcomes of 1, 0 and −1 that is the share of games won, a draw counting half. With more than two players the
    tree keeps a value for each. With two it keeps the mover's, and the other's is 1 minus it, as in any zero-sum game.
    An unvisited edge has 0.5, because q is 0.

    Args:
        tree: the trees, of outcomes between −1 and 1.
        nodes: whose edges; default: the roots'.
        num_players: P, where the tree keeps one value per node: 1, or 2 (the default). Such a tree does not say.

    Returns:
        Entry `[b, a, p]`: action a for player p. If the model does not say who is to move (`Step.to_play`), player 0 is
        the one to move at that node.

    Raises:
        ValueError: num_players disagrees with the tree, or is not 1 or 2 where that has one value per node.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game, keys = games.from_pgx("tic_tac_toe"), jax.random.split(jax.random.key(0), 2)
    >>> out = jax.jit(jz.uct(models.rollout(game), num_simulations=40))((), keys, jax.vmap(game.init)(keys))
    >>> rates = jz.root.win_rates(out.tree)
    >>> rates.shape, bool(jnp.allclose(rates.sum(-1), 1))
    ((2, 9, 2), True)
    """
    check_tree("win_rates: tree", tree)
    kept = tree.num_players
    players = (kept if kept > 1 else 2) if num_players is None else num_players
    allowed = (kept,) if kept > 1 else (1, 2)
    if players not in allowed:
        one_of = " or ".join(str(p) for p in allowed)
        raise ValueError(
            f"win_rates(num_players={players}) of a tree that keeps {kept} value{'s' * (kept > 1)} per node: use "
            f"{one_of}."
        )
    nodes = jnp.zeros_like(tree.size) if nodes is None else nodes
    if kept > 1:
        return (_of_every_player(tree, nodes) + 1) / 2
    rate = (edge_view(tree, nodes).value + 1) / 2
    if players == 1:
        return rate[..., None]
    mover = jnp.maximum(unpack_facts(rows_of(tree, nodes).facts).to_play, 0)
    own = jnp.arange(2, dtype=mover.dtype)[None, None] == mover[:, None, None]
    return jnp.where(own, rate[..., None], 1 - rate[..., None])


def _of_every_player(tree: Tree, nodes: Int[Array, "B"]) -> Float[Array, "B W P"]:
    """Mean returns, reward included, by action; 0 where unvisited."""
    edges = visited_edges(tree, rows_of(tree, nodes))
    below = unpack_stats(take_edges(tree.stats, linked(tree, edges.child)))
    edge = unpack_facts(take_edges(tree.facts, edges.child))
    value = edge.reward + edge.discount[..., None] * below.value
    games = jnp.arange(nodes.shape[0])[:, None]
    empty = jnp.zeros((nodes.shape[0], tree.num_edges, tree.num_players), value.dtype)
    return empty.at[games, edges.action].set(value, mode="drop")
