"""Checks by random games that a game keeps its contract while it is played, which shapes and types cannot show."""

import hashlib
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.games.checks.random_games import FAULTS, NEAR, Played, play_at_random
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.checks.symmetry_checks import check_symmetries, moves_in_words, names_of
from jaxzero.games.game import Game, shown

__all__ = ["check_play"]

LOOKS = 32  # plies whose observations go into the digest


def check_play(game: Game, count: int = 64, plies: int = 1000) -> str:
    """Plays at random, and compares what happens with the contract of `Game`.

    That takes as long as compiling five steps of the game: seconds, on a busy machine some ten. Symmetries are checked
    only where the right result is known: not if a step or the first position is drawn (`check_symmetries`).

    Args:
        game: the rules.
        count: random games.
        plies: moves after which a game is given up.

    Returns:
        A digest of the moves, of what was paid, and of two observations of each game, with their canonical form and
        input features where the game names them. Equal games have equal digests, for the same `count` and `plies`. Most
        changes of rules or observations change the digest; a change that does not occur in these games does not.

    Warns:
        UserWarning: no game ended; or one of several players was paid, from some position on, more than 1 or less than
            -1, which is outside the range of the networks' values.

    Raises:
        ValueError: what `check_rules` raises; the first thing that is wrong in play, with the moves that led there.

    >>> from jaxzero import games
    >>> game = games.from_pgx("tic_tac_toe")
    >>> check_play(game) == check_play(games.from_pgx("tic_tac_toe"))
    True
    >>> endless = game._replace(terminal=lambda state: jnp.bool_(False))
    >>> check_play(endless, count=4)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe, after the moves ...: no action is legal, but terminal(state) is False: ...
    """
    check_rules(game)

    def play(key: jax.Array, look_at: jax.Array) -> tuple[Played, jax.Array]:
        played = play_at_random(game, key, plies, look_at)
        return played._replace(state=()), jnp.asarray(game.observe(played.state), jnp.float32)

    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), count)
    found, last = jax.tree.map(np.asarray, jax.jit(jax.vmap(play))(keys, jnp.arange(count) % LOOKS))
    faulty = np.flatnonzero(found.fault >= 0)
    if faulty.size:
        lane = faulty[np.argmin(found.ply[faulty])]  # the shortest game shows it best
        where, fault = moves_in_words(game, found.moves[lane], int(found.ply[lane])), FAULTS[found.fault[lane]]
        about_rewards = fault.startswith(("rewards(state)", "the rewards"))
        told = f". They are {_numbers(found.paid[lane])}." if about_rewards else "."
        if (misnamed := int(found.misnamed[lane])) >= 0 and fault.startswith("decisive"):
            told = f". It is wrong about {names_of(game)[misnamed]}, before the last move."
        raise ValueError(f"game {game.id}, {where}: {fault}{told}")
    check_symmetries(game, count, plies)
    positions = np.concatenate([found.seen, last])
    form = () if game.canonical is None else _canonical(game, positions)
    form += () if game.input_features is None else (_features(game.id, game.input_features, positions),)
    if game.num_players > 1:
        _warn_of_large_rewards(game, found)
    if not found.over.any():
        warnings.warn(
            f"game {game.id}: none of {count} random games ended within {plies} moves. If games should end, check "
            "terminal(state); a move limit can end a game as a draw. Games without an end can be trained, too.",
            stacklevel=2,
        )
    return _digest(found.moves, found.total, found.seen, last, *form)


def _canonical(game: Game, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Observations in canonical form, and the order of the actions there.

    Raises:
        ValueError: what is shown in place of a second player's observation is a second player's again.
    """
    found, _ = shown(game.canonical, jnp.asarray(seen))
    if jax.vmap(game.canonical.of_second)(found).any():
        raise ValueError(
            f"game {game.id}: canonical.of_second(observation) is True, and still is for "
            "canonical.symmetry.observation(observation), which must be an observation of the first player."
        )
    return np.asarray(found), np.asarray(game.canonical.symmetry.actions)


def _features(name: str, features: Callable[[jax.Array], jax.Array], seen: np.ndarray) -> np.ndarray:
    """The input features of these observations.

    Raises:
        ValueError: some of it is not finite, or depends on other positions of the batch.
    """
    features = jax.jit(features)  # else loops in it are compiled anew at each call
    found = np.asarray(features(jnp.asarray(seen)))
    if not np.isfinite(found).all():
        raise ValueError(
            f"game {name}: input_features(observations) has values that are not finite: return finite numbers."
        )
    alone = np.concatenate([features(jnp.asarray(seen[i : i + 1])) for i in range(min(len(seen), LOOKS))])
    if not np.allclose(alone, found[: len(alone)], atol=1e-3):
        raise ValueError(
            f"game {name}: input_features(observations) mixes the positions of a batch: each row must depend on its "
            "own observation only."
        )
    return found


def _warn_of_large_rewards(game: Game, found: Played) -> None:
    """Warns if the sum of later rewards, which a network's value must predict, was too large in any position."""
    ahead = np.maximum(found.total - found.least, found.most - found.total).max()
    if ahead > 1 + NEAR:
        warnings.warn(
            f"game {game.id}: in a random game, the rewards after some position add up to {ahead:g} for a player, or "
            "to minus that. Networks of jaxzero.nets predict values between -1 and 1 only: divide the rewards.",
            stacklevel=3,
        )


def _digest(*arrays: np.ndarray) -> str:
    """A digest of numbers to three digits. Rounding boundaries lie off common fractions, whose rounding would vary."""
    steps = [np.floor(array.astype(np.float64) * 1000 + 0.3137) for array in arrays]
    return hashlib.sha256(b"".join(array.tobytes() for array in steps)).hexdigest()[:16]


def _numbers(rewards: np.ndarray) -> str:
    """As in `1, -1`."""
    return ", ".join(f"{reward:g}" for reward in rewards)
