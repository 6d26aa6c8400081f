"""Several leaves in one call of the model: lanes with virtual losses, rounds of Gumbel search, ask and tell."""
