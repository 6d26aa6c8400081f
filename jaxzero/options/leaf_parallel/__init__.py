"""Several leaves in one call of the model: lanes with virtual losses, rounds of Gumbel search, ask and tell."""

from jaxzero.options.leaf_parallel.ask_tell import ask, tell
from jaxzero.options.leaf_parallel.parallel import max_evaluations, num_evaluations, parallel
from jaxzero.options.leaf_parallel.virtual_loss import virtual_loss, virtual_mean, virtual_visits

__all__ = [
    "ask",
    "max_evaluations",
    "num_evaluations",
    "parallel",
    "tell",
    "virtual_loss",
    "virtual_mean",
    "virtual_visits",
]
