"""KL divergence between policies, and the values of every player.

A search gives values for the player to move. A record of a whole game, a picture, or an opponent needs the values of a
fixed player. How much a search changes the network's policy is a number to watch while learning: near 0 the search adds
nothing that the network does not know.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import by_action, edge_view, linked
from jaxzero.search.node_storage import places, take, unpack_facts, unpack_stats
from jaxzero.search.qvalues import prior_weights
from jaxzero.search.tree import Tree

__all__ = ["PlayerValues", "kl", "player_values", "policy_improvement"]


def kl(target: Float[Array, "... W"], prior: Float[Array, "... W"]) -> Float[Array, "..."]:
    """KL(target‖prior) = Σ target · ln(target/prior), in nats; 0 · ln 0 = 0.

    A prior of 0 (or −inf: illegal) where the target is positive counts as the least float: the result is large, not
    infinite.

    >>> round(float(kl(jnp.array([0.5, 0.5, 0.0]), jnp.array([0.25, 0.25, 0.5]))), 4)  # ln 2
    0.6931
    """
    some = target > 0
    least = jnp.finfo(prior.dtype).tiny
    ratio = jnp.log(jnp.where(some, target, 1)) - jnp.log(jnp.where(some, jnp.maximum(prior, least), 1))
    return jnp.sum(jnp.where(some, target * ratio, 0), -1)


def policy_improvement(tree: Tree, weights: Float[Array, "B W"]) -> Float[Array, "B"]:
    """KL(weights‖clean prior of the root), in nats: how far the search moved the policy.

    Args:
        tree: the trees, of a rule that stores probabilities or logits.
        weights: the improved policy, `out.action_weights`.
    """
    view = edge_view(tree)
    prior = jnp.maximum(prior_weights(view), 0)
    total = jnp.sum(prior, -1, keepdims=True)
    return jnp.where(total[:, 0] > 0, kl(weights, prior / jnp.where(total > 0, total, 1)), 0)


class PlayerValues(NamedTuple):
    """Values at the root after a search, for every player.

    Attributes:
        qvalues: mean return of each action; 0 if unvisited.
        value: the root's mean value.
    """

    qvalues: Float[Array, "B W P"]
    value: Float[Array, "B P"]


def player_values(tree: Tree, num_players: int = 2) -> PlayerValues:
    """The root's values for every player: absolute, entry p for player p.

    Args:
        tree: the trees.
        num_players: 1, or 2 for a zero-sum game; more only for trees that store as many values. Where the model does
            not say who moves, the player to move at the root counts as player 0.

    Raises:
        ValueError: a number of players that the tree does not have.

    >>> import jax, jaxzero as jz
    >>> from jaxzero import games, models
    >>> game = games.from_pgx("tic_tac_toe")
    >>> states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 3))
    >>> out = jax.jit(jz.uct(models.rollout(game), 32))((), jax.random.key(1), states)
    >>> values = jz.root.player_values(out.tree)
    >>> values.value.shape, values.qvalues.shape, bool((values.value.sum(-1) == 0).all())
    ((3, 2), (3, 9, 2), True)
    """
    check_tree("player_values: tree", tree)
    stored, root = tree.num_players, jnp.zeros_like(tree.size)
    if num_players < 1 or (num_players != stored if stored > 1 else num_players > 2):
        allowed = f"num_players={stored}" if stored > 1 else "num_players=1 or 2"
        raise ValueError(
            f"player_values(num_players={num_players}) of a tree that stores {stored} value(s) per node. Use {allowed}."
        )
    if stored > 1:
        child = by_action(tree, root)
        below = jnp.maximum(child, 0)
        stats, facts = unpack_stats(take(tree.stats, linked(tree, below))), unpack_facts(take(tree.facts, below))
        returns = facts.reward + facts.discount[..., None] * stats.value
        return PlayerValues(jnp.where((child >= 0)[..., None], returns, 0), tree.value[:, 0])
    view = edge_view(tree, root)
    mover = jnp.maximum(unpack_facts(tree.facts[:, 0]).to_play, 0)
    mine = jnp.where(places(num_players, 2) == mover[:, None], 1, -1) if num_players == 2 else jnp.ones((1, 1), int)
    sign = mine.astype(view.value.dtype)
    return PlayerValues(view.value[..., None] * sign[:, None], view.node_value[:, None] * sign)
