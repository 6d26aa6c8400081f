"""Checks that the symmetries of a game hold: each random game is also played in its mirrored forms."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from jaxzero.games.checks.step_randomness import depends_on_key
from jaxzero.games.game import Game
from jaxzero.types import State

__all__ = ["check_symmetries", "moves_in_words", "names_of"]

SHOWN = 12  # moves of a game that an error tells
NEAR = 1e-4  # how far observations may be apart


class Mirrored(NamedTuple):
    """A random game beside its forms.

    Attributes:
        state: where it stands.
        forms: where the games stand that were played through each symmetry, `[S, ...]`.
        moves: the actions so far, `[plies]`.
        ply: how many they are.
        apart: for each symmetry, after how many moves its game was no longer the form of this one; -1: never, `[S]`.
    """

    state: State
    forms: State
    moves: Array
    ply: Array
    apart: Array


def check_symmetries(game: Game, count: int = 64, plies: int = 1000) -> None:
    """Plays random games, and the same games with the actions of each symmetry; compares observations and legal moves.

    Games are not checked whose steps depend on their key, that deal something in `init`, or whose first position is not
    its own mirror image: there, the mirrored game may rightly differ.

    Args:
        game: one that keeps its contract otherwise (`check_play`).
        count: random games.
        plies: moves after which a game is given up.

    Raises:
        ValueError: a game and its form part, with the moves that led there.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> turned = game.symmetries[1]
    >>> wrong = game._replace(symmetries=(turned._replace(actions=turned.actions[::-1]),))
    >>> check_symmetries(wrong, count=4)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe, after the moves ...: symmetries[0] is not a symmetry of the rules: ...
    """
    keys = jax.random.split(jax.random.key(0), count)
    if not game.symmetries or _draws(game, keys):
        return
    play = jax.jit(jax.vmap(lambda key: _play(game, key, plies)._replace(state=(), forms=())))
    found = jax.tree.map(np.asarray, play(keys))
    for number in range(len(game.symmetries)):
        apart = found.apart[:, number]
        if (apart == 0).any() or not (apart > 0).any():
            continue
        lane = int(np.argmin(np.where(apart > 0, apart, plies + 1)))
        raise ValueError(
            f"game {game.id}, {moves_in_words(game, found.moves[lane], int(apart[lane]))}: symmetries[{number}] is not "
            "a symmetry of the rules: the transformed actions do not lead to the transformed position. Is `actions` "
            "inverted? Action i of the transformed position is action actions[i] of the original one."
        )


def moves_in_words(game: Game, moves: np.ndarray, ply: int) -> str:
    """The moves that led to a position, in words.

    >>> from jaxzero import games
    >>> moves_in_words(games.from_pgx("tic_tac_toe"), np.array([4, 0, 8]), 2)
    'after the moves 4 0'
    """
    if ply == 0:
        return "at the beginning"
    names, first = names_of(game), max(0, ply - SHOWN)
    return f"after the moves {'... ' if first else ''}{' '.join(names[i] for i in moves[first:ply])}"


def names_of(game: Game) -> tuple[str, ...]:
    """What its actions are called: numbers where the game does not say."""
    return game.action_names or tuple(str(i) for i in range(game.num_actions))


def _draws(game: Game, keys: chex.PRNGKey) -> bool:
    """Whether chance has a part: in steps, or in first positions in more than a number, such as who begins."""
    if depends_on_key(game.step, jax.eval_shape(game.init, keys[0])):
        return True
    for leaf in jax.tree.leaves(jax.vmap(game.init)(keys)):
        if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            return True
        if leaf[0].size > 1 and not bool((leaf == leaf[0]).all()):
            return True
    return False


def _play(game: Game, key: chex.PRNGKey, plies: int) -> Mirrored:
    """One random game and its forms."""
    forms = jnp.array([symmetry.actions for symmetry in game.symmetries], jnp.int32)
    mirrored = jnp.argsort(forms, axis=1)  # which action of each form is an action of the game

    def one(played: Mirrored) -> Mirrored:
        pick, draw = jax.random.split(jax.random.fold_in(key, played.ply))
        action = jax.random.categorical(pick, jnp.where(game.legal(played.state), 0.0, -1e9))
        after = game.step(played.state, action, draw)
        moved = jax.vmap(game.step, (0, 0, None))(played.forms, mirrored[:, action], draw)
        parts = (played.apart < 0) & _apart(game, after, moved)
        return Mirrored(
            state=after,
            forms=moved,
            moves=played.moves.at[played.ply].set(action.astype(jnp.int32)),
            ply=played.ply + 1,
            apart=jnp.where(parts, played.ply + 1, played.apart),
        )

    start = jax.tree.map(jnp.asarray, game.init(key))
    begun = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(forms), *x.shape)), start)
    apart = jnp.where(_apart(game, start, begun), 0, -1).astype(jnp.int32)
    played = Mirrored(start, begun, jnp.zeros(plies, jnp.int32), jnp.int32(0), apart)
    return jax.lax.while_loop(lambda x: ~game.terminal(x.state) & (x.ply < plies), one, played)


def _apart(game: Game, state: State, forms: State) -> Bool[Array, "S"]:
    """Which of the mirrored games have left the mirrored form of this position."""
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
    return jnp.array(apart)
