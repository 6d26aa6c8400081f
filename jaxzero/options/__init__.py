"""Options that change a search, one file or folder for each.

An option is a function that a policy takes (`simulate=`, `stop=`), that wraps a rule, or that wraps a model.
"""

from jaxzero.options.chance_expectation import expected_outcomes
from jaxzero.options.early_stopping import any_of, decided, search_until, total_visits
from jaxzero.options.evaluation_reuse import num_kept, with_evaluations_kept
from jaxzero.options.graph_search import num_positions, transpositions
from jaxzero.options.leaf_parallel import (
    ask,
    max_evaluations,
    num_evaluations,
    parallel,
    tell,
    virtual_loss,
    virtual_mean,
    virtual_visits,
)
from jaxzero.options.legal_slots import SlotsInfo, with_legal_slots
from jaxzero.options.sampled_actions import (
    Sample,
    SampledInfo,
    gaussian_sample,
    with_continuous_actions,
    with_sampled_actions,
)
from jaxzero.options.slot_actions import Slots, action_of, slot_of, to_action_space
from jaxzero.options.solver import avoid_proven, bounds, seek_proof, solved
from jaxzero.options.subtree_reuse import action_and_outcome, advance

__all__ = [
    "Sample",
    "SampledInfo",
    "Slots",
    "SlotsInfo",
    "action_and_outcome",
    "action_of",
    "advance",
    "any_of",
    "ask",
    "avoid_proven",
    "bounds",
    "decided",
    "expected_outcomes",
    "gaussian_sample",
    "max_evaluations",
    "num_evaluations",
    "num_kept",
    "num_positions",
    "parallel",
    "search_until",
    "seek_proof",
    "slot_of",
    "solved",
    "tell",
    "to_action_space",
    "total_visits",
    "transpositions",
    "virtual_loss",
    "virtual_mean",
    "virtual_visits",
    "with_continuous_actions",
    "with_evaluations_kept",
    "with_legal_slots",
    "with_sampled_actions",
]
