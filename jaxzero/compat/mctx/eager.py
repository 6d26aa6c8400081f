"""Calls outside of `jit`: traced at each call, compiled once.

A policy that is called without `jax.jit` runs loops whose bodies are new functions in every call, and JAX compiles new
functions anew. So such a call is traced to a jaxpr, which takes a fraction of a second, and the compiled program of an
equal jaxpr is reused. Arrays that the user's functions close over are arguments of that program. So if they change,
like an agent's parameters, the next call sees the change, as in mctx.
"""

import collections
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.extend import core

__all__ = ["compiled_once"]

MOST_PROGRAMS = 32  # the least recently used one is dropped
# Parameters that are new functions in every trace: derivative rules, and functions that another parameter holds as a
# jaxpr.
IGNORED = {
    "custom_jvp_call": {"jvp_jaxpr_fun"},
    "custom_vjp_call": {"fwd_jaxpr_thunk", "bwd", "out_trees"},
    "reduce": {"computation"},
}

# What a function of a traced array raises where it needs the numbers.
CONCRETE = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)

_programs: collections.OrderedDict[Any, Callable] = collections.OrderedDict()


def compiled_once(function: Callable) -> Callable:
    """The function, with calls outside of `jit` compiled once for all calls that trace to the same program.

    Arrays and Python floats among its arguments may change from call to call; everything else is part of the program,
    as is what is annotated as `int`. Calls with traced arguments, with a `loop_fn` of the user's own or under
    `jax.disable_jit` are left as they are.
    """
    signature = inspect.signature(function)
    whole = {x.name for x in signature.parameters.values() if x.annotation in (int, int | None)}

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:  # inspect leaves the function's name out
            raise TypeError(f"{function.__name__}() {error}") from None
        found, structure = jax.tree_util.tree_flatten_with_path(given)
        names, leaves = [path[0].key for path, _ in found], [leaf for _, leaf in found]
        traced = any(isinstance(x, jax.core.Tracer) for x in leaves)
        own_loop = given.get("loop_fn", jax.lax.fori_loop) is not jax.lax.fori_loop
        if traced or own_loop or jax.config.jax_disable_jit:
            return function(*args, **kwargs)
        may_change = [_is_array(x) or (isinstance(x, float) and name not in whole) for name, x in zip(names, leaves)]

        def run(changing: list) -> Any:
            left = iter(changing)
            bound = signature.bind_partial()
            bound.arguments.update(structure.unflatten(next(left) if m else x for m, x in zip(may_change, leaves)))
            return function(*bound.args, **bound.kwargs)

        changing = [x for m, x in zip(may_change, leaves) if m]
        try:
            program, result = jax.make_jaxpr(run, return_shape=True)(changing)
        except CONCRETE:  # Python looks at the numbers, which is possible outside of `jit`
            return function(*args, **kwargs)
        answer = _compiled(program)(*program.consts, *changing)
        return jax.tree.structure(result).unflatten(answer)

    return call


def _is_array(x: Any) -> bool:
    """Whether it is an array that jax can compute with; NumPy has others, of strings for instance."""
    return isinstance(x, jax.Array) or (isinstance(x, np.ndarray) and x.dtype.kind in "biufc")


def _compiled(program: core.ClosedJaxpr) -> Callable:
    """The jitted program, from the last ones used if one of them is equal."""
    key = _key_of(program.jaxpr), jax.config.jax_threefry_partitionable
    if key not in _programs:
        jaxpr, count = program.jaxpr, len(program.consts)
        _programs[key] = jax.jit(lambda *xs: core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, xs[:count]))(*xs[count:]))
        if len(_programs) > MOST_PROGRAMS:
            _programs.popitem(last=False)
    _programs.move_to_end(key)
    return _programs[key]


class _Same:
    """A key for things that are compared by identity; it holds on to them, so no other gets their address."""

    def __init__(self, thing: Any):
        self.thing = thing

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, _Same) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def _key_of(x: Any, names: dict | None = None) -> Any:
    """A hashable value; equal for jaxprs that compute the same by the same steps."""
    names = {} if names is None else names
    of = functools.partial(_key_of, names=names)
    match x:
        case core.ClosedJaxpr():
            return _key_of(x.jaxpr), tuple(map(_Same, x.consts))
        case core.Jaxpr():
            within: dict = {}
            of = functools.partial(_key_of, names=within)
            ends = tuple(map(of, [*x.constvars, *x.invars]))
            steps = tuple(
                (eqn.primitive, tuple(map(of, eqn.invars)), tuple(map(of, eqn.outvars)), _params_key(eqn))
                for eqn in x.eqns
            )
            return ends, steps, tuple(map(of, x.outvars))
        case core.Literal():
            return "literal", x.aval, of(x.val)
        case core.Var():
            return names.setdefault(x, len(names)), x.aval
        case np.ndarray() | np.generic() | bool() | int() | float() | complex():
            array = np.asarray(x)
            return type(x), array.dtype, array.shape, array.tobytes()
        case tuple() | list():
            return type(x), tuple(map(of, x))
        case dict():
            return tuple((name, of(value)) for name, value in x.items())
    try:
        hash(x)
    except TypeError:
        return _Same(x)
    return x if not isinstance(x, jax.Array) else _Same(x)


def _params_key(eqn: core.JaxprEqn) -> Any:
    """Those parameters of a step that its result depends on."""
    ignored = IGNORED.get(eqn.primitive.name, set())
    return tuple((name, _key_of(value)) for name, value in eqn.params.items() if name not in ignored)
