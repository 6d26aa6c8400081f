"""Weights files: one file with a network's parameters and all that is needed to use them.

A safetensors file, which runs no code when it is read. Files may come from anywhere: `load` checks every size, name and
number before it believes one, and what it gives back is to the bit what was saved.
"""

import contextlib
import os
import pathlib
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxzero.atomic_files import write_whole
from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.nets.mlp import mlp
from jaxzero.nets.resnet import resnet
from jaxzero.nets.safetensors_file import DTYPES, WeightsError, as_json, encoded, read_arrays, read_header, short
from jaxzero.nets.window_mlp import windows
from jaxzero.types import Params

__all__ = ["WeightsError", "load", "read_about", "save", "trained"]

TRAINED = pathlib.Path(__file__).parent / "trained"

Path = str | os.PathLike


class Argument(NamedTuple):
    """What an argument of a network may be in a file, and what it becomes.

    Attributes:
        allowed: in words, for a message.
        made: from a JSON value, which may be anything; None for one that is not allowed.
    """

    allowed: str
    made: Callable[[Any], Any]


class Kind(NamedTuple):
    """How a network of one kind is built again. The bounds keep building to about a second: nothing is allocated.

    Attributes:
        build: `build(game, **arguments, key=key) -> (net, params)`.
        required: what `about["network"]` says besides "kind".
        optional: what it may say. An argument that `build` gained after files were written goes here.
        arrays: how many a network with these arguments has at least.
    """

    build: Callable
    required: dict[str, Argument]
    optional: dict[str, Argument]
    arrays: Callable[[dict[str, Any]], int]


def _count(most: int) -> Argument:
    return Argument(f"1 to {most}", lambda value: value if type(value) is int and 1 <= value <= most else None)


def _counts(most: int, length: int) -> Argument:
    one = _count(most)
    fits = lambda value: isinstance(value, list) and len(value) <= length and all(map(one.made, value))
    return Argument(
        f"a list of up to {length}, each {one.allowed}", lambda value: tuple(value) if fits(value) else None
    )


def _one_of(**choices: Any) -> Argument:
    return Argument(" or ".join(choices), lambda value: choices.get(value) if isinstance(value, str) else None)


TYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}  # of a network's arithmetic
DTYPE = {"dtype": _one_of(**TYPES)}
KINDS = {
    "mlp": Kind(mlp, {"hidden": _counts(65_536, 32)}, DTYPE, lambda given: 2 * len(given["hidden"])),
    "resnet": Kind(resnet, {"channels": _count(4096), "blocks": _count(40)}, DTYPE, lambda given: 4 * given["blocks"]),
    "windows": Kind(
        windows,
        {"window": _count(64), "channels": _count(4096), "hidden": _counts(65_536, 32)},
        DTYPE,
        lambda given: 2 * len(given["hidden"]),
    ),
}


def save(file: Path, params: Params, about: dict[str, Any], overwrite: bool = False, game: Game | None = None) -> None:
    """Write the weights of a network that `jaxzero.nets` built: as a whole, or no file at all.

    Args:
        file: its name, by custom with the ending .safetensors.
        params: nested dictionaries of arrays, float32, bfloat16 or float16, all finite. Names are joined by dots.
        about: JSON values. "game" is the game's id, "network" the kind and the arguments that the network was built
            with: `{"kind": "mlp", "hidden": [128, 128]}`, or `{"kind": "resnet", "channels": 64, "blocks": 6}`.
            Whatever else is worth knowing may stand beside them. It comes back as JSON has it, a tuple as a list.
        overwrite: whether a file of this name with other content is replaced. The same content is left alone.
        game: if given, it is checked that `load` will take the file for this game: that the parameters are those of the
            network that `about` describes.

    Raises:
        WeightsError: no such file can be written, or there is one.
        ValueError: something else in place of the game.

    Example:
        >>> import tempfile
        >>> from jaxzero import games, nets
        >>> game = games.from_pgx("tic_tac_toe")
        >>> net, params = nets.mlp(game, hidden=(16,), key=jax.random.key(0))
        >>> about = {"game": game.id, "network": {"kind": "mlp", "hidden": [16]}, "seed": 0}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(f"{folder}/weights.safetensors", params, about)
        ...     net, params, about = load(f"{folder}/weights.safetensors", game)
        >>> about["seed"], params["dense_0"]["kernel"].shape
        (0, (18, 16))
    """
    file = pathlib.Path(file)
    if game is not None:
        check_game("weights.save", game)
    with _saying(file, "written"):
        about, arrays = as_json(about), {name: _on_host(name, array) for name, array in _named(params).items()}
        _network_of(about, len(arrays))
        if game is not None:
            _fitting(about, {name: array.shape for name, array in arrays.items()}, game)
        pieces = encoded(arrays, about)
        if file.exists() and not overwrite:
            if _is(file, pieces):
                return
            raise WeightsError("there is a file of this name with other content: use another name, or overwrite=True.")
        write_whole(file, pieces)


def load(file: Path, game: Game, dtype: Any = None) -> tuple[Callable, Params, dict[str, Any]]:
    """The network, its weights, and what the file says about them: `net(params, observation) -> (logits, value)`.

    Nothing is compiled, and nothing allocated but the weights.

    Args:
        file: written by `save`; may come from anywhere.
        game: the one that the network was made for.
        dtype: of the network's arithmetic, `jnp.float32` or `jnp.bfloat16`, whatever it was saved with; None: as it
            was. The parameters are those of the file in any case: see `nets.to_bfloat16`.

    Returns:
        The function that the builder in `jaxzero.nets` gives, parameters on the default device, and the dictionary.

    Raises:
        WeightsError: the file is damaged or hostile, or of another kind, version, game or network than it says.
        ValueError: something else in place of the game, or a dtype that no network computes in.

    Example:
        >>> from jaxzero import games, nets
        >>> game = games.from_pgx("tic_tac_toe")
        >>> net, params, about = load(trained("tic_tac_toe"), game, dtype=jnp.bfloat16)
        >>> params = nets.to_bfloat16(net, params)  # to play with, on an accelerator
        >>> str(params["look"]["kernel"].dtype)
        'bfloat16'
    """
    check_game("weights.load", game)
    if dtype is not None and dtype not in TYPES.values():
        raise ValueError(f"weights.load(dtype={dtype!r}): use jnp.float32, jnp.bfloat16, or None, as it was saved.")
    with _saying(file, "read"), _opened(file) as (stream, size):
        header = read_header(stream, size)
        shapes = {name: shape for name, (_, shape, *_) in header.arrays.items()}
        net, expected = _fitting(header.about, shapes, game, {} if dtype is None else {"dtype": dtype})
        arrays = {name: _on_host(name, array) for name, array in read_arrays(stream, header).items()}
        leaves = [jax.device_put(arrays[name], may_alias=False) for name in _named(expected)]
        return net, jax.tree.unflatten(jax.tree.structure(expected), leaves), header.about


def trained(game: str) -> pathlib.Path:
    """The file of weights that comes with jaxzero for a game, to play without training first.

    Args:
        game: the game's id.

    Raises:
        ValueError: none comes for this game; says for which there are some.

    Example:
        >>> from jaxzero import games
        >>> net, params, about = load(trained("tic_tac_toe"), games.from_pgx("tic_tac_toe"))
        >>> sorted(about)[:4]
        ['command', 'date', 'device', 'game']
    """
    file = TRAINED / f"{game}.safetensors"
    if not file.is_file():
        there = ", ".join(sorted(path.stem for path in TRAINED.glob("*.safetensors")))
        raise ValueError(f"no weights come with jaxzero for {short(game)}, but for {there}: train with train.py.")
    return file


def read_about(file: Path) -> dict[str, Any]:
    """What a file says about itself, without its weights being read; it is as it was written.

    Raises:
        WeightsError: it is damaged, or no file of weights.
    """
    with _saying(file, "read"), _opened(file) as (stream, size):
        return read_header(stream, size).about


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
        raise WeightsError(f"{short(name)} has numbers that are not finite: use weights from before that happened.")
    return array


def _fitting(
    about: dict[str, Any], there: dict[str, tuple[int, ...]], game: Game, asked: dict[str, Any] | None = None
) -> tuple[Callable, Params]:
    """The network that is described, and the shapes of its parameters, if those that are there are the same.

    What is asked for takes the place of arguments that are described.
    """
    kind, given = _network_of(about, len(there))
    if about["game"] != game.id:
        raise WeightsError(f"it is for the game {short(about['game'])}: give that, and not {game.id}.")
    net, params = _built(kind, given | (asked or {}), game)
    expected = {name: struct.shape for name, struct in _named(params).items()}
    for name in [*expected, *there]:
        if expected.get(name) != there.get(name):
            here = f"of shape {short(list(there[name]))}" if name in there else "not there"
            needed = f"has {short(list(expected[name]))}" if name in expected else "has no such array"
            raise WeightsError(
                f"{short(name)} is {here}, and the network that it describes {needed}: save it with the description of "
                "its own network."
            )
    return net, params


def _network_of(about: dict[str, Any], arrays: int) -> tuple[Kind, dict[str, Any]]:
    """The kind of network and its arguments, from JSON that anybody may have written."""
    game, network = about.get("game"), about.get("network")
    if not isinstance(game, str) or not isinstance(network, dict):
        raise WeightsError(
            'it does not say which game and network it is for: save it with about={"game": ..., "network": ...}.'
        )
    kind = KINDS.get(network["kind"]) if isinstance(network.get("kind"), str) else None
    if kind is None:
        raise WeightsError(f"its network is of the kind {short(network.get('kind'))}: use one of {', '.join(KINDS)}.")
    names = set(network) - {"kind"}
    if not set(kind.required) <= names <= set(kind.required) | set(kind.optional):
        raise WeightsError(f"its network is {short(network)}: besides kind, give {', '.join(kind.required)}.")
    arguments = kind.required | kind.optional
    given = {name: arguments[name].made(network[name]) for name in sorted(names)}
    for name, value in given.items():
        if value is None:
            raise WeightsError(f"its network has {name}={short(network[name])}: use {arguments[name].allowed}.")
    if kind.arrays(given) > arrays:
        raise WeightsError(f"its network is {short(network)}, and it has {arrays} arrays only: too few for that.")
    return kind, given


def _built(kind: Kind, given: dict[str, Any], game: Game) -> tuple[Callable, Params]:
    """The network's function, and the shapes of its parameters: traced, so that nothing is computed."""
    nets = []

    def build() -> Params:
        net, params = kind.build(game, **given, key=jax.random.key(0))
        nets.append(net)
        return params

    try:
        shapes = jax.eval_shape(build)
    except ValueError as error:
        raise WeightsError(f"its network cannot be built for {game.id}: {error}") from error
    return nets[0], shapes


@contextlib.contextmanager
def _saying(file: Path, what: str) -> Iterator[None]:
    """Errors begin with the file's name, and those of the system are of the same kind."""
    if "\0" in os.fspath(file):
        raise WeightsError(f"{os.fspath(file)!r} cannot be {what}: no path has a NUL character. Use another name.")
    try:
        yield
    except WeightsError as error:
        raise WeightsError(f"{file} cannot be {what}: {error}") from error
    except OSError as error:
        raise WeightsError(f"{file} cannot be {what}: {error.strerror}. See to that, or use another name.") from error
    except RecursionError as error:
        raise WeightsError(f"{file} cannot be {what}: it is nested too deeply.") from error


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The file and its length; only what has one: a pipe might keep us waiting."""
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise WeightsError(
            "it is no file, but a folder or a device: give a file, that of a run is weights.safetensors."
        )
    with open(file, "rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size


def _is(file: pathlib.Path, pieces: list[bytes | memoryview]) -> bool:
    with open(file, "rb") as stream:
        return all(stream.read(len(piece)) == piece for piece in pieces) and not stream.read(1)
