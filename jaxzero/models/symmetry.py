"""Symmetric evaluation: a network's answers averaged over a position's symmetric forms, or one form drawn.

A game's symmetries (`Game.symmetries`) leave its rules as they are, but a network that was not built for them answers
each form of a position a little differently. Two remedies, after Silver et al. 2016, "Mastering the game of Go with
deep neural networks and tree search", methods ("symmetries"):

* `averaged`, their explicit ensemble: the mean over all S forms. It is the same for every form of a position, at S
  times the cost (8 for Go). For play at full strength.
* `drawn`, their implicit ensemble, also used by AlphaGo Zero (Silver et al. 2017): one form, drawn for each evaluation.
  It costs next to nothing, and a search averages the network's preferences for single forms over its leaves.

**The mean is of logits**, not of probabilities as in that paper: a network knows no legal actions, and a mean of
probabilities weights each form by how little it gives to illegal actions. The mean of logits, masked, is the
normalised geometric mean of the masked policies, whatever the logits of illegal actions are. Values have their plain
mean.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.games import Game
from jaxzero.models.game_rules import Network
from jaxzero.models.rules_with_network import perfect
from jaxzero.types import Keys, Model, Params, State, Step

__all__ = ["averaged", "drawn"]


def averaged(game: Game, network: Network) -> Network:
    """The network's mean over all symmetries of the game, as a network; one call on `[S · B]` observations.

    Args:
        game: whose symmetries.
        network: `(params, observation [B, ...]) -> (logits [B, A], value)`.

    Raises:
        ValueError: the game names no symmetry, not even the identity.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> corner = lambda params, obs: (jnp.tile(jnp.eye(9)[0], (len(obs), 1)), jnp.zeros(len(obs)))
    >>> logits, value = averaged(game, corner)(None, jnp.zeros((1, 3, 3, 2)))
    >>> logits[0].tolist()  # liked the first square; now likes every corner
    [0.25, 0.0, 0.25, 0.0, 0.0, 0.0, 0.25, 0.0, 0.25]
    """
    back = _back(game)

    def mean(params: Params, observation: Float[Array, "B ..."]) -> tuple[Array, Array]:
        forms = [jax.vmap(symmetry.observation)(observation) for symmetry in game.symmetries]
        logits, value = network(params, jnp.concatenate(forms))
        logits, value = (x.reshape(len(forms), -1, *x.shape[1:]) for x in (logits, value))
        turned = jnp.take_along_axis(logits, jnp.asarray(back)[:, None], -1)
        return jnp.mean(turned, 0), jnp.mean(value, 0)

    return mean


def drawn(game: Game, network: Network, build: Callable[[Game, Network], Model] = perfect) -> Model:
    """A model whose network sees each position in one of its symmetric forms, drawn uniformly.

    The draw depends on the key that the search hands to the model, and so on the game's key and the simulation only.

    Args:
        game: whose symmetries.
        network: `(params, observation [B, ...]) -> (logits [B, A], value)`.
        build: makes a model of a game and a network; `functools.partial(models.perfect, discount=0.9)` for another γ.

    Raises:
        ValueError: the game names no symmetry, not even the identity.

    >>> import jaxzero as jz
    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> corner = lambda params, obs: (jnp.tile(9 * jnp.eye(9)[0], (len(obs), 1)), jnp.zeros(len(obs)))
    >>> keys = jax.random.split(jax.random.key(0), 50)
    >>> step, _ = drawn(game, corner).root(None, keys, jax.vmap(game.init)(keys))
    >>> sorted(set(jnp.argmax(step.prior_logits, -1).tolist()))  # each game likes some corner
    [0, 2, 6, 8]
    """
    back = _back(game)

    def form(params: tuple[Any, Int[Array, "B"]], observation: Float[Array, "B ..."]) -> tuple[Array, Array]:
        params, which = params
        turns = [symmetry.observation for symmetry in game.symmetries]
        seen = jax.vmap(lambda i, x: jax.lax.switch(i, turns, x))(which, observation)
        logits, value = network(params, seen)
        return jnp.take_along_axis(logits, jnp.asarray(back)[which], -1), value

    model = build(game, form)

    def prepared(params: Params, keys: Keys) -> tuple[tuple[Params, Array], Keys]:
        keys = jax.vmap(jax.random.split)(keys)
        return (params, jax.vmap(lambda key: jax.random.randint(key, (), 0, len(back)))(keys[:, 1])), keys[:, 0]

    def root(params: Params, keys: Keys, state: State) -> tuple[Step, State]:
        return model.root(*prepared(params, keys), state)

    def step(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State]:
        return model.step(*prepared(params, keys), action, embedding)

    first, second = model.move, model.evaluate
    if first is None or second is None:
        return Model(root, step)

    def move(params: Params, keys: Keys, action: Int[Array, "B"], embedding: State) -> tuple[Step, State, State]:
        return first(*prepared(params, keys), action, embedding)

    def evaluate(params: Params, keys: Keys, position: State) -> tuple[Array, Array]:
        return second(*prepared(params, keys), position)

    return Model(root, step, move, evaluate)


def _back(game: Game) -> Int[np.ndarray, "S A"]:
    """For each symmetry, where an action of the original position is found in the transformed one."""
    if not game.symmetries:
        raise ValueError(
            f"{game.id!r} has no symmetries: Game.symmetries must list the identity and every other symmetry of the "
            "rules. Without them, use the network alone."
        )
    return np.argsort([symmetry.actions for symmetry in game.symmetries], -1)
