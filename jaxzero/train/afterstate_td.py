"""Temporal-difference learning on afterstates of 2048: a value learned by greedy play, with the true rules."""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt8

__all__ = ["TDGames", "TDStats", "afterstate_td"]

BUCKETS = 2**16  # of a hash table that counts hits of weights

# A row of the table for each weight: the weight; the sum of its temporal differences; the sum of their absolute values.
# Where both sums have the same size, the weight still moves in one direction, and takes full steps. The three lie side
# by side because memory is read by rows: with a table larger than the caches, reading them costs one cache miss.
Table = Float[Array, "N 3"]


class TDGames(NamedTuple):
    """Games in progress.

    Attributes:
        cells: the boards.
        last: features of the last afterstates.
        moved: whether there is a last afterstate: not at the beginning of a game.
        score: so far.
        moves: so far.
        key: for the random tiles of the next step.
    """

    cells: UInt8[Array, "B 16"]
    last: Int[Array, "B F"]
    moved: Bool[Array, "B"]
    score: Float[Array, "B"]
    moves: Int[Array, "B"]
    key: chex.PRNGKey


class TDStats(NamedTuple):
    """Sums over the games that ended, and over all steps.

    Attributes:
        games: how many ended.
        score: sum of their scores.
        length: sum of their moves.
        reached: how many of them had a tile of 2^i or more, for i = 0 ... 17.
        error: sum of |temporal difference|.
        steps: how many there were.
    """

    games: Float[Array, ""]
    score: Float[Array, ""]
    length: Float[Array, ""]
    reached: Float[Array, "18"]
    error: Float[Array, ""]
    steps: Float[Array, ""]


def afterstate_td(
    rules: Any, network: Any, *, learning_rate: float = 1.0
) -> tuple[Callable[[Any], Table], Callable[..., TDGames], Callable[..., tuple[Table, TDGames, TDStats]]]:
    """TD(0) on afterstates with temporal coherence, as three functions.

    `begin_learning(weights [N]) -> table [N, 3]`, whose first column are the weights; `begin_games(key, B) -> TDGames`;
    `run(table, games, steps) -> (table, TDGames, TDStats)`: `steps` (static) greedy moves in each game, and a new game
    where one has ended. Donate the table (`donate_argnums`): it is changed in place.

    The value V of an afterstate is the expected sum of later rewards. A move is chosen by argmax of r + V(afterstate),
    and the value of the afterstate before it moves towards that maximum, or 0 where no move is left (Szubert &
    Jaśkowski 2014). A weight's step is α δ |Σδ| / Σ|δ| / F (Beal & Smith 1999, "Temporal coherence and prediction decay
    in TD learning"; Jaśkowski 2016, "Mastering 2048 with Delayed Temporal Coherence Learning"). B games learn at once:
    a weight that is hit several times in a step takes the mean of its steps. (Hits are counted in 2¹⁶ buckets, so
    weights that share a bucket take smaller steps.) Chance makes exploration unnecessary.

    Args:
        rules: `games.rules_2048.AFTERSTATES`.
        network: an n-tuple network of `nets.ntuples`, which gives the values of boards.
        learning_rate: α; published with temporal coherence: 1.

    Raises:
        ValueError: a learning rate outside 0 ... 1.
    """
    if not 0 < learning_rate <= 1:
        raise ValueError(f"afterstate_td(learning_rate={learning_rate!r}): above 0, up to 1; published: 1.")

    def begin_learning(weights: Float[Array, "N"]) -> Table:
        return jnp.stack([weights, *jnp.zeros((2, network.size))], -1)

    def begin_games(key: chex.PRNGKey, batch: int) -> TDGames:
        key, first = jax.random.split(key)
        zeros = jnp.zeros(batch)
        return TDGames(
            rules.beginning(first, batch),
            jnp.zeros((batch, network.count), jnp.int32),
            zeros > 0,
            zeros,
            zeros.astype(jnp.int32),
            key,
        )

    def learned(table: Table, rows: Array, games: TDGames, error: Float[Array, "B"]) -> Table:
        hit, real = games.last, jnp.where(games.moved, 1.0, 0.0)[:, None]
        often = jnp.zeros(BUCKETS).at[hit % BUCKETS].add(real)
        step = real / jnp.maximum(often[hit % BUCKETS], 1.0) * error[:, None]
        errors, sizes = rows[..., 1], rows[..., 2]
        coherence = jnp.where(sizes > 0, jnp.abs(errors) / jnp.where(sizes > 0, sizes, 1.0), 1.0)
        change = jnp.stack([learning_rate / network.count * coherence * step, step, jnp.abs(step)], -1)
        return table.at[hit].add(change)

    def one(carry: tuple[Table, TDGames], _: None) -> tuple[tuple[Table, TDGames], TDStats]:
        table, games = carry
        after, paid = jax.vmap(rules.moves)(games.cells)
        legal = jnp.any(after != games.cells[:, None], -1)
        features = network.features(after)
        rated = jnp.where(legal, paid + table[features, 0].sum(-1), -jnp.inf)
        action, over = jnp.argmax(rated, -1), ~jnp.any(legal, -1)
        pick = lambda x: jnp.take_along_axis(x, action.reshape((-1,) + (1,) * (x.ndim - 1)), 1)[:, 0]
        target = jnp.where(over, 0.0, jnp.max(rated, -1))
        # All reads of the table happen before the error is known, so it can be written in place.
        rows = table[games.last]
        error = jnp.where(games.moved, target - rows[..., 0].sum(-1), 0.0)
        table = learned(table, rows, games, error)
        key, spawn, fresh = jax.random.split(games.key, 3)
        stats = _stats(games, over, error)
        begun, going = rules.beginning(fresh, len(over)), rules.chance(spawn, pick(after))
        games = TDGames(
            jnp.where(over[:, None], begun, going),
            pick(features),
            ~over,
            jnp.where(over, 0.0, games.score + pick(paid)),
            jnp.where(over, 0, games.moves + 1),
            key,
        )
        return (table, games), stats

    def run(table: Table, games: TDGames, steps: int) -> tuple[Table, TDGames, TDStats]:
        (table, games), stats = jax.lax.scan(one, (table, games), None, length=steps)
        return table, games, jax.tree.map(lambda x: x.sum(0), stats)

    return begin_learning, begin_games, run


def _stats(games: TDGames, over: Bool[Array, "B"], error: Float[Array, "B"]) -> TDStats:
    ended = over.astype(jnp.float32)
    reached = games.cells.max(-1)[:, None] >= jnp.arange(18)
    return TDStats(
        ended.sum(),
        jnp.sum(ended * games.score),
        jnp.sum(ended * games.moves),
        jnp.sum(ended[:, None] * reached, 0),
        jnp.sum(jnp.abs(error)),
        jnp.float32(len(over)),
    )
