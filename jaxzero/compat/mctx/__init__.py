"""mctx's public interface on top of jaxzero's search: `from jaxzero.compat import mctx` is the whole migration.

The names, arguments, defaults, results and the use of random keys are those of mctx 0.0.71
(github.com/google-deepmind/mctx), its peculiarities included: Dirichlet noise falls on all actions and is masked
afterwards, only the root has a mask, a root without a valid action takes action 0, and at `max_depth` a node is
evaluated anew and overwritten. The trees are the same trees, node for node. What differs:

* Speed: nodes remember their choices. The policies with the Q transforms below, and `search` with the action selectors
  below, run on jaxzero's search; a Q transform of your own too, if it reads no more than the row of its node. Anything
  else takes the plain path, which is mctx's algorithm step by step: other selectors, a traced `max_depth`, and half
  precision.
* Equal scores: the lowest action wins, except on the plain path. mctx adds random numbers of up to 1e-7 to the scores
  of PUCT, which also reverses some choices between scores that are that close.
* `with_tree=False` leaves the tree out of a policy's output.
* Calls outside of `jit` are compiled once, see `jaxzero.compat.mctx.eager`.

Where mctx has no defined result, with NaN or infinity from the model, jaxzero's search takes uniform logits and zeros
in their place. The records are mctx's own where mctx is installed.
"""

from jaxzero.compat.mctx._src.action_selection import (
    GumbelMuZeroExtraData,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    muzero_action_selection,
)
from jaxzero.compat.mctx._src.base import (
    ChanceRecurrentFnOutput,
    DecisionRecurrentFnOutput,
    InteriorActionSelectionFn,
    LoopFn,
    PolicyOutput,
    RecurrentFn,
    RecurrentFnOutput,
    RecurrentState,
    RootActionSelectionFn,
    RootFnOutput,
)
from jaxzero.compat.mctx._src.policies import gumbel_muzero_policy, muzero_policy, stochastic_muzero_policy
from jaxzero.compat.mctx._src.qtransforms import (
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from jaxzero.compat.mctx._src.search import search
from jaxzero.compat.mctx._src.tree import SearchSummary, Tree

__version__ = "0.0.71"  # of the mctx whose interface and results these are

__all__ = [
    "ChanceRecurrentFnOutput",
    "DecisionRecurrentFnOutput",
    "GumbelMuZeroExtraData",
    "InteriorActionSelectionFn",
    "LoopFn",
    "PolicyOutput",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootActionSelectionFn",
    "RootFnOutput",
    "SearchSummary",
    "Tree",
    "gumbel_muzero_interior_action_selection",
    "gumbel_muzero_policy",
    "gumbel_muzero_root_action_selection",
    "muzero_action_selection",
    "muzero_policy",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
    "search",
    "stochastic_muzero_policy",
]
