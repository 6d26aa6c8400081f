"""Services around a training run: checkpoints, its folder, metrics, progress, health warnings, memory estimates."""

from jaxzero.extras import require

require("orbax", "jaxzero.runs")
