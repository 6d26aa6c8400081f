"""Checks before and while tracing: of arguments, of what a search starts from, of what a model gives."""
