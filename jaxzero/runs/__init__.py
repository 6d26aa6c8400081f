"""What a training run needs around its arrays: checkpoints, its folder, metrics, progress, warnings, memory."""
