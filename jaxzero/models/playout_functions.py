"""Random playouts from many positions at once, in lock-step.

A playout function takes `(keys [L], states [L, ...], max_steps)` and returns what each player was paid, `[L, P]`. The
functions here know nothing of a game but its record: an iteration asks for the legal actions, draws one, and steps; no
observation is ever made. A game may have a function of its own, `Game.playout`, as `games.go` does. The batch goes on
until its longest playout ends, so one long playout costs as much as if all were long.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxzero.games import Game
from jaxzero.games.playout_tiles import scramble, seeds_of
from jaxzero.types import Keys, State

__all__ = ["Playout", "RolloutPolicy", "uniform", "weighted"]

Playout = Callable[[Keys, State, int | None], Float[Array, "L P"]]
RolloutPolicy = Callable[[State, Bool[Array, "A"]], Array]


def uniform(game: Game) -> Playout:
    """Uniformly random legal actions (Kocsis and Szepesvári 2006)."""

    def draw(state: State, keys: Keys, bits: UInt32[Array, "L"]) -> Int[Array, "L"]:
        del keys
        return random_legal(jax.vmap(game.legal)(state), bits)

    return _until_over(game, draw)


def weighted(game: Game, policy: RolloutPolicy) -> Playout:
    """Legal actions drawn by a rollout policy.

    Args:
        game: the rules.
        policy: `(state, legal [A]) -> [A]`, for one position: a mask (bool: uniformly among what it leaves) or weights
            (numbers: with probability in proportion). Illegal actions are never drawn, whatever it says of them; nor
            are those of weight 0, negative or not a number. Where it leaves nothing, any legal action is drawn.
    """

    def draw(state: State, keys: Keys, bits: UInt32[Array, "L"]) -> Int[Array, "L"]:
        legal = jax.vmap(game.legal)(state)
        weights = jax.vmap(policy)(state, legal)
        if weights.shape != legal.shape:
            raise ValueError(
                f"the rollout policy returned shape {weights.shape[1:]} for a position of {game.id}; it must return a "
                f"mask or weights [A] = [{game.num_actions}]."
            )
        if weights.dtype == bool:
            allowed = legal & weights
            return random_legal(jnp.where(allowed.any(1, keepdims=True), allowed, legal), bits)
        return _random_by_weight(legal, weights, keys)

    return _until_over(game, draw)


def _until_over(game: Game, draw: Callable[[State, Keys, UInt32[Array, "L"]], Int[Array, "L"]]) -> Playout:
    def playout(keys: Keys, state: State, max_steps: int | None = None) -> Float[Array, "L P"]:
        def without_moves(state: State) -> Bool[Array, "L"]:
            return ~jax.vmap(game.legal)(state).any(-1)

        def unfinished(carry: tuple) -> Bool[Array, ""]:
            count, state, _, stuck = carry
            going = (~jax.vmap(game.terminal)(state) & ~stuck).any()
            return going if max_steps is None else going & (count < max_steps)

        def play(carry: tuple) -> tuple:
            count, state, returns, stuck = carry
            two = jax.vmap(lambda key: jax.random.split(jax.random.fold_in(key, count + 1)), out_axes=1)
            step_keys, draw_keys = two(keys)  # costs nothing where unused
            action = draw(state, draw_keys, scramble(seeds, count))
            state = jax.vmap(game.step)(state, action, step_keys)
            paid = jnp.where(stuck[:, None], 0, jax.vmap(game.rewards)(state))  # a finished game pays nothing more
            return count + 1, state, returns + paid, stuck | without_moves(state)

        # Without a legal action nothing follows, terminal or not; that may occur in a user's game. Steps of such a
        # position, made while others go on, are no moves and do not count.
        seeds = seeds_of(keys)
        returns = jnp.zeros_like(jax.vmap(game.rewards)(state))
        return jax.lax.while_loop(unfinished, play, (jnp.int32(0), state, returns, without_moves(state)))[2]

    return playout


def random_legal(legal: Bool[Array, "L A"], bits: UInt32[Array, "L"]) -> Int[Array, "L"]:
    """The k-th legal action, k = bits mod their number: one draw per game, where a categorical needs A.

    The modulo favours the first actions by less than A / 2³².
    """
    rank = jnp.cumsum(legal, axis=1, dtype=jnp.int32)
    count = jnp.maximum(rank[:, -1], 1).astype(jnp.uint32)
    action = jnp.sum(rank <= (bits % count).astype(jnp.int32)[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(action, legal.shape[1] - 1)  # a finished game: any action does


def _random_by_weight(legal: Bool[Array, "L A"], weights: Float[Array, "L A"], keys: Keys) -> Int[Array, "L"]:
    """By Gumbel noise: the highest log-weight plus noise, so that no sum can overflow or round a rare action away."""
    weights = jnp.where(legal & (weights > 0), weights.astype(jnp.float32), 0)
    some = (weights > 0).any(1, keepdims=True)
    logits = jnp.log(jnp.where(some, weights, legal.astype(jnp.float32)))
    return jax.vmap(jax.random.categorical)(keys, logits).astype(jnp.int32)
