"""Results files with a named row for each run: rows are added, and what was published stays."""

import itertools
import json
import pathlib
from typing import Any

from jaxzero.runs.run_folder import write_whole

__all__ = ["add"]


def add(file: pathlib.Path, name: str, found: dict[str, Any]) -> str:
    """Adds a row, under this name if it is free, else under the first free one of `name-2`, `name-3` and so on.

    The file is read anew: another process may have added rows meanwhile.

    Returns:
        The name of the row.
    """
    rows = json.loads(file.read_text()) if file.exists() else {}
    names = itertools.chain([name], (f"{name}-{i}" for i in itertools.count(2)))
    free = next(name for name in names if name not in rows)
    write_whole(file, json.dumps(rows | {free: found}, indent=1) + "\n")
    return free
