"""A policy against every legal reply in tic-tac-toe, beside an enumeration of boards in plain Python."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play.every_reply import every_reply

GAME = games.from_pgx("tic_tac_toe")
LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
POWERS = 3 ** np.arange(9)


def row_of(board):
    """The number of a board of the player to move (1) and the other (2)."""
    return int((np.array(board) * POWERS).sum())


def turned(board):
    return tuple((0, 2, 1)[x] for x in board)


def put(board, square):
    """The board after a move, as the other player sees it."""
    return turned(board[:square] + (1,) + board[square + 1 :])


def lost(board):
    """Whether the other player, who has just moved, has a line."""
    return any(all(board[i] == 2 for i in line) for line in LINES)


@functools.cache
def worth(board):
    return -1 if lost(board) else max((-worth(put(board, i)) for i in range(9) if not board[i]), default=0)


def best(board):
    return max((i for i in range(9) if not board[i]), key=lambda i: -worth(put(board, i)))


def first_free(board):
    return min(i for i in range(9) if not board[i])


def any_free(board):
    return int(np.random.default_rng(row_of(board)).choice([i for i in range(9) if not board[i]]))


def counted(choose, first):
    """Wins, draws and losses of `choose`, one per board where a game ends, and boards that it moved on."""
    boards, ours, ends, moved = {(0,) * 9}, first, {1: 0, 0: 0, -1: 0}, 0
    while boards:
        moved += len(boards) if ours else 0
        after = {put(b, i) for b in boards for i in ([choose(b)] if ours else range(9)) if not b[i]}
        over = {b for b in after if lost(b) or 0 not in b}
        for b in over:
            ends[(1 if ours else -1) if lost(b) else 0] += 1
        boards, ours = after - over, not ours
    return ends[1], ends[0], ends[-1], moved


def policy_of(choose):
    """A policy that looks its move up in a table of all boards that can be reached."""
    table, waiting = np.zeros(3**9, np.int32), [(0,) * 9]
    seen = set(waiting)
    for board in waiting:
        table[row_of(board)] = choose(board)
        more = {put(board, i) for i in range(9) if not board[i]} - seen
        seen |= more
        waiting += [b for b in more if not lost(b) and 0 in b]

    def policy(params, keys, state):
        seen = jax.vmap(GAME.observe)(state).reshape(-1, 9, 2) @ jnp.array([1.0, 2.0])
        return types.SimpleNamespace(action=jnp.asarray(table)[(seen @ POWERS).astype(jnp.int32)])

    return policy


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("choose", [best, first_free, any_free])
def test_all_ends_are_counted_once_as_an_enumeration_finds_them(choose, first):
    found = every_reply(GAME, policy_of(choose), None, jax.random.key(0), first)
    assert tuple(found) == counted(choose, first)
    assert (found.losses == 0) == (choose is best), "only who plays perfectly cannot be beaten"


def test_larger_games_are_refused(monkeypatch):
    monkeypatch.setattr("jaxzero.play.every_reply.MOST", 50)
    with pytest.raises(ValueError, match="tic_tac_toe has more than 50 positions at one ply: take a smaller game"):
        every_reply(GAME, policy_of(first_free), None, jax.random.key(0), False)
