"""Networks that a file may describe: their kinds, their arguments, and bounds for each."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from jaxzero.nets.files.safetensors_file import WeightsError, short
from jaxzero.types import Params

__all__ = ["Argument", "Kind", "count", "counts", "described", "number", "one_of", "shapes_of", "whether"]


class Argument(NamedTuple):
    """What an argument of a network may be in a file, and what it becomes.

    Attributes:
        allowed: in words, for a message.
        made: from a JSON value, which may be anything; None for one that is not allowed.
    """

    allowed: str
    made: Callable[[Any], Any]


class Kind(NamedTuple):
    """How a network of one kind is built again. The bounds keep building to about a second: nothing is allocated.

    Attributes:
        build: `build(..., **arguments, key=key) -> (net, params)`; the first arguments give the sizes of the task.
        required: the arguments that `about["network"]` must have besides "kind".
        optional: those that it may have. An argument that `build` gained after files were written goes here.
        arrays: the least number of arrays in a network with these arguments.
    """

    build: Callable
    required: dict[str, Argument]
    optional: dict[str, Argument]
    arrays: Callable[[dict[str, Any]], int]


def count(most: int, least: int = 1) -> Argument:
    """An integer."""
    fits = lambda value: type(value) is int and least <= value <= most
    return Argument(f"{least} to {most}", lambda value: value if fits(value) else None)


def counts(most: int, length: int) -> Argument:
    """A tuple of integers from 1, perhaps an empty one."""
    one = count(most)
    fits = lambda value: isinstance(value, list) and len(value) <= length and all(map(one.made, value))
    return Argument(
        f"a list of up to {length}, each {one.allowed}", lambda value: tuple(value) if fits(value) else None
    )


def number(most: float) -> Argument:
    """A float above 0."""
    fits = lambda value: type(value) in (int, float) and 0 < value <= most
    return Argument(f"a number above 0, up to {most:g}", lambda value: float(value) if fits(value) else None)


def whether() -> Argument:
    """A bool."""
    return Argument("true or false", lambda value: value if type(value) is bool else None)


def one_of(**choices: Any) -> Argument:
    """What a name stands for."""
    return Argument(" or ".join(choices), lambda value: choices.get(value) if isinstance(value, str) else None)


def described(network: dict[str, Any], kinds: dict[str, Kind], arrays: float = math.inf) -> tuple[Kind, dict[str, Any]]:
    """The kind of network and its arguments, from JSON that anybody may have written.

    Args:
        network: `{"kind": ..., ...}`.
        kinds: those that there are.
        arrays: how many come with the description; a network that has more is none of this file.

    Raises:
        WeightsError: no such network.

    Example:
        >>> kinds = {"line": Kind(print, {"width": count(8)}, {}, lambda given: 2)}
        >>> described({"kind": "line", "width": 5}, kinds)[1]
        {'width': 5}
    """
    kind = kinds.get(network["kind"]) if isinstance(network.get("kind"), str) else None
    if kind is None:
        raise WeightsError(f"its network is of the kind {short(network.get('kind'))}: use one of {', '.join(kinds)}.")
    names = set(network) - {"kind"}
    if not set(kind.required) <= names <= set(kind.required) | set(kind.optional):
        raise WeightsError(f"its network is {short(network)}: besides kind, give {', '.join(kind.required)}.")
    arguments = kind.required | kind.optional
    given = {name: arguments[name].made(network[name]) for name in sorted(names)}
    for name, value in given.items():
        if value is None:
            raise WeightsError(f"its network has {name}={short(network[name])}: use {arguments[name].allowed}.")
    if kind.arrays(given) > arrays:
        raise WeightsError(f"its network is {short(network)}, and it has {arrays} arrays only: too few for that.")
    return kind, given


def shapes_of(build: Callable[[], tuple[Any, Params]], task: str) -> tuple[Any, Params]:
    """The network that `build` gives, and the shapes of its parameters: traced, so that nothing is computed.

    Raises:
        WeightsError: it cannot be built for this task.
    """
    nets = []

    def params() -> Params:
        net, params = build()
        nets.append(net)
        return params

    try:
        shapes = jax.eval_shape(params)
    except ValueError as error:
        raise WeightsError(f"its network cannot be built for {task}: {error}") from error
    return nets[0], shapes
