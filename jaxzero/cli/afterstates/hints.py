"""Hints for 2048: the value of each move, from values of afterstates, with or without a search."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxzero.cli.afterstates.evaluation import searcher
from jaxzero.games.rules_2048 import Board2048
from jaxzero.models.chance_2048 import move_values
from jaxzero.play.game_2048.session import Hint, Look, Turn
from jaxzero.types import Params

__all__ = ["looking"]


def looking(value: Callable, params: Params, simulations: int) -> Look:
    """Builds the function that rates the moves of a position: by Q-values of a search, or by the network alone.

    Args:
        value: of afterstates, like that of `nets.ntuples`.
        params: its parameters.
        simulations: of the search; 0: no search. A move that the search does not visit gets the network's value.
    """
    search = searcher(value, simulations) if simulations else None

    @jax.jit
    def found(params: Params, cells: Array, key: Array) -> tuple[Array, Array, Array]:
        said = move_values(value, params, cells)
        if search is None:
            return said, jnp.zeros(4, jnp.int32), jnp.argmax(said)
        board = Board2048(cells, jnp.float32(0), jnp.bool_(False))
        out = search(params, jax.random.split(key, 1), jax.tree.map(lambda x: x[None], board))
        root = out.info.summary
        values = jnp.where(root.visits[0] > 0, root.qvalues[0], said)
        return jnp.where(jnp.isfinite(said), values, -jnp.inf), root.visits[0], out.action[0]

    def look(turn: Turn) -> Hint:
        values, visits, best = map(np.asarray, found(params, turn.cells, turn.key))
        return Hint(tuple(map(float, values)), tuple(map(int, visits)), int(best))

    return look
