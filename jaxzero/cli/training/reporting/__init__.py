"""What a training run prints, and its report."""
