"""The plain algorithm: the tree and its storage, descend, expand and backup, rules and Q-value transforms.

Begin reading with `search.py`. `root`, `options` and `policies` import this folder; it imports none of them. The tree
carries what an option does in each simulation (`tree.Hooks`).
"""

from jaxzero.search.edge_view import edge_view
from jaxzero.search.first_play_urgency import mean_of_visited, parent_raw_value, parent_value, reduced_parent
from jaxzero.search.qvalues import by_min_max, by_parent_and_siblings, completed_by_mix_value, raw, with_virtual_zero
from jaxzero.search.search import backup, choose_at_root, descend, enter, expand, plant, rescore, search, simulate
from jaxzero.search.selection_rules import muzero_puct, puct, ucb1, ucb1_uctk, with_root_prior
from jaxzero.search.tree import COMPACT, Layout, Status, Tree

__all__ = [
    "COMPACT",
    "Layout",
    "Status",
    "Tree",
    "backup",
    "by_min_max",
    "by_parent_and_siblings",
    "choose_at_root",
    "completed_by_mix_value",
    "descend",
    "edge_view",
    "enter",
    "expand",
    "mean_of_visited",
    "muzero_puct",
    "parent_raw_value",
    "parent_value",
    "plant",
    "puct",
    "raw",
    "reduced_parent",
    "rescore",
    "search",
    "simulate",
    "ucb1",
    "ucb1_uctk",
    "with_root_prior",
    "with_virtual_zero",
]
