"""Atomic file writes: a file is complete or absent, even after a power cut."""

import contextlib
import itertools
import os
import pathlib
from collections.abc import Iterable

__all__ = ["flush", "free_name", "make_folder", "write_whole"]


def free_name(file: pathlib.Path) -> pathlib.Path:
    """This name if it is free, else the first free one of `name-2.json`, `name-3.json` and so on."""
    names = (file.with_name(f"{file.stem}-{i}{file.suffix}") for i in itertools.count(2))
    return next(name for name in itertools.chain([file], names) if not name.exists())


def write_whole(file: pathlib.Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Replace a file atomically: either the new content is complete, or the old file stays. Flushes it to the disk.

    Raises:
        OSError: it cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(pathlib.Path(folder, "a"), [b"one", b" two"])
        ...     pathlib.Path(folder, "a").read_text()
        'one two'
    """
    partial = file.with_name(file.name + ".partial")
    try:
        with partial.open("wb") as out:
            out.writelines(pieces)
            out.flush()
            os.fsync(out.fileno())
        partial.replace(file)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    flush(file.parent)


def make_folder(folder: pathlib.Path) -> None:
    """Make a folder and its missing parents, and flush them to the disk."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        flush(path.parent)


def flush(folder: pathlib.Path) -> None:
    """Flush the list of files in a folder to the disk, where the system can."""
    if os.name != "posix":
        return  # other systems cannot open folders
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # a folder that we may write to, but not list
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
