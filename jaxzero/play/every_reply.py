"""A policy against every legal reply: in small games, whether it can be beaten at all."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.types import Params, State

__all__ = ["Replies", "every_reply"]

MOST = 100_000  # positions of one ply


class Replies(NamedTuple):
    """Ends of games, each counted once per position that the policy met: from the view of the policy.

    Attributes:
        wins: replies, or moves of its own, after which it has won.
        draws: likewise.
        losses: likewise.
        positions: different positions in which it moved.
    """

    wins: int
    draws: int
    losses: int
    positions: int


def every_reply(game: Any, policy: Callable, params: Params, key: Any, first: bool) -> Replies:
    """Plays a policy, which must not draw lots, against all legal replies of its opponent.

    Positions that look alike count once. All that are met at a ply are searched as one batch.

    Args:
        game: of two players, small: tic-tac-toe.
        policy: `(params, keys, state) -> PolicyOutput`.
        params: for the policy.
        key: for the search, and the first position.
        first: whether the policy makes the first move.

    Raises:
        ValueError: a game with too many positions.
    """
    state = jax.tree.map(lambda x: x[None], game.init(key))
    think = jax.jit(lambda state: policy(params, jax.random.split(key, len(jax.tree.leaves(state)[0])), state).action)
    step = jax.jit(jax.vmap(lambda s, a: game.step(s, a, key)))
    counted, positions, ours = np.zeros(3, int), 0, first
    while len(jax.tree.leaves(state)[0]):
        mover = np.asarray(jax.vmap(game.to_play)(state))
        if ours:
            positions += len(mover)
            after = step(state, think(_filled(state))[: len(mover)])
        else:
            at, action = np.nonzero(np.asarray(jax.vmap(game.legal)(state)))
            after, mover = step(_at(state, at), jnp.asarray(action)), mover[at]
        after, mover = _different(game, after, mover)
        over = np.asarray(jax.vmap(game.terminal)(after))
        paid = np.asarray(jax.vmap(game.rewards)(after))[np.arange(len(mover)), mover] * (1 if ours else -1)
        counted += [int((over & (np.sign(paid) == sign)).sum()) for sign in (1, 0, -1)]
        state, ours = _at(after, ~over), not ours
    return Replies(*counted.tolist(), positions)


def _at(state: State, which: np.ndarray) -> State:
    return jax.tree.map(lambda x: x[which], state)


def _filled(state: State) -> State:
    """The batch filled up to a power of two with copies, so that few sizes are compiled."""
    n = len(jax.tree.leaves(state)[0])
    size = 1 << (n - 1).bit_length()
    return _at(state, np.minimum(np.arange(size), n - 1))


def _different(game: Any, state: State, mover: np.ndarray) -> tuple[State, np.ndarray]:
    """One of each kind of position, by what is observed."""
    seen = np.asarray(jax.vmap(game.observe)(state)).reshape(len(mover), -1)
    _, kept = np.unique(seen, axis=0, return_index=True)
    if len(kept) > MOST:
        raise ValueError(f"every_reply: {game.id} has more than {MOST:,} positions at one ply: take a smaller game.")
    return _at(state, np.sort(kept)), mover[np.sort(kept)]
