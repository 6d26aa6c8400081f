"""Checks of a game: shapes and types by tracing, behaviour by random play."""
