"""Chance nodes: visits are shared out by the probabilities of the outcomes.

A model says so with `Step.chance`: True where chance moves next. The node's logits are then the log-probabilities of
its C outcomes, in the first C of the W = max(A, C) edge slots that both kinds of nodes have, −inf in the others; the
embedding must tell `model.step` which kind it was asked to go on from. `jaxzero.models.chance` makes such models of
games. Every policy searches them, by its own rule where a player moves. The slots from A on are illegal actions there:
the others keep their numbers, and `action_weights` [B, W] are 0 beyond.

**How the visits are shared out.** The next one goes to the outcome with the highest p / (N + ½), Webster's method of
apportionment (Balinski and Young 1982, *Fair Representation*; mctx's stochastic MuZero has p / (N + 1), Jefferson's).
It is deterministic, and the counts follow the probabilities closer than draws would: after n visits to C outcomes

    ½ Σ |N − p n| ≤ C/2,   so the mean over the visits is within (max v − min v) · C / (2 n) of the expectation,

which is O(1/n) where draws have O(1/√n). (Proof: with t the score of the last visit, no outcome scores higher now
nor scored lower when last visited, so |N − p/t| ≤ ½ for each. If 1/t ≥ n, none is behind p n by more than ½, hence all
together by at most C/2; else none is ahead by more. What some are ahead others are behind. Jefferson's bound is twice
this.)

**What a chance node is worth** is the mean of its visits, its own evaluation one of them, as everywhere. The exact
expectation over its outcomes is not backed up in its stead: it is known only once all were visited, by then the
difference is O(1/n), and a mean of returns is what the rest of the search relies on. With fewer visits than outcomes
the mean can lead astray: `jaxzero.options.expected_outcomes` mixes in what the model said for those not visited yet.

**What it costs.** A simulation for each chance node, a float per node, and one comparison where nodes choose. A
model that never says `chance` is searched by a program without all this. `layout=COMPACT` keeps 8 bits of a
probability. `max_depth` counts outcomes as edges, a principal variation lists them as actions.

**The root** of a policy is a decision: its action, noise and halving mean nothing to dice. `plant` and `search`
without noise at the root take a chance node there, too: the visits of `summary` then follow the probabilities.
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
