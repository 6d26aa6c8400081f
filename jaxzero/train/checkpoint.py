"""Run folders and their checkpoints: written by orbax, verified by checksums, never overwritten unasked.

<folder>/config.json              the settings of the run
<folder>/checkpoints/<step>/      what orbax writes
<folder>/checkpoints/<step>.json  SHA-256 of every file below it (orbax itself does not notice flipped bits)
"""

import hashlib
import json
import os
import pathlib
import shutil
from typing import Any

import jax
from orbax.checkpoint import v1 as ocp

__all__ = ["differences", "open_run", "restore", "save"]

Path = str | os.PathLike


def open_run(folder: Path, config: dict[str, Any], free: tuple[str, ...] = ()) -> bool:
    """Make a run folder with these settings, or check that it is one with the same settings.

    Args:
        folder: where the run lives.
        config: nested dictionaries of JSON values.
        free: dotted names (or their first part) that may differ when a run is continued, e.g. "budget".

    Returns:
        True if the run was there already.

    Raises:
        ValueError: the folder holds something else, or a run with other settings. Nothing is touched.
    """
    folder = pathlib.Path(folder)
    file = folder / "config.json"
    config = json.loads(json.dumps(config))
    if file.exists():
        differing = differences(json.loads(file.read_text()), config, free)
        if differing:
            lines = "".join(f"\n    {name}: {old!r} there, {new!r} now" for name, old, new in differing)
            raise ValueError(
                f"{folder} holds a run with other settings:{lines}\nNothing was changed. Go on with the "
                f"settings that are there, or name another folder: --folder {folder}-2"
            )
        return True
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(
            f"{folder} is not empty and holds no run (no config.json). Nothing was changed. "
            f"Name another folder: --folder {folder}-2"
        )
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / "config.json.partial"
    partial.write_text(json.dumps(config, indent=2) + "\n")
    partial.replace(file)
    return False


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


def save(folder: Path, step: int, tree: Any, keep: int = 2) -> None:
    """Write `tree` as the checkpoint of `step`; returns when it is on the disk. The newest `keep` stay.

    An existing checkpoint of this step is left as it is if it is sound, and replaced if it is damaged.
    """
    root = pathlib.Path(folder).absolute() / "checkpoints"
    if _sound(root, step):
        return
    _remove(root, step)
    ocp.save(root / str(step), tree)  # written aside and renamed: it is there as a whole or not at all
    partial = root / f"{step}.json.partial"
    partial.write_text(json.dumps(_checksums(root / str(step))))
    partial.replace(root / f"{step}.json")
    for old in _steps(root)[keep:]:
        _remove(root, old)


def restore(folder: Path, like: Any, say: Any = print) -> tuple[int, Any] | None:
    """The newest sound checkpoint as `(step, tree)`, or None if there is none.

    Args:
        folder: the run's folder.
        like: a tree with the shapes and types to expect (arrays or `jax.ShapeDtypeStruct`).
        say: told about each checkpoint that is passed over.

    Raises:
        ValueError: there are checkpoints, and none is sound or has these shapes: better to stop than to begin anew
            over a run.
    """
    root = pathlib.Path(folder).absolute() / "checkpoints"
    steps = _steps(root)
    abstract = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=getattr(x, "sharding", None)), like
    )
    for step in steps:
        if not _sound(root, step):
            say(f"{root / str(step)} is damaged (checksums differ): passed over.")
            continue
        try:
            return step, ocp.load(root / str(step), abstract)
        except Exception as error:  # orbax raises many kinds
            said = " ".join(str(error).split())[:300]
            raise ValueError(f"{root / str(step)} does not hold what is expected here: {said}") from error
    if steps:
        raise ValueError(
            f"No sound checkpoint in {root}: {len(steps)} found, all damaged. "
            "Name another --folder, or remove the damaged ones to begin anew."
        )
    return None


def _flat(tree: dict, prefix: str = "") -> dict[str, Any]:
    flat = {}
    for name, value in tree.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _steps(root: pathlib.Path) -> list[int]:
    """Newest first."""
    return sorted((int(p.name) for p in root.glob("*") if p.is_dir() and p.name.isdigit()), reverse=True)


def _checksums(folder: pathlib.Path) -> dict[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def _sound(root: pathlib.Path, step: int) -> bool:
    try:
        return json.loads((root / f"{step}.json").read_text()) == _checksums(root / str(step))
    except (OSError, ValueError):
        return False


def _remove(root: pathlib.Path, step: int) -> None:
    (root / f"{step}.json").unlink(missing_ok=True)
    shutil.rmtree(root / str(step), ignore_errors=True)
