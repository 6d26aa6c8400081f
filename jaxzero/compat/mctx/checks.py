"""Checks of what a program gives to mctx's functions, before anything is traced."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

__all__ = ["as_count", "as_pair", "check_embedding", "check_key", "check_mask", "check_output", "check_root"]


def as_count(name: str, number: Any, least: int) -> int:
    """A whole number that is known before tracing.

    Raises:
        ValueError: it is something else, or below `least`.
    """
    try:
        if isinstance(number, jax.core.Tracer):
            raise TypeError("traced")
        count = operator.index(number)
    except TypeError:
        raise ValueError(
            f"{name}={number!r}: the number of simulations sets the size of the tree, so it must be an int that is "
            f"known before tracing. Use {name}=32, or mark it as static (static_argnames) where the policy is jitted."
        ) from None
    if count < least:
        raise ValueError(f"{name}={count}: at least {least} is needed. Use {name}=32.")
    return count


def check_key(key: Any) -> None:
    """Checks that the random key is one key, new style or old.

    Raises:
        ValueError: it is something else, or a batch of keys.
    """
    dtype = getattr(key, "dtype", None)
    typed = dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)
    if not typed and dtype != jnp.uint32:
        raise ValueError(
            f"rng_key is a {type(key).__name__ if dtype is None else dtype}; it must be a random key. "
            "Use jax.random.key(0); the arguments are params, rng_key, root and so on, in this order."
        )
    if jnp.ndim(key) != (0 if typed else 1):
        raise ValueError(
            f"rng_key has shape {jnp.shape(key)}; it must be one key for the whole batch. "
            "Use keys[0], or jax.vmap over the keys, each with a root of [1, A]."
        )


def check_root(root: Any, invalid_actions: Array | None = None) -> None:
    """Checks the root's fields and shapes, and the shape of the mask.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    if not hasattr(root, "prior_logits"):
        raise ValueError(
            f"root is a {type(root).__name__}; it must be a RootFnOutput. Use RootFnOutput(prior_logits=..., "
            "value=..., embedding=...); the arguments are params, rng_key, root and so on, in this order."
        )
    logits = jnp.shape(root.prior_logits)
    if len(logits) != 2:
        raise ValueError(f"root.prior_logits has shape {logits}; it must be [B, A]. For one game use [1, A].")
    if jnp.shape(root.value) != logits[:1]:
        raise ValueError(
            f"root.prior_logits has shape {logits} and root.value {jnp.shape(root.value)}; they must be [B, A] and "
            f"[B]. Return value of shape {logits[:1]}."
        )
    for leaf in jax.tree.leaves(root.embedding):
        if jnp.shape(leaf)[:1] != logits[:1]:
            raise ValueError(
                f"root.embedding has an array of shape {jnp.shape(leaf)}; to match root.prior_logits each must be "
                f"({logits[0]}, ...), one entry per game."
            )
    if invalid_actions is not None and jnp.shape(invalid_actions) != logits:
        raise ValueError(
            f"invalid_actions has shape {jnp.shape(invalid_actions)}; to match root.prior_logits it must be {logits}."
        )


def check_mask(invalid_actions: Array | None, batch: int, width: int) -> None:
    """Checks the mask of `search`, whose width only the selectors know.

    Raises:
        ValueError: it is no mask of that many games.
    """
    given = () if invalid_actions is None else jnp.shape(invalid_actions)
    if invalid_actions is not None and (len(given) != 2 or given[0] != batch):
        raise ValueError(
            f"invalid_actions has shape {given}; to match root.prior_logits it must be {(batch, width)}, or ({batch}, "
            "...) of another width for selectors of your own."
        )


def as_pair(name: str, answer: Any, record: str, field: str) -> tuple[Any, Any]:
    """What one of the model's functions returned.

    Args:
        name: the function's name, for the message.
        answer: what it returned.
        record: the name of the record that it should return first.
        field: a field of that record, by which it is known; any record with mctx's fields will do.

    Raises:
        ValueError: it is no pair of the record and an embedding.
    """
    pair = isinstance(answer, tuple | list) and len(answer) == 2
    if pair and hasattr(answer[0], field):
        return answer[0], answer[1]
    turned = ", the embedding first" if pair and hasattr(answer[1], field) else ""
    raise ValueError(f"{name} returned a {type(answer).__name__}{turned}; it must return ({record}, embedding).")


def check_embedding(embedding: Any, before: Any) -> None:
    """Checks that a `recurrent_fn` returned an embedding like the one that it was given.

    Raises:
        ValueError: naming the array, its shape, and the shape that would do; or both structures.
    """
    given, kept = jax.tree.structure(embedding), jax.tree.structure(before)
    if given != kept:
        raise ValueError(
            f"recurrent_fn returned an embedding with structure {given}; root.embedding has {kept}. Return the same "
            "structure."
        )
    for (path, old), new in zip(jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(embedding)):
        if jnp.shape(new) != jnp.shape(old):
            raise ValueError(
                f"recurrent_fn returned embedding{jax.tree_util.keystr(path)} of shape {jnp.shape(new)}; to match "
                f"root.embedding it must be {jnp.shape(old)}."
            )


def check_output(output: Any, batch: int, num_actions: int) -> None:
    """Checks the shapes of what a `recurrent_fn` returned.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    wanted = dict(prior_logits=(batch, num_actions), value=(batch,), reward=(batch,), discount=(batch,))
    for name, shape in wanted.items():
        field = getattr(output, name)
        if field is None:
            raise ValueError(
                f"RecurrentFnOutput.{name} is None; to match the root's outputs its shape must be {shape}."
            )
        given = jnp.shape(field)
        if given != shape:
            hint = "" if given else f" Use jnp.full({shape}, ...)."
            raise ValueError(
                f"RecurrentFnOutput.{name} has shape {given}; to match the root's outputs it must be {shape}.{hint}"
            )
