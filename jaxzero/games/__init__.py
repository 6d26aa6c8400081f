"""Games as records of pure functions: those of pgx by name, Go of our own, and anybody's."""

from jaxzero.games.by_name import by_name, is_own
from jaxzero.games.game import Game, Symmetry
from jaxzero.games.go_rules import GoState, go, keep_eyes
from jaxzero.games.pgx_adapter import from_pgx
from jaxzero.games.rule_checks import check_rules

__all__ = ["Game", "GoState", "Symmetry", "by_name", "check_rules", "from_pgx", "go", "is_own", "keep_eyes"]
