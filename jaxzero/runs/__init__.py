"""What a training run needs around its arrays: checkpoints, its folder, metrics, progress, warnings, memory."""

from jaxzero.extras import require

require("orbax", "jaxzero.runs")
