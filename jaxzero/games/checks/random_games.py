"""Random games in one compiled call, each up to its end or to the first breach of the contract of `Game`."""

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array

from jaxzero.games.decisive_moves import WIN
from jaxzero.games.game import Game
from jaxzero.types import State

__all__ = ["FAULTS", "NEAR", "Played", "play_at_random"]

NEAR = 1e-4  # how far two observations of the same position, or a sum of rewards and 0, may be apart

# Possible faults, in the order of the checks: at the beginning, before a move, after it.
FAULTS = (
    "the game is over before the first move: init must return a position with a legal action",
    "no action is legal, but terminal(state) is False: return True there, or add a pass action",
    "to_play(state) is not a player: players are 0 ... num_players - 1",
    "observe(state) has values that are not finite",
    "rewards(state) has values that are not finite",
    "the rewards of two players do not add up to 0: a search assumes that one wins what the other loses",
    "step(pack(state), ...) gives another position than step(state, ...): pack may leave out only what step derives "
    "again",
    "an action is legal, but terminal(state) is True: legal must be all False once the game is over",
    "a step after the end changes the state: step must leave a terminal state, packed or not, unchanged",
    "a step after the end pays again: on a terminal state, packed or not, step must set rewards to 0",
    "decisive(state) is wrong: it must be True exactly for the legal actions that end the game and pay their mover 1",
)


class Played(NamedTuple):
    """A random game.

    Attributes:
        state: where it stands.
        moves: the actions so far, `[plies]`.
        ply: how many they are.
        fault: which of `FAULTS` was found; -1: none.
        over: whether it ended.
        paid: the last rewards, `[P]`.
        total: what was paid so far, `[P]`.
        least, most: of `total`, since the beginning.
        misnamed: the action that `decisive` was wrong about before the last move; -1: none.
        seen: the observation before the ply that was asked for, or before the last one if the game was shorter.
    """

    state: State
    moves: Array
    ply: Array
    fault: Array
    over: Array
    paid: Array
    total: Array
    least: Array
    most: Array
    misnamed: Array
    seen: Array


def play_at_random(game: Game, key: chex.PRNGKey, plies: int, look_at: Array) -> Played:
    """One random game.

    Args:
        game: the rules.
        key: for the moves, and for what the game draws.
        plies: moves after which it is given up.
        look_at: the ply whose observation is kept.
    """

    def one(played: Played) -> Played:
        pick, draw, again = jax.random.split(jax.random.fold_in(key, played.ply), 3)
        legal, seen = game.legal(played.state), jnp.asarray(game.observe(played.state), jnp.float32)
        unlikely = jnp.where(legal, jnp.float32(0), jnp.float32(-1e9))  # float32: with 64 bits other moves are drawn
        action = jax.random.categorical(pick, unlikely).astype(jnp.int32)
        unplayable = _before_a_move(game, played.state)
        after = game.step(played.state, action, draw)
        packed = game.step(game.pack(played.state), action, draw)
        further = [game.step(state, action, again) for state in (after, game.pack(after))]
        misnamed = _wrongly_decisive(game, played.state, action)
        wrong = [*unplayable, *_after_a_move(game, after, packed, further), misnamed >= 0]
        faults = jnp.array([False, *wrong])
        paid = jnp.asarray(game.rewards(after), jnp.float32)
        total = played.total + paid
        return Played(
            state=after,
            moves=played.moves.at[played.ply].set(action),
            ply=played.ply + ~jnp.any(jnp.array(unplayable)),
            fault=jnp.where(faults.any(), jnp.argmax(faults), -1).astype(jnp.int32),
            over=game.terminal(after),
            paid=paid,
            total=total,
            least=jnp.minimum(played.least, total),
            most=jnp.maximum(played.most, total),
            misnamed=misnamed,
            seen=jnp.where(played.ply <= look_at, seen, played.seen),
        )

    start = jax.tree.map(jnp.asarray, game.init(key))
    over, nothing = jnp.asarray(game.terminal(start)), jnp.zeros(game.num_players, jnp.float32)
    played = Played(
        state=start,
        moves=jnp.zeros(plies, jnp.int32),
        ply=jnp.int32(0),
        fault=jnp.where(over, 0, -1).astype(jnp.int32),
        over=over,
        paid=nothing,
        total=nothing,
        least=nothing,
        most=nothing,
        misnamed=jnp.int32(-1),
        seen=jnp.zeros(game.observation_shape, jnp.float32),
    )
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


def _wrongly_decisive(game: Game, state: State, action: Array) -> Array:
    """Which action `decisive` is wrong about: the first that it names (else 0), or the one taken; -1: neither."""
    if game.decisive is None:
        return jnp.int32(-1)
    said, mover = game.decisive(state), game.to_play(state)

    def wrong(action: Array) -> Array:
        after = game.step(state, action, jax.random.key(0))
        wins = game.terminal(after) & (game.rewards(after)[mover] >= WIN) & game.legal(state)[action]
        return said[action] != wins

    actions = jnp.array([jnp.argmax(said), action], jnp.int32)
    found = jax.vmap(wrong)(actions)
    return jnp.where(found.any(), actions[jnp.argmax(found)], -1)


def _alike(one: State, other: State, asked: tuple[Callable, ...]) -> Array:
    """Whether all of these functions return the same for two positions."""
    return jnp.array([jnp.allclose(ask(one), ask(other), atol=NEAR, equal_nan=True) for ask in asked]).all()
