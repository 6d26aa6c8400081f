"""Perfect play for small games: solves every position once, then looks the best moves up.

An opponent that cannot be beaten is a fixed measure: every loss against it is due to a mistake.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.options.graph_search import hash_state
from jaxzero.types import PolicyOutput, State

__all__ = ["Solution", "perfect_player", "solve"]

STARTS = 64  # keys tried with `init`; pgx has one start for each player who may begin
AT_ONCE = 1 << 12  # moves made in one call of the rules
SAME = 1e-6  # returns that differ by less are equal


class Solution(NamedTuple):
    """The n positions of a game that a player's observation distinguishes, final ones included.

    Attributes:
        words: a 64-bit hash of each position's observation, in two words, sorted.
        best: True for the moves that keep the value; none where the game is over.
        value: the return of the player to move from here on, if both sides play perfectly.
    """

    words: UInt32[np.ndarray, "n 2"]
    best: Bool[np.ndarray, "n A"]
    value: Float[np.ndarray, "n"]


class Info(NamedTuple):
    """Diagnostics of the perfect player: `known` is False where a position is not in the table, and the move random."""

    status: Int[Array, "B"]
    known: Bool[Array, "B"]


def perfect_player(game: Game, solution: Solution) -> Callable:
    """A policy that plays any of the moves that keep the value, all with equal probability, so that games differ.

    It wins won positions, sooner or later (no position is repeated), and sets no traps. `value` is exact. A position
    that is not in the table, because it cannot be reached, gets a random legal move and the value 0; see `info.known`.

    Args:
        game: the rules.
        solution: what `solve(game)` returned.

    Raises:
        ValueError: a solution of another game, by the number of its actions.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> solution = solve(game)
    >>> policy = perfect_player(game, solution)
    >>> keys = jax.random.split(jax.random.key(0), 2)
    >>> states = jax.vmap(game.init)(keys)
    >>> for action in (0, 1):  # a corner, and the worst answer: an edge beside it
    ...     states = jax.vmap(game.step)(states, jnp.full(2, action), keys)
    >>> out = jax.jit(policy)(None, keys, states)
    >>> len(solution.value), out.value.tolist(), jnp.flatnonzero(out.action_weights[0]).tolist()
    (5478, [1.0, 1.0], [3, 4, 6])
    """
    n, num_actions = solution.best.shape
    if num_actions != game.num_actions:
        raise ValueError(
            f"perfect_player({game.id!r}, solution): the solution is of a game with {num_actions} actions, "
            f"{game.id} has {game.num_actions}. Give solve(game) of this game."
        )
    high, low = (jnp.asarray(solution.words[:, i]) for i in (0, 1))
    alike = np.unique(solution.words[:, 0], return_counts=True)[1].max()  # the most that share a first word

    def policy(params: Any, keys: Any, state: State, tree: Any = None) -> PolicyOutput:
        words = hash_state(jax.vmap(game.observe)(state))
        rows = jnp.minimum(jnp.searchsorted(high, words[:, 0])[:, None] + jnp.arange(alike), n - 1)
        hits = (high[rows] == words[:, :1]) & (low[rows] == words[:, 1:])
        row, known = jnp.take_along_axis(rows, jnp.argmax(hits, 1)[:, None], 1)[:, 0], hits.any(1)
        over = jax.vmap(game.terminal)(state)
        moves = jnp.where(known[:, None], jnp.asarray(solution.best)[row], jax.vmap(game.legal)(state))
        action = jax.vmap(jax.random.categorical)(keys, jnp.where(moves, 0.0, -1e9))
        moves |= ~moves.any(1, keepdims=True)  # a game that is over is answered, too: see PolicyOutput
        value = jnp.where(known, jnp.asarray(solution.value)[row], 0.0)
        return PolicyOutput(
            action=jnp.where(over, 0, action),
            action_weights=moves / moves.sum(1, keepdims=True),
            value=value,
            tree=None,
            info=Info(jnp.zeros(action.shape, jnp.int32), known),
        )

    return policy


def solve(game: Game, limit: int = 100_000) -> Solution:
    """Finds all positions that can be reached, and computes the value of each, from the last ones back.

    Args:
        game: for two players, zero-sum, without chance; no position may occur twice in a game, and the observation must
            contain all that matters for the rest of the game. All this is checked; to detect chance, each move is made
            twice. There may be a few starting positions, which `init` is asked for with `STARTS` keys; as many other
            keys must not give a new one.
        limit: of the number of positions; those that differ only in the players' numbers count separately.

    Raises:
        ValueError: the game is larger, or not of this kind; the message says what was found.
    """
    check_game("solve", game)
    if game.num_players != 2:
        raise ValueError(f"solve: {game.id} has {game.num_players} players; only games of two can be solved.")
    positions = _explore(game, limit)
    value, best = _judge(game, positions)
    return _table(game, positions.seen, value, best)


# -------------------------------------------------------------------------------------------------------- exploration
class _Seen(NamedTuple):
    """The facts of a position when it is found."""

    legal: Any
    to_play: Any
    rewards: Any  # of the step that led here
    words: Any  # the hash of the observation
    observation: Any  # on the host its digest: a hundred thousand observations may take gigabytes


class _Positions(NamedTuple):
    """All n positions, in the order in which they were found."""

    seen: _Seen
    after: Int[np.ndarray, "n A"]  # where each action leads, -1 for illegal ones
    paid: Float[np.ndarray, "n A"]  # what each action pays player 0


def _look(game: Game, state: State) -> tuple[State, _Seen]:
    observation = game.observe(state)
    words = hash_state(observation[None])[0]
    seen = _Seen(game.legal(state), game.to_play(state), game.rewards(state), words, observation)
    return game.pack(state), seen


def _explore(game: Game, limit: int) -> _Positions:
    """Layer by layer from the starts, on the host; two positions are one if their packed states have the same bytes."""
    step = jax.jit(jax.vmap(lambda state, action, key: _look(game, game.step(state, action, key))))
    first = jax.jit(jax.vmap(lambda key: _look(game, game.init(key))))
    starts = lambda seed: jax.tree.map(np.asarray, first(jax.random.split(jax.random.key(seed), STARTS)))
    book: dict[bytes, int] = {}
    _, (states, seen) = _enter(book, starts(0))
    layers, after, paid = [], [], []
    while len(seen.to_play):
        rows, actions = np.nonzero(seen.legal)
        layers.append(seen)
        after.append(np.full(seen.legal.shape, -1))
        paid.append(np.zeros(seen.legal.shape))
        found = [_rows((states, seen), slice(0))]
        for begin in range(0, len(rows), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            moved = _move(game, step, _rows(states, rows[some]), actions[some], len(book))
            after[-1][rows[some], actions[some]], new = _enter(book, moved)
            paid[-1][rows[some], actions[some]] = moved[1].rewards[:, 0]
            found.append(new)
            if len(book) > limit:
                raise ValueError(
                    f"solve: {game.id} has more than {limit:,} positions, as many within {len(layers)} moves of the "
                    "start alone. Choose a smaller game, such as tic_tac_toe, or give a larger limit."
                )
        states, seen = jax.tree.map(lambda *x: np.concatenate(x), *found)
    if len(_enter(book, starts(1))[1][1].to_play):
        raise ValueError(
            f"solve: {game.id} has too many first positions to find them all with {STARTS} keys. Give a game with only "
            "a few, or set jaxzero.play.perfect_player.STARTS to a much larger number."
        )
    joined = jax.tree.map(lambda *x: np.concatenate(x), *layers)
    return _Positions(joined, np.concatenate(after), np.concatenate(paid))


def _move(game: Game, step: Callable, states: State, actions: np.ndarray, seed: int) -> tuple[State, _Seen]:
    """The positions after a legal move from each of some positions; checks that making it twice gives the same."""
    filled = np.minimum(np.arange(AT_ONCE), len(actions) - 1)  # padded to a fixed number: one compilation

    def once(seed: int) -> tuple[State, _Seen]:
        given = _rows((states, actions.astype(np.int32)), filled)
        moved = step(*given, jax.random.split(jax.random.key(seed), AT_ONCE))
        return _rows(jax.tree.map(np.asarray, moved), slice(len(actions)))

    moved, again = once(2 * seed), once(2 * seed + 1)
    if any(a.tobytes() != b.tobytes() for a, b in zip(jax.tree.leaves(moved), jax.tree.leaves(again))):
        raise ValueError(f"solve: {game.id} is a game of chance: the same move led to two positions.")
    if np.abs(moved[1].rewards.sum(1)).max() > SAME:
        raise ValueError(f"solve: in {game.id} a move's rewards of the two players do not add up to 0.")
    return moved


def _enter(book: dict[bytes, int], found: tuple[State, _Seen]) -> tuple[np.ndarray, tuple[State, _Seen]]:
    """The number of each position in the book, which new positions are added to; and the new ones."""
    leaves = [np.ascontiguousarray(x) for x in jax.tree.leaves(found[0])]
    rows = np.concatenate([x.reshape(len(x), math.prod(x.shape[1:])).view(np.uint8) for x in leaves], 1)
    numbers, new = np.zeros(len(rows), np.int64), []
    for i, row in enumerate(_digests(rows)):
        before = len(book)
        numbers[i] = book.setdefault(row, before)
        if len(book) > before:
            new.append(i)
    states, seen = _rows(found, np.array(new, np.int64))
    return numbers, (states, seen._replace(observation=np.array(_digests(seen.observation), "S32")))


def _rows(tree: Any, rows: Any) -> Any:
    return jax.tree.map(lambda x: x[rows], tree)


def _digests(rows: np.ndarray) -> list[bytes]:
    """A 128-bit name for the content of each row, as a hex string, because NumPy drops trailing zero bytes."""
    return [hashlib.blake2b(row.tobytes(), digest_size=16).hexdigest().encode() for row in rows]


# ----------------------------------------------------------------------------------------------------------- judgement
def _judge(game: Game, positions: _Positions) -> tuple[np.ndarray, np.ndarray]:
    """The value of each position for the player to move, and the moves that keep it: computed from the ends back."""
    seen, after, paid = positions
    sign = np.where(seen.to_play == 0, 1.0, -1.0)
    value, returns = np.zeros(len(after)), np.full(after.shape, -np.inf)  # for who is to move: of positions, of moves
    judged, open_ = ~seen.legal.any(1), np.flatnonzero(seen.legal.any(1))
    while len(open_):
        ready = (judged[after[open_]] | (after[open_] < 0)).all(1)
        rows, open_ = open_[ready], open_[~ready]
        if not len(rows):
            raise ValueError(f"solve: in {game.id} positions can repeat, so a game need not end.")
        gained = sign[rows, None] * (paid[rows] + sign[after[rows]] * value[after[rows]])
        returns[rows] = np.where(after[rows] < 0, -np.inf, gained)
        value[rows], judged[rows] = returns[rows].max(1), True
    return value, returns >= value[:, None] - SAME


def _table(game: Game, seen: _Seen, value: np.ndarray, best: np.ndarray) -> Solution:
    """One row for each observation; checks that positions with equal observations have equal moves and values."""
    _, rows, looks = np.unique(seen.observation, return_index=True, return_inverse=True)
    like = rows[looks]  # the position that represents all with the same observation
    if (best != best[like]).any() or np.abs(value - value[like]).max() > SAME:
        raise ValueError(
            f"solve: two positions of {game.id} look the same to the player to move, and their best moves or values "
            "differ. observe() must show everything that matters for the rest of the game."
        )
    words = seen.words[rows]
    if len(np.unique(words, axis=0)) < len(rows):
        raise ValueError(f"solve: two observations of {game.id} have the same 64-bit hash.")
    order = np.lexsort((words[:, 1], words[:, 0]))
    return Solution(words[order], best[rows[order]], value[rows[order]].astype(np.float32) + 0.0)  # no -0.0
