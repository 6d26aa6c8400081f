"""Self-play as one jitted chunk: B games in lock-step, T plies per call.

A ply can be learned from once its game is over. The plies of games in flight therefore wait in a window that is
carried from chunk to chunk; when a game ends, all its plies leave with their returns. Nothing is dropped: a ply
that has waited for the whole window (a game longer than that) leaves with the latest root value in place of the
outcome.

**Proven values.** Where the policy proves values (`avoid_proven`), the target of a solved root is its exact value. The
plies before it also learn from this value as the outcome, whatever was played afterwards. (Under `playout_cap` nothing
counts as proven, because its trees have two sizes.)

**Several devices.** Games are the first axis of everything. So each device plays an equal share of them without
communication, and results do not depend on the number of devices (see `jaxzero.train.devices`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.options.graph_search import hash_state
from jaxzero.options.slot_actions import Slots
from jaxzero.options.solver import bounds
from jaxzero.root.search_diagnostics import policy_improvement
from jaxzero.search.checks.argument_checks import in_range
from jaxzero.search.tree import Tree
from jaxzero.train import value_targets
from jaxzero.train.move_selection import exploring
from jaxzero.types import Keys, Params, State, in_short

__all__ = ["Ply", "Row", "SelfPlay", "Stats", "exploring", "self_play"]

KEYS_PER_PLY = 5  # that each game needs


class Row(NamedTuple):
    """The rows that the learner reads: `[n, ...]`.

    Attributes:
        observation: the position, from the view of the player to move.
        policy: the improved policy of the search: sums to 1.
        value: the return for the player to move (`[n, P]` with more than two players).
    """

    observation: Float[Array, "n ..."]
    policy: Float[Array, "n A"]
    value: Float[Array, "n"] | Float[Array, "n P"]

    __repr__ = in_short


class Ply(NamedTuple):
    """One searched position and what its move brought: `[B, T, ...]`."""

    observation: Float[Array, "B T ..."]
    policy: Float[Array, "B T A"]
    to_play: Int[Array, "B T"]
    value: Float[Array, "B T P"]
    reward: Float[Array, "B T P"]
    ended: Bool[Array, "B T"]
    trace: Float[Array, "B T"]
    waiting: Bool[Array, "B T"]


class SelfPlay(NamedTuple):
    """The games in flight, between two chunks.

    Attributes:
        state: game states `[B, ...]`.
        ply: how many moves each game has had since its random opening `[B]`; negative during the opening.
        first: the player who moved first `[B]`.
        keys: one PRNG key per game `[B]`.
        window: the latest plies `[B, window, ...]`, of which some are `waiting` for the end of their game.
    """

    state: State
    ply: Int[Array, "B"]
    first: Int[Array, "B"]
    keys: Keys
    window: Ply

    __repr__ = in_short


class Stats(NamedTuple):
    """Sums over a chunk, one entry per device: divide by `games` or `plies`, `same` by `pairs`.

    Attributes:
        plies: moves made.
        games: games that ended.
        length: their plies, without those of a random opening (`max_opening_plies`).
        first_wins: those that the player who moved first won.
        draws: those that nobody won.
        entropy: of the improved policies, in nats.
        improvement: KL(improved policy‖prior), in nats; 0 where it cannot be read from the policy's tree.
        proven: roots whose value was proven.
        pairs: of games of one device that were at the ply where openings are compared.
        same: those of the pairs that had the same position there.
        bad: searches with a `status`.
    """

    plies: Int[Array, "D"]
    games: Int[Array, "D"]
    length: Int[Array, "D"]
    first_wins: Int[Array, "D"]
    draws: Int[Array, "D"]
    entropy: Float[Array, "D"]
    improvement: Float[Array, "D"]
    proven: Int[Array, "D"]
    pairs: Float[Array, "D"]
    same: Float[Array, "D"]
    bad: Int[Array, "D"]


def self_play(
    game: Any,
    policy: Callable,
    choose: Callable | None = None,
    *,
    plies: int,
    window: int,
    discount: float = 1.0,
    over: Callable[[Any], Bool[Array, "B"]] | None = None,
    compared_at: int = 6,
    max_opening_plies: int = 0,
    softness: float = 0.0,
) -> tuple[Callable[..., SelfPlay], Callable[..., tuple[SelfPlay, Row, Bool[Array, "n"], Stats]]]:
    """Self-play of `policy` with itself, as two functions.

    `begin(key, games) -> SelfPlay` starts that many games;
    `play(params, SelfPlay) -> (SelfPlay, rows, ready, stats)` plays `plies` moves in each. The rows are
    `[B · (window + plies), ...]`, game by game; only those marked in `ready` are new and have their target
    (`replay.add(buffer, rows, ready)`).

    Args:
        game: a `jaxzero.games.Game`.
        policy: `(params, keys, state) -> PolicyOutput`. Plies where its `info.has_target` is False make no rows. Where
            its trees keep bounds, targets are exact at solved roots, and the plies before learn from these values.
        choose: see `exploring`, the default.
        plies: T, moves per chunk.
        window: how many plies can wait for the end of their game; the longest game, if it has a bound.
        discount: γ per ply.
        over: `tree -> bool [B]`, the games to end here although they are not over, like
            `jaxzero.options.solver.solved`: solved positions teach nothing more. The move is made, and the next one
            begins a new game. None: games are played to their end.
        compared_at: the ply at which `Stats` compares the openings.
        max_opening_plies: each game begins with k random moves, k uniform in 0 … max_opening_plies. Plies are counted
            from the end of that opening, so `choose` gets negative ones during it. A position after it may learn from
            the outcome; a later random move usually cuts that, so `choose` should make few (`random_plies=0` of
            `exploring`).
        softness: the share of the searched value in each value target, see `value_targets.soft_returns`.

    Raises:
        ValueError: plies or window < 1, max_opening_plies < 0, or softness outside 0 … 1.
    """
    in_range("self_play: softness", softness, 0, 1)
    if plies < 1 or window < 1:
        raise ValueError(f"self_play: plies={plies} and window={window} must both be >= 1.")
    if max_opening_plies < 0:
        raise ValueError(
            f"self_play: max_opening_plies={max_opening_plies} must be 0 or more: the most random moves that a game "
            "begins with."
        )
    choose = exploring() if choose is None else choose
    num_players = game.num_players

    def first_ply(keys: Keys) -> Int[Array, "B"]:
        if not max_opening_plies:
            return jnp.zeros(len(keys), jnp.int32)
        own = lambda key: jax.random.fold_in(key, KEYS_PER_PLY)  # different from those that a game's key is split into
        return jax.vmap(lambda key: -jax.random.randint(own(key), (), 0, max_opening_plies + 1))(keys)

    def begin(key: chex.PRNGKey, games: int) -> SelfPlay:
        each = jax.random.split(key, games)
        keys, k_init = jax.vmap(jax.random.split, out_axes=1)(each)
        state = jax.vmap(game.init)(k_init)
        ply = jax.tree.map(lambda x: jnp.zeros((games, window, *x.shape), x.dtype), _blank(game))
        to_play = jax.vmap(game.to_play)(state)
        return SelfPlay(state, first_ply(each), to_play, keys, ply)

    def move(params, games: SelfPlay):
        split = jax.vmap(lambda key: jax.random.split(key, KEYS_PER_PLY), out_axes=1)
        keys, k_search, k_choose, k_step, k_init = split(games.keys)
        out = policy(params, k_search, games.state)
        has_target = getattr(out.info, "has_target", None)  # None: all plies make rows
        to_play = jax.vmap(game.to_play)(games.state)
        action, trace = choose(k_choose, games.ply, out, jax.vmap(game.legal)(games.state))
        after = jax.vmap(game.step)(games.state, action, k_step)
        ended, reward = jax.vmap(game.terminal)(after), jax.vmap(game.rewards)(after)
        value, known = _value(out)
        value = value_targets.for_players(value, to_play, num_players)
        stopped = jnp.zeros_like(ended) if over is None else over(out.tree) & ~ended
        ply = Ply(
            observation=jax.vmap(game.observe)(games.state),
            policy=out.action_weights,
            to_play=to_play,
            value=value,
            reward=reward,
            ended=ended | stopped,
            trace=jnp.where(known | stopped, 0.0, trace),
            waiting=jnp.ones_like(ended) if has_target is None else has_target,
        )
        stats = _stats(games, out, ply, jnp.where(stopped[:, None], value, reward), known)
        fresh = jax.vmap(game.init)(k_init)
        state = jax.tree.map(lambda new, old: jnp.where(_like(ply.ended, new), new, old), fresh, after)
        first = jnp.where(ply.ended, jax.vmap(game.to_play)(fresh), games.first)
        number = jnp.where(ply.ended, first_ply(games.keys), games.ply + 1)
        now = games._replace(state=state, ply=number, first=first, keys=keys)
        return now, (ply, games.ply, stats)

    def play(params: Params, games: SelfPlay) -> tuple[SelfPlay, Row, Bool[Array, "n"], Stats]:
        small = games._replace(window=None)  # the window stays out of the scan's carry
        small, (new, number, stats) = jax.lax.scan(lambda g, _: move(params, g), small, None, length=plies)
        new = jax.tree.map(lambda x: jnp.swapaxes(x, 0, 1), new)
        record = jax.tree.map(lambda old, fresh: jnp.concatenate([old, fresh], 1), games.window, new)
        by_ply = lambda x: jnp.swapaxes(x, 0, 1)
        value, settled = value_targets.returns(
            *(by_ply(x) for x in (record.reward, record.ended, record.value, record.trace)), discount
        )
        value = value_targets.soft_returns(value, by_ply(record.value), softness) if softness else value
        leaving = jnp.arange(window + plies) < plies
        ready = record.waiting & (by_ply(settled) | leaving)
        rows = Row(
            record.observation, record.policy, value_targets.for_mover(by_ply(value), record.to_play, num_players)
        )
        record = record._replace(waiting=record.waiting & ~ready)
        games = small._replace(window=jax.tree.map(lambda x: x[:, plies:], record))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rows)
        pairs, same = _openings(new.observation, by_ply(number) == compared_at)
        stats = jax.tree.map(lambda x: jnp.sum(x)[None], stats._replace(pairs=pairs, same=same))
        return games, flat, ready.reshape(-1), stats

    return begin, play


def _blank(game: Any) -> Ply:
    """The shapes of one ply of one game."""
    shape = lambda dtype, *dims: jax.ShapeDtypeStruct(dims, dtype)
    players, flag = shape(jnp.float32, game.num_players), shape(jnp.bool_)
    observation, policy = shape(jnp.float32, *game.observation_shape), shape(jnp.float32, game.num_actions)
    return Ply(observation, policy, shape(jnp.int32), players, players, flag, shape(jnp.float32), flag)


def _value(out: Any) -> tuple[Array, Bool[Array, "B"]]:
    """The root's value for the player to move, exact where it is proven, and a mask of where it is."""
    if getattr(out.tree, "bounds", None) is None:
        return out.value, jnp.zeros(out.action.shape, jnp.bool_)
    low, high = jnp.moveaxis(bounds(out.tree), -1, 0)
    return jnp.where(low == high, low, out.value), low == high


def _like(mask, x):
    return mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))


def _openings(observation: Float[Array, "B T ..."], here: Bool[Array, "B T"]) -> tuple[Array, Array]:
    """The number of pairs of the positions at `here`, and how many pairs are equal, by their 64-bit hashes.

    The share of equal pairs does not depend on the number of positions, while the share of distinct positions would.
    """
    words = hash_state(observation.reshape(here.size, *observation.shape[2:]))
    none = jnp.uint32(0xFFFFFFFF)  # not at `here`: sorted to the end, as one position that does not count
    high, low = jax.lax.sort([jnp.where(here.reshape(-1), x, none) for x in (words[:, 0], words[:, 1])], num_keys=2)
    new = jnp.concatenate([jnp.ones(1, jnp.bool_), (high[1:] != high[:-1]) | (low[1:] != low[:-1])])
    index, number = jnp.arange(here.size), here.sum().astype(jnp.float32)
    earlier = index - jax.lax.cummax(jnp.where(new, index, 0))  # how many of the same come before each
    meant = (high != none) | (low != none)
    return number * (number - 1) / 2, jnp.sum(jnp.where(meant, earlier, 0), dtype=jnp.float32)


def _stats(games: SelfPlay, out: Any, ply: Ply, paid: Float[Array, "B P"], known: Bool[Array, "B"]) -> Stats:
    weights, ended = out.action_weights, ply.ended
    won = jnp.take_along_axis(paid, games.first[:, None], 1)[:, 0] > 0
    drawn = jnp.all(paid == paid[:, :1], 1)
    tells = isinstance(out.tree, Tree) and not isinstance(out.tree.state, Slots)
    wide = jnp.pad(weights, ((0, 0), (0, out.tree.num_edges - weights.shape[1]))) if tells else weights  # for chance
    return Stats(
        plies=jnp.int32(ended.shape[0]),
        games=ended.sum(),
        length=jnp.where(ended, jnp.maximum(games.ply + 1, 0), 0).sum(),
        first_wins=(ended & won).sum(),
        draws=(ended & drawn).sum(),
        entropy=-jnp.sum(weights * jnp.log(jnp.maximum(weights, 1e-9))),
        improvement=policy_improvement(out.tree, wide).sum() if tells else jnp.float32(0),
        proven=known.sum(),
        pairs=jnp.float32(0),
        same=jnp.float32(0),
        bad=(out.info.status != 0).sum(),
    )
