"""Backgammon by pgx's rules, with its dice listed, and observations for a network."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxzero.games.game import Game
from jaxzero.games.outcomes import Outcomes, by_keys
from jaxzero.games.pgx_adapter import from_pgx
from jaxzero.types import State

__all__ = ["backgammon"]

POINTS, BAR, OFF = 24, slice(24, 26), slice(26, 28)  # of pgx's board: the mover's checkers count up, the other's down
CHECKERS, FEATURES = 15, 2 * 4 * POINTS + 2 + 2 + 6
STAKE = 3.0  # what a backgammon pays: rewards are shares of it, so that values lie in -1 ... 1


@functools.cache  # one record, as from_pgx keeps
def backgammon() -> Game:
    """Backgammon without doubling, for two players: the rules of pgx (Koyamada et al. 2023), one checker an action.

    Action 6 s + d moves a checker by d + 1 pips, from the bar (s = 1) or point s − 2; s = 0 passes, where no checker
    can move. When all dice are played, the turn passes and the other player's dice are rolled; that is the only chance.
    As in pgx, a player need not play so that both dice can be used. A win pays 1/3, a gammon 2/3, a backgammon 1.

    Observations are numbers `[202]`, from the view of the player to move, as TD-Gammon's (Tesauro 1992, "Practical
    Issues in Temporal Difference Learning"): for each point and player whether there are at least one, two and three
    checkers, and half of how many more; half of those on the bar; the share of those borne off. Then for each number of
    pips how many dice are still to be played, in quarters.

    Raises:
        ImportError: pgx is not installed.

    >>> game = backgammon()
    >>> state = game.init(jax.random.key(0))
    >>> game.num_actions, game.outcomes.count, game.observe(state).shape
    (156, 21, (202,))
    """
    rules = from_pgx("backgammon")
    return rules._replace(
        observation_shape=(FEATURES,),
        observe=_observed,
        rewards=lambda state: rules.rewards(state) / STAKE,
        action_names=_names(),
        draw=lambda state: state.to_svg(),
        text=_text,
        outcomes=_rolls(rules),
    )


def _observed(state: State) -> Float[Array, "202"]:
    board, dice = state._board, state._playable_dice
    points = jnp.stack([board[:POINTS], -board[:POINTS]])
    steps = jnp.stack([points >= 1, points >= 2, points >= 3, jnp.maximum(points - 3, 0) / 2]).astype(jnp.float32)
    left = jnp.sum(dice[:, None] == jnp.arange(6), 0) / 4
    signs = jnp.array([1, -1])
    return jnp.concatenate([steps.ravel(), signs * board[BAR] / 2, signs * board[OFF] / CHECKERS, left])


def _rolls(rules: Game) -> Outcomes:
    """The 21 rolls of two dice, in the order of their pips. pgx makes a roll from its key alone, as is done here."""
    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), 500)  # its draws are the same in a batch
    roll = lambda key: jnp.sort(jax.random.randint(key, (1, 2), 0, 6, jnp.int32)[0])
    rolls, found = np.unique(np.asarray(jax.vmap(roll)(keys)), axis=0, return_index=True)
    assert len(rolls) == 21  # 500 keys bring about every roll

    def turn_passes(state: State, action: Int[Array, ""], following: State) -> Bool[Array, ""]:
        return (rules.to_play(state) != rules.to_play(following)) & ~rules.terminal(following)

    return by_keys(rules, keys[found], jnp.where(rolls[:, 0] == rolls[:, 1], 1 / 36, 2 / 36), turn_passes)


def _text(state: State) -> str:
    """Checkers by points, as the mover counts them, and the dice that are left."""
    board, dice = np.asarray(state._board).tolist(), np.asarray(state._playable_dice).tolist()
    lines = []
    for who, sign, bar, off in (("Yours", 1, 24, 26), ("Theirs", -1, 25, 27)):
        held = [f"{sign * board[p]} on {POINTS - p}" for p in range(POINTS) if sign * board[p] > 0]
        held += [f"{sign * board[bar]} on the bar"] if board[bar] else []
        held += [f"{sign * board[off]} borne off"] if board[off] else []
        lines.append(f"{who}: {', '.join(held)}")
    return "\n".join([*lines, f"Dice: {' '.join(str(d + 1) for d in dice if d >= 0)}"])


def _names() -> tuple[str, ...]:
    """From/pips, points counted from the mover's end as players do: 24/3 moves the hindmost checker three pips."""
    where = ["pass", "bar", *(str(POINTS - point) for point in range(POINTS))]
    return tuple(f"{name}/{pips}" for name in where for pips in range(1, 7))
