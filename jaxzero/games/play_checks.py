"""Checks that a game keeps its contract while it is played, by random games: shapes and types say nothing of that."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from jaxzero.games.game import Game
from jaxzero.games.rule_checks import check_rules
from jaxzero.types import State

__all__ = ["check_play"]

SHOWN = 12  # moves of a game that an error tells
NEAR = 1e-4  # how far observations of the same position may be apart

# What can be wrong, in the order in which it is looked for.
BEFORE_A_MOVE = (
    "nothing is legal, and terminal(state) is False: let terminal say that it is over, or add an action that passes",
    "to_play(state) is no player: players are 0 ... num_players - 1",
    "observe(state) holds what is not finite",
)
AFTER_A_MOVE = (
    "rewards(state) holds what is not finite",
    "step(pack(state), ...) makes another position than step(state, ...): pack leaves out what step derives again",
    "something is legal, and terminal(state) is True: let legal be all False once the game is over",
    "the game is over, and a further step changes that: let step leave a terminal state as it is",
    "the game is over, and a further step pays again: let step on a terminal state set the rewards to 0",
)


class Played(NamedTuple):
    """A random game.

    Attributes:
        state: where it stands.
        forms: the same game through each symmetry, `[S, ...]`.
        moves: the actions so far, `[plies]`.
        ply: how many they are.
        fault: the number of what is wrong, of `BEFORE_A_MOVE + AFTER_A_MOVE`; -1: nothing.
        drew: whether a step led elsewhere with another key.
        apart: for each symmetry, after how many moves its game was no longer the game's form; -1: never, `[S]`.
    """

    state: State
    forms: State
    moves: Array
    ply: Array
    fault: Array
    drew: Array
    apart: Array


def check_play(game: Game, count: int = 64, plies: int = 1000) -> None:
    """Plays at random, and compares what happens with the contract of `Game`; takes the seconds that compiling takes.

    Symmetries are checked by playing each game along with its mirrored forms. That needs steps that draw nothing from
    their key, and a first position that is its own form: where one is missing, symmetries are not checked.

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
    keys = jax.random.split(jax.random.key(0), count)
    found = jax.tree.map(
        np.asarray, jax.jit(jax.vmap(lambda key: _play(game, key, plies)))(keys)._replace(state=(), forms=())
    )
    names = game.action_names or tuple(str(i) for i in range(game.num_actions))
    faulty = np.flatnonzero(found.fault >= 0)
    if faulty.size:
        lane = faulty[np.argmin(found.ply[faulty])]  # the shortest game tells it best
        fault = (*BEFORE_A_MOVE, *AFTER_A_MOVE)[found.fault[lane]]
        raise ValueError(f"game {game.id}, {_after(found.moves[lane], found.ply[lane], names)}: {fault}.")
    if not found.drew.any():
        _check_forms(game, found, names)
    if (found.ply == plies).all():
        warnings.warn(
            f"game {game.id}: none of {count} random games ended within {plies} moves. If it should end, look at "
            "terminal(state); a limit of moves is a way to end a game as drawn.",
            stacklevel=2,
        )


def _check_forms(game: Game, found: Any, names: tuple[str, ...]) -> None:
    for number in range(len(game.symmetries)):
        apart = found.apart[:, number]
        if (lanes := np.flatnonzero(apart > 0)).size and not (apart == 0).any():
            lane = lanes[np.argmin(apart[lanes])]
            raise ValueError(
                f"game {game.id}, {_after(found.moves[lane], apart[lane], names)}: symmetries[{number}] is none of the "
                "rules: the game with the actions of that form leads to another position than the form of this one. Is "
                "`actions` the other way round? Action i of the transformed position is action actions[i] of the "
                "original one."
            )


def _after(moves: np.ndarray, ply: int, names: tuple[str, ...]) -> str:
    """How the position came about, in words."""
    if ply == 0:
        return "at the beginning"
    first = max(0, ply - SHOWN)
    told = " ".join(names[i] for i in moves[first:ply])
    return f"after the moves {'... ' if first else ''}{told}"


def _play(game: Game, key: chex.PRNGKey, plies: int) -> Played:
    """One random game, up to its end or to what is wrong."""
    forms = len(game.symmetries)
    inverse = jnp.array([np.argsort(x.actions) for x in game.symmetries], jnp.int32).reshape(forms, game.num_actions)

    def one(played: Played) -> Played:
        pick, draw, other, again = jax.random.split(jax.random.fold_in(key, played.ply), 4)
        legal = game.legal(played.state)
        action = jax.random.categorical(pick, jnp.where(legal, 0.0, -jnp.inf)).astype(jnp.int32)
        action = jnp.where(legal.any(), action, 0)
        before = _faults_before(game, played.state)
        after = game.step(played.state, action, draw)
        packed = game.step(game.pack(played.state), action, draw)
        moved = jax.vmap(game.step, (0, 0, None))(played.forms, inverse[:, action], draw)
        faults = jnp.array([*before, *_faults_after(game, after, packed, game.step(after, action, again))])
        early = jnp.any(jnp.array(before))
        ply = played.ply + ~early
        return Played(
            state=after,
            forms=moved,
            moves=played.moves.at[played.ply].set(action),
            ply=ply,
            fault=jnp.where(faults.any(), jnp.argmax(faults), -1),
            drew=played.drew | ~_alike(game, game.step(played.state, action, other), after),
            apart=jnp.where(played.apart < 0, jnp.where(_forms_apart(game, after, moved), ply, -1), played.apart),
        )

    start = game.init(key)
    begun = jax.tree.map(lambda x: jnp.broadcast_to(x, (forms, *x.shape)), start)
    played = Played(
        state=start,
        forms=begun,
        moves=jnp.zeros(plies, jnp.int32),
        ply=jnp.int32(0),
        fault=jnp.int32(-1),
        drew=jnp.bool_(False),
        apart=jnp.where(_forms_apart(game, start, begun), 0, -1),
    )
    going = lambda x: ~game.terminal(x.state) & (x.fault < 0) & (x.ply < plies)
    return jax.lax.while_loop(going, one, played)


def _faults_before(game: Game, state: State) -> list[Array]:
    mover = game.to_play(state)
    return [
        ~game.legal(state).any(),
        (mover < 0) | (mover >= game.num_players),
        ~jnp.isfinite(game.observe(state)).all(),
    ]


def _faults_after(game: Game, after: State, packed: State, further: State) -> list[Array]:
    over = game.terminal(after)
    return [
        ~jnp.isfinite(game.rewards(after)).all(),
        ~_alike(game, after, packed),
        over & game.legal(after).any(),
        over & ~game.terminal(further),
        over & (game.rewards(further) != 0).any(),
    ]


def _alike(game: Game, one: State, other: State) -> Array:
    """Whether a game says the same of two positions."""
    asked: tuple[Callable, ...] = (game.observe, game.legal, game.to_play, game.terminal, game.rewards)
    return jnp.array([jnp.allclose(ask(one), ask(other), atol=NEAR, equal_nan=True) for ask in asked]).all()


def _forms_apart(game: Game, state: State, forms: State) -> Array:
    """Which of the forms' games do not stand where the form of this position is, `[S]`."""
    seen, legal = game.observe(state), game.legal(state)
    apart = []
    for i, symmetry in enumerate(game.symmetries):
        form = jax.tree.map(lambda x, i=i: x[i], forms)
        same = [
            jnp.allclose(game.observe(form), symmetry.observation(seen), atol=NEAR),
            (game.legal(form) == legal[jnp.array(symmetry.actions)]).all(),
            game.terminal(form) == game.terminal(state),
            jnp.allclose(game.rewards(form), game.rewards(state), atol=NEAR),
        ]
        apart.append(~jnp.array(same).all())
    return jnp.array(apart, bool)
