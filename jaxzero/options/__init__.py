"""What changes a search, one file or folder for each: a function that is passed to a policy, or wraps a model."""
