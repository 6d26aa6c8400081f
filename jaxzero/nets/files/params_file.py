"""Files of parameters with a description: written atomically, checked when read, with one-sentence errors."""

import contextlib
import os
import pathlib
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import jax
import numpy as np

from jaxzero.atomic_files import write_whole
from jaxzero.nets.files.safetensors_file import DTYPES, WeightsError, as_json, encoded, read_arrays, read_header, short
from jaxzero.types import Params

__all__ = ["Path", "check_shapes", "read_about", "read_params", "write_params"]

Path = str | os.PathLike
Shapes = dict[str, tuple[int, ...]]

OF_A_RUN = "weights.safetensors"


def write_params(
    file: Path, params: Params, about: dict[str, Any], overwrite: bool, check: Callable[[dict[str, Any], Shapes], Any]
) -> None:
    """Write a file, as a whole or not at all; a file with the same content is left alone.

    Args:
        file: its name.
        params: nested dictionaries of arrays, float32, bfloat16 or float16, all finite. Names are joined by dots.
        about: JSON values.
        overwrite: whether a file of this name with other content is replaced.
        check: `(about, shapes)`, raises a WeightsError if they do not belong together.

    Raises:
        WeightsError: no such file can be written, or there is one.
    """
    file = pathlib.Path(file)
    with _saying(file, "written"):
        about, arrays = as_json(about), {name: _on_host(name, array) for name, array in _named(params).items()}
        check(about, {name: array.shape for name, array in arrays.items()})
        pieces = encoded(arrays, about)
        if file.exists() and not overwrite:
            if _is(file, pieces):
                return
            raise WeightsError("there is a file of this name with other content: use another name, or overwrite=True.")
        write_whole(file, pieces)


def read_params(
    file: Path, build: Callable[[dict[str, Any], Shapes], tuple[Any, Params]]
) -> tuple[Any, Params, dict[str, Any]]:
    """A network, its parameters, and what the file says about them.

    Args:
        file: may come from anywhere; or the folder of a run.
        build: `(about, shapes) -> (network, shapes of its parameters)`, as `shapes_of` gives them; raises a
            WeightsError if they do not belong together, before an array is read.

    Raises:
        WeightsError: the file is damaged or hostile, or says what `build` does not believe.
    """
    with _saying(file, "read"), _opened(file) as (stream, size):
        header = read_header(stream, size)
        net, expected = build(header.about, {name: shape for name, (_, shape, *_) in header.arrays.items()})
        arrays = {name: _on_host(name, array) for name, array in read_arrays(stream, header).items()}
        leaves = [jax.device_put(arrays[name], may_alias=False) for name in _named(expected)]
        return net, jax.tree.unflatten(jax.tree.structure(expected), leaves), header.about


def read_about(file: Path) -> dict[str, Any]:
    """The description in a file, or in the file of a run's folder, without reading the weights.

    Raises:
        WeightsError: it is damaged, or no file of weights.
    """
    with _saying(file, "read"), _opened(file) as (stream, size):
        return read_header(stream, size).about


def check_shapes(expected: Params, there: Shapes) -> None:
    """Raises a WeightsError if a file's arrays are not those of the network that it describes."""
    shapes = {name: struct.shape for name, struct in _named(expected).items()}
    for name in [*shapes, *there]:
        if shapes.get(name) != there.get(name):
            here = f"of shape {short(list(there[name]))}" if name in there else "not there"
            needed = f"has {short(list(shapes[name]))}" if name in shapes else "has no such array"
            raise WeightsError(
                f"{short(name)} is {here}, but the described network {needed}: save it with the description of its own "
                "network."
            )


def _named(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by their dotted names."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    if len(set(names) - {"", "__metadata__"}) < len(leaves):
        raise WeightsError("its arrays need different names, joined by dots, none of them '' or '__metadata__'.")
    return {name: leaf for name, (_, leaf) in zip(names, leaves)}


def _on_host(name: str, array: Any) -> np.ndarray:
    """An array that may stand in a file."""
    if getattr(array, "dtype", None) not in DTYPES.values():
        kinds = ", ".join(str(dtype) for dtype in DTYPES.values())
        raise WeightsError(
            f"{short(name)} is of type {getattr(array, 'dtype', type(array).__name__)}: use one of {kinds}."
        )
    if not np.isfinite(array := np.asarray(array)).all():
        raise WeightsError(f"{short(name)} has numbers that are not finite: use earlier weights.")
    return array


@contextlib.contextmanager
def _saying(file: Path, what: str) -> Iterator[None]:
    """Within, errors begin with the file's name, and errors of the system become WeightsErrors."""
    if "\0" in os.fspath(file):
        raise WeightsError(f"{os.fspath(file)!r} cannot be {what}: no path has a NUL character. Use another name.")
    try:
        yield
    except WeightsError as error:
        raise WeightsError(f"{file} cannot be {what}: {error}") from error
    except OSError as error:
        raise WeightsError(f"{file} cannot be {what}: {error.strerror}. Fix that, or use another name.") from error
    except RecursionError as error:
        raise WeightsError(f"{file} cannot be {what}: it is nested too deeply.") from error


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file, or that of a run's folder, and its length. Refuses files without a length: a pipe might block."""
    path = pathlib.Path(file)
    file = path / OF_A_RUN if (path / OF_A_RUN).is_file() else path
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise WeightsError(f"it is a folder without {OF_A_RUN}, or a device: give a file, or a run's folder.")
    with open(file, "rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size


def _is(file: pathlib.Path, pieces: list[bytes | memoryview]) -> bool:
    with open(file, "rb") as stream:
        return all(stream.read(len(piece)) == piece for piece in pieces) and not stream.read(1)
