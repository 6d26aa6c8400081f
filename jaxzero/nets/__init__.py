"""Networks in Flax NNX, as pure functions: `(net, params)` with `net(params, observation) -> (logits, value)`."""

from jaxzero.nets.mlp import mlp
from jaxzero.nets.network import to_bfloat16
from jaxzero.nets.resnet import resnet
from jaxzero.nets.windows import windows

__all__ = ["mlp", "resnet", "to_bfloat16", "windows"]
