"""Models of 2048 with its true rules, from values of afterstates."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8

from jaxzero.games import Game
from jaxzero.games.rules_2048 import CELLS, Board2048, game_2048, outcomes_2048, slid, slides
from jaxzero.models.chance import with_outcomes
from jaxzero.models.rules_with_network import perfect
from jaxzero.types import Model, Params

__all__ = ["afterstate_model", "expectimax_model", "move_values"]

# `(params, cells [..., 16]) -> [...]`: the expected sum of rewards that follow afterstates.
Value = Callable[[Params, UInt8[Array, "... 16"]], Float[Array, "..."]]


def move_values(value: Value, params: Params, cells: UInt8[Array, "... 16"]) -> Float[Array, "... 4"]:
    """The value of each move: its reward plus the value of its afterstate; -inf where it is not legal."""
    after, paid = jnp.vectorize(slides, signature="(n)->(m,n),(m)")(cells)
    legal = jnp.any(after != cells[..., None, :], -1)
    return jnp.where(legal, paid + value(params, after), -jnp.inf)


def afterstate_model(value: Value) -> Model:
    """A model of 2048: a decision has the value of its best move, a chance node that of its afterstate.

    All moves have the same prior. Values are points, not numbers between -1 and 1: for the Gumbel search give
    `completed_by_mix_value(epsilon=1.0)`, and PUCT or UCB1 constants of their size.

    Args:
        value: of afterstates, like that of `nets.ntuples`.

    >>> import jaxzero as jz
    >>> from jaxzero.models.chance import for_actions
    >>> model = afterstate_model(lambda params, cells: 100.0 * jnp.sum(cells == 0, -1))  # empty cells are good
    >>> plan = for_actions(jz.gumbel(model, 8, max_considered=4, gumbel_scale=0.0), 4)
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> jax.jit(plan)(None, keys, jax.vmap(game_2048().init)(keys)).action.shape
    (3,)
    """

    def afterstate(params: Params, state: Board2048, action: Int[Array, "B"]) -> Float[Array, "B"]:
        after, paid = jax.vmap(slid)(state.cells, action)
        return paid + value(params, after)

    game, model = _best_moves(value)
    return with_outcomes(model, game, outcomes_2048(), afterstate=afterstate)


def expectimax_model(value: Value) -> Model:
    """As `afterstate_model`, but a chance node's value is the expectation over its tiles: one ply of expectimax each.

    So the first visit of each action gives 2-ply expectimax. With values learned by temporal differences this plays far
    better, at a cost of 128 afterstates per simulation.

    Args:
        value: of afterstates, like that of `nets.ntuples`.

    >>> import jaxzero as jz
    >>> from jaxzero.models.chance import for_actions
    >>> model = expectimax_model(lambda params, cells: 100.0 * jnp.sum(cells == 0, -1))
    >>> plan = for_actions(jz.gumbel(model, 8, max_considered=4, gumbel_scale=0.0), 4)
    >>> keys = jax.random.split(jax.random.key(0), 3)
    >>> jax.jit(plan)(None, keys, jax.vmap(game_2048().init)(keys)).action.shape
    (3,)
    """

    def outcome_values(params: Params, state: Board2048, action: Int[Array, "B"]) -> Float[Array, "B 32"]:
        after, paid = jax.vmap(slid)(state.cells, action)
        added = jnp.arange(1, 3, dtype=after.dtype)[:, None] * jnp.eye(CELLS, dtype=after.dtype)[:, None]  # [16, 2, 16]
        best = move_values(value, params, after[:, None] + added.reshape(1, 2 * CELLS, CELLS)).max(-1)
        return paid[:, None] + jnp.where(jnp.isfinite(best), best, 0.0)

    game, model = _best_moves(value)
    return with_outcomes(model, game, outcomes_2048(), outcome_values=outcome_values)


def _best_moves(value: Value) -> tuple[Game, Model]:
    """The game, with its cells as observation, and the model whose value is that of the best move."""
    game = game_2048()._replace(observe=lambda state: state.cells, observation_shape=(CELLS,))

    def net(params: Params, cells: UInt8[Array, "B 16"]) -> tuple[Array, Float[Array, "B"]]:
        best = move_values(value, params, cells).max(-1)
        return jnp.zeros((len(cells), 4)), jnp.where(jnp.isfinite(best), best, 0.0)

    return game, perfect(game, net)
