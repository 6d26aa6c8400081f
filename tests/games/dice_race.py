"""A race of two with a die, small enough to be solved: walk two squares, or roll for one or four."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxzero.games import Game, Outcomes

GOAL, WALK, ROLLS, CHANCES = 7, 2, (1, 4), (0.6, 0.4)


class Race(NamedTuple):
    """Squares of both, who moves, and what the last step paid."""

    squares: jax.Array
    mover: jax.Array
    paid: jax.Array


def moved(race, squares):
    over = jnp.any(race.squares >= GOAL)
    there = race.squares.at[race.mover].add(squares)
    won = there[race.mover] >= GOAL
    sides = jnp.where(jnp.arange(2) == race.mover, 1.0, -1.0)
    after = Race(there, 1 - race.mover, jnp.where(won, sides, 0.0))
    return jax.tree.map(lambda new, old: jnp.where(over, old, new), after, race._replace(paid=jnp.zeros(2)))


def rolled(race, action, outcome, key):
    return moved(race, jnp.where(action == 1, jnp.array(ROLLS)[outcome], WALK))


game = Game(
    id="dice_race",
    num_actions=2,
    num_players=2,
    observation_shape=(2 * GOAL + 8,),
    init=lambda key: Race(jnp.zeros(2, jnp.int32), jnp.int32(0), jnp.zeros(2)),
    step=lambda race, action, key: rolled(race, action, jax.random.bernoulli(key, CHANCES[1]).astype(int), key),
    observe=lambda race: jax.nn.one_hot(jnp.roll(race.squares, -race.mover), GOAL + 4).ravel(),
    legal=lambda race: jnp.ones(2, bool) & jnp.all(race.squares < GOAL),
    to_play=lambda race: race.mover,
    terminal=lambda race: jnp.any(race.squares >= GOAL),
    rewards=lambda race: race.paid,
    action_names=("walk", "roll"),
    outcomes=Outcomes(
        2, lambda race, action: jnp.where(action == 1, jnp.array(CHANCES), jnp.array([1.0, 0.0])), rolled
    ),
)


@functools.cache
def action_values(mine: int, other: int) -> tuple[float, float]:
    """What walking and rolling are worth to the player to move, by best play of both."""

    def after(squares):
        return 1.0 if mine + squares >= GOAL else -max(action_values(other, mine + squares))

    return after(WALK), sum(p * after(squares) for p, squares in zip(CHANCES, ROLLS))
