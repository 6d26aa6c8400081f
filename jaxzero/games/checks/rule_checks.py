"""Checks that the functions of a game fit its record, before anything is compiled."""

import re
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.games.checks.traced_rules import check_same_state, in_words, returned
from jaxzero.games.game import CanonicalForm, Game, Symmetry, check_game
from jaxzero.games.outcomes import Outcomes

__all__ = ["check_rules"]

COMMANDS = {"hint", "h", "undo", "u", "swap", "s", "quit", "q", "help", "?"}  # typed in the same place as moves


def check_rules(game: Game) -> None:
    """Traces each function of a game once, and compares what it returns with the record. Nothing is compiled.

    Raises:
        ValueError: a function that fails or returns another shape or type, with both; numbers or names that do not fit.

    >>> from jaxzero import games
    >>> nim = games.from_pgx("tic_tac_toe")._replace(num_actions=8)
    >>> check_rules(nim)
    Traceback (most recent call last):
    ValueError: game tic_tac_toe: legal(state) returns bool[9]; it must be bool[8] (num_actions is 8).
    """
    check_game("check_rules", game)
    _check_fields(game)
    who, key = f"game {game.id}", jax.eval_shape(lambda: jax.random.key(0))
    state = returned(who, "init(key)", game.init, key)
    after = returned(who, "step(state, action, key)", game.step, state, jax.ShapeDtypeStruct((), jnp.int32), key)
    check_same_state(who, "init", state, after)
    packed = returned(who, "pack(state)", game.pack, after)
    returned(who, "step(pack(state), action, key)", game.step, packed, jax.ShapeDtypeStruct((), jnp.int32), key)
    players = f"num_players is {game.num_players}"
    wanted: dict[str, tuple[Any, tuple[int, ...], str]] = {
        "observe": (jnp.floating, tuple(game.observation_shape), f"observation_shape is {game.observation_shape}"),
        "legal": (jnp.bool_, (game.num_actions,), f"num_actions is {game.num_actions}"),
        "to_play": (jnp.integer, (), "the player to move, a number"),
        "terminal": (jnp.bool_, (), "one for the game"),
        "rewards": (jnp.floating, (game.num_players,), players),
    }
    if game.decisive is not None:
        if game.num_players != 2:
            raise ValueError(
                f"{who}: decisive is for two players, and num_players is {game.num_players}: set it to None."
            )
        wanted["decisive"] = wanted["legal"]
    for name, (kind, shape, why) in wanted.items():
        found = returned(who, f"{name}(state)", getattr(game, name), state)
        if not isinstance(found, jax.ShapeDtypeStruct) or found.shape != shape or not jnp.issubdtype(found.dtype, kind):
            said = {jnp.floating: "float32", jnp.integer: "int32", jnp.bool_: "bool"}[kind]
            raise ValueError(
                f"{who}: {name}(state) returns {in_words(found)}; it must be {said}[{','.join(map(str, shape))}] "
                f"({why})."
            )
    _check_names(game)
    _check_symmetries(who, game)
    if game.input_features is not None:
        _check_features(who, game)
    if game.outcomes is not None:
        _check_outcomes(who, game, packed, after, key)


def _check_outcomes(who: str, game: Game, packed: Any, after: Any, key: Any) -> None:
    """Checks shapes and types of listed outcomes against their record; `check_outcomes` checks that they are true."""
    found, number = game.outcomes, jax.ShapeDtypeStruct((), jnp.int32)
    if not isinstance(found, Outcomes):
        raise ValueError(
            f"{who}: outcomes is a {type(found).__name__}: give games.Outcomes(count, probabilities, step)."
        )
    if type(found.count) is not int or found.count < 2:
        raise ValueError(f"{who}: outcomes.count is {found.count!r}: give a whole number, 2 or more.")
    chances = returned(who, "outcomes.probabilities(state, action)", found.probabilities, packed, number)
    if not isinstance(chances, jax.ShapeDtypeStruct) or chances.shape != (found.count,):
        raise ValueError(
            f"{who}: outcomes.probabilities(state, action) returns {in_words(chances)}: give one number for each of "
            f"outcomes.count, float32[{found.count}]."
        )
    made = returned(who, "outcomes.step(state, action, outcome, key)", found.step, packed, number, number, key)
    check_same_state(f"{who}, outcomes", "step", after, made)
    if found.happens is not None:
        returned(who, "outcomes.happens(state, action, following)", found.happens, packed, number, after)


def _check_fields(game: Game) -> None:
    """Checks the fields that are no functions: a folder, a command line and a person must be able to use the names."""
    if not isinstance(game.id, str) or not re.fullmatch(r"[\w.-]+", game.id):
        raise ValueError(f"game {game.id!r}: its id must be a word of letters, digits, '_', '-' and '.'.")
    for name in ("num_actions", "num_players"):
        number = getattr(game, name)
        if type(number) is not int or number < 1:
            raise ValueError(f"game {game.id}: {name} is {number!r}: give a whole number, 1 or more.")
    shape = game.observation_shape
    if not isinstance(shape, tuple) or not all(type(n) is int and n > 0 for n in shape):
        raise ValueError(
            f"game {game.id}: observation_shape is {shape!r}: give a tuple of whole numbers, like (5, 6, 3)."
        )
    for name in ("draw", "text"):
        function = getattr(game, name)
        if function is not None and not callable(function):
            raise ValueError(
                f"game {game.id}: {name} is a {type(function).__name__}: give a function of a state, or None."
            )
    names = game.action_names
    if not isinstance(names, tuple) or not all(isinstance(name, str) and re.fullmatch(r"\S+", name) for name in names):
        raise ValueError(f"game {game.id}: action_names must be a tuple of words without blanks.")
    if taken := {name for name in names if name.lower() in COMMANDS}:
        raise ValueError(f"game {game.id}: the action names {', '.join(sorted(taken))} are commands of `jaxzero play`.")
    if len({name.lower() for name in names}) < len(names):
        raise ValueError(f"game {game.id}: two actions have the same name in action_names (ignoring case).")


def _check_names(game: Game) -> None:
    if game.action_names and len(game.action_names) != game.num_actions:
        raise ValueError(
            f"game {game.id}: {len(game.action_names)} action_names for {game.num_actions} actions: give one for each."
        )


def _check_symmetries(who: str, game: Game) -> None:
    """Checks that each form has the game's actions and observations; shapes cannot tell whether the rules obey it."""
    for number, symmetry in enumerate(game.symmetries):
        _check_symmetry(who, game, f"symmetries[{number}]", symmetry)
    if game.canonical is None:
        return
    if not isinstance(game.canonical, CanonicalForm):
        raise ValueError(
            f"{who}: canonical is a {type(game.canonical).__name__}: give games.CanonicalForm(of_second, symmetry), or "
            "None."
        )
    if game.num_players != 2:
        raise ValueError(f"{who}: canonical is for two players, and num_players is {game.num_players}: set it to None.")
    _check_symmetry(who, game, "canonical.symmetry", game.canonical.symmetry)
    seen = jax.ShapeDtypeStruct(tuple(game.observation_shape), jnp.float32)
    told = returned(who, "canonical.of_second(observation)", game.canonical.of_second, seen)
    if not isinstance(told, jax.ShapeDtypeStruct) or told.shape != () or told.dtype != jnp.bool_:
        raise ValueError(
            f"{who}: canonical.of_second(observation) returns {in_words(told)}: return one bool, whether the "
            "observation is of the second player."
        )


def _check_features(who: str, game: Game) -> None:
    if not callable(game.input_features):
        raise ValueError(
            f"{who}: input_features is a {type(game.input_features).__name__}: give a function of a batch of "
            "observations, or None."
        )
    shape = (2, *game.observation_shape)
    seen = jax.ShapeDtypeStruct(shape, jnp.float32)
    found = returned(who, "input_features(observations)", game.input_features, seen)
    fits = isinstance(found, jax.ShapeDtypeStruct) and found.dtype == jnp.float32 and len(found.shape) == len(shape) > 1
    if not fits or found.shape[:-1] != shape[:-1]:
        allowed = ",".join([*map(str, shape[:-1]), "any number"])
        raise ValueError(
            f"{who}: input_features(observations) returns {in_words(found)} for {in_words(seen)}, a batch of two: "
            f"return float32[{allowed}], which is appended along the last axis of the observation."
        )


def _check_symmetry(who: str, game: Game, name: str, symmetry: Any) -> None:
    if not isinstance(symmetry, Symmetry):
        raise ValueError(f"{who}: {name} is a {type(symmetry).__name__}: give games.Symmetry(observation, actions).")
    if sorted(symmetry.actions) != list(range(game.num_actions)):
        raise ValueError(
            f"{who}: {name}.actions must hold each of 0 ... {game.num_actions - 1} once, in the order of the "
            "transformed position."
        )
    seen = jax.ShapeDtypeStruct(tuple(game.observation_shape), jnp.float32)
    shown = returned(who, f"{name}.observation(observation)", symmetry.observation, seen)
    if not isinstance(shown, jax.ShapeDtypeStruct) or shown.shape != seen.shape:
        raise ValueError(
            f"{who}: {name}.observation returns {in_words(shown)} for {in_words(seen)}: the shape must stay the same. "
            "A board that is not square has no quarter turns."
        )
