"""Games as records of pure functions: pgx's by name, jaxzero's own Go and Hex, and games that users write."""

from jaxzero.games.backgammon import backgammon
from jaxzero.games.by_name import by_name, is_own, loaded
from jaxzero.games.checks.outcome_checks import check_outcomes
from jaxzero.games.checks.play_checks import check_play
from jaxzero.games.checks.rule_checks import check_rules
from jaxzero.games.decisive_moves import decisive_by_trying
from jaxzero.games.game import CanonicalForm, Game, Symmetry
from jaxzero.games.go_game.rules import GoState, go, keep_eyes
from jaxzero.games.hex import HexState, hex_game
from jaxzero.games.input_features.lines import line_features
from jaxzero.games.input_features.mobility import mobility_features
from jaxzero.games.outcomes import Outcomes
from jaxzero.games.pgx_adapter import from_pgx
from jaxzero.games.rules_2048 import game_2048

__all__ = [
    "CanonicalForm",
    "Game",
    "GoState",
    "HexState",
    "Outcomes",
    "Symmetry",
    "backgammon",
    "by_name",
    "check_outcomes",
    "check_play",
    "check_rules",
    "decisive_by_trying",
    "from_pgx",
    "game_2048",
    "go",
    "hex_game",
    "is_own",
    "keep_eyes",
    "line_features",
    "loaded",
    "mobility_features",
]
