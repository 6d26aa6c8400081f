"""Checks of arguments in Python, before tracing; errors say what to write instead."""

import inspect
import operator
import reprlib
from numbers import Real
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.search.tree import Tree
from jaxzero.types import Keys, PolicyOutput, Rule

__all__ = ["check_function", "check_rule", "check_tree", "counts", "in_range", "no_tree", "one_per_game", "shown"]


def counts(**numbers: Any) -> list[int | None]:
    """The numbers as ints of 1 and more; None stays None.

    Raises:
        ValueError: naming the number that is not.
    """
    for name, value in numbers.items():
        if value is not None and not hasattr(value, "__index__"):
            raise ValueError(f"{name}={value!r} is not an integer. Use {name} >= 1.")
        if value is not None and operator.index(value) < 1:
            raise ValueError(f"{name}={value}: at least one is needed. Use {name} >= 1.")
    return [None if value is None else operator.index(value) for value in numbers.values()]


def in_range(name: str, value: Any, low: float, high: float, open_: bool = False) -> None:
    """Raises a ValueError if a number, not an array, lies outside; `open_`: on the bounds, too."""
    if not isinstance(value, Real):
        return
    x = float(value)
    if not (low < x < high if open_ else low <= x <= high):
        between = f"above {low} and below {high}" if open_ else f"between {low} and {high}"
        raise ValueError(f"{name}={value} is out of range. Use a value {between}.")


def check_rule(option: str, rule: Any, like: str = "puct()") -> None:
    """Raises a ValueError if `rule` is not a Rule, but for example the function that makes one."""
    if not isinstance(rule, Rule):
        called = " with its parentheses" if callable(rule) else ""
        raise ValueError(f"{option}={shown(rule)}: give a Rule, like {like}{called}.")


def check_function(option: str, function: Any, arguments: str, like: str, made_by: tuple = ()) -> None:
    """Raises a ValueError if an option is no function of such arguments.

    Args:
        option: its name, for the message.
        function: what was given.
        arguments: what it will be called with, `"keys, tree, summary"`.
        like: what could be given.
        made_by: the annotated return types of functions that make such an option. Such a function, passed without being
            called, is refused even if it would accept the arguments.
    """
    answer = getattr(function, "__annotations__", {}).get("return")
    if any(answer is kind for kind in made_by):
        raise ValueError(f"{option}={shown(function)}: it builds such a function. Call it: {shown(function)}(...).")
    if not callable(function):
        raise ValueError(f"{option}={shown(function)}: give a function of {arguments}, like {like}.")
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError as error:
        raise ValueError(_takes_other_arguments(option, function, arguments, like, error)) from None
    except ValueError:  # a function without a known signature
        return


def _takes_other_arguments(option: str, function: Any, arguments: str, like: str, error: TypeError) -> str:
    return (
        f"{option}={shown(function)}: it will be called with ({arguments}), but does not accept that ({error}). Give a "
        f"function that does, like {like}."
    )


def shown(x: Any) -> str:
    """An argument in few characters, for messages: a function by its name, a record by its type."""
    if hasattr(x, "_fields") or hasattr(x, "dtype"):
        return f"a {type(x).__name__}"
    return getattr(x, "__name__", None) or reprlib.repr(x)


def check_tree(name: str, tree: Any) -> None:
    """Raises a ValueError if `tree` is not a Tree."""
    if not isinstance(tree, Tree):
        raise ValueError(no_tree(name, tree))


def no_tree(name: str, tree: Any) -> str:
    """What is wrong with something that is no tree."""
    its = "its tree, out.tree" if isinstance(tree, PolicyOutput) else "a Tree, the `tree` of an output: out.tree"
    return f"{name} is a {type(tree).__name__}: give {its}."


def one_per_game(keys: Keys, batch: int) -> Keys:
    """`keys [B]` as they are; a single key, split.

    Raises:
        ValueError: if there are neither B keys nor one.
    """
    dtype = getattr(keys, "dtype", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    raw = not typed and dtype == jnp.uint32 and keys.ndim > 0
    shape = keys.shape if typed else keys.shape[:-1] if raw else None
    if shape not in ((), (batch,)):
        raise ValueError(_no_keys(keys, batch, shape))
    return jax.random.split(keys, batch) if shape == () else keys


def _no_keys(keys: Any, batch: int, shape: tuple | None) -> str:
    """What is wrong with the keys of a policy."""
    if shape is not None:
        return (
            f"keys of shape {shape} for {batch} games: give one key per game, jax.random.split(key, {batch}), or a "
            "single key."
        )
    what = f"an array of type {keys.dtype}" if hasattr(keys, "dtype") else f"a {type(keys).__name__}"
    given = f"keys={keys!r}" if isinstance(keys, int) else f"keys is {what}"
    return f"{given}: give PRNG keys, jax.random.split(jax.random.key(seed), {batch}), in policy(params, keys, state)."
