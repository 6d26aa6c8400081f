"""Checks of a model's outputs: shapes while tracing; non-finite numbers are replaced while running."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxzero.search.node_storage import unpack_facts
from jaxzero.search.tree import Tree
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["as_pair", "at_least_float32", "check_embedding", "checked", "evaluated", "masks_at_root_only", "shapes_of"]


def as_pair(name: str, answer: Any) -> tuple[Step, State]:
    """What one of a model's functions returned.

    Raises:
        ValueError: it is no pair of a Step and an embedding, or a field of the step is missing.
    """
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Step):
        _check_nothing_missing(answer[0])
        return answer
    turned = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], Step)
    what = ", the embedding first" if turned else ""
    raise ValueError(f"{name} returned a {type(answer).__name__}{what}; it must return a pair, (Step, embedding).")


def checked(step: Step, tree: Tree | None = None, count: int | None = None) -> tuple[Step, Bool[Array, "B"]]:
    """The step with shapes checked, numbers spread, illegal logits at −inf, the highest at 0, and everything finite.

    Args:
        step: what the user's model returned.
        tree: the tree that the step must agree with; None: it is the root's.
        count: how many positions there are; None: one per game.

    Returns:
        The step, and where a non-finite number was replaced: by uniform logits, value, reward or discount 0.

    Raises:
        ValueError: naming the field, its shape, and the shape that would do.
    """
    _check_nothing_missing(step)
    step = _with_numbers_spread(step)
    players = _check_shapes(step, tree, count)
    batch = step.prior_logits.shape[0]
    # Visits are counted in the type of the values, which the root's value determines.
    dtype = at_least_float32(step.value.dtype) if tree is None else tree.stats.dtype
    given = step.prior_logits.astype(at_least_float32(step.prior_logits.dtype))
    terminal = jnp.zeros(batch, bool) if step.terminal is None else step.terminal
    legal = ~terminal[:, None] if step.legal is None else step.legal & ~terminal[:, None]
    chance = _chance(step, terminal, tree)
    if chance is not None:  # what cannot happen
        legal = legal & ~(chance[:, None] & jnp.isneginf(given))
    logits = jnp.where(legal, given, -jnp.inf)
    highest = jnp.max(logits, -1, keepdims=True)
    bad_logits = ~jnp.isfinite(highest) & jnp.any(legal, -1, keepdims=True)
    highest = jnp.where(jnp.isfinite(highest), highest, 0)  # no −inf less −inf, which would be NaN
    lowest = jnp.finfo(logits.dtype).min / 4  # finite: only illegal actions are at −inf
    logits = jnp.where(legal, jnp.where(bad_logits, 0, jnp.maximum(logits - highest, lowest)), -jnp.inf)
    bad = bad_logits[:, 0]

    def finite(x: Array, where: Array | bool) -> Array:
        nonlocal bad
        good = jnp.isfinite(x)
        bad = bad | jnp.any((~good & where).reshape(batch, -1), -1)
        return jnp.where(good & where, x, 0).astype(dtype)

    in_play = ~terminal.reshape((-1,) + (1,) * len(players))
    return step._replace(
        prior_logits=logits,
        legal=legal,
        terminal=terminal,
        value=finite(step.value, in_play),
        reward=finite(step.reward, True),
        discount=finite(step.discount, True),
        chance=chance,
    ), bad


NEEDED = {"prior_logits": "[B, A]", "value": "[B]", "reward": "[B] or one number", "discount": "[B] or one number"}


def _check_nothing_missing(step: Step) -> None:
    """Raises a ValueError if a field is None that has to be there."""
    for name, shape in NEEDED.items():
        if getattr(step, name) is None:
            raise ValueError(f"Step.{name} is None. Return {shape}; zeros if it has no meaning here.")


def _with_numbers_spread(step: Step) -> Step:
    """The step with one entry per game where the discount, or the reward, is a single number.

    With a value per player a single reward stays as it is, and is refused: it does not say who is paid.
    """
    batch, shared = jnp.shape(step.prior_logits)[:1], jnp.ndim(step.value) < 2

    def spread(x: Any) -> Any:
        return jnp.broadcast_to(x, batch) if jnp.shape(x) == () else x

    return step._replace(reward=spread(step.reward) if shared else step.reward, discount=spread(step.discount))


def _check_shapes(step: Step, tree: Tree | None, count: int | None) -> tuple[int, ...]:
    """Raises a ValueError that names the first field of another shape or type; returns (P,), or () for one value."""
    is_matrix = getattr(step.prior_logits, "ndim", 0) == 2
    batch, width = step.prior_logits.shape if is_matrix else (0, 0)
    players = jnp.shape(step.value)[1:]
    if tree is not None:
        batch, width = count or tree.size.shape[0], tree.num_edges
        players = (tree.num_players,) if tree.num_players > 1 else ()
    per_game, per_player, per_action = (batch,), (batch, *players), (batch, width)
    wanted = Step(
        per_action, per_player, per_player, per_game, per_action, per_game, per_game, per_game, chance=per_game
    )
    right = is_matrix and all(x is None or jnp.shape(x) == shape for x, shape in zip(step, wanted))
    masks = (step.legal, step.terminal, step.truncated, step.chance)
    typed = all(mask is None or mask.dtype == bool for mask in masks)
    if not (right and typed) or len(players) > 1 or players == (1,) or (players and step.to_play is None):
        raise ValueError(
            _what_is_wrong(step, wanted, "prior_logits and value" if tree is None else "the root's outputs")
        )
    return players


def _what_is_wrong(step: Step, wanted: Step, basis: str) -> str:
    """The first field of another shape or type than those of `wanted`."""
    if getattr(step.prior_logits, "ndim", 0) != 2:
        return f"Step.prior_logits has shape {getattr(step.prior_logits, 'shape', ())}; it must be [B, A]."
    (batch, width), players = wanted.prior_logits, wanted.value[1:]
    if players == (1,):
        return (
            f"Step.value has shape ({batch}, 1); it must be ({batch},), or ({batch}, P) for P >= 2 players. "
            f"Return B = {batch} entries."
        )
    if len(players) > 1:
        wanted, players = wanted._replace(value=(batch,)), ()
    for name in Step._fields:
        field, shape = getattr(step, name), getattr(wanted, name)
        if field is not None and jnp.shape(field) != shape:
            return (
                f"Step.{name} has shape {jnp.shape(field)}; to match {basis} it must be {shape}. Return B = {batch} "
                f"entries, A = {width} actions" + (f", P = {players[0]} players." if players else ".")
            )
    for name in ("legal", "terminal", "truncated", "chance"):
        mask = getattr(step, name)
        if mask is not None and mask.dtype != bool:
            return f"Step.{name} is of type {mask.dtype}; it must be bool, True = {name}. Use mask > 0."
    return "Step.value has one entry per player, so Step.to_play must say who moves; it is None."


def at_least_float32(dtype: Any) -> Any:
    """The type to compute in; the promotion is explicit, so jax_numpy_dtype_promotion="strict" allows it."""
    with jax.numpy_dtype_promotion("standard"):
        return jnp.promote_types(dtype, jnp.float32)


def _chance(step: Step, terminal: Bool[Array, "B"], tree: Tree | None) -> Bool[Array, "B"] | None:
    """Where chance moves; None if the model never says so."""
    known = step.chance is not None if tree is None else unpack_facts(tree.facts).chance is not None
    if step.chance is None:
        return jnp.zeros_like(terminal) if known else None
    if not known:
        raise ValueError(
            "Step.chance is given by model.step and None by model.root. Give it in both; False where a player moves."
        )
    return step.chance & ~terminal


def check_embedding(state: State, batch: int, stored: State = None) -> None:
    """Raises a ValueError if an embedding is not one entry per game, of what the tree stores.

    Args:
        state: what the user's model returned.
        batch: the number of games.
        stored: the tree's states; None: it is the root's embedding, the first one.
    """
    got = shapes_of(state)
    if stored is None:
        if any(shape[:1] != (batch,) for shape, _ in got[0]):
            raise ValueError(_no_axis_of_games(got[0], batch))
    elif got != shapes_of(stored, batch):
        raise ValueError(_another_embedding(got[0], shapes_of(stored, batch)[0]))


def _no_axis_of_games(got: list, batch: int) -> str:
    return (
        f"model.root returned an embedding of shapes and types {got}; every array in it must begin with the axis of "
        f"games, ({batch}, ...). Return one entry per game."
    )


def _another_embedding(got: list, kept: list) -> str:
    return (
        f"model.step returned an embedding of shapes and types {got}; model.root's, which the tree stores, is {kept}. "
        "Return the same structure, shapes and types, one entry per game."
    )


def shapes_of(state: State, batch: int | None = None) -> tuple[list[tuple], Any]:
    """Shapes and types of an embedding's arrays, and its structure; `batch`: of one that a tree of B games stores.

    Lists, for records of a user's need not compare equal.
    """
    shapes = [((batch, *x.shape[2:]) if batch else jnp.shape(x), jnp.result_type(x)) for x in jax.tree.leaves(state)]
    return shapes, jax.tree.structure(state)


def masks_at_root_only(model: Model, params: Params, keys: Keys, state: State) -> bool:
    """Whether a model knows which actions are legal at the root only, as `models.learned` does."""
    step, embedding = as_pair("model.root", jax.eval_shape(model.root, params, keys, state))
    actions = jnp.zeros(step.prior_logits.shape[0], jnp.int32)
    below, _ = as_pair("model.step", jax.eval_shape(model.step, params, keys, actions, embedding))
    return step.legal is not None and below.legal is None


def evaluated(step: Step, logits: Array, value: Array) -> Step:
    """Adds the evaluation to a step without one, as `Model.move` returns it; finished games have the value 0.

    Raises:
        ValueError: an evaluation of other shapes.
    """
    given, wanted = (jnp.shape(logits), jnp.shape(value)), (step.prior_logits.shape, step.value.shape)
    if given != wanted:
        raise ValueError(
            f"an evaluation with logits {given[0]} and values {given[1]}; for these positions it must be {wanted[0]} "
            f"and {wanted[1]}."
        )
    over = jnp.zeros(step.value.shape[0], bool) if step.terminal is None else step.terminal
    return step._replace(prior_logits=logits, value=jnp.where(over.reshape(-1, *(1,) * (value.ndim - 1)), 0, value))
