"""Converts between slots and actions; see `jaxzero.options.legal_slots`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from jaxzero.search.checks.argument_checks import check_tree
from jaxzero.search.edge_view import by_action, linked
from jaxzero.search.node_storage import per_game, take
from jaxzero.search.tree import NONE, Tree
from jaxzero.types import State

__all__ = ["ABSENT", "Slots", "action_of", "at_slot", "parts_of", "slot_of", "slots_of", "to_action_space"]

ABSENT = -2  # an action that has no slot; −1: no action


class Slots(NamedTuple):
    """The embedding in a tree whose edges are slots.

    Attributes:
        state: the model's embedding.
        action: the action of each slot; −1 in padding. Where actions are arrays: those that were sampled.
        dropped: how many legal actions have no slot.
    """

    state: State
    action: Int[Array, "... W"] | Float[Array, "... W S"]
    dropped: Int[Array, "..."]


def slots_of(tree: Tree, nodes: Int[Array, "B"] | None = None) -> Slots:
    """The `Slots` record of `nodes`, one per game; None: of all nodes, `[B, N+1, ...]`.

    Raises:
        ValueError: a tree whose edges are actions.
    """
    check_tree("tree", tree)
    found = parts_of(tree.state, Slots)
    if not found:
        raise ValueError(
            "tree is of another kind of policy: its edges are actions, not slots. Give the tree of what a policy of "
            "with_legal_slots or with_sampled_actions returned."
        )
    return found[0] if nodes is None else jax.tree.map(lambda x: take(x, nodes), found[0])


def parts_of(state: State, kind: Any) -> list:
    """The records of a kind in an embedding, the outermost first."""
    leaves = jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, kind))
    return [x for x in leaves if isinstance(x, kind)]


def at_slot(action: Array, slot: Int[Array, "B"]) -> Array:
    """The actions in slots, `[B, W, ...]`; numbers as int32."""
    found = jnp.take_along_axis(action, slot.reshape(-1, *[1] * (action.ndim - 1)), 1)[:, 0]
    return found.astype(jnp.int32) if action.ndim == 2 else found


def slot_of(tree: Tree, action: Array) -> Int[Array, "B"] | Int[Array, "B L"]:
    """The slots of actions, to find them in results by slot, like `qvalues(tree)`.

    Args:
        tree: of a policy over slots.
        action: one for each game, `[B]`, or L in a row, `[B, L]`: each is looked up at the node that the actions before
            it lead to; −1: no move was made. Actions that are arrays: `[B, ...]` or `[B, L, ...]`, equal to the last
            bit.

    Returns:
        Slots in the same shape. −1 where the action is −1; −2 where it has no slot (illegal, dropped, not sampled, or
        below a move that was never visited), for which `advance` reports `Status.NOT_IN_TREE`.

    Raises:
        ValueError: a tree whose edges are actions; actions of another shape, or not of integers.

    >>> import jax, jax.numpy as jnp, jaxzero as jz
    >>> def step(params, keys, action, state):  # two arms of three may be pulled; they pay 0.5 and 1
    ...     zeros, legal = jnp.zeros(action.shape), jnp.tile(jnp.array([False, True, True]), (len(action), 1))
    ...     return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros + 0.5, legal), state
    >>> root = lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state)
    >>> build = lambda model: jz.alphazero(model, num_simulations=16)
    >>> policy = jax.jit(jz.options.with_legal_slots(build, jz.Model(root, step), width=2))
    >>> out = policy((), jax.random.split(jax.random.key(0), 3), jnp.zeros(3))
    >>> jz.options.slot_of(out.tree, jnp.array([1, 2, 0])).tolist()
    [0, 1, -2]
    >>> int(jz.options.action_of(out.tree, jz.principal_variation(out.tree, 1))[0, 0])
    2
    """
    stored, given = slots_of(tree).action, jnp.asarray(action)
    batch, own, whole = stored.shape[0], stored.shape[3:], stored.ndim == 3
    plies = given.ndim == 2 + len(own)
    if given.shape != (batch, *given.shape[1 : 1 + plies], *own) or (
        whole and not jnp.issubdtype(given.dtype, jnp.integer)
    ):
        raise ValueError(
            f"slot_of: actions of shape {given.shape} and type {given.dtype} for {batch} games: give "
            f"{'integers' if whole else f'arrays of type {stored.dtype}'}, {(batch, *own)} for one ply or "
            f"{(batch, 'L', *own)} for L plies."
        )

    def look(here: Array, wanted: Array) -> Array:
        if whole:
            here, wanted = here.astype(jnp.int32), wanted.astype(jnp.int32)
        same = here == wanted[:, None]
        same = jnp.all(same.reshape(*same.shape[:2], -1), -1)
        if not whole:
            return jnp.where(jnp.any(same, -1), jnp.argmax(same, -1), ABSENT)
        slot = jnp.where(jnp.any(same & (here >= 0), -1), jnp.argmax(same, -1), ABSENT)
        return jnp.where(wanted == NONE, NONE, slot)

    found = _followed(tree, given if plies else given[:, None], look, lambda here, wanted, slot: slot)
    return found if plies else found[:, 0]


def action_of(tree: Tree, slot: Int[Array, "B"] | Int[Array, "B L"]) -> Array:
    """The actions of slots, the inverse of `slot_of`: turns the `principal_variation` of a tree over slots into moves.

    Args:
        tree: of a policy over slots.
        slot: `[B]`, or `[B, L]` for L plies in a row.

    Returns:
        Actions in the same shape; −1 (NaN, for actions that are arrays) where the slot is padding or does not exist, or
        where it is below a move that was never visited.

    Raises:
        ValueError: a tree whose edges are actions; slots of another shape, or not of integers.
    """
    stored, given = slots_of(tree).action, jnp.asarray(slot)
    batch, width = stored.shape[0], tree.num_edges
    if given.ndim not in (1, 2) or len(given) != batch or not jnp.issubdtype(given.dtype, jnp.integer):
        raise ValueError(
            f"action_of: slots of shape {given.shape} and type {given.dtype} for {batch} games: give integers, "
            f"[{batch}] for one ply or [{batch}, L] for L plies."
        )
    none = NONE if jnp.issubdtype(stored.dtype, jnp.integer) else jnp.nan

    def look(here: Array, wanted: Array) -> Array:
        return jnp.where(wanted < width, jnp.maximum(wanted, ABSENT), ABSENT)

    def read(here: Array, wanted: Array, slot: Array) -> Array:
        action = at_slot(here, jnp.maximum(slot, 0))
        return jnp.where(per_game(slot >= 0, action), action, none)

    found = _followed(tree, given if given.ndim == 2 else given[:, None], look, read)
    return found if given.ndim == 2 else found[:, 0]


def _followed(tree: Tree, given: Array, look: Callable[..., Array], read: Callable[..., Array]) -> Array:
    """What `read` returns for each ply, from the node's actions, the given entry, and the slot, which `look` finds."""
    slots, node, lost, said = slots_of(tree), jnp.zeros_like(tree.size), tree.size == 0, []
    for ply in range(given.shape[1]):
        here = take(slots.action, node)
        slot = jnp.where(lost, ABSENT, look(here, given[:, ply])).astype(jnp.int32)
        said.append(read(here, given[:, ply], slot))
        below = jnp.take_along_axis(by_action(tree, node), jnp.maximum(slot, 0)[:, None], 1)[:, 0]
        lost = lost | (slot == ABSENT) | ((slot >= 0) & (below < 0))
        node = jnp.where((slot >= 0) & ~lost, linked(tree, jnp.maximum(below, 0)), node)
    return jnp.stack(said, 1)


def to_action_space(
    tree: Tree, by_slot: Array, num_actions: int, nodes: Int[Array, "B"] | None = None, fill: Any = 0
) -> Array:
    """Converts an array by slot, `[B, W]`, to one by action, `[B, A]`: `to_action_space(tree, qvalues(tree), A)`.

    Args:
        tree: of a policy over slots.
        by_slot: one entry per slot.
        num_actions: A.
        nodes: of which nodes, one per game; default: the roots.
        fill: for the actions that have no slot.

    Raises:
        ValueError: a tree whose edges are actions, or arrays, which have no numbers; entries of another shape.
    """
    action = slots_of(tree, jnp.zeros_like(tree.size) if nodes is None else nodes).action
    if not jnp.issubdtype(action.dtype, jnp.integer) or action.ndim != 2:
        raise ValueError("to_action_space: the actions of this tree are arrays. Read them with action_of(tree, slot).")
    if jnp.shape(by_slot) != action.shape:
        raise ValueError(f"to_action_space: {jnp.shape(by_slot)} entries for slots {action.shape}: give one per slot.")
    rows, place = jnp.arange(len(action))[:, None], jnp.where(action >= 0, action.astype(jnp.int32), num_actions)
    spread = jnp.full((len(action), num_actions), fill, by_slot.dtype)
    return spread.at[rows, place].set(by_slot, mode="drop")
