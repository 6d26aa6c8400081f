"""A small game of chance for any number of players, in any order of play, twice: as a `Game`, and solved by hand.

In the order of `order`, players choose one of three ways to go: sure, even or bold. Each gains a random number, and
takes a part of it from the next player. At the end, each player is paid the lead over the mean; a single player is paid
every gain at once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.games import Game
from jaxzero.models import perfect
from jaxzero.models.chance import Outcomes
from jaxzero.types import Model

GAIN = np.array([[1.4, 1.4, 1.4, 1.4], [0.0, 1.2, 2.3, 3.4], [-2.0, 0.4, 3.1, 5.2]])
CHANCE = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25], [0.2, 0.3, 0.35, 0.15]])
TAKEN = np.array([0.1, 0.6, 0.35])
SCALE = 3.0


class State(NamedTuple):
    score: Any  # [P]
    ply: Any
    paid: Any  # [P]


def chances(order: tuple[int, ...], ply: Any) -> Any:
    """The bold way gets bolder: probabilities [3, 4] that depend on the state."""
    luck = 1.0 + ply / len(order)
    weights = CHANCE * np.where(np.arange(4) > 1, luck, 1.0) if isinstance(ply, int) else None
    if weights is None:
        weights = jnp.asarray(CHANCE) * jnp.where(jnp.arange(4) > 1, luck, 1.0)
    return weights / weights.sum(-1, keepdims=True)


def following(order: tuple[int, ...], state: State, action: Any, outcome: Any) -> State:
    players = len(state.score)
    over, mover = state.ply >= len(order), jnp.array((*order, 0))[state.ply]
    gain = jnp.asarray(GAIN, jnp.float32)[action, outcome]
    score = state.score + gain * jax.nn.one_hot(mover, players)
    if players == 1:
        paid = gain[None] / SCALE
    else:
        score -= jnp.asarray(TAKEN, jnp.float32)[action] * gain * jax.nn.one_hot((mover + 1) % players, players)
        last = state.ply + 1 == len(order)
        paid = jnp.where(last, (score - score.mean()) / SCALE, 0.0)
    return State(jnp.where(over, state.score, score), state.ply + ~over, jnp.where(over, 0.0, paid))


def race(order: tuple[int, ...], players: int) -> tuple[Game, Outcomes]:
    """The game, which draws the outcomes with its key, and the outcomes."""

    def probabilities(state: State, action: Any) -> jax.Array:
        return chances(order, state.ply)[action]

    def step(state: State, action: Any, key: Any) -> State:
        return following(order, state, action, jax.random.categorical(key, jnp.log(probabilities(state, action))))

    game = Game(
        id="race",
        num_actions=3,
        num_players=players,
        observation_shape=(players + 1,),
        init=lambda key: State(jnp.zeros(players), jnp.int32(0), jnp.zeros(players)),
        step=step,
        observe=lambda state: jnp.append(state.score, state.ply).astype(jnp.float32),
        legal=lambda state: jnp.ones(3, bool) & (state.ply < len(order)),
        to_play=lambda state: jnp.array((*order, order[-1]))[state.ply],
        terminal=lambda state: state.ply >= len(order),
        rewards=lambda state: state.paid,
        pack=lambda state: state,
        symmetries=(),
    )
    outcomes = Outcomes(4, probabilities, lambda state, action, outcome, key: following(order, state, action, outcome))
    return game, outcomes


def know_nothing(game: Game, discount: float = 1.0) -> Model:
    """The game's rules, and a network that says 0."""
    players = (game.num_players,) if game.num_players > 2 else ()
    return perfect(game, lambda params, x: (jnp.zeros((len(x), 3)), jnp.zeros((len(x), *players))), discount)


def solve(
    order: tuple[int, ...], players: int, discount: float = 1.0, team_of: tuple[int, ...] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Best play: the value of each action for every player (or team), and the value for the player who moves first.

    By plain recursion over everything that can happen: expectimax, max^n.
    """
    team_of = tuple(range(players)) if team_of is None else team_of
    teams = max(team_of) + 1

    def worth(score: np.ndarray, ply: int) -> np.ndarray:
        if ply == len(order):
            ahead = (score - score.mean()) / SCALE if players > 1 else np.zeros(1)
            return np.array([ahead[[t == team for t in team_of]].mean() for team in range(teams)])
        return max(of_actions(score, ply), key=lambda value: value[team_of[order[ply]]])

    def of_actions(score: np.ndarray, ply: int) -> list[np.ndarray]:
        mover, found = order[ply], []
        for action in range(3):
            value = np.zeros(teams)
            for p, gain in zip(chances(order, ply)[action], GAIN[action]):
                if p > 0:
                    after, paid = score.copy(), np.zeros(teams)
                    after[mover] += gain
                    if players > 1:
                        after[(mover + 1) % players] -= TAKEN[action] * gain
                    else:
                        paid[0] = gain / SCALE
                    value += p * (paid + discount * worth(after, ply + 1))
            found.append(value)
        return found

    first = np.array(of_actions(np.zeros(players), 0))
    return first, first[:, team_of[order[0]]]
