"""mctx's `base`: records and types. The records are mctx's own where mctx is installed, so `isinstance` holds."""

from collections.abc import Callable
from typing import Any, TypeVar

from jaxtyping import Array

from jaxzero.compat.mctx._src.tree import Tree

try:
    from mctx._src.base import (
        ChanceRecurrentFnOutput,
        DecisionRecurrentFnOutput,
        PolicyOutput,
        RecurrentFnOutput,
        RootFnOutput,
        StochasticRecurrentState,
    )
except ImportError:
    from jaxzero.compat.mctx.mctx_records import (
        ChanceRecurrentFnOutput,
        DecisionRecurrentFnOutput,
        PolicyOutput,
        RecurrentFnOutput,
        RootFnOutput,
        StochasticRecurrentState,
    )

__all__ = [
    "Action",
    "ChanceRecurrentFn",
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFn",
    "DecisionRecurrentFnOutput",
    "Depth",
    "InteriorActionSelectionFn",
    "LoopFn",
    "NodeIndices",
    "Params",
    "PolicyOutput",
    "QTransform",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootActionSelectionFn",
    "RootFnOutput",
    "StochasticRecurrentState",
]

T = TypeVar("T")
Params = RecurrentState = Any
Action = NodeIndices = Depth = Array

RecurrentFn = Callable[[Params, Array, Action, RecurrentState], tuple[RecurrentFnOutput, RecurrentState]]
DecisionRecurrentFn = Callable[
    [Params, Array, Action, RecurrentState], tuple[DecisionRecurrentFnOutput, RecurrentState]
]
ChanceRecurrentFn = Callable[[Params, Array, Action, RecurrentState], tuple[ChanceRecurrentFnOutput, RecurrentState]]
RootActionSelectionFn = Callable[[Array, Tree, NodeIndices], Array]
InteriorActionSelectionFn = Callable[[Array, Tree, NodeIndices, Depth], Array]
QTransform = Callable[[Tree, Array], Array]
LoopFn = Callable[[int, int, Callable[[Any, Any], Any], tuple[Array, Any]], tuple[Array, Any]]
