"""Checks of a game: of shapes and types by a trace, of what happens by random play."""
