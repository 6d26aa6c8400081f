"""Learning from self-play: `selfplay` makes rows, `replay` keeps them, `learner` learns from them, on all `devices`.

The optimiser's step is in `parameter_update`. Everything here is a function of arrays. Services around a run are in
`jaxzero.runs`, the loop is in `jaxzero/cli/training/loop.py`.
"""

from jaxzero.extras import require

require("optax", "jaxzero.train")
