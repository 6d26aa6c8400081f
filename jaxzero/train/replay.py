"""The replay buffer: rings of rows on the devices; add a batch, sample uniformly.

The rows are kept in `parts` rings, each with its own share of the games, and a minibatch takes equally many rows from
each. If the number of devices divides that of the parts, each device holds whole rings and needs no rows of others, and
the same rows are learned from, however many devices there are.
"""

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from jaxzero.types import Keys, in_short

__all__ = ["Buffer", "add", "capacity", "new_buffer", "sample"]


class Buffer(NamedTuple):
    """Rows in S rings, the oldest of each overwritten first.

    Attributes:
        rows: a tree of arrays `[S, capacity / S, ...]`.
        position: where the next row of each ring goes.
        size: how many rows there are in each.
    """

    rows: Any
    position: Int[Array, "S"]
    size: Int[Array, "S"]

    __repr__ = in_short


def new_buffer(row: Any, capacity: int, parts: int = 1) -> Buffer:
    """An empty buffer for rows like `row` (arrays or shapes, without a batch axis).

    Args:
        row: a tree of arrays or `jax.ShapeDtypeStruct`.
        capacity: rows in all; rounded up to a multiple of `parts`.
        parts: S, rings.

    Raises:
        ValueError: capacity or parts < 1.

    Example:
        >>> buffer = new_buffer({"x": jnp.float32(0)}, capacity=8, parts=2)
        >>> buffer = add(buffer, {"x": jnp.float32([1, 2, 3, 4])}, jnp.array([True, False, True, True]))
        >>> buffer.size.tolist(), buffer.rows["x"].tolist()
        ([1, 2], [[1.0, 0.0, 0.0, 0.0], [3.0, 4.0, 0.0, 0.0]])
    """
    if capacity < 1 or parts < 1:
        raise ValueError(f"new_buffer: capacity={capacity}, parts={parts}: both must be 1 or more.")
    each = -(-capacity // parts)
    rows = jax.tree.map(lambda x: jnp.zeros((parts, each, *x.shape), x.dtype), row)
    return Buffer(rows, jnp.zeros(parts, jnp.int32), jnp.zeros(parts, jnp.int32))


def capacity(buffer: Buffer) -> int:
    """How many rows the buffer can hold."""
    parts, each = jax.tree.leaves(buffer.rows)[0].shape[:2]
    return parts * each


def add(buffer: Buffer, rows: Any, ready: Bool[Array, "n"]) -> Buffer:
    """Write those of `rows` (arrays `[n, ...]`) that are `ready`, in order, over the oldest.

    The first n / S rows go to the first ring, the next to the second, and so on: a game's rows always to the same ring.

    Raises:
        ValueError: rows that the rings cannot share equally, or more than they hold (they would overwrite one another
            in no defined order).
    """
    n, room, parts = ready.shape[0], capacity(buffer), len(buffer.position)
    if n > room or n % parts:
        raise ValueError(
            f"add: {n} rows for a buffer of {room} rows in {parts} parts. Use a capacity >= {n}, or add fewer at a "
            f"time; and a multiple of {parts} rows."
        )
    chex.assert_trees_all_equal_shapes_and_dtypes(
        jax.tree.map(lambda x: x[0, :1], buffer.rows), jax.tree.map(lambda x: x[:1], rows)
    )
    apart = lambda x: x.reshape(parts, n // parts, *x.shape[1:])
    return jax.vmap(_add)(buffer, jax.tree.map(apart, rows), apart(ready))


def _add(ring: Buffer, rows: Any, ready: Bool[Array, "n"]) -> Buffer:
    room = jax.tree.leaves(ring.rows)[0].shape[0]
    count = jnp.cumsum(ready, dtype=jnp.int32)
    where = jnp.where(ready, (ring.position + count - 1) % room, room)  # room: out of range, dropped
    written = jax.tree.map(lambda old, new: old.at[where].set(new, mode="drop"), ring.rows, rows)
    return Buffer(written, (ring.position + count[-1]) % room, jnp.minimum(ring.size + count[-1], room))


def sample(buffer: Buffer, keys: Keys, n: int, newest: Int[Array, ""] | int | None = None) -> Any:
    """Rows drawn uniformly with replacement, `[S, n / S, ...]`, from all rows or from about the `newest` ones only.

    An empty ring gives rows of zeros, so check `size` first.

    Args:
        buffer: the rings.
        keys: one for each of them `[S]`.
        n: rows in all.
        newest: how many of the latest rows to draw from, over all rings.

    Raises:
        ValueError: n is no multiple of S.
    """
    parts = len(buffer.position)
    if n % parts:
        raise ValueError(f"sample: {n} rows from {parts} parts: give a multiple of {parts}.")

    def one(ring: Buffer, key: chex.PRNGKey) -> Any:
        room = jax.tree.leaves(ring.rows)[0].shape[0]
        reach = ring.size if newest is None else jnp.clip(newest // parts, 1, ring.size)
        age = jax.random.randint(key, (n // parts,), 0, jnp.maximum(reach, 1))  # 0: the newest
        return jax.tree.map(lambda x: x[(ring.position - 1 - age) % room], ring.rows)

    return jax.vmap(one)(buffer, keys)
