"""Matches between programs: each policy is compiled only once for all its opponents, itself included.

`arena.play_seats` makes one program of both policies and all moves of the games. A search takes tens of seconds to
compile, and several matches, or a match against an earlier network with the same search, would compile it several
times. Here the host loops over the moves, and every policy is a program of its own:

    first = program(jaxzero.gumbel(models.perfect(game, net), 32))
    second = program(arena.random_player(game))
    match = between(game)
    seats = match((first, second), (params, None), keys)     # the games of arena.play_seats
    later = match((first, first), (params, before), keys)    # the network against what it was: compiles nothing
"""

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from jaxzero.games.game import check_game
from jaxzero.play import arena
from jaxzero.types import Keys, Params, State

__all__ = ["Program", "between", "program"]


class Program(NamedTuple):
    """A player: `act(params, keys, states) -> actions`, compiled. `program` makes it."""

    act: Callable[[Params, Keys, State], Int[Array, "B"]]


def program(policy: Callable) -> Program:
    """A policy as a program, compiled when it first moves, and again for other shapes: more games, another network.

    Keep what is returned: the same policy given twice is compiled twice.

    Args:
        policy: `(params, keys, states) -> PolicyOutput` for a batch of games, as all of `jaxzero`'s are; one of your
            own may leave every field but `action` None.

    Raises:
        ValueError: no function; when it first moves, one that returns no `PolicyOutput`.
    """
    if not callable(policy):
        raise ValueError(f"program: a {type(policy).__name__}: give a policy, (params, keys, states) -> PolicyOutput.")

    def act(params: Params, keys: Keys, states: State) -> Int[Array, "B"]:
        out = policy(params, keys, states)
        if not hasattr(out, "action"):
            raise ValueError(
                f"program: the policy returned a {type(out).__name__}: let it return a jaxzero.PolicyOutput, whose "
                "`action` is [B]."
            )
        return out.action

    return Program(jax.jit(act))


def between(game: Any, opening_plies: int = 2, max_plies: int = 1000) -> Callable[..., arena.Seats]:
    """Matches in a game: `(programs, params, keys) -> Seats`, called outside of `jax.jit`.

    The games are those of `arena.play_seats` with the same keys, except that rounding may differ, because the searches
    are compiled differently. They run on the default device of this process, and take about a millisecond more per
    move.

    Args:
        game: of two or more players.
        opening_plies: random moves at the start.
        max_plies: where games are stopped.

    Returns:
        a function of two programs, the parameters of each, and a key for each opening `[n]`. It plays n games for each
        seat of the first program.

    Raises:
        ValueError: a game of one player, numbers of plies that are none; when called, something else in place of an
            argument, or arrays of which other hosts have parts.

    >>> import jax
    >>> from jaxzero import games
    >>> from jaxzero.play import arena, match_programs
    >>> game = games.from_pgx("tic_tac_toe")
    >>> chance = match_programs.program(arena.random_player(game))
    >>> match = match_programs.between(game)
    >>> seats = match((chance, chance), (None, None), jax.random.split(jax.random.key(0), 50))
    >>> score = jax.tree.map(lambda x: int(x.sum()), seats.score)  # of both seats
    >>> low, high = arena.interval(score)
    >>> sum(score), low < arena.share(score) < high
    (100, True)
    """
    check_game("between", game)
    arena.check_players(game)
    for name, plies in (("opening_plies", opening_plies), ("max_plies", max_plies)):
        if type(plies) is not int or plies < (name == "max_plies"):
            raise ValueError(f"between: {name}={plies!r}: give a number of moves, {int(name == 'max_plies')} or more.")
    start = jax.jit(lambda keys: arena.seated(game, keys, opening_plies))
    ended = jax.jit(functools.partial(arena.all_over, game))
    counted = jax.jit(functools.partial(arena.counted, game))
    draw = jax.jit(lambda *group: arena.drawn(arena.joined(group)))

    @functools.partial(jax.jit, static_argnums=(0, 1))
    def step(i: int, parts: int, table: Any, action: Array, keys: Keys) -> tuple:
        return arena.parted(arena.moved(game, table, action, keys, arena.whose(game, i)), parts)

    def match(programs: tuple[Program, Program], params: tuple[Params, Params], keys: Keys) -> arena.Seats:
        _check(programs, params, keys)
        params, keys = _here((params, keys))

        def move(i: int, group: tuple) -> tuple:
            table, k_search, k_step = draw(*group)
            return step(i, len(group), table, programs[i].act(params[i], k_search, table.state), k_step)

        tables, turns = start(keys), 0
        while opening_plies + turns < max_plies and not _finished(ended(tables)):
            tables, turns = arena.after_turn(tables, move), turns + 1
        return counted(tables, np.int32(turns))

    return match


def _check(programs: Any, params: Any, keys: Any) -> None:
    """Raises a ValueError where a match is given something else; before anything is compiled."""
    for name, pair in (("programs", programs), ("params", params)):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"match: {name} is a {type(pair).__name__}: give a pair, one for each player.")
    for one in programs:
        if not isinstance(one, Program):
            raise ValueError(
                f"match: a player is a {type(one).__name__}: make a program of its policy, "
                "match_programs.program(policy), and keep it."
            )
    if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves((params, keys))):
        raise ValueError("match: called under jax.jit, where its loop cannot run: use arena.play_seats there.")
    shape = getattr(keys, "shape", None)
    typed = shape is not None and jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    if shape is None or len(shape) != (1 if typed else 2) or not shape[0]:
        raise ValueError(
            f"match: keys is a {type(keys).__name__}{'' if shape is None else f' of shape {list(shape)}'}: give a key "
            "for each opening, jax.random.split(key, n)."
        )


def _finished(flag: Array) -> bool:
    """Waits for the flag and returns it. It waits in Python, so that Ctrl-C works at any time."""
    pause = 1e-4
    while not flag.is_ready():
        time.sleep(pause)
        pause = min(2 * pause, 0.02)
    return bool(flag)


def _here(tree: Any) -> Any:
    """Moves arrays to the default device, so that programs are compiled for that device only."""

    def plain(x: Any) -> Any:
        if not isinstance(x, jax.Array):
            return x
        if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
            return jax.random.wrap_key_data(plain(jax.random.key_data(x)), impl=jax.random.key_impl(x))
        if x.is_fully_addressable:
            return np.asarray(x)
        if x.is_fully_replicated:
            return np.asarray(x.addressable_data(0))
        raise ValueError(
            f"match: an array of shape {list(x.shape)} has parts on other hosts. Give parameters and keys that every "
            "host holds in full."
        )

    return jax.device_put(jax.tree.map(plain, tree))
