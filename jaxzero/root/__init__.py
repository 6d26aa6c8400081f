"""What happens at the root only: exploration, forced playouts, Gumbel search, actions, targets, and the summary."""

from jaxzero.root.exploration import chain, dirichlet, prior_at_root, root_temperature, shaped_dirichlet, with_dirichlet
from jaxzero.root.forced_playouts import forced_playouts
from jaxzero.root.gumbel import gumbel_interior, gumbel_root, with_gumbel
from jaxzero.root.minimum_visits import minimum_visits
from jaxzero.root.playout_cap import BothTrees, playout_cap
from jaxzero.root.root_action import best_value, by_temperature, most_visited
from jaxzero.root.schedules import by_move, decaying, falling, steps
from jaxzero.root.search_diagnostics import kl, player_values, policy_improvement
from jaxzero.root.summary import Summary, principal_variation, qvalues, summary
from jaxzero.root.target_pruning import pruned_visits, solved_visits
from jaxzero.root.win_rates import win_rates

__all__ = [
    "BothTrees",
    "Summary",
    "best_value",
    "by_move",
    "by_temperature",
    "chain",
    "decaying",
    "dirichlet",
    "falling",
    "forced_playouts",
    "gumbel_interior",
    "gumbel_root",
    "kl",
    "minimum_visits",
    "most_visited",
    "player_values",
    "playout_cap",
    "policy_improvement",
    "principal_variation",
    "prior_at_root",
    "pruned_visits",
    "qvalues",
    "root_temperature",
    "shaped_dirichlet",
    "solved_visits",
    "steps",
    "summary",
    "win_rates",
    "with_dirichlet",
    "with_gumbel",
]
