"""Checks that the functions of an environment fit its record, before anything is compiled."""

import math
import re
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.environments.environment import Environment, Outcome, check_environment
from jaxzero.games.checks.traced_rules import check_same_state, in_words, returned

__all__ = ["check_steps"]


def check_steps(environment: Environment) -> None:
    """Traces each function of an environment once, and compares what it returns with the record. Nothing is compiled.

    Raises:
        ValueError: a function that fails or returns another shape or type, with both; numbers that do not fit.

    >>> from jaxzero.environments.cartpole import cartpole
    >>> check_steps(cartpole()._replace(observation_shape=(3,)))
    Traceback (most recent call last):
    ValueError: environment cartpole: observe(state) returns float32[4]; it must be a number[3]
    (observation_shape is (3,)).
    """
    check_environment("check_steps", environment)
    _check_fields(environment)
    who, actions = f"environment {environment.id}", environment.num_actions
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = returned(who, "reset(key)", environment.reset, key)
    action = jax.ShapeDtypeStruct((), jnp.int32)
    if environment.bounds is not None:
        action = jax.ShapeDtypeStruct((len(environment.bounds.low),), jnp.float32)
    said = returned(who, "step(state, action, key)", environment.step, state, action, key)
    if not isinstance(said, tuple) or len(said) != 2 or not isinstance(said[1], Outcome):
        raise ValueError(
            f"{who}: step(state, action, key) returns {in_words(said)}: return (state, Outcome(reward, terminated, "
            "truncated))."
        )
    after, outcome = said
    check_same_state(who, "reset", state, after)
    _check_type(who, "the reward of step", outcome.reward, "float32", (), "of the player who acted")
    _check_type(who, "terminated of step", outcome.terminated, "bool", (), "a flag")
    _check_type(who, "truncated of step", outcome.truncated, "bool", (), "a flag")
    shape = environment.observation_shape
    seen = returned(who, "observe(state)", environment.observe, state)
    _check_type(who, "observe(state)", seen, "a number", shape, f"observation_shape is {shape}")
    if environment.legal is not None:
        mask = returned(who, "legal(state)", environment.legal, state)
        _check_type(who, "legal(state)", mask, "bool", (actions,), f"num_actions is {actions}")


def _check_fields(environment: Environment) -> None:
    """Checks the fields that are no functions: a folder and a command line must be able to use the name."""
    name = environment.id
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"environment {name!r}: its id must be a word of letters, digits, '_', '-' and '.'.")
    if type(environment.num_actions) is not int or environment.num_actions < 1:
        raise ValueError(
            f"environment {name}: num_actions is {environment.num_actions!r}: give a whole number, 1 or more."
        )
    if environment.bounds is not None:
        _check_bounds(name, environment, *environment.bounds)
    if environment.num_players not in (1, 2):
        raise ValueError(f"environment {name}: num_players is {environment.num_players!r}: give 1, or 2 who alternate.")
    if not 0 < environment.discount <= 1:
        raise ValueError(f"environment {name}: discount is {environment.discount!r}: give more than 0 and at most 1.")
    shape = environment.observation_shape
    if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(f"environment {name}: observation_shape is {shape!r}: give whole numbers, like (10, 10, 4).")


def _check_bounds(name: str, environment: Environment, low: tuple[float, ...], high: tuple[float, ...]) -> None:
    right = len(low) == len(high) > 0 and all(
        math.isfinite(x) and math.isfinite(y) and x < y for x, y in zip(low, high)
    )
    if not right:
        raise ValueError(
            f"environment {name}: bounds are {low!r} and {high!r}: give finite numbers, one for each coordinate, low "
            "below high."
        )
    if environment.legal is not None or environment.num_players != 1:
        raise ValueError(f"environment {name}: continuous actions need num_players=1 and legal=None.")


def _check_type(who: str, call: str, found: Any, kind: str, shape: tuple[int, ...], why: str) -> None:
    is_array = isinstance(found, jax.ShapeDtypeStruct)
    if not is_array or found.shape != shape or not _is(kind, found.dtype):
        raise ValueError(
            f"{who}: {call} returns {in_words(found)}; it must be {kind}[{','.join(map(str, shape))}] ({why})."
        )


def _is(kind: str, dtype: Any) -> bool:
    """Whether a type is of a kind: "float32", "bool", or "a number", which a bool is, too, and a key is not."""
    real = jnp.issubdtype(dtype, jnp.floating)
    flag = dtype == jnp.bool_
    return {"float32": real, "bool": flag, "a number": real or flag or jnp.issubdtype(dtype, jnp.integer)}[kind]
