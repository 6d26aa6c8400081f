"""Checks that a game keeps its contract while it is played, by random games: shapes and types say nothing of that."""

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


class Played(NamedTuple):
    """A random game.

    Attributes:
        state: where it stands.
        moves: the actions so far, `[plies]`.
        ply: how many they are.
        fault: which of `FAULTS` was found; -1: none.
        over: whether it ended.
    """

    state: State
    moves: Array
    ply: Array
    fault: Array
    over: Array


def check_play(game: Game, count: int = 64, plies: int = 1000) -> None:
    """Plays at random, and compares what happens with the contract of `Game`.

    That takes as long as compiling five steps of the game does: seconds, on a busy machine some ten. Symmetries are
    checked where it can be told what is right: not if a step or the first position is drawn (`check_symmetries`).

    Args:
        game: the rules.
        count: random games.
        plies: moves after which a game is given up. If all are, there is a warning: games that never end by themselves
            can be played and trained, but mostly it is a mistake.

    Raises:
        ValueError: what `check_rules` raises; the first thing that is wrong in play, with the moves that led there.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> check_play(game)
    >>> endless = game._replace(terminal=lambda state: jnp.bool_(False))
    >>> check_play(endless, count=4)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe, after the moves ...: nothing is legal, and terminal(state) is False: ...
    """
    check_rules(game)
    play = jax.jit(jax.vmap(lambda key: _play(game, key, plies)._replace(state=())))
    found = jax.tree.map(np.asarray, play(jax.random.split(jax.random.key(0), count)))
    faulty = np.flatnonzero(found.fault >= 0)
    if faulty.size:
        lane = faulty[np.argmin(found.ply[faulty])]  # the shortest game tells it best
        where = moves_in_words(game, found.moves[lane], int(found.ply[lane]))
        raise ValueError(f"game {game.id}, {where}: {FAULTS[found.fault[lane]]}.")
    check_symmetries(game, count, plies)
    if not found.over.any():
        warnings.warn(
            f"game {game.id}: none of {count} random games ended within {plies} moves. If it should end, look at "
            "terminal(state); a limit of moves is a way to end a game as drawn.",
            stacklevel=2,
        )


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
        return Played(
            state=after,
            moves=played.moves.at[played.ply].set(action),
            ply=played.ply + ~jnp.any(jnp.array(unplayable)),
            fault=jnp.where(faults.any(), jnp.argmax(faults), -1).astype(jnp.int32),
            over=game.terminal(after),
        )

    start = jax.tree.map(jnp.asarray, game.init(key))
    over = jnp.asarray(game.terminal(start))
    played = Played(start, jnp.zeros(plies, jnp.int32), jnp.int32(0), jnp.where(over, 0, -1).astype(jnp.int32), over)
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
