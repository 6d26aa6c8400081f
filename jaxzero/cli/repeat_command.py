"""The command line of this process, to be printed again with other flags."""

import os
import pathlib
import shlex
import shutil
import sys

__all__ = ["again", "command", "flags", "python"]

PROGRAM = "jaxzero", "jaxzero.exe"


def python() -> str:
    """How to call this interpreter in a command: as `python` if the shell finds this one, else by its path."""
    found = shutil.which("python")
    if found and os.path.abspath(found) == sys.executable:
        return "python"
    inside = pathlib.Path(sys.executable).is_relative_to(pathlib.Path.cwd())
    return os.path.relpath(sys.executable) if inside else sys.executable


def command(name: str | None = None) -> list[str]:
    """The words that call this command, or another, in the way this process was called: script, module or program."""
    script = pathlib.Path(sys.argv[0])
    if script.parent.name == "experiments":
        return [python(), str(script if name is None else script.with_name(f"{name}.py"))]
    words = sys.argv[1:2] if name is None else [name]
    return [_program(script), *words] if script.name in PROGRAM else [python(), "-m", "jaxzero", *words]


def _program(script: pathlib.Path) -> str:
    """What to call jaxzero: by its name where a shell finds this one, else by its path."""
    found = shutil.which("jaxzero")
    if found and pathlib.Path(found).resolve() == script.resolve():
        return "jaxzero"
    return os.path.relpath(script) if script.resolve().is_relative_to(pathlib.Path.cwd()) else str(script)


def flags(*without: str) -> list[str]:
    """What this command was called with, without some of the flags."""
    first = 1 if pathlib.Path(sys.argv[0]).parent.name == "experiments" else 2
    kept, words = [], list(sys.argv[first:])
    while words:
        word = words.pop(0)
        if word.split("=")[0] not in without:
            kept.append(word)
        elif "=" not in word and words:
            words.pop(0)
    return kept


def again(*changed: object) -> str:
    """This command, with other values for some flags: `again("--seed", 1)`."""
    values = (f"{x:g}" if isinstance(x, float) else str(x) for x in changed)
    return shlex.join([*command(), *flags(*map(str, changed[::2])), *values])
