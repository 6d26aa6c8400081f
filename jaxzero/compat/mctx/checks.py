"""Checks of what a program gives to mctx's functions, before anything is traced."""

import operator
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

__all__ = ["as_count", "check_output", "check_root"]


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
        raise ValueError(f"{name}={count}: allowed are {least} and more. Use {name}=32.")
    return count


def check_root(root: Any, invalid_actions: Array | None = None) -> None:
    """Checks the root's shapes, and those of the mask.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
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
                f"root.embedding has an array of shape {jnp.shape(leaf)}; by root.prior_logits each must be "
                f"({logits[0]}, ...), one entry per game."
            )
    if invalid_actions is not None and jnp.shape(invalid_actions) != logits:
        raise ValueError(
            f"invalid_actions has shape {jnp.shape(invalid_actions)}; by root.prior_logits it must be {logits}."
        )


def check_output(output: Any, batch: int, num_actions: int) -> None:
    """Checks the shapes of what a `recurrent_fn` returned.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    wanted = dict(prior_logits=(batch, num_actions), value=(batch,), reward=(batch,), discount=(batch,))
    for name, shape in wanted.items():
        given = jnp.shape(getattr(output, name))
        if given != shape:
            raise ValueError(f"RecurrentFnOutput.{name} has shape {given}; by the root's outputs it must be {shape}.")
