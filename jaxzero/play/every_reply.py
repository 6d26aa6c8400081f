"""A policy against every legal reply: whether it can be beaten at all, in small games."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxzero.types import Params, State

__all__ = ["Replies", "every_reply"]

MOST = 100_000  # positions of one ply
LEAST = 128  # the least size of a batch; smaller ones are padded


class Replies(NamedTuple):
    """Ends of games, as the policy sees them; each is counted once per position from which it was reached.

    Attributes:
        wins: replies, or moves of its own, after which the policy has won.
        draws: likewise.
        losses: likewise.
        positions: different positions in which it moved.
    """

    wins: int
    draws: int
    losses: int
    positions: int


def every_reply(game: Any, policy: Callable, params: Params, key: Any, first: bool) -> Replies:
    """Plays a policy, which must be deterministic, against all legal replies of its opponent.

    Positions that look alike count once. All positions of a ply are searched as one batch.

    Args:
        game: of two players, small: tic-tac-toe.
        policy: `(params, keys, state) -> PolicyOutput`.
        params: for the policy.
        key: for the search, and the first position.
        first: whether the policy makes the first move.

    Raises:
        ValueError: a game with too many positions.
    """
    step = jax.jit(jax.vmap(lambda s, a: game.step(s, a, key)))
    think = jax.jit(lambda state: policy(params, jax.random.split(key, len(jax.tree.leaves(state)[0])), state).action)
    see = jax.jit(jax.vmap(lambda s: _Seen(*(getattr(game, name)(s) for name in _Seen._fields))))
    state = jax.tree.map(lambda x: np.asarray(x)[None], game.init(key))
    counted, positions, ours = np.zeros(3, int), 0, first
    seen = _on_all(see, state)
    while len(seen.to_play):
        if ours:
            positions += len(seen.to_play)
            at, action = np.arange(len(seen.to_play)), _on_all(think, state)
        else:
            at, action = np.nonzero(seen.legal)
        after, mover = _on_all(step, _at(state, at), action.astype(np.int32)), seen.to_play[at]
        after, mover, seen = _different(game, after, mover, _on_all(see, after))
        paid = seen.rewards[np.arange(len(mover)), mover] * (1 if ours else -1)
        counted += [int((seen.terminal & (np.sign(paid) == sign)).sum()) for sign in (1, 0, -1)]
        state, seen, ours = _at(after, ~seen.terminal), _at(seen, ~seen.terminal), not ours
    return Replies(*counted.tolist(), positions)


class _Seen(NamedTuple):
    """What a game's functions return for positions, by the functions' names."""

    to_play: np.ndarray
    legal: np.ndarray
    observe: np.ndarray
    terminal: np.ndarray
    rewards: np.ndarray


def _at(tree: Any, which: np.ndarray) -> Any:
    return jax.tree.map(lambda x: x[which], tree)


def _on_all(function: Callable, *given: Any) -> Any:
    """Applies a function to a batch padded with copies, so that few sizes are compiled."""
    n = len(jax.tree.leaves(given)[0])
    size = max(LEAST, 1 << (n - 1).bit_length())
    found = function(*_at(given, np.minimum(np.arange(size), n - 1)))
    return jax.tree.map(lambda x: np.asarray(x)[:n], found)


def _different(game: Any, state: State, mover: np.ndarray, seen: _Seen) -> tuple[State, np.ndarray, _Seen]:
    """One of each kind of position, by what is observed."""
    _, kept = np.unique(seen.observe.reshape(len(mover), -1), axis=0, return_index=True)
    if len(kept) > MOST:
        raise ValueError(f"every_reply: {game.id} has more than {MOST:,} positions at one ply: take a smaller game.")
    return _at((state, mover, seen), np.sort(kept))
