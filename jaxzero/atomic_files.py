"""Atomic file writes: a file is complete or absent, even after a power cut."""

import contextlib
import itertools
import os
import pathlib
from collections.abc import Iterable

__all__ = ["flush", "free_name", "make_folder", "write_whole"]


def free_name(file: pathlib.Path) -> pathlib.Path:
    """This name, or where there is such a file or folder the first of `name-2.json`, `name-3.json` that is free."""
    names = (file.with_name(f"{file.stem}-{i}{file.suffix}") for i in itertools.count(2))
    return next(name for name in itertools.chain([file], names) if not name.exists())


def write_whole(file: pathlib.Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file in place of what is there: as a whole, or the old one stays. It is on the disk then.

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
    """Make a folder, and those that it is in, where they are not there. They are on the disk then."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in new:
        flush(path.parent)


def flush(folder: pathlib.Path) -> None:
    """Have the system write to the disk which files there are in a folder, where it can."""
    if os.name != "posix":
        return  # elsewhere folders cannot be opened
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return  # one that may be written to, but not listed
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
