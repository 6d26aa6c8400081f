"""Heads of the consistency loss: it compares one embedding's projection with the prediction from another embedding."""

from collections.abc import Callable

import jax
from jaxtyping import Array, Float

from jaxzero.nets.layers import Layer, dense
from jaxzero.types import Params

__all__ = ["consistency_heads"]

Head = Callable[[Params, Float[Array, "B ..."]], Float[Array, "B F"]]


def consistency_heads(size: int, width: int, projection: int) -> tuple[Head, Head, dict[str, dict[str, Layer]]]:
    """SimSiam's projector and predictor (Chen and He 2021; Ye et al. 2021, section 4.1), without batch norm.

    Args:
        size: numbers in an embedding, which is flattened.
        width: of the hidden layer of both.
        projection: F, the length of what is compared; 0: the embeddings themselves, and nothing is learned here.

    Returns:
        `project` and `foretell` of a `LearnedNetwork`, and the layers that they need.

    Example:
        >>> project, foretell, layers = consistency_heads(64, 128, 32)
        >>> layers["projection"]["output"].kernel, layers["foretelling"]["hidden"].kernel
        ((128, 32), (32, 128))
    """
    flat = lambda state: state.reshape(len(state), -1)
    if projection == 0:
        same = lambda params, state: flat(state)
        return same, same, {}

    def through(params: Params, x: Float[Array, "B I"]) -> Float[Array, "B F"]:
        return dense(params["output"], jax.nn.relu(dense(params["hidden"], x)))

    def project(params: Params, state: Float[Array, "B ..."]) -> Float[Array, "B F"]:
        return through(params["projection"], flat(state))

    def foretell(params: Params, state: Float[Array, "B ..."]) -> Float[Array, "B F"]:
        return through(params["foretelling"], project(params, state))

    layers = {
        "projection": {"hidden": Layer((size, width)), "output": Layer((width, projection))},
        "foretelling": {"hidden": Layer((projection, width)), "output": Layer((width, projection))},
    }
    return project, foretell, layers
