"""The output of a training run: what it prints, and its report."""
