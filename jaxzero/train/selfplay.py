"""Self-play as one jitted chunk: B games in lock-step, T plies per call, ended games begin anew by themselves.

A ply can be learned from once its game is over. The plies of games in flight therefore wait in a window that is
carried from chunk to chunk; when a game ends, all its plies leave with their returns. Nothing is dropped: a ply
that has waited for the whole window (a game longer than that) leaves with the latest root value in place of the
outcome.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero import targets
from jaxzero.mcts.root import sharpened
from jaxzero.mcts.schedules import Schedule
from jaxzero.types import Keys, Params, State

__all__ = ["Ply", "Row", "SelfPlay", "Stats", "exploring", "self_play"]


class Row(NamedTuple):
    """What the learner reads: `[n, ...]`.

    Attributes:
        observation: the position, from the view of the player to move.
        policy: the improved policy of the search: sums to 1.
        value: the return for the player to move (`[n, P]` with more than two players).
    """

    observation: Float[Array, "n ..."]
    policy: Float[Array, "n A"]
    value: Float[Array, "n"] | Float[Array, "n P"]


class Ply(NamedTuple):
    """One searched position and what its move brought: `[T, B, ...]`."""

    observation: Float[Array, "T B ..."]
    policy: Float[Array, "T B A"]
    to_play: Int[Array, "T B"]
    value: Float[Array, "T B P"]
    reward: Float[Array, "T B P"]
    ended: Bool[Array, "T B"]
    trace: Float[Array, "T B"]
    waiting: Bool[Array, "T B"]


class SelfPlay(NamedTuple):
    """The games in flight, between two chunks.

    Attributes:
        state: game states `[B, ...]`.
        ply: how many moves each game has seen `[B]`.
        first: who moved first `[B]`.
        keys: one PRNG key per game `[B]`.
        window: the latest plies `[window, B, ...]`, of which some are `waiting` for the end of their game.
    """

    state: State
    ply: Int[Array, "B"]
    first: Int[Array, "B"]
    keys: Keys
    window: Ply


class Stats(NamedTuple):
    """Sums over a chunk (divide by `games` or `plies`)."""

    plies: Int[Array, ""]
    games: Int[Array, ""]
    length: Int[Array, ""]
    first_wins: Int[Array, ""]
    draws: Int[Array, ""]
    entropy: Float[Array, ""]
    bad: Int[Array, ""]


def exploring(
    random_plies: int = 0,
    random_rate: float = 0.0,
    sampled_plies: int = 0,
    trace: float = 1.0,
    temperature: Schedule | None = None,
) -> Callable:
    """How a move is chosen from what the search says: `choose(keys, ply, out, legal) -> (action, trace)`.

    The policy's own action is kept, except that
    * a uniformly random legal move is played with probability max(1 − ply / random_plies, random_rate): it takes
      self-play to positions it would avoid. The plies before it do not learn from what came after it (their
      return is cut at its root value, see `targets.returns`);
    * otherwise, in the first `sampled_plies`, the move is drawn from the improved policy (AlphaZero: 30 plies,
      Silver et al. 2018). A Gumbel policy in self-play explores by itself and needs none;
    * or, with a `temperature`, in every ply with probability ∝ weight^(1/t), t its number at that ply; t = 0: the
      action of the highest weight.

    Args:
        random_plies: the chance of a random move falls linearly over these plies.
        random_rate: and never below this.
        sampled_plies: plies in which the move is drawn from `action_weights`.
        trace: λ of the other plies, 1 for the plain outcome.
        temperature: ply -> t, like `decaying(0.75, 0.15, 19)` of `jaxzero.mcts.schedules`; None: as above.

    Raises:
        ValueError: numbers out of range, or both `sampled_plies` and a temperature.
    """
    if not 0 <= random_rate < 1:
        raise ValueError(f"exploring: random_rate={random_rate} must be in [0, 1).")
    if not 0 <= trace <= 1:
        raise ValueError(f"exploring: trace={trace} must be in [0, 1].")
    if temperature is not None and (sampled_plies or not callable(temperature)):
        raise ValueError(
            f"exploring: temperature={temperature!r} with sampled_plies={sampled_plies}: give one of the two, the "
            "temperature as a function of the ply. Use steps((30, 0.0)) for 30 plies at temperature 1."
        )

    def choose(keys, ply, out, legal):
        def one(key, ply, action, weights, legal):
            k_flip, k_random, k_sample = jax.random.split(key, 3)
            rate = jnp.maximum(1 - ply / max(random_plies, 1), random_rate) if random_plies else random_rate
            at_random = jax.random.uniform(k_flip) < rate
            anything = jax.random.categorical(k_random, jnp.where(legal, 0.0, -1e9))
            if sampled_plies:
                drawn = jax.random.categorical(k_sample, jnp.where(legal, jnp.log(weights + 1e-9), -1e9))
                action = jnp.where(ply < sampled_plies, drawn, action)
            if temperature is not None:
                t = jnp.asarray(temperature(ply), weights.dtype)
                weights = jnp.where(legal, weights, 0)
                drawn = jax.random.categorical(k_sample, jnp.where(legal, sharpened(weights, t), -jnp.inf))
                action = jnp.where(t > 0, drawn, jnp.argmax(weights)).astype(action.dtype)
            return jnp.where(at_random, anything, action), jnp.where(at_random, 0.0, trace)

        return jax.vmap(one)(keys, ply, out.action, out.action_weights, legal)

    return choose


def self_play(
    game: Any, policy: Callable, choose: Callable | None = None, *, plies: int, window: int, discount: float = 1.0
) -> tuple[Callable[..., SelfPlay], Callable[..., tuple[SelfPlay, Row, Bool[Array, "n"], Stats]]]:
    """Self-play of `policy` with itself, as two functions.

    `begin(key, games) -> SelfPlay` starts that many games;
    `play(params, SelfPlay) -> (SelfPlay, rows, ready, stats)` plays `plies` moves in each. The rows are
    `[(window + plies) · B, ...]`; only those marked in `ready` are new and have their target
    (`replay.add(buffer, rows, ready)`).

    Args:
        game: a `jaxzero.games.Game`.
        policy: `(params, keys, state) -> PolicyOutput`. Plies where its `info.has_target` is False make no rows.
        choose: see `exploring`, the default.
        plies: T, moves per chunk.
        window: how many plies can wait for the end of their game; the longest game, if it has a bound.
        discount: γ per ply.

    Raises:
        ValueError: plies or window < 1.
    """
    if plies < 1 or window < 1:
        raise ValueError(f"self_play: plies={plies} and window={window} must both be >= 1.")
    choose = exploring() if choose is None else choose
    num_players = game.num_players

    def begin(key: chex.PRNGKey, games: int) -> SelfPlay:
        keys, k_init = jax.vmap(jax.random.split, out_axes=1)(jax.random.split(key, games))
        state = jax.vmap(game.init)(k_init)
        ply = jax.tree.map(lambda x: jnp.zeros((window, games, *x.shape), x.dtype), blank_ply())
        return SelfPlay(state, jnp.zeros(games, jnp.int32), jax.vmap(game.to_play)(state), keys, ply)

    def blank_ply() -> Ply:
        players, zero = jax.ShapeDtypeStruct((num_players,), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32)
        flag, observation = (
            jax.ShapeDtypeStruct((), jnp.bool_),
            jax.ShapeDtypeStruct(game.observation_shape, jnp.float32),
        )
        policy = jax.ShapeDtypeStruct((game.num_actions,), jnp.float32)
        return Ply(observation, policy, jax.ShapeDtypeStruct((), jnp.int32), players, players, flag, zero, flag)

    def move(params, games: SelfPlay):
        keys, k_search, k_choose, k_step, k_init = jax.vmap(lambda k: jax.random.split(k, 5), out_axes=1)(games.keys)
        out = policy(params, k_search, games.state)
        has_target = getattr(out.info, "has_target", None)  # None: all plies make rows
        to_play = jax.vmap(game.to_play)(games.state)
        action, trace = choose(k_choose, games.ply, out, jax.vmap(game.legal)(games.state))
        after = jax.vmap(game.step)(games.state, action, k_step)
        ended, reward = jax.vmap(game.terminal)(after), jax.vmap(game.rewards)(after)
        ply = Ply(
            observation=jax.vmap(game.observe)(games.state),
            policy=out.action_weights,
            to_play=to_play,
            value=targets.for_players(out.value, to_play, num_players),
            reward=reward,
            ended=ended,
            trace=trace,
            waiting=jnp.ones_like(ended) if has_target is None else has_target,
        )
        stats = _stats(games, out, ended, reward)
        fresh = jax.vmap(game.init)(k_init)
        state = jax.tree.map(lambda new, old: jnp.where(_like(ended, new), new, old), fresh, after)
        first = jnp.where(ended, jax.vmap(game.to_play)(fresh), games.first)
        return games._replace(state=state, ply=jnp.where(ended, 0, games.ply + 1), first=first, keys=keys), (ply, stats)

    def play(params: Params, games: SelfPlay) -> tuple[SelfPlay, Row, Bool[Array, "n"], Stats]:
        small = games._replace(window=None)  # the window stays out of the scan's carry
        small, (new, stats) = jax.lax.scan(lambda g, _: move(params, g), small, None, length=plies)
        record = jax.tree.map(lambda old, fresh: jnp.concatenate([old, fresh]), games.window, new)
        value, settled = targets.returns(record.reward, record.ended, record.value, record.trace, discount)
        leaving = jnp.arange(window + plies)[:, None] < plies
        ready = record.waiting & (settled | leaving)
        rows = Row(record.observation, record.policy, targets.for_mover(value, record.to_play, num_players))
        record = record._replace(waiting=record.waiting & ~ready)
        games = small._replace(window=jax.tree.map(lambda x: x[plies:], record))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        return games, flat, ready.reshape(-1), jax.tree.map(jnp.sum, stats)

    return begin, play


def _like(mask, x):
    return mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))


def _stats(games: SelfPlay, out: Any, ended, reward) -> Stats:
    weights = out.action_weights
    won = jnp.take_along_axis(reward, games.first[:, None], 1)[:, 0] > 0
    drawn = jnp.all(reward == reward[:, :1], 1)
    return Stats(
        plies=jnp.int32(ended.shape[0]),
        games=ended.sum(),
        length=jnp.where(ended, games.ply + 1, 0).sum(),
        first_wins=(ended & won).sum(),
        draws=(ended & drawn).sum(),
        entropy=-jnp.sum(weights * jnp.log(jnp.maximum(weights, 1e-9))),
        bad=(out.info.status != 0).sum(),
    )
