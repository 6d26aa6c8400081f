"""A ring buffer that lives on the device: add a batch, sample uniformly, know the size."""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

__all__ = ["Buffer", "add", "capacity", "new_buffer", "sample"]


class Buffer(NamedTuple):
    """Rows in a ring, the oldest overwritten first.

    Attributes:
        rows: a tree of arrays `[capacity, ...]`.
        position: where the next row goes.
        size: how many rows there are.
    """

    rows: Any
    position: Int[Array, ""]
    size: Int[Array, ""]


def new_buffer(row: Any, capacity: int) -> Buffer:
    """An empty buffer for rows like `row` (arrays or shapes, without a batch axis).

    Raises:
        ValueError: capacity < 1.

    Example:
        >>> buffer = new_buffer({"x": jnp.float32(0)}, capacity=4)
        >>> buffer = add(buffer, {"x": jnp.float32([1, 2, 3])}, jnp.array([True, False, True]))
        >>> int(buffer.size), buffer.rows["x"].tolist()
        (2, [1.0, 3.0, 0.0, 0.0])
    """
    if capacity < 1:
        raise ValueError(f"new_buffer: capacity={capacity}; it must hold at least one row: capacity >= 1.")
    rows = jax.tree.map(lambda x: jnp.zeros((capacity, *x.shape), x.dtype), row)
    return Buffer(rows, jnp.int32(0), jnp.int32(0))


def capacity(buffer: Buffer) -> int:
    """How many rows the buffer can hold."""
    return jax.tree.leaves(buffer.rows)[0].shape[0]


def add(buffer: Buffer, rows: Any, ready: Bool[Array, "n"]) -> Buffer:
    """Write those of `rows` (arrays `[n, ...]`) that are `ready`, in order, over the oldest.

    Raises:
        ValueError: more rows than the buffer holds (they would overwrite one another in no defined order).
    """
    n, room = ready.shape[0], capacity(buffer)
    if n > room:
        raise ValueError(f"add: {n} rows do not fit a buffer of {room}. Use a capacity >= {n}, or add fewer at a time.")
    chex.assert_trees_all_equal_shapes_and_dtypes(
        jax.tree.map(lambda x: x[:1], buffer.rows), jax.tree.map(lambda x: x[:1], rows)
    )
    count = jnp.cumsum(ready, dtype=jnp.int32)
    where = jnp.where(ready, (buffer.position + count - 1) % room, room)  # room: out of range, dropped
    written = jax.tree.map(lambda old, new: old.at[where].set(new, mode="drop"), buffer.rows, rows)
    return Buffer(written, (buffer.position + count[-1]) % room, jnp.minimum(buffer.size + count[-1], room))


def sample(buffer: Buffer, key: chex.PRNGKey, n: int, newest: Int[Array, ""] | int | None = None) -> Any:
    """`n` rows drawn uniformly with replacement, from all rows or from the `newest` ones only.

    An empty buffer gives rows of zeros: look at `size` before.
    """
    room = capacity(buffer)
    reach = buffer.size if newest is None else jnp.clip(newest, 1, buffer.size)
    age = jax.random.randint(key, (n,), 0, jnp.maximum(reach, 1))  # 0: the newest
    return jax.tree.map(lambda x: x[(buffer.position - 1 - age) % room], buffer.rows)
