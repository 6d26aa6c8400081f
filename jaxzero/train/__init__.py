"""Learning from self-play: `selfplay` makes rows, `replay` keeps them, `learner` learns from them, on all `devices`.

The step of the optimiser is in `parameter_update`. Everything here is a function of arrays. What a run needs around
them is in `jaxzero.runs`, the loop in `jaxzero/cli/training/loop.py`.
"""

from jaxzero.extras import require

require("optax", "jaxzero.train")
