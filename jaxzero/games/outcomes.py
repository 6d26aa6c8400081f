"""The outcomes of chance that the rules of a game list: the tiles of 2048, the rolls of two dice."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import Keys, State

__all__ = ["Outcomes", "by_keys", "sampled"]


class Outcomes(NamedTuple):
    """How chance completes a step of a game, for one position each.

    Attributes:
        count: C, a Python int: the most outcomes that a step can have.
        probabilities: `(state, action) -> [C]`, which add up to 1; 0 for what cannot happen. Where nothing is left to
            chance, 1 for one outcome.
        step: `(state, action, outcome, key) -> state`: the action taken and the outcome added, an unpacked state. The
            key is that of the chance node, the same for all of its outcomes; exact ones do without.
        happens: `(state, action, following) -> bool`: whether chance had a part in the step that led to `following`.
            If not, no chance node is made. It is asked about one outcome, and must give the same answer for all. None:
            chance has a part where more than one outcome has a probability above 0.
    """

    count: int
    probabilities: Callable[[State, Int[Array, ""]], Float[Array, "C"]]
    step: Callable[[State, Int[Array, ""], Int[Array, ""], chex.PRNGKey], State]
    happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None


def sampled(
    game: Any, count: int, happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None
) -> Outcomes:
    """C outcomes drawn for every chance node, each worth 1/C: a step with a key folded from the node's own.

    Args:
        game: the rules; `game.step` draws with the key it is given.
        count: C.
        happens: see `Outcomes`; None: with every step. In backgammon the dice are rolled when the turn passes:
            `lambda state, action, following: game.to_play(state) != game.to_play(following)`.

    Raises:
        ValueError: fewer than two outcomes.

    >>> from jaxzero import games
    >>> game = games.from_pgx("2048")
    >>> sampled(game, 8).probabilities(game.init(jax.random.key(0)), 3).tolist()
    [0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125, 0.125]
    """
    if count < 2:
        raise ValueError(
            f"sampled(count={count}): a chance node needs two outcomes or more. Use count >= 2, or the model without "
            "chance nodes, which draws one outcome per edge."
        )
    return Outcomes(
        count,
        probabilities=lambda state, action: jnp.full(count, 1 / count),
        step=lambda state, action, outcome, key: game.step(state, action, jax.random.fold_in(key, outcome)),
        happens=happens,
    )


def by_keys(
    game: Any,
    keys: Keys,
    probabilities: Float[Array, "C"],
    happens: Callable[[State, Int[Array, ""], State], Bool[Array, ""]] | None = None,
) -> Outcomes:
    """All outcomes of a game whose chance depends on the key alone, like dice: given by C keys that produce them.

    Args:
        game: the rules.
        keys: one for each outcome, `[C]`, of a generator whose draws are the same in a batch: threefry, jax's default.
        probabilities: of the outcomes, which add up to 1.
        happens: see `Outcomes`; None: with every step.

    Raises:
        ValueError: another number of probabilities than of keys, or fewer than two.

    A game of three steps, each of which pays what a die of two sides shows, 1 or 2:

    >>> from jaxzero import games
    >>> die = lambda key: 1 + jax.random.randint(key, (), 0, 2)
    >>> dice = games.Game(
    ...     id="dice", num_actions=1, num_players=1, observation_shape=(),
    ...     init=lambda key: jnp.zeros(2, jnp.int32),
    ...     step=lambda state, action, key: jnp.stack([state[0] + 1, die(key)]),
    ...     observe=lambda state: state[0].astype(jnp.float32),
    ...     legal=lambda state: state[:1] < 3,
    ...     to_play=lambda state: jnp.int32(0),
    ...     terminal=lambda state: state[0] >= 3,
    ...     rewards=lambda state: state[1:].astype(jnp.float32),
    ... )  # fmt: skip
    >>> keys = jax.random.split(jax.random.key(0), 20)
    >>> shown = [int(die(key)) for key in keys]
    >>> outcomes = by_keys(dice, jnp.stack([keys[shown.index(1)], keys[shown.index(2)]]), jnp.array([0.5, 0.5]))
    >>> [outcomes.step(jnp.zeros(2, jnp.int32), 0, i, None).tolist() for i in (0, 1)]
    [[1, 1], [1, 2]]
    """
    count = len(keys)
    if count < 2 or jnp.shape(probabilities) != (count,):
        raise ValueError(
            f"by_keys with {count} keys and probabilities of shape {jnp.shape(probabilities)}: give two keys or more, "
            f"and one probability for each, [{count}]."
        )
    return Outcomes(
        count,
        probabilities=lambda state, action: jnp.asarray(probabilities),
        step=lambda state, action, outcome, key: game.step(state, action, keys[outcome]),
        happens=happens,
    )
