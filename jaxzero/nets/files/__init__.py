"""Weights files: their format, and what a file may say of its network."""
