"""What a user gives a policy and its builder: checked in Python, before tracing."""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.mcts.root import by_temperature
from jaxzero.mcts.tree import Tree
from jaxzero.types import Keys, Rule, State

__all__ = ["check_functions", "check_start", "counts", "in_range", "not_builders", "one_per_game"]


def check_start(model: Any, state: State, tree: Any) -> int:
    """The number of games.

    Raises:
        ValueError: something else in place of the model, the tree or the state.
    """
    if not (hasattr(model, "root") and hasattr(model, "step")):
        raise ValueError(
            f"a {type(model).__name__} as the model: give a Model, like models.perfect(game, network) or "
            "models.rollout(game)."
        )
    if tree is not None:
        if not isinstance(tree, Tree):
            raise ValueError(
                f"tree is a {type(tree).__name__}: give a Tree, the `tree` of an earlier output: out.tree."
            )
        return tree.size.shape[0]
    if state is None:
        raise ValueError(
            "state is None: call policy(params, keys, state), keys before the state, of one entry per game, [B, ...]; "
            "or pass tree= to think on from a tree."
        )
    shapes = [jnp.shape(x) for x in jax.tree.leaves(state)]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise ValueError(
            f"state has leaves of shapes {shapes}; a policy takes one entry per game, [B, ...], in each. "
            "jax.vmap(game.init)(keys) makes such states; or pass tree= to think on from a tree."
        )
    return shapes[0][0]


def check_functions(rule: Any, act: Any, root_rule: Any = None, explore: Any = None, target: Any = None) -> None:
    """Raises a ValueError if these are not what a policy calls, a builder that was not called among them."""
    if not isinstance(rule, Rule):
        raise ValueError(f"rule={rule!r}: give a Rule, like puct() with its parentheses.")
    if root_rule is not None and not isinstance(root_rule, Rule):
        raise ValueError(f"root_rule={root_rule!r}: give a Rule, like forced_playouts(puct()), or None.")
    if not callable(act) or act is by_temperature:
        raise ValueError(
            f"act={act!r}: give a function of keys, tree and summary, like most_visited or by_temperature(0.5)."
        )
    if explore is not None and not callable(explore):
        raise ValueError(f"explore={explore!r}: give a function of keys and tree, like shaped_dirichlet(10.83, 0.25).")
    if target is not None and not callable(target):
        raise ValueError(f"target={target!r}: give a function of the tree, like solved_visits(rule).")


def not_builders(option: str, function: Any, *builders: Callable) -> None:
    """Raises a ValueError if a function that makes such an option stands in place of what it makes."""
    if function in builders:
        raise ValueError(
            f"{option}={function.__name__}: that is what makes one. Call it: {option}={function.__name__}(...)."
        )


def one_per_game(keys: Keys, batch: int) -> Keys:
    """`keys [B]` as they are; a single key, split.

    Raises:
        ValueError: if there are neither B keys nor one.
    """
    if not hasattr(keys, "dtype"):
        raise ValueError(f"keys={keys!r}: give PRNG keys, jax.random.split(jax.random.key(seed), {batch}).")
    typed = jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    shape = keys.shape if typed else keys.shape[:-1]
    if shape == ():
        return jax.random.split(keys, batch)
    if shape != (batch,):
        raise ValueError(
            f"keys of shape {shape} for {batch} games: give one key per game, jax.random.split(key, {batch}), "
            "or a single key."
        )
    return keys


def counts(**numbers: Any) -> list[int | None]:
    """The numbers as ints of 1 and more; None stays None.

    Raises:
        ValueError: naming the number that is not.
    """
    for name, value in numbers.items():
        if value is not None and not hasattr(value, "__index__"):
            raise ValueError(f"{name}={value!r} is no integer. Use {name} >= 1.")
        if value is not None and operator.index(value) < 1:
            raise ValueError(f"{name}={value}: at least one is needed. Use {name} >= 1.")
    return [None if value is None else operator.index(value) for value in numbers.values()]


def in_range(name: str, value: Any, low: float, high: float, open_: bool = False) -> None:
    """Raises a ValueError if a number, not an array, lies outside; `open_`: on the bounds, too."""
    if isinstance(value, int | float) and not (low < value < high if open_ else low <= value <= high):
        between = f"above {low} and below {high}" if open_ else f"between {low} and {high}"
        raise ValueError(f"{name}={value} is out of range. Use a value {between}.")
