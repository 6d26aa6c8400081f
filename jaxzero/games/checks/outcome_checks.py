"""Checks by random play that the listed outcomes of a game are those that its steps draw."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.game import Game
from jaxzero.types import State

__all__ = ["check_outcomes"]

SURE = 6.0  # standard deviations between how often an outcome came and how often it should have
OFF = 1e-3  # how far a sum of probabilities may be from 1


class Drawn(NamedTuple):
    """Steps of random play, `[N, ...]`.

    Attributes:
        chances: the probabilities of the outcomes, as they are given.
        same: whether the position that was drawn equals that of the outcome, in everything that the game tells of them.
        fixed: whether the outcomes are the same for every key.
        going: whether the game was not over.
        action: the action taken.
        missed: whether the position depends on the outcome, although `happens` says that chance had no part.
    """

    chances: Array
    same: Array
    fixed: Array
    going: Array
    action: Array
    missed: Array


def check_outcomes(game: Game, steps: int = 2000) -> None:
    """Plays at random, and compares what the steps draw with `Game.outcomes`; takes some seconds of compiling.

    Positions are compared by observation, legal actions, player to move, end and rewards, not by how they are stored:
    the order of two dice may differ. For outcomes that are themselves drawn (`games.outcomes.sampled`), only the sum of
    the probabilities is checked.

    Args:
        game: one whose outcomes are listed; of others nothing is checked.
        steps: N, of random play.

    Raises:
        ValueError: what `check_rules` raises; probabilities that are negative, not finite, or do not add up
            to 1; a step that leads to none of the outcomes, or to one whose probability is 0; outcomes that occur more
            or less often than they should, by six standard deviations; a `happens` that denies them.

    >>> from jaxzero import games
    >>> game = games.game_2048()
    >>> even = game.outcomes._replace(probabilities=lambda state, action: jnp.full(32, 1 / 40))
    >>> check_outcomes(game._replace(outcomes=even), steps=20)
    Traceback (most recent call last):
    ValueError: game 2048: the probabilities of its outcomes add up to 0.8 at a step: 0.2 too little.
    """
    check_rules(game)
    if game.outcomes is None:
        return
    who = f"game {game.id}"
    lanes = min(steps, 20)
    play = jax.jit(jax.vmap(lambda key: _played(game, key, -(-steps // lanes))))
    drawn = jax.tree.map(np.asarray, play(jax.random.split(jax.random.key(0), lanes)))
    drawn = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[drawn.going.ravel()], drawn)
    chances = drawn.chances.astype(np.float64)
    _check_chances(who, chances)
    if drawn.fixed.all():
        _check_steps(who, chances, drawn, lambda action: _names(game)[int(action)])


def _check_chances(who: str, chances: np.ndarray) -> None:
    if not np.isfinite(chances).all() or (chances < 0).any():
        bad = chances[~np.isfinite(chances) | (chances < 0)][0]
        raise ValueError(f"{who}: a probability of its outcomes is {bad:g}: give numbers between 0 and 1.")
    off = chances.sum(1) - 1
    if np.abs(off).max() > OFF:
        worst = off[np.argmax(np.abs(off))]
        way = "too much" if worst > 0 else "too little"
        raise ValueError(
            f"{who}: the probabilities of its outcomes add up to {1 + worst:.4g} at a step: {abs(worst):.4g} {way}."
        )


def _check_steps(who: str, chances: np.ndarray, drawn: Drawn, called: Callable[[Array], str]) -> None:
    same, none = drawn.same, ~drawn.same.any(1)
    if none.any():
        raise ValueError(
            f"{who}: action {called(drawn.action[np.argmax(none)])} led to a position that is none of its outcomes. Is "
            "an outcome missing, or does outcomes.step make other positions than step?"
        )
    possible = same * chances
    if not (there := possible.any(1)).all():
        which = int(np.argmax(same[np.argmin(there)]))
        action = called(drawn.action[np.argmin(there)])
        raise ValueError(f"{who}: action {action} drew outcome {which}, whose probability is 0 there.")
    if drawn.missed.any():
        action = called(drawn.action[np.argmax(drawn.missed)])
        raise ValueError(
            f"{who}: the outcomes of action {action} differ, but outcomes.happens is False there: leave happens out, "
            "or return True there."
        )
    came = (possible / possible.sum(1, keepdims=True)).sum(0)  # several outcomes may lead to the same position
    spread = np.sqrt(np.maximum((chances * (1 - chances)).sum(0), 1.0))
    apart = (came - chances.sum(0)) / spread
    which = int(np.argmax(np.abs(apart)))
    if abs(apart[which]) > SURE:
        raise ValueError(
            f"{who}: outcome {which} occurred {came[which]:.0f} times in {len(chances)} steps, but by its "
            f"probabilities about {chances[:, which].sum():.0f} were expected."
        )


def _played(game: Game, key: Any, steps: int) -> Drawn:
    """One lane of random play."""
    outcomes = game.outcomes
    assert outcomes is not None

    def one(state: State, key: Any) -> tuple[State, Drawn]:
        pick, draw, other, new = jax.random.split(key, 4)
        legal = game.legal(state)
        action = jax.random.categorical(pick, jnp.where(legal, 0.0, -1e9))
        after, packed = game.step(state, action, draw), game.pack(state)
        numbers = jnp.arange(outcomes.count)
        listed, again = (
            jax.vmap(lambda i, k=k: _facets(game, outcomes.step(packed, action, i, k)))(numbers) for k in (draw, other)
        )
        chances, same = outcomes.probabilities(packed, action), _equal(_facets(game, after), listed)
        differ = jnp.any((chances > 0) & ~same)
        told = Drawn(
            chances=chances,
            same=same,
            fixed=jnp.all(_equal(again, listed)),
            going=jnp.any(legal),
            action=action,
            missed=jnp.bool_(False) if outcomes.happens is None else differ & ~outcomes.happens(packed, action, after),
        )
        fresh = game.init(new)
        return jax.tree.map(lambda x, y: jnp.where(game.terminal(after), x, y), fresh, after), told

    begin, rest = jax.random.split(key)
    return jax.lax.scan(one, game.init(begin), jax.random.split(rest, steps))[1]


def _names(game: Game) -> tuple[str, ...]:
    """What actions are called, for messages."""
    return game.action_names or tuple(str(i) for i in range(game.num_actions))


def _facets(game: Game, state: State) -> tuple[Array, ...]:
    """All that a game says of a position."""
    asked = game.observe, game.legal, game.to_play, game.terminal, game.rewards
    return tuple(ask(state) for ask in asked)


def _equal(one: tuple[Array, ...], many: tuple[Array, ...]) -> Array:
    """Which of many positions equal one position; or, for as many others, which are equal pair by pair, `[C]`."""
    agree = [jnp.all(x == y, axis=tuple(range(1, y.ndim))) for x, y in zip(one, many)]
    return functools.reduce(jnp.logical_and, agree)
