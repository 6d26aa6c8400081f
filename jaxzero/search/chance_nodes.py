"""Chance nodes: visits are distributed by the probabilities of the outcomes.

A model marks them with `Step.chance`: True where chance moves next. The node's logits are then the log-probabilities of
its C outcomes, in the first C of the W = max(A, C) edge slots that both kinds of nodes have, −inf in the others. The
embedding must tell `model.step` which kind of node it continues from. `jaxzero.models.chance` makes such models from
games. Every policy searches them, by its own rule where a player moves. At decisions, the slots from A on are illegal
actions: actions keep their numbers, and `action_weights` [B, W] are 0 beyond.

**How the visits are shared out.** The next one goes to the outcome with the highest p / (N + ½), Webster's method of
apportionment (Balinski and Young 1982, *Fair Representation*; mctx's stochastic MuZero has p / (N + 1), Jefferson's).
It is deterministic, and the counts follow the probabilities closer than draws would: after n visits to C outcomes

    ½ Σ |N − p n| ≤ C/2,   so the mean over the visits is within (max v − min v) · C / (2 n) of the expectation,

which is O(1/n), whereas draws have O(1/√n). (Proof: with t the score of the last visit, no outcome scores higher now
nor scored lower when last visited, so |N − p/t| ≤ ½ for each. If 1/t ≥ n, none is behind p n by more than ½, hence all
together by at most C/2; else none is ahead by more. The sum of the leads equals the sum of the lags. Jefferson's bound
is twice this.)

**The value of a chance node** is the mean of its visits, its own evaluation being one of them, as everywhere. The exact
expectation over its outcomes is not backed up instead. It is known only once all were visited; by then the difference
is O(1/n), and the rest of the search relies on means of returns. With fewer visits than outcomes the mean can be
misleading: `jaxzero.options.expected_outcomes` then uses the model's value for outcomes not visited yet.

**The cost.** A simulation for each chance node, a float per node, and one comparison where nodes choose. A model whose
`Step.chance` is None is searched by a program without all this. `layout=COMPACT` keeps 8 bits of a probability.
`max_depth` counts outcomes as edges, a principal variation lists them as actions.

**The root** of a policy is a decision: an action, noise and halving make no sense for dice. `plant` and `search`
without noise at the root accept a chance node there, too: the visits of `summary` then follow the probabilities.
"""

from jaxtyping import Array, Float

from jaxzero.search.qvalues import prior_weights
from jaxzero.types import EdgeView

__all__ = ["by_probability"]


def by_probability(view: EdgeView) -> Float[Array, "... W"]:
    """p / (N + ½) for probabilities p up to a factor: the scores of outcomes.

    Of the unvisited outcomes the most probable comes first, so any rule's `by_prior` stays true. The rule's prior is
    read as probabilities, or as logits where none is positive: what the rules here store.
    """
    visits = view.visits if view.in_flight is None else view.visits + view.in_flight
    return prior_weights(view) / (visits.astype(view.prior.dtype) + 0.5)
