"""Games by name: jaxzero's own Go and Hex, backgammon, pgx's games, and the user's own as `module:attribute`."""

import importlib
import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from jaxzero.games.backgammon import backgammon
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.game import Game
from jaxzero.games.go_game.rules import go
from jaxzero.games.hex import hex_game
from jaxzero.games.pgx_adapter import from_pgx

__all__ = ["by_name", "is_own", "loaded"]


def by_name(name: str, size: int = 9, komi: float = 7.0) -> Game:
    """The game that a command line names.

    Args:
        name: "go", of any size; "hex", 11 × 11, or like "hex_7x7"; a game of your own as "module:attribute", or
            "folder/file.py:attribute", where the attribute is a `Game`, or a function without arguments that returns
            one; else one that pgx knows. Modules are looked for in the current folder first.
        size: of "go": points on a side.
        komi: of "go": white's points for moving second.

    Raises:
        ImportError: pgx is needed, and not installed.
        ValueError: no such game, module or attribute, with those that there are; something else than a game; a game
            whose functions do not fit its record, see `check_rules`.

    >>> by_name("go", size=5).id, by_name("tic_tac_toe").num_actions
    ('go_5x5', 9)
    """
    if is_own(name):
        return _own(name)
    if name == "go":
        return go(size, komi)
    if name == "backgammon":
        return backgammon()
    if sized := re.fullmatch(r"hex(?:_(\d+)x\1)?", name):
        return hex_game(int(sized[1] or 11))
    if near := re.fullmatch(r"hex[_-]?(1?\d)(?:x\1)?", name):
        raise ValueError(f"game {name}: no such game. Hex of another size is like hex_7x7: hex_{near[1]}x{near[1]}.")
    try:
        return from_pgx(name)
    except ValueError as error:
        words = str(error).replace(f"from_pgx({name!r})", f"game {name}")
        file = name if name.endswith(".py") else f"{name}.py"
        own = f" For a game of your own in {file} give {name}:game." if pathlib.Path(file).is_file() else ""
        raise ValueError(
            f"{words} Also go (--size 7), hex_7x7 and other sizes, and your own as module:attribute.{own}"
        ) from error


def is_own(name: str) -> bool:
    """Whether a name means a user's own game, `module:attribute`.

    >>> is_own("nim:game"), is_own("connect_four")
    (True, False)
    """
    return ":" in name


def _own(name: str) -> Game:
    game = loaded(name)
    check_rules(game)
    return game


def loaded(name: str, word: str = "game", kinds: tuple[type, ...] = (Game,)) -> Any:
    """The record that `module:attribute` names, or that a function without arguments of this name returns.

    Args:
        name: the module or file, a colon, and what it is called there.
        word: what it is, for messages.
        kinds: the records that it may be.

    Raises:
        ValueError: no such module or attribute; something else than a record of these kinds.
    """
    where, _, attribute = name.rpartition(":")
    module = _module(name, where, word)
    there = _there(module, where, word, kinds)
    if not attribute or not hasattr(module, attribute):
        raise ValueError(f"{word} {name}: {where} has no {attribute!r}. {there}")
    found = getattr(module, attribute)
    record = _called(name, found, word) if callable(found) and not isinstance(found, (*kinds, type)) else found
    if not isinstance(record, kinds):
        public = " or ".join(f"{kind.__module__.rpartition('.')[0]}.{kind.__name__}" for kind in kinds)
        raise ValueError(f"{word} {name}: {attribute} is of type {type(record).__name__}, not {public}. {there}")
    return record


def _called(name: str, function: Callable, word: str) -> Any:
    try:
        return function()
    except Exception as error:  # whatever the user's function raises
        raise ValueError(
            f"{word} {name}: calling it without arguments fails: {type(error).__name__}: {error}"
        ) from error


def _module(name: str, where: str, word: str) -> ModuleType:
    """The module, from the current folder or among those installed."""
    file = pathlib.Path(where)
    if file.suffix == ".py" and not file.is_file():
        raise ValueError(f"{word} {name}: there is no file {where}. {_files()}")
    if os.getcwd() not in sys.path:  # a console script does not look there
        sys.path.insert(0, os.getcwd())
    try:
        return _from_file(file) if file.suffix == ".py" else importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and where.split(".")[0] == error.name.split(".")[0]:
            raise ValueError(f"{word} {name}: there is no module {where}. {_files()}") from error
        raise ValueError(f"{word} {name}: {where} imports {error.name}, which is not installed.") from error
    except Exception as error:  # whatever the user's module raises
        raise ValueError(f"{word} {name}: importing {where} failed: {type(error).__name__}: {error}") from error


def _from_file(file: pathlib.Path) -> ModuleType:
    """A file as a module; it can import the files beside it."""
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"jaxzero_game_in_{file.stem}"  # another module may have the name of the stem alone
    spec: Any = importlib.util.spec_from_file_location(name, file)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _files() -> str:
    here = sorted(path.stem for path in pathlib.Path().glob("*.py"))
    return f"Modules in this folder: {', '.join(here)}." if here else "There is no Python file in this folder."


def _there(module: ModuleType, where: str, word: str, kinds: tuple[type, ...]) -> str:
    names = [name for name, value in vars(module).items() if isinstance(value, kinds)]
    if not names:
        return f"It holds no {' and no '.join(kind.__name__ for kind in kinds)}."
    return f"{word.capitalize()}s there: {', '.join(f'{where}:{name}' for name in names)}."
