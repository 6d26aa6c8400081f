"""Checks that the functions of an environment fit its record, before anything is compiled."""

import pathlib
import re
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.environments.environment import Environment, Outcome, check_environment

__all__ = ["check_steps"]

UNKNOWN = jax.errors.TracerBoolConversionError, jax.errors.ConcretizationTypeError


def check_steps(environment: Environment) -> None:
    """Traces each function of an environment once, and compares what it returns with the record. Nothing is compiled.

    Raises:
        ValueError: a function that fails or returns another shape or type, with both; numbers that do not fit.

    >>> from jaxzero.environments.cartpole import cartpole
    >>> check_steps(cartpole()._replace(observation_shape=(3,)))
    Traceback (most recent call last):
    ValueError: environment cartpole: observe(state) returns float32[4], and the record says a number[3]
    (observation_shape is (3,)).
    """
    check_environment("check_steps", environment)
    _check_fields(environment)
    name, actions = environment.id, environment.num_actions
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = _returned(name, "reset(key)", environment.reset, key)
    action = jax.ShapeDtypeStruct((), jnp.int32)
    said = _returned(name, "step(state, action, key)", environment.step, state, action, key)
    if not isinstance(said, tuple) or len(said) != 2 or not isinstance(said[1], Outcome):
        raise ValueError(
            f"environment {name}: step(state, action, key) returns {_short(said)}: give (state, Outcome(reward, "
            "terminated, truncated))."
        )
    after, outcome = said
    _check_same_state(name, state, after)
    _check_type(name, "the reward of step", outcome.reward, "float32", (), "of the player who acted")
    _check_type(name, "terminated of step", outcome.terminated, "bool", (), "a flag")
    _check_type(name, "truncated of step", outcome.truncated, "bool", (), "a flag")
    shape = environment.observation_shape
    seen = _returned(name, "observe(state)", environment.observe, state)
    _check_type(name, "observe(state)", seen, "a number", shape, f"observation_shape is {shape}")
    if environment.legal is not None:
        mask = _returned(name, "legal(state)", environment.legal, state)
        _check_type(name, "legal(state)", mask, "bool", (actions,), f"num_actions is {actions}")


def _check_fields(environment: Environment) -> None:
    """What is no function: a folder and a command line have to be able to use the name."""
    name = environment.id
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"environment {name!r}: its id has to be a word of letters, digits, '_', '-' and '.'.")
    if type(environment.num_actions) is not int or environment.num_actions < 1:
        raise ValueError(
            f"environment {name}: num_actions is {environment.num_actions!r}: give a whole number, 1 or more."
        )
    if environment.num_players not in (1, 2):
        raise ValueError(f"environment {name}: num_players is {environment.num_players!r}: give 1, or 2 who alternate.")
    if not 0 < environment.discount <= 1:
        raise ValueError(f"environment {name}: discount is {environment.discount!r}: give more than 0 and at most 1.")
    shape = environment.observation_shape
    if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(f"environment {name}: observation_shape is {shape!r}: give whole numbers, like (10, 10, 4).")


def _returned(name: str, call: str, function: Callable, *given: Any) -> Any:
    try:
        return jax.eval_shape(function, *given)
    except Exception as error:  # whatever somebody's function does
        words = str(error).strip().splitlines()[0] if str(error).strip() else ""
        hint = " Values are not known yet: jnp.where in place of `if`." if isinstance(error, UNKNOWN) else ""
        raise ValueError(
            f"environment {name}: {call} fails{_where(error)}: {type(error).__name__}: {words}{hint}"
        ) from error


def _where(error: Exception) -> str:
    """The file and the line of somebody's own that went wrong, if it is none of a package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and f.filename != __file__]
    return f" ({pathlib.Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _check_type(name: str, call: str, found: Any, kind: str, shape: tuple[int, ...], why: str) -> None:
    is_array = isinstance(found, jax.ShapeDtypeStruct)
    if not is_array or found.shape != shape or not _is(kind, found.dtype):
        raise ValueError(
            f"environment {name}: {call} returns {_short(found)}, and the record says "
            f"{kind}[{','.join(map(str, shape))}] ({why})."
        )


def _is(kind: str, dtype: Any) -> bool:
    """Whether a type is of a kind: "float32", "bool", or "a number", which a bool is, too, and a key is not."""
    real = jnp.issubdtype(dtype, jnp.floating)
    flag = dtype == jnp.bool_
    return {"float32": real, "bool": flag, "a number": real or flag or jnp.issubdtype(dtype, jnp.integer)}[kind]


def _check_same_state(name: str, state: Any, after: Any) -> None:
    """States are carried through loops, so a step must keep their structure, shapes and types."""
    if jax.tree.structure(state) != jax.tree.structure(after):
        raise ValueError(
            f"environment {name}: step returns a state of another structure than reset: {jax.tree.structure(after)}, "
            f"not {jax.tree.structure(state)}."
        )
    before, now = jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after)
    for (path, one), other in zip(before, now):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise ValueError(
                f"environment {name}: step changes state{jax.tree_util.keystr(path)} from {_short(one)} to "
                f"{_short(other)}: keep shape and type, as in jnp.int32(0)."
            )


def _short(x: Any) -> str:
    if not isinstance(x, jax.ShapeDtypeStruct):
        return str(jax.tree.structure(x))
    return f"{x.dtype}[{','.join(map(str, x.shape))}]"
