"""Weights files: their format, and the networks that a file may describe."""
