"""Weights files: one file with a network's parameters and all that is needed to use them.

A safetensors file, which runs no code when it is read. Files may come from anywhere, so `load` checks every size, name
and number before it uses them. It returns bit for bit what was saved.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.games import Game
from jaxzero.games.game import check_game
from jaxzero.nets.files.network_arguments import Kind, count, counts, described, one_of, shapes_of, whether
from jaxzero.nets.files.params_file import Path, check_shapes, read_about, read_params, write_params
from jaxzero.nets.files.safetensors_file import WeightsError, short
from jaxzero.nets.mlp import mlp
from jaxzero.nets.resnet import resnet
from jaxzero.nets.window_mlp import windows
from jaxzero.types import Params

__all__ = ["WeightsError", "load", "read_about", "save", "trained"]

TRAINED = pathlib.Path(__file__).parent / "trained"

TYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}  # of a network's arithmetic
DTYPE = {"dtype": one_of(**TYPES)}
SEEN = {"canonical": whether(), "input_features": whether()}  # how the network sees positions
PARITY = {"stone_parity": whether()}
KINDS = {
    "mlp": Kind(mlp, {"hidden": counts(65_536, 32)}, DTYPE | SEEN, lambda given: 2 * len(given["hidden"])),
    "resnet": Kind(
        resnet, {"channels": count(4096), "blocks": count(40)}, DTYPE | SEEN | PARITY, lambda given: 4 * given["blocks"]
    ),
    "windows": Kind(
        windows,
        {"window": count(64), "channels": count(4096), "hidden": counts(65_536, 32)},
        DTYPE | SEEN | PARITY,
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
            Arguments with a default may be left out, except `"stone_parity"`, `"canonical"` and
            `"input_features": true` of a network that was built with them.
            Other information may be added, like what the id does not contain: "komi", in Go. It comes back as JSON
            values: a tuple as a list.
        overwrite: whether a file of this name with other content is replaced. The same content is left alone.
        game: if given, it is checked that `load` will take the file for this game: that the parameters are those of the
            network that `about` describes (as far as their shapes tell, which say nothing of "canonical").

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
    if game is not None:
        check_game("weights.save", game)
    check = lambda about, there: _network_of(about, len(there)) if game is None else _fitting(about, there, game)
    write_params(file, params, about, overwrite, check)


def load(file: Path, game: Game, dtype: Any = None) -> tuple[Callable, Params, dict[str, Any]]:
    """The network, its weights, and what the file says about them: `net(params, observation) -> (logits, value)`.

    Nothing is compiled, and nothing allocated but the weights.

    Args:
        file: written by `save`; may come from anywhere. Or the folder of a run of `jaxzero train`.
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
        raise ValueError(f"weights.load(dtype={dtype!r}): use jnp.float32, jnp.bfloat16, or None for the saved type.")
    asked = {} if dtype is None else {"dtype": dtype}
    return read_params(file, lambda about, there: _fitting(about, there, game, asked))


def trained(game: str) -> pathlib.Path:
    """The file of weights that comes with jaxzero for a game, to play without training first.

    Args:
        game: the game's id; or connect_four_small, whose network is faster and errs more often.

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
        raise ValueError(
            f"jaxzero has no weights for {short(game)}, only for {there}. Train a network with `jaxzero train`."
        )
    return file


def _fitting(
    about: dict[str, Any], there: dict[str, tuple[int, ...]], game: Game, asked: dict[str, Any] | None = None
) -> tuple[Callable, Params]:
    """The network that is described, and the shapes of its parameters, if the file's arrays have the same.

    Arguments that the caller asks for replace those of the description.
    """
    kind, given = _network_of(about, len(there))
    if about["game"] != game.id:
        raise WeightsError(
            f"it is for the game {short(about['game'])}, not for {short(game.id)}: use that game, or other weights."
        )
    given |= asked or {}
    net, expected = shapes_of(lambda: kind.build(game, **given, key=jax.random.key(0)), game.id)
    try:
        check_shapes(expected, there)
    except WeightsError as error:
        raise WeightsError(f"{error} Or it is for another game of this name: {_observed(game)}") from error
    return net, expected


def _observed(game: Game) -> str:
    """The shapes of a game in words, to tell it from another game with the same id."""
    two = "; the Go of games.go is not that of games.from_pgx" if game.id.startswith("go_") else ""
    return (
        f"the {game.id} that was given has observations of shape {list(game.observation_shape)} and "
        f"{game.num_actions} actions{two}."
    )


def _network_of(about: dict[str, Any], arrays: int) -> tuple[Kind, dict[str, Any]]:
    """The kind of network and its arguments."""
    if "environment" in about:
        how = "models.perfect and nets.for_rules" if about.get("model") == "simulator" else "models.learned"
        raise WeightsError(f"its network is for an environment: use nets.load_learned, and {how} to search.")
    if not isinstance(about.get("game"), str) or not isinstance(about.get("network"), dict):
        raise WeightsError(
            'it does not say which game and network it is for: save it with about={"game": ..., "network": ...}.'
        )
    return described(about["network"], KINDS, arrays)
