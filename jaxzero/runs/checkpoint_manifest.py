"""The manifest of a checkpoint: its files and their checksums.

orbax does not notice flipped bits, and its messages about other damage do not say what happened. manifest.json holds

    format    1
    step      the number that the folder is named by
    entries   the array's name in the tree: type and shape, "float32[50,7]"
    files     the file's name below <step>/: its size in bytes and its SHA-256
    sha256    of everything above it
"""

import hashlib
import json
import os
import pathlib
from typing import Any

import jax
import numpy as np

from jaxzero.atomic_files import flush, write_whole

__all__ = ["CheckpointError", "Damaged", "Unreadable", "described", "sound_file", "verified", "write"]

FORMAT, NAME = 1, "manifest.json"


class CheckpointError(ValueError):
    """A checkpoint cannot be written or read; says why, and what to do."""


class Damaged(CheckpointError):
    """What is wrong with a checkpoint: names a file."""


class Unreadable(Damaged):
    """The system does not let us read a file now; it may be sound."""


def described(tree: Any) -> dict[str, str]:
    """Names of the arrays in a tree, with their types and shapes.

    Raises:
        CheckpointError: something in the tree is no array.

    Example:
        >>> described({"weights": jax.numpy.zeros((2, 3)), "steps": (jax.numpy.int32(0), None)})
        {'steps.0': 'int32[]', 'weights': 'float32[2,3]'}
    """
    entries = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        name = jax.tree_util.keystr(path, simple=True, separator=".")
        if not isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct):
            raise CheckpointError(
                f"{name or 'The tree'} is of type {type(leaf).__name__}: a checkpoint holds arrays, write "
                "jnp.asarray(...)."
            )
        entries[name] = f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return entries


def write(root: pathlib.Path, step: int, entries: dict[str, str], source: pathlib.Path) -> None:
    """Make a checkpoint of the files below `source`: together with the manifest they become <root>/<step>/.

    Everything is on the disk before it gets that name: if stopped at any time, it leaves a whole checkpoint or none.
    """
    paths = sorted(source.rglob("*"))
    files = {path.relative_to(source).as_posix(): _checked(path) for path in paths if path.is_file()}
    for path in paths:
        if path.is_dir():
            flush(path)
    content = {"format": FORMAT, "step": step, "entries": entries, "files": files}
    write_whole(source / NAME, [_rendered(content)])
    source.replace(root / str(step))
    flush(root)


def verified(root: pathlib.Path, step: int) -> dict[str, str]:
    """The entries of a checkpoint, after checking that every file is as it was written.

    Raises:
        Damaged: one is not, or cannot be read.
        CheckpointError: it was written by a later version, which may have checked other things.
    """
    content = _read(root / str(step) / NAME)
    if content["step"] != step:
        raise Damaged(f"{step}/{NAME} is the manifest of checkpoint {content['step']}")
    for name, expected in content["files"].items():
        path = root / str(step) / name
        try:
            size = path.stat().st_size
            if size != expected["bytes"]:
                raise Damaged(f"{step}/{name} has {size:,} bytes instead of {expected['bytes']:,}")
            if _checked(path, to_disk=False) != expected:
                raise Damaged(f"{step}/{name} is damaged (its checksum differs)")
        except (FileNotFoundError, NotADirectoryError) as error:
            raise Damaged(f"{step}/{name} is missing") from error
        except OSError as error:
            raise Unreadable(f"{step}/{name} cannot be read ({error.strerror})") from error
    return content["entries"]


def sound_file(root: pathlib.Path, step: int, name: str) -> bytes:
    """One small file of a checkpoint, checked to be as it was written; other files are not checked.

    Raises:
        Damaged: it is not there, or not as it was written.
    """
    expected = _read(root / str(step) / NAME)["files"].get(name)
    data = (root / str(step) / name).read_bytes() if expected else b""
    if not expected or hashlib.sha256(data).hexdigest() != expected["sha256"]:
        raise Damaged(f"{step}/{name} is missing or damaged")
    return data


def _read(file: pathlib.Path) -> dict[str, Any]:
    """A manifest, checked to be as it was written, to the last byte."""
    name = f"{file.parent.name}/{NAME}"
    try:
        text = file.read_bytes()
        content = json.loads(text)
        whole = text == _rendered({name: content[name] for name in content if name != "sha256"})
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Damaged(f"{name} is missing") from error
    except OSError as error:
        raise Unreadable(f"{name} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, RecursionError):
        whole = False
    known = whole and content.get("format") == FORMAT
    if not whole or (known and list(content) != ["format", "step", "entries", "files", "sha256"]):
        raise Damaged(f"{name} is damaged")
    if not known:
        raise CheckpointError(
            f"{file} has format {content.get('format')}, and this version of jaxzero reads format {FORMAT}: use the "
            "version that wrote it."
        )
    return content


def _rendered(content: dict[str, Any]) -> bytes:
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return (json.dumps(content | {"sha256": digest}, indent=1) + "\n").encode()


def _checked(path: pathlib.Path, to_disk: bool = True) -> dict[str, Any]:
    """Size and checksum of a file; `to_disk` flushes it to the disk first."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if to_disk and os.name == "posix":  # elsewhere only files that are open for writing can be
            os.fsync(file.fileno())
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}
