"""Run folders: one run with one set of settings each, locked while a process writes.

<folder>/config.json   the settings of the run
<folder>/lock          which process writes to it; locked as long as that process lives, whatever the file says
"""

import contextlib
import errno
import itertools
import json
import os
import pathlib
import shlex
import socket
import time
import warnings
from collections.abc import Iterator
from typing import Any, BinaryIO

from jaxzero import atomic_files
from jaxzero.runs import process_coordination

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

__all__ = ["differences", "keep_aside", "open_run", "write_whole", "writing"]

Path = str | os.PathLike

FORMAT = 1  # of run folders: in config.json, beside the settings; 1 if it is missing
# Files that a run may leave in its folder before config.json exists.
BEFORE_A_RUN = {"lock", "config.json.partial"}


def open_run(
    folder: Path,
    config: dict[str, Any],
    free: tuple[str, ...] = (),
    defaults: dict[str, Any] | None = None,
    follows: dict[str, str] | None = None,
    together: tuple[str, ...] = (),
) -> bool:
    """Make a run folder with these settings, or check that it is one with the same settings.

    In a distributed run every process calls it, one of them touches the folder, and all get the answer or the error.

    Args:
        folder: where the run lives.
        config: nested dictionaries of JSON values.
        free: dotted names (or their first part) that may differ when a run is continued, e.g. "budget".
        defaults: stands for settings that the folder lacks because an older version of this program made it. A new
            setting's default here is what the program did before the setting existed.
        follows: names of settings (or their first part) that follow from another if that is not empty, e.g.
            {"network": "weights"}: the refusal names no flags for them.
        together: dotted names of settings whose defaults depend on one another: if one of them differs, the refusal
            names flags for all.

    Returns:
        True if the run was there already.

    Raises:
        ValueError: the folder holds something else, a run with other settings, or settings that are damaged; or it
            cannot be made. Nothing is touched.
    """
    folder = pathlib.Path(folder)
    config, defaults = (json.loads(json.dumps(settings)) for settings in (config, defaults or {}))  # lists, no tuples
    return process_coordination.on_first(lambda: _open(folder, config, free, defaults, follows or {}, together))


def _open(
    folder: pathlib.Path,
    config: dict,
    free: tuple[str, ...],
    defaults: dict,
    follows: dict[str, str],
    together: tuple[str, ...],
) -> bool:
    file = folder / "config.json"
    try:
        if file.exists():
            there = _filled(_settings(file), defaults)
            differing = differences(there, config, free)
            if differing:
                lines = "".join(f"\n    {name}: {old!r} there, {new!r} now" for name, old, new in differing)
                said = f"{folder} holds a run with other settings:{lines}\n"
                asked = [one for one in differing if not there.get(follows.get(one[0].split(".")[0], ""))]
                if any(name in together for name, *_ in asked):
                    known = _flat(there)
                    asked = [one for one in asked if one[0] not in together]
                    asked += [(name, known[name], None) for name in together if name in known]
                raise _refused(folder, said, f"Continue with the settings of the run{_as_flags(asked, there, config)}")
            return True
        _check_room(folder)
        atomic_files.make_folder(folder)
        write_whole(file, written(config))
    except OSError as error:
        raise _refused(folder, f"{folder} cannot be used as a run's folder: {error.strerror}. ") from error
    return False


def _check_name(folder: pathlib.Path) -> None:
    """Raises a ValueError if orbax would lose checkpoints there: it looks for its files by patterns of whole paths."""
    found = sorted({*str(folder.absolute())} & {*"[]*?"})
    if found:
        raise ValueError(
            f"--folder {folder}: {folder.absolute()} contains {' '.join(found)}, and checkpoints cannot be stored "
            "below such a name. Name a folder without these characters."
        )


def _check_room(folder: pathlib.Path, restorable: bool = False) -> None:
    """Raises a ValueError if the folder holds something that is no run.

    `restorable`: a run without its config.json will do, which its checkpoints can bring back.
    """
    if folder.exists() and not folder.is_dir():
        raise _refused(folder, f"{folder} is not a folder. ")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    run = "config.json" in names or (restorable and {"lock", "checkpoints"} <= names)
    if not run and names - BEFORE_A_RUN:
        raise _refused(folder, f"{folder} is not empty and holds no run (no config.json). ")


def _settings(file: pathlib.Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text())
    except (ValueError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        said = f"{file} is damaged: it should hold the settings of the run, a JSON object. "
        raise _refused(file.parent, said, "Put a copy of it there")
    made = settings.pop("format", 1)
    if made != FORMAT:
        said = f"{file} is of format {made}, and this version of jaxzero reads format {FORMAT}. "
        raise _refused(file.parent, said, "Use the version that made the run")
    return settings


def written(settings: dict[str, Any]) -> str:
    """The content of config.json."""
    return json.dumps({"format": FORMAT} | settings, indent=2) + "\n"


def _refused(folder: pathlib.Path, said: str, instead: str = "") -> ValueError:
    name = f"{instead}, or name" if instead else "Name"
    return ValueError(f"{said}Nothing was changed. {name} another folder: --folder {folder}-2")


def differences(old: dict, new: dict, free: tuple[str, ...] = ()) -> list[tuple[str, Any, Any]]:
    """Dotted names whose values differ, with both values (None: not there).

    Example:
        >>> differences({"seed": 1, "net": {"width": 8}}, {"seed": 1, "net": {"width": 16}})
        [('net.width', 8, 16)]
    """
    flat_old, flat_new = _flat(old), _flat(new)
    names = list(dict.fromkeys([*flat_old, *flat_new]))
    names = [n for n in names if n not in free and n.split(".")[0] not in free]
    return [(n, flat_old.get(n), flat_new.get(n)) for n in names if flat_old.get(n) != flat_new.get(n)]


def _filled(there: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Settings with defaults for those that are missing."""
    filled = dict(there)
    for name, default in defaults.items():
        if isinstance(filled.setdefault(name, default), dict) and isinstance(default, dict):
            filled[name] = _filled(filled[name], default)
    return filled


def _as_flags(differing: list[tuple[str, Any, Any]], there: dict, now: dict) -> str:
    """Flags that ask for the folder's values: " (--net.width 8)". None if a setting is only in one of the two."""
    if not differing or any(name not in _flat(there) or name not in _flat(now) for name, _, _ in differing):
        return ""
    return f" ({' '.join(_as_flag(name, old) for name, old, _ in differing)})"


def _as_flag(name: str, value: Any) -> str:
    *groups, last = name.replace("_", "-").split(".")
    if isinstance(value, bool):
        return "--" + ".".join([*groups, last if value else f"no-{last}"])
    values = value if isinstance(value, list) else [value]
    return shlex.join(["--" + ".".join([*groups, last]), *map(str, values)])


def _flat(tree: dict, prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Keep other programs from writing to this folder, which is made if need be, until the `with` block ends.

    The lock is the system's (flock on <folder>/lock), so a killed process releases it, too. If the
    system or the file system has no such locks, nothing is locked; for a file system there is a warning. In a
    distributed run every process calls it, one of them holds the lock, and all are refused together.

    Raises:
        ValueError: another process writes to this folder; says which one. Or the folder holds something that is no run:
            nothing is touched then.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, writing(folder):
        ...     sorted(os.listdir(folder))
        ['lock']
    """
    with contextlib.ExitStack() as held:
        process_coordination.on_first(lambda: _hold(pathlib.Path(folder), held))
        yield


def _hold(folder: pathlib.Path, held: contextlib.ExitStack) -> None:
    _check_name(folder)
    if fcntl is None:
        return
    try:
        _check_room(folder, restorable=True)
        atomic_files.make_folder(folder)
        file = held.enter_context((folder / "lock").open("a+b", buffering=0))
    except OSError as error:
        raise _refused(folder, f"{folder} cannot be written to: {error.strerror}. ") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):  # a file system without locks
            said = f"{folder} cannot be locked ({error.strerror}): make sure that only one program writes to it."
            warnings.warn(said, stacklevel=1)
            return
        said = f"{folder} is being written to by {_holder(file)}: two runs in one folder would damage each other. "
        raise _refused(folder, said, "Wait for it or stop it") from error
    who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    held.callback(_note, file, b"")
    _note(file, json.dumps(who).encode() + b"\n")


def _note(file: BinaryIO, content: bytes) -> None:
    """Replaces the file's content, perhaps a killed process's. It only informs: a full disk is no reason to stop."""
    with contextlib.suppress(OSError):
        file.truncate(0)
        file.write(content)


def _holder(file: BinaryIO) -> str:
    file.seek(0)
    try:
        who = json.loads(file.read(1000))
        return f"process {who['pid']} on {who['host']} (since {who['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def keep_aside(file: pathlib.Path) -> pathlib.Path | None:
    """Moves a damaged file to a name that is free, `metrics.damaged-1.jsonl`; None if there is no file."""
    if not file.exists():
        return None
    names = (file.with_name(f"{file.stem}.damaged-{i}{file.suffix}") for i in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    return file.rename(aside)


def write_whole(file: pathlib.Path, text: str) -> None:
    """Writes a text atomically, and flushes it to the disk."""
    atomic_files.write_whole(file, [text.encode()])
