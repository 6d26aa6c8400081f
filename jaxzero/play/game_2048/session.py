"""A game of 2048 with its history: functions from one `Session` to the next, and hints in words."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8, UInt32

from jaxzero.games.rules_2048 import NAMES, Board2048, game_2048

__all__ = ["Hint", "Look", "Session", "Turn", "begin", "largest", "new", "play", "refusal", "result", "undo", "why"]


class Turn(NamedTuple):
    """A position, and how it was reached; on the host.

    Attributes:
        cells: exponents of two, row by row; 0: empty.
        legal: the actions that change something; none: the game is over.
        key: for the draw of the next tile.
        score: what the moves so far have paid.
        moves: how many there were.
        action: the last one; None: there was none.
    """

    cells: UInt8[np.ndarray, "16"]
    legal: tuple[int, ...]
    key: UInt32[np.ndarray, "2"]
    score: int
    moves: int
    action: int | None


class Session(NamedTuple):
    """A game, and all that can be taken back.

    Attributes:
        now: the current position.
        before: the positions that `undo` goes back to, the last one at the end; a new game can be undone, too.
        following: the key of the next game.
    """

    now: Turn
    before: tuple[Turn, ...]
    following: UInt32[np.ndarray, "2"]


class Hint(NamedTuple):
    """The value of each move.

    Attributes:
        values: expected further points, including what the move pays; -inf where it is not legal.
        visits: simulations of a search through each move; 0 without one.
        best: the move to make.
    """

    values: tuple[float, ...]
    visits: tuple[int, ...]
    best: int


Look = Callable[[Turn], Hint]  # of a game that is not over


def begin(key: UInt32[Array, "2"]) -> Session:
    """A new game; all of its tiles, and the games after it, follow from the key.

    >>> session = play(begin(np.uint32([0, 1])), 1)
    >>> session.now.moves, undo(session).now.moves, len(session.before)
    (1, 0, 1)
    """
    cells, legal, key, following = map(np.asarray, _programs()[0](key))
    return Session(Turn(cells, _actions(legal), key, 0, 0, None), (), following)


def play(session: Session, action: int) -> Session:
    """Makes a move, and adds the tile that appears after it; the same position and key give the same tile.

    Raises:
        ValueError: the move is not legal; says why.
    """
    now = session.now
    if said := refusal(now, action):
        raise ValueError(said)
    cells, paid, legal, key = map(np.asarray, _programs()[1](now.cells, np.int32(action), now.key))
    after = Turn(cells, _actions(legal), key, now.score + int(paid), now.moves + 1, action)
    return session._replace(now=after, before=(*session.before, now))


def undo(session: Session) -> Session:
    """Back to before the last move, or to the game before this one.

    Raises:
        ValueError: there is nothing to take back.
    """
    if not session.before:
        raise ValueError("There is no move to take back.")
    return session._replace(now=session.before[-1], before=session.before[:-1])


def new(session: Session) -> Session:
    """Begins another game, from which `undo` leads back to this one."""
    return begin(session.following)._replace(before=(*session.before, session.now))


def refusal(turn: Turn, action: int) -> str:
    """Why a move cannot be made; empty if it can.

    >>> start = begin(np.uint32([0, 1])).now
    >>> refusal(start, start.legal[0])
    ''
    """
    if not 0 <= action < len(NAMES):
        return f"{action} is not a move: give 0 to 3, for {', '.join(NAMES)}."
    if not turn.legal:
        return "The game is over: no move would change anything."
    if action in turn.legal:
        return ""
    others = [NAMES[other] for other in turn.legal]
    listed = f"{', '.join(others[:-1])} or {others[-1]}" if others[1:] else f"{others[0]} only"
    return f"{NAMES[action].capitalize()} changes nothing: no tile moves or merges that way. You can go {listed}."


def largest(turn: Turn) -> int:
    """The largest tile."""
    return 2 ** int(turn.cells.max())


def result(turn: Turn) -> str:
    """How far the game has come, in words."""
    moves = f"{turn.moves:,} move{'s' * (turn.moves != 1)}"
    return f"{turn.score:,} points after {moves}; the largest tile is {largest(turn):,}."


def why(hint: Hint) -> str:
    """Why the best move is not the one with the most points; empty if it is.

    >>> why(Hint((900.0, 950.0, -np.inf, 800.0), (7, 2, 0, 7), best=0))
    'Left was searched more: the points of up rest on 2 simulations, and those of left on 7.'
    """
    higher = int(np.argmax(hint.values))
    if round(hint.values[higher]) <= round(hint.values[hint.best]):
        return ""
    few, many, name, best = hint.visits[higher], hint.visits[hint.best], NAMES[higher], NAMES[hint.best]
    simulations = f"{few} simulation{'s' * (few != 1)}"
    said = f"{best.capitalize()} was searched more: the points of {name} rest on {simulations}"
    return f"{said}, and those of {best} on {many}."


def _actions(legal: np.ndarray) -> tuple[int, ...]:
    return tuple(int(action) for action in np.flatnonzero(legal))


@functools.cache
def _programs() -> tuple[Callable, Callable]:
    """`key -> (cells, legal, key, following)`, and `(cells, action, key) -> (cells, paid, legal, key)`."""
    game = game_2048()

    def first(key: Array) -> tuple[Array, ...]:
        k_init, key, following = jax.random.split(key, 3)
        state = game.init(k_init)
        return state.cells, game.legal(state), key, following

    def step(cells: Array, action: Int[Array, ""], key: Array) -> tuple[Array, ...]:
        k_tile, key = jax.random.split(key)
        state = game.step(Board2048(cells, jnp.float32(0), jnp.bool_(False)), action, k_tile)
        return state.cells, state.paid, game.legal(state), key

    return jax.jit(first), jax.jit(step)
