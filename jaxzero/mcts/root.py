"""What happens at the root only: noise on the prior before a search, and the choice of an action after it."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.mcts.tree import Tree
from jaxzero.mcts.view import Summary, edge_view, legal_actions
from jaxzero.types import Keys

__all__ = ["Act", "best_value", "by_temperature", "dirichlet", "most_visited", "with_dirichlet"]

Act = Callable[[Keys, Tree, Summary], Int[Array, "B"]]


def with_dirichlet(tree: Tree, keys: Keys, alpha: Any, fraction: Any) -> Tree:
    """Sets `tree.root.prior` to (1 − ε)·P + ε·Dir(α) over the legal actions; the stored prior stays clean.

    Silver et al. 2017 (AlphaGo Zero): ε = 0.25; Silver et al. 2018 (AlphaZero): α = 0.3 / 0.15 / 0.03 for
    chess / shogi / Go, about 10 divided by the usual number of legal moves.

    Args:
        tree: the trees, whose rule stores probabilities.
        keys: one per game.
        alpha: α; a number, or one per game `[B]`.
        fraction: ε, likewise.
    """
    clean, legal = edge_view(tree, jnp.zeros_like(tree.size)).prior, legal_actions(tree)
    alpha, fraction = (jnp.broadcast_to(jnp.asarray(x, clean.dtype), keys.shape[:1]) for x in (alpha, fraction))
    noise = jax.vmap(dirichlet)(keys, alpha, legal)
    mixed = (1 - fraction[:, None]) * clean + fraction[:, None] * noise
    return tree.replace(root=tree.root.replace(prior=jnp.where(jnp.isneginf(clean), -jnp.inf, mixed)))


def dirichlet(key: Array, alpha: Float[Array, ""], legal: Array) -> Float[Array, "W"]:
    """One draw from the symmetric Dirichlet distribution over the legal actions, 0 elsewhere.

    Gamma draws in logarithms: for the α of Go most of them are too small for a float.
    """
    draws = jax.random.loggamma(key, jnp.maximum(alpha, 1e-6), legal.shape, dtype=alpha.dtype)
    return jnp.where(legal, jax.nn.softmax(jnp.where(legal, draws, -jnp.inf)), 0)


def most_visited(keys: Keys, tree: Tree, summary: Summary) -> Int[Array, "B"]:
    """The most visited action; the lowest index on a tie."""
    return _highest(tree, summary.visits)


def best_value(keys: Keys, tree: Tree, summary: Summary) -> Int[Array, "B"]:
    """The visited action of the best mean return (the best win rate)."""
    lowest = jnp.finfo(summary.qvalues.dtype).min
    return _highest(tree, jnp.where(summary.visits > 0, summary.qvalues, lowest))


def by_temperature(temperature: Any = 1.0) -> Act:
    """Draws an action with probability proportional to N^(1/t); t = 0: the most visited one.

    AlphaGo Zero: t = 1 for the first 30 moves of a game, then 0; MuZero: 1, 0.5, 0.25 as training goes on.

    Args:
        temperature: t; a number, or one per game `[B]`; it may be traced.

    Raises:
        ValueError: a negative number.
    """
    if isinstance(temperature, int | float) and temperature < 0:
        raise ValueError(f"temperature={temperature} is negative. Use 0 for the most visited action, or more.")

    def act(keys: Keys, tree: Tree, summary: Summary) -> Array:
        t = jnp.broadcast_to(jnp.asarray(temperature, summary.value.dtype), summary.value.shape)
        logits = jnp.log(summary.visit_probs) / jnp.maximum(t, jnp.finfo(t.dtype).tiny)[:, None]
        logits = jnp.maximum(logits - jnp.max(logits, -1, keepdims=True), jnp.finfo(t.dtype).min)
        drawn = jax.vmap(jax.random.categorical)(keys, logits)
        return jnp.where(t > 0, drawn, _highest(tree, summary.visits)).astype(jnp.int32)

    return act


def _highest(tree: Tree, score: Array) -> Int[Array, "B"]:
    score = score.astype(tree.stats.dtype)
    return jnp.argmax(jnp.where(legal_actions(tree), score, -jnp.inf), -1).astype(jnp.int32)
