"""Checks before and while tracing: of arguments, of the start of a search, of a model's outputs."""
