"""Checks that the functions of a game fit its record, before anything is compiled."""

import pathlib
import re
import traceback
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.games.game import Game, check_game

__all__ = ["check_rules"]

UNKNOWN = jax.errors.TracerBoolConversionError, jax.errors.ConcretizationTypeError
COMMANDS = {"hint", "h", "undo", "u", "swap", "s", "quit", "q", "help", "?"}  # what else is typed where moves are


def check_rules(game: Game) -> None:
    """Traces each function of a game once, and compares what it returns with the record. Nothing is compiled.

    Raises:
        ValueError: a function that fails or returns another shape or type, with both; numbers or names that do not fit.

    >>> from jaxzero import games
    >>> nim = games.from_pgx("tic_tac_toe")._replace(num_actions=8)
    >>> check_rules(nim)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe: legal(state) returns bool[9], and the record says bool[8] (num_actions is 8).
    """
    check_game("check_rules", game)
    _check_fields(game)
    key = jax.eval_shape(lambda: jax.random.key(0))
    state = _returned(game, "init(key)", game.init, key)
    after = _returned(game, "step(state, action, key)", game.step, state, jax.ShapeDtypeStruct((), jnp.int32), key)
    _same_state(game, state, after)
    packed = _returned(game, "pack(state)", game.pack, after)
    _returned(game, "step(pack(state), action, key)", game.step, packed, jax.ShapeDtypeStruct((), jnp.int32), key)
    players = f"num_players is {game.num_players}"
    wanted: dict[str, tuple[Any, tuple[int, ...], str]] = {
        "observe": (jnp.floating, tuple(game.observation_shape), f"observation_shape is {game.observation_shape}"),
        "legal": (jnp.bool_, (game.num_actions,), f"num_actions is {game.num_actions}"),
        "to_play": (jnp.integer, (), "the player to move, a number"),
        "terminal": (jnp.bool_, (), "one for the game"),
        "rewards": (jnp.floating, (game.num_players,), players),
    }
    for name, (kind, shape, why) in wanted.items():
        found = _returned(game, f"{name}(state)", getattr(game, name), state)
        if not isinstance(found, jax.ShapeDtypeStruct) or found.shape != shape or not jnp.issubdtype(found.dtype, kind):
            said = {jnp.floating: "float32", jnp.integer: "int32", jnp.bool_: "bool"}[kind]
            raise ValueError(
                f"game {game.id}: {name}(state) returns {_short(found)}, and the record says "
                f"{said}[{','.join(map(str, shape))}] ({why})."
            )
    _check_names(game)


def _check_fields(game: Game) -> None:
    """What is no function: a folder, a command line and a person have to be able to use the names."""
    if not isinstance(game.id, str) or not re.fullmatch(r"[\w.-]+", game.id):
        raise ValueError(f"game {game.id!r}: its id has to be a word of letters, digits, '_', '-' and '.'.")
    for name in ("num_actions", "num_players"):
        number = getattr(game, name)
        if type(number) is not int or number < 1:
            raise ValueError(f"game {game.id}: {name} is {number!r}: give a whole number, 1 or more.")
    shape = game.observation_shape
    if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(f"game {game.id}: observation_shape is {shape!r}: give whole numbers, like (5, 6, 3).")
    if game.draw is not None and not callable(game.draw):
        raise ValueError(f"game {game.id}: draw is a {type(game.draw).__name__}: give a function of a state, or None.")
    names = game.action_names
    if not isinstance(names, tuple) or not all(isinstance(name, str) and re.fullmatch(r"\S+", name) for name in names):
        raise ValueError(f"game {game.id}: action_names has to be a tuple of words without blanks.")
    if taken := {name for name in names if name.lower() in COMMANDS}:
        raise ValueError(f"game {game.id}: the action names {', '.join(sorted(taken))} are commands of `jaxzero play`.")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"game {game.id}: two actions have one name in action_names (capitals do not count).")


def _check_names(game: Game) -> None:
    if game.action_names and len(game.action_names) != game.num_actions:
        raise ValueError(
            f"game {game.id}: {len(game.action_names)} action_names for {game.num_actions} actions: give one for each."
        )


def _returned(game: Game, call: str, function: Callable, *given: Any) -> Any:
    try:
        return jax.eval_shape(function, *given)
    except Exception as error:  # whatever somebody's function does
        words = str(error).strip().splitlines()[0] if str(error).strip() else ""
        hint = " Values are not known yet: jnp.where in place of `if`." if isinstance(error, UNKNOWN) else ""
        raise ValueError(
            f"game {game.id}: {call} fails{_where(error)}: {type(error).__name__}: {words}{hint}"
        ) from error


def _where(error: Exception) -> str:
    """The file and the line of somebody's own that went wrong, if it is none of a package."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and f.filename != __file__]
    return f" ({pathlib.Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""


def _same_state(game: Game, state: Any, after: Any) -> None:
    """Positions are carried through loops, so a step must keep their structure, shapes and types."""
    if jax.tree.structure(state) != jax.tree.structure(after):
        raise ValueError(
            f"game {game.id}: step returns a state of another structure than init: {jax.tree.structure(after)}, not "
            f"{jax.tree.structure(state)}."
        )
    before, now = jax.tree_util.tree_leaves_with_path(state), jax.tree.leaves(after)
    for (path, one), other in zip(before, now):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise ValueError(
                f"game {game.id}: step changes state{jax.tree_util.keystr(path)} from {_short(one)} to "
                f"{_short(other)}: keep shape and type, as in jnp.int32(0)."
            )


def _short(x: Any) -> str:
    if not isinstance(x, jax.ShapeDtypeStruct):
        return str(jax.tree.structure(x))
    return f"{x.dtype}[{','.join(map(str, x.shape))}]" if x.shape else f"{x.dtype}[]"
