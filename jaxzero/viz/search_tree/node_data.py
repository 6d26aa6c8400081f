"""The numbers of the drawn nodes, read from the tree, and the names of their edges."""

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.models.chance import Moment
from jaxzero.options.evaluation_reuse import Kept
from jaxzero.options.slot_actions import Slots, parts_of
from jaxzero.play.analysis import prior_probabilities
from jaxzero.search.edge_view import edge_view
from jaxzero.search.node_storage import unpack_facts, unpack_stats
from jaxzero.search.tree import Tree

__all__ = ["Nodes", "labels", "read", "states_of"]


class Nodes(NamedTuple):
    """The data of K nodes, as NumPy arrays.

    Attributes:
        action: the edge slot above.
        visits: of the node, its own evaluation included.
        value: mean return, for the player to move or for every player, `[K, P]`.
        raw: the model's value of the node, likewise.
        mover: the player to move; −1: unknown.
        terminal: whether the game is over there.
        chance: whether chance moves there.
        bounds: the proven lower and upper bound of the value, `[K, 2]`, or None.
        edge_visits: simulations through each edge, `[K, W]`.
        edge_value: mean returns for the player to move at the node.
        edge_prior: probabilities, NaN in a row where the rule stores something else; −inf where illegal.
        edge_lower: the proven lower bound of each edge's return, or None.
        edge_upper: the upper bound.
    """

    action: np.ndarray
    visits: np.ndarray
    value: np.ndarray
    raw: np.ndarray
    mover: np.ndarray
    terminal: np.ndarray
    chance: np.ndarray
    bounds: np.ndarray | None
    edge_visits: np.ndarray
    edge_value: np.ndarray
    edge_prior: np.ndarray
    edge_lower: np.ndarray | None
    edge_upper: np.ndarray | None


def read(tree: Tree, slots: Sequence[int], positions: Sequence[int], room: int) -> Nodes:
    """Reads the data of nodes of one game.

    Args:
        tree: of one game.
        slots: of the edges into them.
        positions: the nodes themselves.
        room: how many there may be; the program is compiled for this number and the tree's shape.
    """
    fill = lambda x: jnp.asarray(np.pad(np.asarray(x, np.int32), (0, room - len(x))))
    nodes = jax.device_get(_read(tree, fill(slots), fill(positions)))
    return Nodes(*(None if x is None else x[: len(slots)] for x in nodes))


@jax.jit
def _read(tree: Tree, slots: jax.Array, positions: jax.Array) -> Nodes:
    view = edge_view(tree, positions[None])
    facts, own = unpack_facts(tree.facts[0, positions]), lambda x: None if x is None else x[0]
    chance = jnp.zeros_like(facts.terminal) if facts.chance is None else facts.chance
    return Nodes(
        action=unpack_facts(tree.facts[0, slots]).action,
        visits=view.node_visits[0],
        value=unpack_stats(tree.stats[0, positions]).value,
        raw=facts.raw_value,
        mover=facts.to_play,
        terminal=facts.terminal,
        chance=chance,
        bounds=None if tree.bounds is None else tree.bounds[0, positions],
        edge_visits=view.visits[0],
        edge_value=view.value[0],
        edge_prior=prior_probabilities(tree, view)[0],
        edge_lower=own(view.lower),
        edge_upper=own(view.upper),
    )


# ------------------------------------------------------------------------------------------------ actions and positions
def labels(function: str, tree: Tree, positions: Sequence[int], names: Sequence[str] | None) -> Any:
    """A function `(place in positions, edge slot, is it of chance) -> name of the edge`.

    Raises:
        ValueError: names that do not fit the tree's edges.
    """
    found, chance = parts_of(tree.state, Slots), bool(tree.facts.shape[-1] % 2)
    actions = np.asarray(found[0].action[0, jnp.asarray(positions)]) if found else None
    if names is not None:
        if isinstance(names, str) or not all(isinstance(x, str) for x in names):
            raise ValueError(f"{function}: names={names!r:.60}: give a tuple of strings, one per action.")
        if actions is not None and not np.issubdtype(actions.dtype, np.integer):
            raise ValueError(f"{function}: names, where actions are arrays: they have no numbers. Use names=None.")
        most = int(actions.max()) + 1 if actions is not None else tree.num_edges
        fits = len(names) >= most if actions is not None else len(names) <= most if chance else len(names) == most
        if not fits:
            raise ValueError(f"{function}: {len(names)} names for {most} actions. Give one per action, or names=None.")

    def label(place: int, slot: int, of_chance: bool) -> str:
        if of_chance:
            return f"outcome {slot}"
        action = slot if actions is None else actions[place, slot]
        if np.ndim(action) or not np.issubdtype(np.asarray(action).dtype, np.integer):
            return "(" + ", ".join(f"{x:.2g}" for x in np.ravel(action)) + ")"
        return names[int(action)] if names is not None and 0 <= action < len(names) else str(int(action))

    return label


def states_of(tree: Tree, positions: Sequence[int], room: int) -> list[Any]:
    """The positions as the model stored them, one by one, without the records of this library's wrappers."""
    state = tree.state
    while isinstance(state, Slots | Kept | Moment):
        state = state.state
    index = jnp.asarray(np.pad(np.asarray(positions, np.int32), (0, room - len(positions))))
    found = _taken(state, index)
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    found = jax.tree.map(lambda x: x if is_key(x) else np.asarray(x), found)
    return [jax.tree.map(operator.itemgetter(i), found) for i in range(len(positions))]


@jax.jit
def _taken(state: Any, index: jax.Array) -> Any:
    return jax.tree.map(lambda x: x[0, index], state)
