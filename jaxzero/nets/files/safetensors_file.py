"""Named arrays and a description in one safetensors file, with checksums.

The format: eight bytes with the length of a JSON header, the header (for each array its type, shape and place), and
the arrays' bytes. Every reader of safetensors opens these files. They may come from anywhere, so jaxzero has its own
reader and writer: sizes are checked before anything is allocated, names that occur twice and bytes that belong to no
array are refused, and the same content makes the same bytes. The safetensors package promises none of this.

The header's metadata are four texts: the format's name; the description, as JSON; the SHA-256 of the arrays' bytes; and
the SHA-256 of all the rest of the header, so that the description can be trusted without reading the arrays.
"""

import hashlib
import json
import math
from typing import Any, BinaryIO, NamedTuple

import jax.numpy as jnp
import numpy as np

__all__ = ["DTYPES", "Header", "WeightsError", "as_json", "encoded", "read_arrays", "read_header", "short"]

FORMAT = "jaxzero weights 1"
DTYPES = {"F32": np.dtype(np.float32), "BF16": np.dtype(jnp.bfloat16), "F16": np.dtype(np.float16)}
SIZE, HEADER_SIZE = 10**9, 10**6  # bytes that are read at most
AGAIN = "Copy, download or export it again."


class WeightsError(ValueError):
    """A file of weights cannot be read or written; says which file, why, and what to do."""


class Header(NamedTuple):
    """What is in a file.

    Attributes:
        about: the description.
        arrays: name -> (type, shape, where the bytes begin, where they end), in the order of the bytes.
        sha256: of the arrays' bytes.
        start: where the arrays' bytes begin in the file.
        end: the file's length.
    """

    about: dict[str, Any]
    arrays: dict[str, tuple[np.dtype, tuple[int, ...], int, int]]
    sha256: str
    start: int
    end: int


def as_json(about: Any) -> dict[str, Any]:
    """A dictionary as it comes back from JSON: tuples become lists.

    Raises:
        WeightsError: it is no dictionary of JSON values.

    Example:
        >>> as_json({"hidden": (8, 8)})
        {'hidden': [8, 8]}
    """
    if not isinstance(about, dict):
        raise WeightsError(f"about is of type {type(about).__name__}: give a dictionary.")
    try:
        return _strict(json.dumps(about, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise WeightsError(
            f"about is not JSON ({short(str(error))}): use text, numbers, lists. The arguments are (file, params, "
            "about)."
        ) from error


def encoded(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> list[bytes | memoryview]:
    """The pieces of a file, to be written one after the other.

    Args:
        arrays: of the types in DTYPES, by any name but "__metadata__".
        about: as `as_json` gives it.

    Raises:
        WeightsError: it would be too long to be read.
    """
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))  # so that all are aligned
    codes = {dtype: code for code, dtype in DTYPES.items()}
    digest, header, end, data = hashlib.sha256(), {}, 0, []
    for name in order:
        array = arrays[name]
        data.append(memoryview(np.ascontiguousarray(array).reshape(-1).view(np.uint8)))
        digest.update(data[-1])
        start, end = end, end + array.nbytes
        header[name] = {"dtype": codes[array.dtype], "shape": list(array.shape), "data_offsets": [start, end]}
    metadata = {"format": FORMAT, "about": json.dumps(about), "data": digest.hexdigest()}
    metadata["sha256"] = _digest(metadata, header)
    head = json.dumps({"__metadata__": metadata} | header).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > HEADER_SIZE or 8 + len(head) + end > SIZE:
        raise WeightsError(f"it would have {len(head):,} + {end:,} bytes, more than {HEADER_SIZE:,} + {SIZE:,}.")
    return [len(head).to_bytes(8, "little") + head, *data]


def read_header(file: BinaryIO, size: int) -> Header:
    """The header of a file of `size` bytes, checked to be as it was written.

    Raises:
        WeightsError: it is not, or it has more than a billion bytes, or it is another kind of file.
    """
    if not 10 <= size <= SIZE:
        raise WeightsError(f"it has {size:,} bytes, and files of weights have 10 to {SIZE:,}. {AGAIN}")
    length = int.from_bytes(file.read(8), "little")
    if not 2 <= length <= min(HEADER_SIZE, size - 8):
        raise WeightsError(
            f"it is not a safetensors file, or it was cut short (a header of {length:,} bytes?). {AGAIN}"
        )
    content = _parsed(file.read(length), "its header")
    metadata = content.pop("__metadata__", None)
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise WeightsError(
            f"it is not of the kind {FORMAT!r}: jaxzero did not write it, or another version did. Export it anew with "
            "jaxzero.nets.weights.save."
        )
    stored = metadata.pop("sha256", None)
    if set(metadata) != {"format", "about", "data"} or stored != _digest(metadata, content):
        raise WeightsError(f"its header is damaged (the checksum differs). {AGAIN}")
    if not all(isinstance(text, str) for text in metadata.values()):
        raise WeightsError(f"its metadata are not all text. {AGAIN}")
    about = _parsed(metadata["about"], "its description")
    arrays = {name: _entry(name, entry) for name, entry in content.items()}
    arrays, start, end = dict(sorted(arrays.items(), key=lambda item: item[1][2:])), 8 + length, 0
    for name, (*_, begins, ends) in arrays.items():
        if begins != end:
            raise WeightsError(f"{short(name)} begins at byte {begins:,} instead of {end:,}. {AGAIN}")
        end = ends
    if start + end != size:
        raise WeightsError(f"it has {size:,} bytes instead of {start + end:,}. {AGAIN}")
    return Header(about, arrays, metadata["data"], start, size)


def read_arrays(file: BinaryIO, header: Header) -> dict[str, np.ndarray]:
    """All arrays, checked to be as they were written; to be called after `read_header`.

    Raises:
        WeightsError: they are not.
    """
    file.seek(header.start)
    data = file.read(header.end - header.start)
    if hashlib.sha256(data).hexdigest() != header.sha256:
        raise WeightsError(f"its weights are damaged (the checksum differs). {AGAIN}")
    return {
        name: np.frombuffer(data, dtype, math.prod(shape), begins).reshape(shape)
        for name, (dtype, shape, begins, _) in header.arrays.items()
    }


def _entry(name: str, entry: Any) -> tuple[np.dtype, tuple[int, ...], int, int]:
    """The header's checked entry for one array: type, shape, begin and end."""
    natural = lambda values, most: (
        isinstance(values, list) and len(values) <= most and all(type(n) is int and 0 <= n <= SIZE for n in values)
    )
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise WeightsError(f"{short(name)} is described by {short(entry)}, which is not an array. {AGAIN}")
    if not isinstance(entry["dtype"], str) or entry["dtype"] not in DTYPES:
        raise WeightsError(f"{short(name)} is of type {short(entry['dtype'])}: use one of {', '.join(DTYPES)}.")
    shape, offsets = entry["shape"], entry["data_offsets"]
    if not natural(shape, 8) or not natural(offsets, 2) or len(offsets) != 2:
        raise WeightsError(
            f"{short(name)} has shape {short(shape)} at {short(offsets)}: no array can have these. {AGAIN}"
        )
    dtype = DTYPES[entry["dtype"]]
    if offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize:
        raise WeightsError(f"{short(name)} has {short(offsets)} bytes for the shape {short(shape)}. {AGAIN}")
    return dtype, tuple(shape), *offsets


def _parsed(text: str | bytes, what: str) -> dict[str, Any]:
    try:
        content = _strict(text.decode("utf-8") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{what} is not JSON: the file is damaged, or not a safetensors file. {AGAIN}") from error
    if not isinstance(content, dict):
        raise WeightsError(f"{what} is not a JSON object. {AGAIN}")
    return content


def _strict(text: str) -> Any:
    """JSON in which no name occurs twice and all numbers are finite; a ValueError or RecursionError otherwise."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a name occurs twice")
        return dict(pairs)

    def number(text: str) -> float:
        if not math.isfinite(float(text)):
            raise ValueError("a number is not finite")
        return float(text)

    return json.loads(text, object_pairs_hook=unique, parse_constant=number, parse_float=number)


def _digest(metadata: dict[str, str], arrays: dict[str, Any]) -> str:
    text = json.dumps([metadata, arrays], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def short(value: Any) -> str:
    """Anything that a file may hold, for a message: printable and not long.

    Example:
        >>> short("9" * 100)
        "'9999999999999999999999999999999999999999999999999999999999999999999999999999..."
    """
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
