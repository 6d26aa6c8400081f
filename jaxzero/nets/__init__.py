"""Networks in Flax NNX, as pure functions: `(net, params)` with `net(params, observation) -> (logits, value)`."""

from jaxzero.nets.mlp import mlp
from jaxzero.nets.resnet import resnet

__all__ = ["mlp", "resnet"]
