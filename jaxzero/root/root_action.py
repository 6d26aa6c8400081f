"""Action selection at the root, after the search: by visits, temperature or value."""

import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.root.summary import Summary, any_legal, first_by_visits, open_actions
from jaxzero.search.tree import Tree
from jaxzero.types import Keys

__all__ = [
    "Act",
    "ByTemperature",
    "best_value",
    "by_temperature",
    "goes_by_most_visits",
    "most_visited",
    "per_game_number",
    "sharpened",
]

Act = Callable[[Keys, Tree, Summary], Int[Array, "B"]]


def most_visited(keys: Keys, tree: Tree, summary: Summary) -> Int[Array, "B"]:
    """The most visited action; on a tie the one with the best mean return, then the lowest index."""
    return first_by_visits(jnp.where(open_actions(tree), summary.visits, -1), summary.qvalues)


def best_value(keys: Keys, tree: Tree, summary: Summary) -> Int[Array, "B"]:
    """The visited action with the best mean return (the best win rate)."""
    lowest = jnp.finfo(summary.qvalues.dtype).min
    return _highest(tree, jnp.where(summary.visits > 0, summary.qvalues, lowest))


class ByTemperature(NamedTuple):
    """An `Act` that draws; see `by_temperature`."""

    temperature: Any

    def __call__(self, keys: Keys, tree: Tree, summary: Summary) -> Int[Array, "B"]:
        """Arguments and results as those of `most_visited`."""
        t = per_game_number(self.temperature, tree)
        drawn = jax.vmap(jax.random.categorical)(keys, sharpened(summary.visit_probs, t)).astype(jnp.int32)
        drawn = jnp.where(t > 0, drawn, most_visited(keys, tree, summary))
        return jnp.where(any_legal(tree), drawn, 0)


def by_temperature(temperature: Any = 1.0) -> ByTemperature:
    """Draws an action with probability proportional to N^(1/t); t = 0: the most visited one, as `most_visited`.

    t = ∞ draws uniformly among the visited ones.

    AlphaGo Zero: t = 1 for the first 30 moves of a game, then 0; MuZero: 1, 0.5, 0.25 as training goes on.

    Args:
        temperature: t; a number, one per game `[B]`, or `Tree -> [B]` (see `by_move`); it may be traced.

    Raises:
        ValueError: a negative number, or NaN.
    """
    if isinstance(temperature, int | float) and not temperature >= 0:
        raise ValueError(f"temperature={temperature}: use 0 for the most visited action, or a number above it.")
    return ByTemperature(temperature)


def goes_by_most_visits(act: Act) -> bool:
    """Whether `act` takes the most visited action; a user's function is assumed to."""
    t = act.temperature if isinstance(act, ByTemperature) else 0
    return act is not best_value and isinstance(t, numbers.Real) and t == 0


def sharpened(weights: Float[Array, "... W"], temperature: Float[Array, "..."]) -> Float[Array, "... W"]:
    """Logits of the probabilities ∝ weights^(1/t), the highest 0; actions of weight 0 are almost never drawn."""
    logits = jnp.log(weights)
    logits = logits - jnp.max(logits, -1, keepdims=True)
    logits = logits / jnp.maximum(temperature, jnp.finfo(temperature.dtype).tiny)[..., None]
    least = jnp.finfo(temperature.dtype).min
    return jnp.where(weights > 0, jnp.maximum(logits, least), least)  # also where t is infinite


def per_game_number(x: Any, tree: Tree) -> Float[Array, "B"]:
    """A number, one per game `[B]`, or a function `Tree -> [B]`, as one per game.

    Raises:
        ValueError: something of another shape.
    """
    batch = tree.size.shape[0]
    x = jnp.asarray(x(tree) if callable(x) else x, tree.stats.dtype)
    if x.shape not in ((), (batch,)):
        raise ValueError(f"an array of shape {x.shape} in a search of {batch} games: give a number, or [{batch}].")
    return jnp.broadcast_to(x, (batch,))


def _highest(tree: Tree, score: Array) -> Int[Array, "B"]:
    score = score.astype(tree.stats.dtype)
    return jnp.argmax(jnp.where(open_actions(tree), score, -jnp.inf), -1).astype(jnp.int32)
