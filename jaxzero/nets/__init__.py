"""Networks as pure functions of their parameters.

For known rules, in Flax NNX: `(net, params)` with `net(params, observation) -> (logits, value)`. For learned models:
`(network, params)`, where the network is a `LearnedNetwork` of functions.
"""

from jaxzero.extras import require

require("flax", "jaxzero.nets")

from jaxzero.nets.files.learned_weights import build_action_head, build_learned, load_learned, save_learned  # noqa: E402
from jaxzero.nets.mlp import mlp  # noqa: E402
from jaxzero.nets.muzero.learned_network import LearnedNetwork, for_rules, for_search  # noqa: E402
from jaxzero.nets.muzero.muzero_mlp import muzero_mlp  # noqa: E402
from jaxzero.nets.muzero.muzero_planes import muzero_planes  # noqa: E402
from jaxzero.nets.muzero.scalar_heads import (  # noqa: E402
    ScalarHead,
    Transform,
    bounded,
    hl_gauss,
    sqrt_transform,
    symlog,
    two_hot,
    win_draw_loss,
)
from jaxzero.nets.muzero.stochastic_mlp import stochastic_mlp  # noqa: E402
from jaxzero.nets.muzero.stochastic_network import StochasticNetwork, for_stochastic_search  # noqa: E402
from jaxzero.nets.muzero.stochastic_planes import stochastic_planes  # noqa: E402
from jaxzero.nets.network import to_bfloat16  # noqa: E402
from jaxzero.nets.ntuples import NTuples, ntuples  # noqa: E402
from jaxzero.nets.resnet import resnet  # noqa: E402
from jaxzero.nets.window_mlp import windows  # noqa: E402

__all__ = [
    "LearnedNetwork",
    "NTuples",
    "ScalarHead",
    "StochasticNetwork",
    "Transform",
    "bounded",
    "build_action_head",
    "build_learned",
    "for_rules",
    "for_search",
    "for_stochastic_search",
    "hl_gauss",
    "load_learned",
    "mlp",
    "muzero_mlp",
    "muzero_planes",
    "ntuples",
    "resnet",
    "save_learned",
    "sqrt_transform",
    "stochastic_mlp",
    "stochastic_planes",
    "symlog",
    "to_bfloat16",
    "two_hot",
    "win_draw_loss",
    "windows",
]
