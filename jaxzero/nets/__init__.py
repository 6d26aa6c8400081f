"""Networks in Flax NNX, as pure functions: `(net, params)` with `net(params, observation) -> (logits, value)`."""

from jaxzero.extras import require

require("flax", "jaxzero.nets")

from jaxzero.nets.mlp import mlp  # noqa: E402
from jaxzero.nets.network import to_bfloat16  # noqa: E402
from jaxzero.nets.resnet import resnet  # noqa: E402
from jaxzero.nets.window_mlp import windows  # noqa: E402

__all__ = ["mlp", "resnet", "to_bfloat16", "windows"]
