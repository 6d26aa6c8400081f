"""The search that networks are evaluated with, and what of a game's rules it makes use of."""

from collections.abc import Callable
from typing import Any

import jax

import jaxzero as jz
from jaxzero.cli.training.settings import VALUE_SCALE
from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.models.chance import with_listed_outcomes
from jaxzero.models.decisive_moves import with_decisive_moves
from jaxzero.search.qvalues import completed_by_mix_value

__all__ = ["draws", "provable", "seeing_decisive", "sees_decisive", "to_win"]


def to_win(
    game: Any, model: Any, simulations: int, considered: int | None = None, value_scale: float = VALUE_SCALE
) -> Callable:
    """The search that networks are judged with: it does not explore, and proves what can be proven.

    It sees decisive moves where the game names them (`seeing_decisive`).

    In games for two without chance, values count as they are. mctx maps them to [0, 1] at each node first; then noise
    between nearly equal moves weighs as much as a win. The gain is in experiments/strength/README.md. For other games
    this was not tried, and a win may pay less than 1 there (a third in backgammon).

    Args:
        game: its rules.
        model: what the tree is made of.
        simulations: per move.
        considered: moves at the root; default 16, or as many as there are simulations.
        value_scale: c_scale (Danihelka et al. 2022), for games whose values count as they are. A win pays 1.
    """
    fixed: dict[str, Any] = dict(max_considered=considered, gumbel_scale=0.0)
    if provable(game):
        fixed |= dict(qvalues=completed_by_mix_value(value_scale, rescale_values=False), wrap=jz.avoid_proven)
    model = seeing_decisive(game, model)
    return with_listed_outcomes(lambda model: jz.gumbel(model, simulations, **fixed), model, game)


def provable(game: Any) -> bool:
    """Whether a search can prove the values of positions: in games for two players without chance.

    An edge of a search without nodes for chance keeps the one outcome that was drawn, which proves nothing.
    """
    return game.num_players == 2 and not draws(game)


def sees_decisive(game: Any) -> bool:
    """Whether our searches by the rules see decisive moves: where the game names them (`models.decisive_moves`)."""
    return game.decisive is not None and provable(game)


def seeing_decisive(game: Any, model: Any) -> Any:
    """The model that our searches by the rules look ahead with: it sees decisive moves where the game names them."""
    return with_decisive_moves(game, model) if sees_decisive(game) else model


def draws(game: Any) -> bool:
    """Whether steps of a game draw from their key, or its outcomes are listed."""
    return game.outcomes is not None or depends_on_key(game.step, jax.eval_shape(game.init, jax.random.key(0)))
