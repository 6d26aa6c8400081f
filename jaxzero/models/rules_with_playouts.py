"""A game's rules with random playouts: UCT's model."""

import operator

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, UInt32

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.games.playout_tiles import scramble, seeds_of
from jaxzero.models import playout_functions
from jaxzero.models.game_rules import entry, told, with_rules
from jaxzero.types import Keys, Model, Params, State

__all__ = ["rollout"]


def rollout(
    game: Game, rollouts: int = 1, max_steps: int | None = None, policy: playout_functions.RolloutPolicy | None = None
) -> Model:
    """The game's rules, and random playouts, whose mean return is the value (UCT, Kocsis & Szepesvári 2006).

    Rewards are summed undiscounted, for the player to move at the leaf, or for every player when there are more than
    two. Params are ignored. The playouts of a batch run in lock-step until the longest one ends.

    Unvisited actions are tried in random order: the logits are tiny random numbers, between 0 and 0.01, drawn anew for
    every node, and `ucb1` takes the highest first. Under `puct` they are priors uniform to 1 %.

    Args:
        game: the rules.
        rollouts: R, playouts per leaf, 1 to 65,536; all of them run at once, as a batch of B x R.
        max_steps: a playout of more actions than this, 1 to 1,000,000, counts for what it was paid so far: in
            most board games nothing, which is a draw. None: play to the end.
        policy: how playouts choose: `(state, legal [A]) -> mask or weights [A]` for one position, see
            `playout_functions.weighted`. None: the game's own playouts (`games.go`: light ones), or uniformly random
            actions where it has none.

    Raises:
        ValueError: something else in place of the game; rollouts or max_steps out of range; while tracing, when the
            policy returns another shape, or functions of the game answer in other shapes than its record says.

    >>> from jaxzero import games
    >>> game = games.from_pgx("connect_four")
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> step, _ = jax.jit(rollout(game, rollouts=200).root)(None, keys, jax.vmap(game.init)(keys))
    >>> bool((step.value > 0).all())  # the first player wins 56 % of random games, and loses 44 %
    True
    """
    check_game("rollout", game)
    _check_range("rollouts", rollouts, 1 << 16)
    if max_steps is not None:
        _check_range("max_steps", max_steps, 1_000_000)
    if policy is not None:
        playout = playout_functions.weighted(game, policy)
    else:
        playout = playout_functions.uniform(game) if game.playout is None else game.playout

    def evaluate(params: Params, keys: Keys, state: State) -> tuple[Array, Array]:
        del params
        batch = len(keys)
        seeds = seeds_of(keys)
        keys = jax.vmap(lambda key: jax.random.split(key, rollouts))(keys)
        keys = keys.reshape(batch * rollouts, *keys.shape[2:])  # raw keys have an axis of their own
        returns = playout(keys, jax.tree.map(lambda x: jnp.repeat(x, rollouts, axis=0), state), max_steps)
        value = returns.reshape(batch, rollouts, game.num_players).mean(axis=1)
        if game.num_players <= 2:
            value = entry(value, told(game, "to_play", state))
        return _random_order(seeds, game.num_actions), value

    return with_rules(game, evaluate, discount=1.0)


def _check_range(name: str, value: int, most: int) -> None:
    if not hasattr(value, "__index__") or not 1 <= operator.index(value) <= most:
        unlimited = "; max_steps=None plays to the end" if name == "max_steps" else ""
        raise ValueError(f"rollout({name}={value!r}): use a whole number from 1 to {most:,}{unlimited}.")


def _random_order(seeds: UInt32[Array, "B"], num_actions: int) -> Float[Array, "B A"]:
    """Logits so close that they prefer nothing, but different, so that they define an order: 24 random bits each."""
    bits = jax.vmap(scramble, (None, 0), 1)(seeds, jnp.arange(num_actions))
    return (bits >> 8).astype(jnp.float32) * (0.01 / (1 << 24))
