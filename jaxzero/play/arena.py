"""The arena: two policies against each other, all games at once."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import Keys, Model, Params, PolicyOutput

__all__ = ["Score", "half_points", "interval", "play", "play_pairs", "random_player", "raw_network", "share"]


class Score(NamedTuple):
    """Games won, drawn and lost by the first policy; `unfinished` ones were stopped at `max_plies`.

    Numbers for all games together (`play`), or for each pair of games, `[pairs]` (`play_pairs`).
    """

    wins: Int[Array, "..."]
    draws: Int[Array, "..."]
    losses: Int[Array, "..."]
    unfinished: Int[Array, "..."]


class Info(NamedTuple):
    """Diagnostics of the players below, which search nothing."""

    status: Int[Array, "B"]


def random_player(game: Any) -> Callable:
    """A policy that plays uniformly random legal moves."""

    def policy(params, keys, state, tree=None) -> PolicyOutput:
        legal = jax.vmap(game.legal)(state)
        return _without_search(keys, jnp.where(legal, 0.0, -1e9), jnp.zeros(legal.shape[0]), sample=True)

    return policy


def raw_network(model: Model) -> Callable:
    """A policy that plays the model's most probable legal move, without search."""

    def policy(params, keys, state, tree=None) -> PolicyOutput:
        root, _ = model.root(params, keys, state)
        logits = root.prior_logits if root.legal is None else jnp.where(root.legal, root.prior_logits, -1e9)
        return _without_search(keys, logits, root.value, sample=False)

    return policy


def _without_search(keys, logits, value, sample: bool) -> PolicyOutput:
    action = jax.vmap(jax.random.categorical)(keys, logits) if sample else jnp.argmax(logits, -1)
    status = jnp.zeros(action.shape, jnp.int32)
    return PolicyOutput(action=action, action_weights=jax.nn.softmax(logits), value=value, tree=None, info=Info(status))


def play(
    game: Any,
    policies: tuple[Callable, Callable],
    params: tuple[Params, Params],
    keys: Keys,
    opening_plies: int = 2,
    max_plies: int = 1000,
) -> Score:
    """Pairs of games between two policies, in lock-step, colours swapped within a pair.

    Both games of a pair begin with the same `opening_plies` uniformly random moves, after which the first policy
    is to move in one and the second in the other: deterministic players then still meet in different games, and
    the luck of the opening cancels. (An opening that ends the game counts like any other.)

    One half of the games is the first policy's turn while the other half is the second's, so that no search is
    done for nothing. Where turns do not alternate a game waits for its player.

    Args:
        game: a two-player `jaxzero.games.Game`.
        policies: two functions `(params, keys, state) -> PolicyOutput`. Jit the whole: they are traced.
        params: what each is given.
        keys: one PRNG key per *pair* of games.
        opening_plies: random moves at the start.
        max_plies: where games are stopped. After the opening turns count, not moves: where a player moves twice in a
            row, the other one's turn between the two, which is waited for, counts, too.

    Raises:
        ValueError: not a two-player game.
    """
    pairs = play_pairs(game, policies, params, keys, opening_plies, max_plies)
    return jax.tree.map(jnp.sum, pairs)


def play_pairs(
    game: Any,
    policies: tuple[Callable, Callable],
    params: tuple[Params, Params],
    keys: Keys,
    opening_plies: int = 2,
    max_plies: int = 1000,
) -> Score:
    """The games of `play`, called alike, with a score for each pair: four numbers `[pairs]` that add up to 2.

    The two games of a pair depend on each other: an opening that is good for one side decides both. What is to know how
    sure a result is (`jaxzero.play.ratings.sprt`) counts pairs.

    Raises:
        ValueError: not a two-player game.
    """
    if game.num_players != 2:
        raise ValueError(f"play: {game.id} has {game.num_players} players; the arena is for two.")

    def move(policy, params, half: _Half, player) -> _Half:
        keys, k_search, k_step = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(half.keys)
        action = policy(params, k_search, half.state).action
        after = jax.vmap(game.step)(half.state, action, k_step)
        moves = ~jax.vmap(game.terminal)(half.state)
        if player is not None:
            moves &= jax.vmap(game.to_play)(half.state) == player
        keep = lambda new, old: jnp.where(moves.reshape(moves.shape + (1,) * (new.ndim - 1)), new, old)
        paid = half.paid + jnp.where(moves[:, None], jax.vmap(game.rewards)(after), 0.0)
        return half._replace(state=jax.tree.map(keep, after, half.state), keys=keys, paid=paid)

    def turn(carry):
        ply, due, other = carry  # the first policy is to move in `due`, the second in `other`; then they swap
        due = move(policies[0], params[0], due, due.mine)
        other = move(policies[1], params[1], other, 1 - other.mine)
        return ply + 1, other, due

    over = lambda half: jax.vmap(game.terminal)(half.state)
    keys, k_init = jax.vmap(jax.random.split, out_axes=1)(keys)
    state = jax.vmap(game.init)(k_init)
    half = _Half(state, keys, jnp.zeros((keys.shape[0], 2)), jax.vmap(game.to_play)(state))
    opening = random_player(game)
    half, _ = jax.lax.scan(lambda h, _: (move(opening, None, h, None), None), half, None, length=opening_plies)
    keys, other_keys = jax.vmap(jax.random.split, out_axes=1)(half.keys)
    to_play = jax.vmap(game.to_play)(half.state)
    due, other = half._replace(keys=keys, mine=to_play), half._replace(keys=other_keys, mine=1 - to_play)
    going = lambda carry: (carry[0] < max_plies) & ~(over(carry[1]).all() & over(carry[2]).all())
    _, due, other = jax.lax.while_loop(going, turn, (jnp.int32(opening_plies), due, other))
    return jax.tree.map(jnp.add, *(_count(half, over(half)) for half in (due, other)))


class _Half(NamedTuple):
    """One game of every pair: states, keys, what each player was paid `[pairs, 2]`, the first policy's player."""

    state: Any
    keys: Keys
    paid: Float[Array, "pairs 2"]
    mine: Int[Array, "pairs"]


def _count(half: _Half, over: Bool[Array, "pairs"]) -> Score:
    mine = jnp.take_along_axis(half.paid, half.mine[:, None], 1)[:, 0]
    margin = 2 * mine - half.paid.sum(1)
    counted = over & (margin > 0), over & (margin == 0), over & (margin < 0), ~over
    return Score(*(x.astype(jnp.int32) for x in counted))


def half_points(score: Score) -> Int[Array, "..."]:
    """Twice the points of the first policy: 2 for a win, 1 for a draw or an unfinished game; of a pair from 0 to 4."""
    return 2 * score.wins + score.draws + score.unfinished


def share(score: Score) -> float:
    """Points per game of the first policy: a win is one, a draw or an unfinished game half."""
    wins, draws, losses, unfinished = (int(x) for x in score)
    return (wins + (draws + unfinished) / 2) / max(wins + draws + losses + unfinished, 1)


def interval(score: Score, z: float = 1.96) -> tuple[float, float]:
    """The interval for `share` (Wilson 1927, "Probable inference ..."); 95 % by default.

    Draws count as half a win and half a loss, which makes it wider than need be, as does the pairing of openings.

    Example:
        >>> [round(x, 3) for x in interval(Score(8, 0, 2, 0))]
        [0.49, 0.943]
        >>> interval(Score(0, 0, 5, 0))[0], interval(Score(7, 0, 0, 0))[1]
        (0.0, 1.0)
    """
    n, p = max(sum(int(x) for x in score), 1), share(score)
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return max(low, 0.0), min(high, 1.0)  # rounding
