"""What a builder is given: numbers, rules and functions, checked in Python while the policy is built."""

import inspect
import operator
import reprlib
from collections.abc import Callable
from numbers import Real
from typing import Any

from jaxzero.types import Rule

__all__ = ["check_function", "check_rule", "counts", "in_range", "shown"]


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
    if not isinstance(value, Real):
        return
    x = float(value)
    if not (low < x < high if open_ else low <= x <= high):
        between = f"above {low} and below {high}" if open_ else f"between {low} and {high}"
        raise ValueError(f"{name}={value} is out of range. Use a value {between}.")


def check_rule(option: str, rule: Any, like: str = "puct()") -> None:
    """Raises a ValueError if something else stands in place of a Rule, like the function that makes one."""
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
        made_by: what functions that make such an option return, by their annotation: one of those, not called, stands
            here by mistake even where it would take the arguments.
    """
    given = shown(function)
    if any(_answer(function) is kind for kind in made_by):
        raise ValueError(f"{option}={given}: that is what makes one. Call it: {given}(...).")
    if not callable(function):
        raise ValueError(f"{option}={given}: give a function of {arguments}, like {like}.")
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError as error:
        raise ValueError(
            f"{option}={given}: it will be called with ({arguments}), which it does not take ({error}). Give a "
            f"function that does, like {like}."
        ) from None
    except ValueError:  # a function that does not tell what it takes
        return


def shown(x: Any) -> str:
    """What was given, in few characters: a function by its name, a record by its type."""
    if hasattr(x, "_fields") or hasattr(x, "dtype"):
        return f"a {type(x).__name__}"
    return getattr(x, "__name__", None) or reprlib.repr(x)


def _answer(function: Callable) -> Any:
    return getattr(function, "__annotations__", {}).get("return")
