"""Whether a step depends on its key, which tells environments with chance from those without."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.types import State

__all__ = ["depends_on_key"]


def depends_on_key(step: Callable[..., Any], state: State, coordinates: int | None = None) -> bool:
    """Whether anything that `step` returns depends on its key, found by tracing: nothing runs.

    The step is mapped over keys alone; a result without an axis of keys does not depend on them. A key that is split
    but not used does not count. A draw that makes no difference (noise of width 0) does count.

    Args:
        step: `(state, action, key) -> anything`, for one state.
        state: a state, or its shapes and types.
        coordinates: of a continuous action; None: actions are numbered.

    >>> rolled = lambda state, action, key: state + jax.random.randint(key, (), 1, 7)
    >>> depends_on_key(rolled, jnp.int32(0)), depends_on_key(lambda state, action, key: state + action, jnp.int32(0))
    (True, False)
    """
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))
    number = jax.ShapeDtypeStruct((), jnp.int32)
    action = number if coordinates is None else jax.ShapeDtypeStruct((coordinates,), jnp.float32)
    mapped = jax.vmap(step, in_axes=(None, None, 0), out_axes=None)
    try:
        jax.eval_shape(mapped, state, action, keys)
    except ValueError as error:
        if "out_axes" not in str(error):  # an error of the step's own
            raise
        return True
    return False
