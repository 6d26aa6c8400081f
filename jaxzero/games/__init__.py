"""Games as records of pure functions: those of pgx by name, and Go of our own."""

from jaxzero.games.game import Game, Symmetry
from jaxzero.games.go_rules import GoState, go, keep_eyes
from jaxzero.games.pgx_adapter import from_pgx

__all__ = ["Game", "GoState", "Symmetry", "from_pgx", "go", "keep_eyes"]
