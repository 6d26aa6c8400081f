"""Muon: an optimiser whose steps are nearly orthogonal matrices."""

from typing import Any

import jax
import optax
from optax import contrib

from jaxzero.types import Params

__all__ = ["DIRECTIONS", "muon"]


def muon(adam_scale: float = 0.4) -> optax.GradientTransformation:
    """The direction of Muon (Jordan 2024, "Muon: An optimizer for hidden layers in neural networks"), by Optax.

    The momentum of each kernel becomes a nearly orthogonal matrix of inputs × outputs; a convolution's inputs include
    the squares of its window. Biases take Adam's direction, shortened. A wide kernel's step is longer by the root of
    outputs over inputs.

    On Connect Four without the rules (planes, one CPU core, 369,000 positions, one seed) it reached 29 % outcome
    mistakes, where Adam had 35 %.

    Args:
        adam_scale: factor on the learning rate for the steps of biases. Learning rates are larger than Adam's: 0.01
            where Adam has 0.004; published: 0.02.

    Returns:
        A transformation for `parameter_update(direction=...)`, before the learning rate, along the gradient.

    Example:
        >>> import jax.numpy as jnp
        >>> direction, kernel = muon(), {"kernel": jnp.eye(2), "bias": jnp.zeros(2)}
        >>> gradients = {"kernel": jnp.diag(jnp.array([9.0, 0.1])), "bias": jnp.array([1.0, -5.0])}
        >>> step, _ = direction.update(gradients, direction.init(kernel), kernel)
        >>> bool((jnp.diag(step["kernel"]) > 0.3).all()), [f"{x:.1f}" for x in step["bias"]]  # Nesterov's
        (True, ['0.6', '-0.6'])
    """
    rescaled = contrib.muon(1.0, adam_learning_rate=adam_scale, muon_weight_dimension_numbers=_matrices)
    return optax.chain(rescaled, optax.scale(-1.0))  # Optax has the sign of descent


def _matrices(params: Params) -> Any:
    """How kernels are reshaped to matrices: the last axis is the output. None for biases."""

    def matrix(x: jax.Array) -> Any:
        if x.ndim < 2:
            return None
        return contrib.MuonDimensionNumbers(reduction_axis=tuple(range(x.ndim - 1)), output_axis=x.ndim - 1)

    return jax.tree.map(matrix, params)


DIRECTIONS = {"adamw": optax.scale_by_adam, "muon": muon}  # of `parameter_update`, by the names of settings
