"""Networks as pure functions of their parameters.

Where the rules are known, in Flax NNX: `(net, params)` with `net(params, observation) -> (logits, value)`. Where the
model is learned: `(network, params)`, the network a `LearnedNetwork` of functions.
"""

from jaxzero.extras import require

require("flax", "jaxzero.nets")

from jaxzero.nets.learned_network import LearnedNetwork, for_search  # noqa: E402
from jaxzero.nets.learned_weights import build_learned, load_learned, save_learned  # noqa: E402
from jaxzero.nets.mlp import mlp  # noqa: E402
from jaxzero.nets.muzero_mlp import muzero_mlp  # noqa: E402
from jaxzero.nets.muzero_planes import muzero_planes  # noqa: E402
from jaxzero.nets.network import to_bfloat16  # noqa: E402
from jaxzero.nets.resnet import resnet  # noqa: E402
from jaxzero.nets.scalar_heads import (  # noqa: E402
    ScalarHead,
    Transform,
    bounded,
    hl_gauss,
    sqrt_transform,
    symlog,
    two_hot,
    win_draw_loss,
)
from jaxzero.nets.window_mlp import windows  # noqa: E402

__all__ = [
    "LearnedNetwork",
    "ScalarHead",
    "Transform",
    "bounded",
    "build_learned",
    "for_search",
    "hl_gauss",
    "load_learned",
    "mlp",
    "muzero_mlp",
    "muzero_planes",
    "resnet",
    "save_learned",
    "sqrt_transform",
    "symlog",
    "to_bfloat16",
    "two_hot",
    "win_draw_loss",
    "windows",
]
