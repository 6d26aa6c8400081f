"""Checks that a game keeps its contract while it is played, by random games: shapes and types say nothing of that."""

import hashlib
import warnings
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.checks.symmetry_checks import check_symmetries, moves_in_words
from jaxzero.games.game import Game
from jaxzero.types import State

__all__ = ["check_play"]

NEAR = 1e-4  # how far two observations of the same position, or a sum of rewards and 0, may be apart

# What can be wrong, in the order in which it is looked for: at the beginning, before a move, after it.
FAULTS = (
    "the game is over before a move: let init begin where something can be played",
    "nothing is legal, and terminal(state) is False: let terminal say that it is over, or add an action that passes",
    "to_play(state) is no player: players are 0 ... num_players - 1",
    "observe(state) holds what is not finite",
    "rewards(state) holds what is not finite",
    "the rewards of two players do not add up to 0: a search takes what one wins for what the other loses",
    "step(pack(state), ...) makes another position than step(state, ...): pack leaves out what step derives again",
    "something is legal, and terminal(state) is True: let legal be all False once the game is over",
    "the game is over, and a further step changes that: let step leave a terminal state, packed or not, as it is",
    "the game is over, and a further step pays again: let step on a terminal state, packed or not, set rewards to 0",
)

ABOUT_REWARDS = (4, 5)  # places in FAULTS: what was paid is told, too


class Played(NamedTuple):
    """A random game.

    Attributes:
        state: where it stands.
        moves: the actions so far, `[plies]`.
        ply: how many they are.
        fault: which of `FAULTS` was found; -1: none.
        over: whether it ended.
        paid: the last rewards.
        total: what was paid so far.
    """

    state: State
    moves: Array
    ply: Array
    fault: Array
    over: Array
    paid: Array
    total: Array


def check_play(game: Game, count: int = 64, plies: int = 1000) -> str:
    """Plays at random, and compares what happens with the contract of `Game`.

    That takes as long as compiling five steps of the game does: seconds, on a busy machine some ten. Symmetries are
    checked where it can be told what is right: not if a step or the first position is drawn (`check_symmetries`).

    Args:
        game: the rules.
        count: random games.
        plies: moves after which a game is given up.

    Returns:
        A digest of the games: a game with another one plays otherwise, or shows something else. The same rules have the
        same on all devices, but for rewards and observations that are not exact there.

    Warns:
        UserWarning: no game ended; or one of several players was paid more than 1, which a network whose values
            end at 1 cannot say.

    Raises:
        ValueError: what `check_rules` raises; the first thing that is wrong in play, with the moves that led there.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> check_play(game) == check_play(games.from_pgx("tic_tac_toe"))
    True
    >>> endless = game._replace(terminal=lambda state: jnp.bool_(False))
    >>> check_play(endless, count=4)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe, after the moves ...: nothing is legal, and terminal(state) is False: ...
    """
    check_rules(game)
    play = jax.jit(jax.vmap(lambda key: _seen_at_the_end(game, _play(game, key, plies))))
    found, seen = jax.tree.map(np.asarray, play(jax.random.split(jax.random.key(0), count)))
    faulty = np.flatnonzero(found.fault >= 0)
    if faulty.size:
        lane = faulty[np.argmin(found.ply[faulty])]  # the shortest game tells it best
        where = moves_in_words(game, found.moves[lane], int(found.ply[lane]))
        told = f". They are {_numbers(found.paid[lane])}." if found.fault[lane] in ABOUT_REWARDS else "."
        raise ValueError(f"game {game.id}, {where}: {FAULTS[found.fault[lane]]}{told}")
    check_symmetries(game, count, plies)
    if game.num_players > 1 and np.abs(found.total).max() > 1 + NEAR:
        most = found.total[np.abs(found.total).max(axis=1).argmax()]
        warnings.warn(
            f"game {game.id}: one of {count} random games paid its players {_numbers(most)} in all. Values of the "
            "networks of jaxzero.nets lie between -1 and 1, so they cannot learn more: divide the rewards.",
            stacklevel=2,
        )
    if not found.over.any():
        warnings.warn(
            f"game {game.id}: none of {count} random games ended within {plies} moves. If it should end, look at "
            "terminal(state); a limit of moves is a way to end a game as drawn. Endless ones can be trained, too.",
            stacklevel=2,
        )
    return _digest(found.moves, found.total, seen)


def _seen_at_the_end(game: Game, played: Played) -> tuple[Played, Array]:
    return played._replace(state=()), jnp.asarray(game.observe(played.state), jnp.float32)


def _digest(*arrays: np.ndarray) -> str:
    """Of numbers to three digits behind the point; 0 and -0 are the same."""
    rounded = [np.round(array, 3) + np.zeros((), array.dtype) for array in arrays]
    return hashlib.sha256(b"".join(array.tobytes() for array in rounded)).hexdigest()[:16]


def _numbers(rewards: np.ndarray) -> str:
    """As in `1, -1`."""
    return ", ".join(f"{reward:g}" for reward in rewards)


def _play(game: Game, key: chex.PRNGKey, plies: int) -> Played:
    """One random game, up to its end or to what is wrong."""

    def one(played: Played) -> Played:
        pick, draw, again = jax.random.split(jax.random.fold_in(key, played.ply), 3)
        legal = game.legal(played.state)
        action = jax.random.categorical(pick, jnp.where(legal, 0.0, -1e9)).astype(jnp.int32)
        unplayable = _before_a_move(game, played.state)
        after = game.step(played.state, action, draw)
        packed = game.step(game.pack(played.state), action, draw)
        further = [game.step(state, action, again) for state in (after, game.pack(after))]
        faults = jnp.array([False, *unplayable, *_after_a_move(game, after, packed, further)])
        paid = jnp.asarray(game.rewards(after), jnp.float32)
        return Played(
            state=after,
            moves=played.moves.at[played.ply].set(action),
            ply=played.ply + ~jnp.any(jnp.array(unplayable)),
            fault=jnp.where(faults.any(), jnp.argmax(faults), -1).astype(jnp.int32),
            over=game.terminal(after),
            paid=paid,
            total=played.total + paid,
        )

    start = jax.tree.map(jnp.asarray, game.init(key))
    over = jnp.asarray(game.terminal(start))
    nothing = jnp.zeros(game.num_players, jnp.float32)
    fault = jnp.where(over, 0, -1).astype(jnp.int32)
    played = Played(start, jnp.zeros(plies, jnp.int32), jnp.int32(0), fault, over, nothing, nothing)
    return jax.lax.while_loop(lambda x: ~x.over & (x.fault < 0) & (x.ply < plies), one, played)


def _before_a_move(game: Game, state: State) -> list[Array]:
    mover = game.to_play(state)
    return [
        ~game.legal(state).any(),
        (mover < 0) | (mover >= game.num_players),
        ~jnp.isfinite(game.observe(state)).all(),
    ]


def _after_a_move(game: Game, after: State, packed: State, further: list[State]) -> list[Array]:
    over, paid = game.terminal(after), game.rewards(after)
    stays: tuple[Callable, ...] = (game.observe, game.legal, game.to_play, game.terminal)
    return [
        ~jnp.isfinite(paid).all(),
        jnp.bool_(game.num_players == 2) & (jnp.abs(paid.sum()) > NEAR),
        ~_alike(after, packed, (*stays, game.rewards)),
        over & game.legal(after).any(),
        over & ~jnp.array([_alike(after, state, stays) for state in further]).all(),
        over & jnp.array([(game.rewards(state) != 0).any() for state in further]).any(),
    ]


def _alike(one: State, other: State, asked: tuple[Callable, ...]) -> Array:
    """Whether two positions are told apart by none of these functions."""
    return jnp.array([jnp.allclose(ask(one), ask(other), atol=NEAR, equal_nan=True) for ask in asked]).all()
