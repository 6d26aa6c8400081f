"""The arena: two policies against each other, all games at once, in games of two or more players.

A match is traced: under `jax.jit` both policies and the games are one program. If a policy plays several matches, or
itself, `match_programs` compiles it only once; it is built from the same functions, from `seated` to `counted`.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from jaxzero.types import Keys, Model, Params, PolicyOutput

__all__ = [
    "Score",
    "Seats",
    "different_openings",
    "half_points",
    "interval",
    "play",
    "play_pairs",
    "play_seats",
    "random_player",
    "raw_network",
    "share",
    "wilson",
]


class Score(NamedTuple):
    """Games won, drawn and lost by the first policy; `unfinished` ones were stopped at `max_plies`.

    Numbers for all games together (`play`), or for each pair of games, `[pairs]` (`play_pairs`).
    """

    wins: Int[Array, "..."]
    draws: Int[Array, "..."]
    losses: Int[Array, "..."]
    unfinished: Int[Array, "..."]


class Seats(NamedTuple):
    """Games of P players, by the seat of the first policy: `[P, keys]`.

    Attributes:
        score: won, drawn (a first place that is shared), lost, unfinished.
        points: 1 for a win, 1/k for a first place shared by k, 1/P for an unfinished game: equal players get 1/P each.
    """

    score: Score
    points: Float[Array, "P keys"]


class Info(NamedTuple):
    """Diagnostics of the players below, which do not search."""

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
    is to move in one and the second in the other. So deterministic players still play different games, and
    the luck of the opening cancels. (An opening that ends the game counts like any other.)

    In one half of the games it is the first policy's turn while in the other half it is the second's, so that no search
    is wasted. Where turns do not alternate, a game waits for its player.

    Args:
        game: a two-player `jaxzero.games.Game`.
        policies: two functions `(params, keys, state) -> PolicyOutput`. Jit the whole: they are traced.
        params: what each is given.
        keys: one PRNG key per *pair* of games.
        opening_plies: random moves at the start.
        max_plies: where games are stopped. After the opening it counts turns, not moves: where a player moves twice in
            a row, the other one's idle turn between the two counts, too.

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

    The two games of a pair depend on each other: an opening that is good for one side decides both. So statistical
    tests (`jaxzero.play.ratings.sprt`) count pairs.

    Raises:
        ValueError: not a two-player game.
    """
    if game.num_players != 2:
        raise ValueError(f"play: {game.id} has {game.num_players} player(s), but play needs two: use play_seats.")
    score = play_seats(game, policies, params, keys, opening_plies, max_plies).score
    return jax.tree.map(lambda x: x.sum(0), score)


def play_seats(
    game: Any,
    policies: tuple[Callable, Callable],
    params: tuple[Params, Params],
    keys: Keys,
    opening_plies: int = 2,
    max_plies: int = 1000,
) -> Seats:
    """Games of P players: the first policy has one seat, the second all others; seats are rotated.

    Each key makes P games with the same opening, after which the first policy is the next to move in one of them, the
    second next in another, and so on. Called like `play`.

    Returns:
        `Seats`: in row i the first policy was the i-th to move after the opening. The player who is paid more than
        every other wins; a game is drawn where the first policy shares the first place.

    Raises:
        ValueError: a game of one player.
    """
    check_players(game)

    def move(i: int, group: tuple) -> tuple:
        return parted(_move(game, policies[i], params[i], joined(group), whose(game, i)), len(group))

    tables = seated(game, keys, opening_plies)
    going = lambda carry: (carry[0] < max_plies) & ~all_over(game, carry[1])
    turn = lambda carry: (carry[0] + 1, after_turn(carry[1], move))
    turns, tables = jax.lax.while_loop(going, turn, (jnp.int32(opening_plies), tables))
    return counted(game, tables, turns - opening_plies)


def different_openings(game: Any, keys: Keys, opening_plies: int = 2) -> int:
    """The number of distinct positions after the random opening moves of `play`.

    Two deterministic players repeat their pair of games from an equal opening, unless the game has chance. So n games
    from fewer openings are not n independent samples.

    Args:
        game: a `jaxzero.games.Game`.
        keys: one per opening `[n]`, those that `play` is given.
        opening_plies: random moves at the start.

    >>> from jaxzero import games
    >>> keys = jax.random.split(jax.random.key(0), 1000)
    >>> [different_openings(games.from_pgx("tic_tac_toe"), keys, plies) for plies in (0, 1, 2)]
    [1, 9, 72]
    """
    state = jax.jit(lambda keys: _opened(game, keys, opening_plies).state)(keys)
    seen = np.asarray(jax.vmap(game.observe)(state)).reshape(len(keys), -1)  # by who is to move, whatever its number
    return len(np.unique(seen, axis=0))


class _Table(NamedTuple):
    """One game for every key: states, keys, what each player was paid `[keys, P]`, the first policy's player."""

    state: Any
    keys: Keys
    paid: Float[Array, "keys P"]
    mine: Int[Array, "keys"]


def _opened(game: Any, keys: Keys, plies: int) -> _Table:
    """Games after so many random moves."""
    keys, k_init = jax.vmap(jax.random.split, out_axes=1)(keys)
    state = jax.vmap(game.init)(k_init)
    table = _Table(state, keys, jnp.zeros((keys.shape[0], game.num_players)), jax.vmap(game.to_play)(state))
    move = lambda table, _: (_move(game, random_player(game), None, table, None), None)
    return jax.lax.scan(move, table, None, length=plies)[0]


def check_players(game: Any) -> None:
    """Raises a ValueError for a game of one player."""
    if game.num_players < 2:
        raise ValueError(f"play: {game.id} has {game.num_players} player(s); the arena is for two or more.")


def seated(game: Any, keys: Keys, opening_plies: int) -> tuple[_Table, ...]:
    """A table for each seat of the first policy, after the opening: in the i-th it is the i-th to move."""
    table = _opened(game, keys, opening_plies)
    keys = jax.vmap(lambda key: jax.random.split(key, game.num_players), out_axes=1)(table.keys)
    to_play = jax.vmap(game.to_play)(table.state)
    seats = range(game.num_players)
    return tuple(table._replace(keys=keys[i], mine=(to_play + i) % game.num_players) for i in seats)


def after_turn(tables: Sequence[_Table], move: Callable[[int, tuple], tuple]) -> tuple[_Table, ...]:
    """The tables after a move, `move(0, (table,))` in the first and `move(1, tables)` in the others, rotated by one."""
    due, *others = tables
    return *move(1, tuple(others)), *move(0, (due,))


def joined(tables: Sequence[_Table]) -> _Table:
    """One table with the games of all of them."""
    return jax.tree.map(lambda *x: jnp.concatenate(x), *tables)


def parted(table: _Table, parts: int) -> tuple[_Table, ...]:
    """The tables that were joined, separated again."""
    each = len(table.mine) // parts
    return tuple(jax.tree.map(lambda x, i=i: x[i * each : (i + 1) * each], table) for i in range(parts))


def all_over(game: Any, tables: Sequence[_Table]) -> Bool[Array, ""]:
    """Whether all games have ended."""
    return jnp.stack([jax.vmap(game.terminal)(table.state).all() for table in tables]).all()


def counted(game: Any, tables: Sequence[_Table], turns: Int[Array, ""]) -> Seats:
    """The results of the games after `turns` turns; the tables are rotated by as many."""
    rows = [_count(table, jax.vmap(game.terminal)(table.state)) for table in tables]
    return jax.tree.map(lambda *x: jnp.roll(jnp.stack(x), turns % game.num_players, 0), *rows)


def whose(game: Any, i: int) -> Callable[[_Table], Bool[Array, "keys"]]:
    """Says in which games of a table it is the turn of the first policy (0), or of the second (1)."""
    return lambda table: (jax.vmap(game.to_play)(table.state) == table.mine) == (i == 0)


def _move(game: Any, policy: Callable, params: Params, table: _Table, where: Callable | None) -> _Table:
    """A move by the policy in the games that are not over, and where it is its turn."""
    table, k_search, k_step = drawn(table)
    return moved(game, table, policy(params, k_search, table.state).action, k_step, where)


def drawn(table: _Table) -> tuple[_Table, Keys, Keys]:
    """The table with new keys, and the keys of a search and of a step."""
    keys, k_search, k_step = jax.vmap(lambda k: jax.random.split(k, 3), out_axes=1)(table.keys)
    return table._replace(keys=keys), k_search, k_step


def moved(game: Any, table: _Table, action: Int[Array, "keys"], k_step: Keys, where: Callable | None) -> _Table:
    """The table after these actions, in the games that are not over, and where `where(table)` says."""
    after = jax.vmap(game.step)(table.state, action, k_step)
    moves = ~jax.vmap(game.terminal)(table.state)
    if where is not None:
        moves &= where(table)
    keep = lambda new, old: jnp.where(moves.reshape(moves.shape + (1,) * (new.ndim - 1)), new, old)
    paid = table.paid + jnp.where(moves[:, None], jax.vmap(game.rewards)(after), 0.0)
    return table._replace(state=jax.tree.map(keep, after, table.state), paid=paid)


def _count(table: _Table, over: Bool[Array, "keys"]) -> Seats:
    mine = jnp.take_along_axis(table.paid, table.mine[:, None], 1)
    others = jnp.arange(table.paid.shape[1]) != table.mine[:, None]
    margin = mine[:, 0] - jnp.max(jnp.where(others, table.paid, -jnp.inf), 1)
    counted = over & (margin > 0), over & (margin == 0), over & (margin < 0), ~over
    first = jnp.sum(table.paid == jnp.max(table.paid, 1, keepdims=True), 1)  # how many share the first place
    points = jnp.where(over, jnp.where(margin >= 0, 1 / first, 0.0), 1 / table.paid.shape[1])
    return Seats(Score(*(x.astype(jnp.int32) for x in counted)), points.astype(jnp.float32))


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
    return wilson(share(score), max(sum(int(x) for x in score), 1), z)


def wilson(p: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """The interval for a share p of n games (ibid.).

    >>> [round(x, 3) for x in wilson(0.8, 10)]
    [0.49, 0.943]
    """
    centre, spread = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (centre - spread) / (1 + z * z / n), (centre + spread) / (1 + z * z / n)
    return max(low, 0.0), min(high, 1.0)  # rounding
