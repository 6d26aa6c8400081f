"""Weights files of n-tuple networks."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxzero.nets.files.params_file import Path, check_shapes, read_params, write_params
from jaxzero.nets.files.safetensors_file import WeightsError, short
from jaxzero.nets.ntuples import NTuples, ntuples
from jaxzero.types import Params

__all__ = ["load_ntuples", "save_ntuples"]

MOST = 32  # tuples


def save_ntuples(file: Path, weights: Params, about: dict[str, Any], overwrite: bool = False) -> None:
    """Write the weights of an n-tuple network, atomically.

    Args:
        file: its name, by custom with the ending .safetensors.
        weights: `[N]`, finite.
        about: JSON values; "tuples" is what `ntuples` was given, as lists.
        overwrite: whether a file of this name with other content is replaced.

    Raises:
        WeightsError: no such file can be written, or there is one, or these are not the weights of those tuples.

    Example:
        >>> import tempfile
        >>> weights = jnp.zeros(65_792)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save_ntuples(f"{folder}/weights", weights, {"tuples": [[0, 1], [0, 1, 4, 5]]})
        ...     network, weights, about = load_ntuples(f"{folder}/weights")
        >>> network.count, weights.shape
        (16, (65792,))
    """
    write_params(file, {"weights": weights}, about, overwrite, _fitting)


def load_ntuples(file: Path) -> tuple[NTuples, Params, dict[str, Any]]:
    """The network, its weights in float32, and what the file says about them.

    Args:
        file: written by `save_ntuples`; may come from anywhere.

    Raises:
        WeightsError: the file is damaged or hostile, or of another kind or network than it says.
    """
    network, params, about = read_params(file, _fitting)
    return network, params["weights"].astype(jnp.float32), about


def _fitting(about: dict[str, Any], there: dict[str, tuple[int, ...]]) -> tuple[NTuples, Params]:
    """The network that is described, and the shape of its weights, if the file's weights have the same."""
    if "tuples" not in about and isinstance(about.get("game"), str) and about["game"] != "2048":
        raise WeightsError(f"it is for the game {short(about['game'])}, but must be an n-tuple network for 2048.")
    tuples = about.get("tuples")
    if not isinstance(tuples, list) or len(tuples) > MOST or not all(isinstance(cells, list) for cells in tuples):
        raise WeightsError(
            f"its tuples are {short(tuples)}: give up to {MOST} lists of cells, like [[0, 1, 2, 3], [0, 1, 4, 5]]."
        )
    try:
        network = ntuples(tuple(tuple(cells) for cells in tuples))
    except ValueError as error:
        raise WeightsError(f"its network cannot be built: {error}") from error
    expected = {"weights": jax.ShapeDtypeStruct((network.size,), jnp.float32)}
    check_shapes(expected, there)
    return network, expected
