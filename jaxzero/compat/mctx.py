"""mctx's public interface on top of jaxzero's search: `from jaxzero.compat import mctx` is the whole migration.

The names, arguments, defaults, results and the use of random keys are those of mctx 0.0.71 (github.com/google-deepmind/mctx),
its peculiarities included: Dirichlet noise falls on all actions and is masked afterwards, only the root has a mask, a
root without a valid action takes action 0, and at `max_depth` a node is evaluated anew and overwritten. The trees are the
same trees, node for node. What differs:

* It is faster: choices are remembered at the nodes. The policies with the Q transforms below, and `search` with the
  action selectors below, run on jaxzero's search; a Q transform of your own too, if it reads no more than the row of its
  node. Any other selector is asked at every level of every walk, as in mctx. `search_tree` works its arrays out when they
  are read.
* Equal scores: the lowest action wins. mctx adds random numbers of up to 1e-7 to the scores of PUCT, which also reverses
  some choices between scores that are that close.

Where mctx has no defined result, with NaN or infinity from the model, uniform logits and zeros take their place.
Records made by mctx itself are accepted.
"""
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from jaxzero.compat.mctx_row import ask, reads_one_row
from jaxzero.compat.mctx_search import allowed_at_root, search, search_natively
from jaxzero.compat.mctx_selection import (
    Games,
    NativeRules,
    gumbel_muzero_interior_action_selection,
    gumbel_muzero_root_action_selection,
    masked_argmax,
    muzero_action_selection,
    native_qvalues,
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from jaxzero.compat.mctx_tree import (
    ChanceRecurrentFnOutput,
    DecisionRecurrentFnOutput,
    GumbelMuZeroExtraData,
    PolicyOutput,
    RecurrentFnOutput,
    RootFnOutput,
    SearchSummary,
    SearchTree,
    StochasticRecurrentState,
    Tree,
)
