"""Residual blocks over the planes of a board: convolutions, or perceptrons along its rows and columns."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from jaxzero.nets.layers import NORMALISATIONS, Layer, convolution, dense, largest
from jaxzero.types import Params

__all__ = ["TOWERS", "Tower", "check_planes", "overview", "pooled"]

HIDDEN = 4  # times the channels: numbers in the hidden layer of a line


class Tower(NamedTuple):
    """One kind of residual blocks.

    Attributes:
        block: `(height, width, channels) -> layers` of one block.
        given: `(height, width, channels)` -> how many numbers an action, or a code of chance, adds within the first
            block.
        met: `channels` -> planes of the first block's hidden layer.
        through: `(params, x, blocks, given) -> (x, hidden)`: x `[B, H, W, C]` after the blocks, and the hidden layer of
            the first block, `[B, ..., planes]`, where the state meets the action or the code.
    """

    block: Callable[[int, int, int], dict[str, Layer]]
    given: Callable[[int, int, int], int]
    met: Callable[[int], int]
    through: Callable[[Params, Array, int, Array | None], tuple[Array, Array]]


def _convolved(
    params: Params, x: Float[Array, "B H W C"], blocks: int, given: Float[Array, "B G"] | None = None
) -> tuple[Float[Array, "B H W C"], Float[Array, "B H W C"]]:
    more = 0.0 if given is None else given.reshape(x.shape)
    met = jax.nn.relu(convolution(params["block_0"]["first"], x) + more)
    x = x + convolution(params["block_0"]["second"], met)
    for i in range(1, blocks):
        block = params[f"block_{i}"]
        x = x + convolution(block["second"], jax.nn.relu(convolution(block["first"], x)))
    return x, met


def _along_lines(
    params: Params, x: Float[Array, "B H W C"], blocks: int, given: Float[Array, "B G"] | None = None
) -> tuple[Float[Array, "B H W C"], Float[Array, "B L K"]]:
    batch, height, width, _ = x.shape
    first = None
    for i in range(blocks):
        block = params[f"block_{i}"]
        rows, columns = x.reshape(batch, height, -1), x.swapaxes(1, 2).reshape(batch, width, -1)
        lines = jnp.concatenate([dense(block["rows"], rows), dense(block["columns"], columns)], 1)
        hidden = jax.nn.relu(lines if given is None or i > 0 else lines + given.reshape(lines.shape))
        from_rows = dense(block["from_rows"], hidden[:, :height]).reshape(x.shape)
        from_columns = dense(block["from_columns"], hidden[:, height:]).reshape(batch, width, height, -1)
        x = x + from_rows + from_columns.swapaxes(1, 2)
        first = hidden if first is None else first
    return x, first


def _line_layers(height: int, width: int, channels: int) -> dict[str, Layer]:
    hidden = HIDDEN * channels
    return {
        "rows": Layer((width * channels, hidden)),
        "columns": Layer((height * channels, hidden)),
        "from_rows": Layer((hidden, width * channels)),
        "from_columns": Layer((hidden, height * channels)),
    }


TOWERS = {
    "convolutions": Tower(
        block=lambda height, width, channels: dict.fromkeys(("first", "second"), Layer((3, 3, channels, channels))),
        given=lambda height, width, channels: height * width * channels,
        met=lambda channels: channels,
        through=_convolved,
    ),
    "lines": Tower(
        block=_line_layers,
        given=lambda height, width, channels: (height + width) * HIDDEN * channels,
        met=lambda channels: HIDDEN * channels,
        through=_along_lines,
    ),
}


def overview(params: Params, state: Float[Array, "B H W C"], met: Array | None = None) -> Float[Array, "B width"]:
    """The hidden layer of a head: it sees every square, and the mean and maximum of each plane."""
    seen = dense(params["hidden"], state.reshape(len(state), -1)) + dense(params["pooled"], pooled(state))
    return jax.nn.relu(seen if met is None else seen + dense(params["met"], pooled(met)))


def pooled(planes: Float[Array, "B ... C"]) -> Float[Array, "B 2C"]:
    """The mean and the maximum of each plane."""
    squares = planes.reshape(len(planes), -1, planes.shape[-1])
    return jnp.concatenate([squares.mean(1), largest(squares)], -1)


def check_planes(
    name: str, perceptron: str, observation_shape: tuple[int, ...], normalisation: str, tower: str, **sizes: int
) -> None:
    """Raises a ValueError for sizes < 1, observations that are no planes, or an unknown normalisation or tower.

    Args:
        name: of the function that was given them.
        perceptron: the function for observations of any other shape.
        observation_shape: of an observation.
        normalisation: of embeddings.
        tower: which residual blocks.
        sizes: by name; "projection" may be 0.
    """
    if any(size < (which != "projection") for which, size in sizes.items()):
        given = ", ".join(f"{which}={size}" for which, size in sizes.items())
        rest = ", projection 0 or more" if "projection" in sizes else ""
        raise ValueError(f"{name}({given}): all must be 1 or more{rest}.")
    if len(observation_shape) != 3:
        raise ValueError(
            f"{name} needs observations of shape [height, width, planes], not {list(observation_shape)}: write "
            f"nets.{perceptron}(...)."
        )
    if normalisation not in NORMALISATIONS:
        raise ValueError(f"{name}(normalisation={normalisation!r}): use {' or '.join(NORMALISATIONS)}.")
    if tower not in TOWERS:
        raise ValueError(f"{name}(tower={tower!r}): use {' or '.join(TOWERS)}.")
