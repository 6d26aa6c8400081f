"""Games by name: Go of our own, those of pgx, and one's own as `module:attribute`."""

import importlib
import importlib.util
import os
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from jaxzero.games.game import Game
from jaxzero.games.go_rules import go
from jaxzero.games.pgx_adapter import from_pgx
from jaxzero.games.rule_checks import check_rules

__all__ = ["by_name", "is_own"]


def by_name(name: str, size: int = 9, komi: float = 7.0) -> Game:
    """The game that a command line names.

    Args:
        name: "go", of any size; a game of one's own as "module:attribute", or "folder/file.py:attribute", where the
            attribute is a `Game`, or a function without arguments that returns one; else one that pgx knows. Modules
            are looked for in the current folder first.
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
    try:
        return from_pgx(name)
    except ValueError as error:
        words = str(error).replace(f"from_pgx({name!r})", f"game {name}")
        own = f" For a game of your own in {name}.py give {name}:game." if pathlib.Path(f"{name}.py").is_file() else ""
        raise ValueError(f"{words} Beside them go, of any size, and your own as module:attribute.{own}") from error


def is_own(name: str) -> bool:
    """Whether a name is that of a game of one's own, `module:attribute`.

    >>> is_own("nim:game"), is_own("connect_four")
    (True, False)
    """
    return ":" in name


def _own(name: str) -> Game:
    where, _, attribute = name.rpartition(":")
    module = _module(name, where)
    if not attribute or not hasattr(module, attribute):
        raise ValueError(f"game {name}: {where} has no {attribute!r}. {_there(module, where)}")
    found = getattr(module, attribute)
    game = _called(name, found) if callable(found) and not isinstance(found, Game | type) else found
    if not isinstance(game, Game):
        raise ValueError(
            f"game {name}: {attribute} is a {type(game).__name__}, and no jaxzero.games.Game. {_there(module, where)}"
        )
    check_rules(game)
    return game


def _called(name: str, function: Callable) -> Any:
    try:
        return function()
    except Exception as error:  # whatever somebody's function does
        raise ValueError(f"game {name}: called without arguments, it fails: {type(error).__name__}: {error}") from error


def _module(name: str, where: str) -> ModuleType:
    """The module, from the current folder or among those installed."""
    file = pathlib.Path(where)
    if file.suffix == ".py" and not file.is_file():
        raise ValueError(f"game {name}: there is no file {where}. {_files()}")
    if os.getcwd() not in sys.path:  # a console script does not look there
        sys.path.insert(0, os.getcwd())
    try:
        return _from_file(file) if file.suffix == ".py" else importlib.import_module(where)
    except ModuleNotFoundError as error:
        if error.name is not None and where.split(".")[0] == error.name.split(".")[0]:
            raise ValueError(f"game {name}: there is no module {where}. {_files()}") from error
        raise ValueError(f"game {name}: {where} imports {error.name}, which is not installed.") from error
    except Exception as error:  # whatever somebody's module does
        raise ValueError(f"game {name}: importing {where} failed: {type(error).__name__}: {error}") from error


def _from_file(file: pathlib.Path) -> ModuleType:
    """A file as a module; it can import the files beside it."""
    folder = str(file.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"jaxzero_game_in_{file.stem}"  # another module may have the stem's name
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


def _there(module: ModuleType, where: str) -> str:
    games = [name for name, value in vars(module).items() if isinstance(value, Game)]
    return f"Games there: {', '.join(f'{where}:{name}' for name in games)}." if games else "It holds no Game."
