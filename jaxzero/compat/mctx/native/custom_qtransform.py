"""A user's Q transform on jaxzero's tree: one node's row, shown as mctx's transforms expect it.

A transform `(tree, node_index) -> [A]` usually reads nothing but the row of the node that it is asked about. Here it
gets an object with that row, and an index that can only be used for indexing. If the transform reads more, or computes
with the index, this raises, and the front searches on the plain path instead.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.compat.mctx._src.tree import Tree
from jaxzero.types import EdgeView

__all__ = ["ask", "reads_one_row"]


class NotOneRow(TypeError):
    """A transform asked for more than its own node's row; the plain search can answer that."""


class ThisNode:
    """Stands for the index of the one node that a transform is asked about: good for indexing, and for nothing else."""

    shape, ndim, dtype = (), 0, jnp.dtype(jnp.int32)

    def _refuse(self, *_: Any) -> Any:
        raise NotOneRow("The node's index is unknown here.")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __index__ = __int__ = __bool__ = __jax_array__ = __array__ = (
        _refuse
    )
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __hash__ = object.__hash__


class Row:
    """An array `[N, ...]` of which one row is known."""

    def __init__(self, row: Array):
        self._row = row

    def __getitem__(self, index: Any) -> Array:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if not isinstance(first, ThisNode):
            raise NotOneRow("Only the row of the transform's own node is known.")
        return self._row[tuple(rest)] if rest else self._row


class OneNode:
    """What a Q transform may read of a `Tree`, for one node of one game, taken from jaxzero's view of that node."""

    ROOT_INDEX, NO_PARENT, UNVISITED = Tree.ROOT_INDEX, Tree.NO_PARENT, Tree.UNVISITED

    def __init__(self, view: EdgeView, root_invalid_actions: Array, extra_data: Any):
        self.children_prior_logits, self.children_visits = Row(view.prior), Row(view.visits)
        self.children_rewards, self.children_discounts = Row(view.reward), Row(view.discount)
        self.children_values, self._qvalues = Row(view.child_value), Row(view.value)
        self.node_visits, self.node_values, self.raw_values = map(
            Row, (view.node_visits, view.node_value, view.raw_value)
        )
        self.root_invalid_actions, self.extra_data = root_invalid_actions, extra_data
        self.num_actions = view.visits.shape[-1]

    def qvalues(self, indices: Any) -> Array:
        """See `Tree`."""
        return self._qvalues[indices]


def ask(transform: Callable, view: EdgeView, games: tuple[Array, Any]) -> Float[Array, "... A"]:
    """A user's transform at every node of a view, `[G, A]` or `[G, K, A]`.

    Args:
        transform: `(tree, node_index) -> [A]`.
        view: its prior must be the prior logits.
        games: `(root_invalid_actions, extra_data)` of all games.
    """
    one = lambda view, games: transform(OneNode(view, *games), ThisNode())
    if view.node_visits.ndim == 2:
        one = jax.vmap(one, (0, None))
    game = view.game.reshape(view.game.shape[0], -1)[:, 0]  # all nodes of a row are of the same game
    games = jax.tree.map(lambda x: jnp.asarray(x)[game], games)
    return jax.vmap(one)(view._replace(root=None, game=None), games)


def reads_one_row(transform: Callable, like: tuple[Array, Array, tuple[Array, Any]]) -> bool:
    """Whether one row is enough for a transform. A transform with an error of its own fails again on the plain path.

    Args:
        transform: `(tree, node_index) -> [A]`.
        like: prior logits `[B, A]`, values `[B]` and `games` as for `ask`, for their shapes and types.
    """

    def first(logits: Array, value: Array, games: tuple[Array, Any]) -> Array:
        visits, zeros = jnp.zeros(logits.shape, jnp.int32), jnp.zeros(logits.shape, value.dtype)
        view = EdgeView(
            game=jnp.arange(value.shape[0]),
            action=visits,
            prior=logits,
            visits=visits,
            value=zeros,
            reward=zeros,
            discount=zeros,
            child_value=zeros,
            node_visits=visits[:, 0],
            node_value=value,
            raw_value=value,
            unvisited_mass=value,
        )
        return ask(transform, view, games)

    try:
        return jax.eval_shape(first, *like).shape == like[0].shape
    except Exception:  # whatever it is: the plain path either works or shows the error
        return False
