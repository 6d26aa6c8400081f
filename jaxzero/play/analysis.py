"""Analysis of a position for people: the visited moves, best first, and the expected play."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from jaxzero.options.slot_actions import Slots, action_of, parts_of
from jaxzero.root.summary import principal_variation, summary
from jaxzero.search.edge_view import by_action, edge_view, linked
from jaxzero.search.qvalues import prior_weights
from jaxzero.search.tree import Tree

__all__ = [
    "LINE", "Candidate", "Known", "Report", "hopeless", "known", "prior_probabilities", "reported", "spread",
]  # fmt: skip

LINE = 12  # plies of the expected play
ENOUGH = 100  # visits before a position is given up
SHARED = 4  # for a hint, one simulation in this many is spread evenly over the legal moves
TIMED = 4  # visits of each legal move for a hint, where only the time is limited


class Candidate(NamedTuple):
    """What the search thinks of one move.

    Attributes:
        action: the move.
        visits: simulations through it.
        value: mean return for the player to move, between −1 and 1.
        prior: the model's prior; 0 where the rule uses no prior.
        line: the play that is expected, this move first, as far as the players decide: up to a roll of dice.
    """

    action: int
    visits: int
    value: float
    prior: float
    line: tuple[int, ...]


class Report(NamedTuple):
    """What is known of the position.

    Attributes:
        visits: of the root: simulations, those kept from earlier moves among them.
        value: of the position for the player to move, between −1 and 1.
        candidates: the moves that were visited, the best first.
    """

    visits: int
    value: float
    candidates: tuple[Candidate, ...]


class Known(NamedTuple):
    """The arrays that a report is made of.

    Attributes:
        visits: of the root's edges.
        values: likewise, for the player to move.
        value: of the root.
        prior: probabilities; 0 where the rule uses no prior.
        best: the edge that the principal variation begins with; −1: there is none.
        line: the actions of the principal variation; −1 after the last.
        actions: of the root's edges; in a tree over slots they differ from the edges' numbers.
    """

    visits: Int[Array, "B W"]
    values: Float[Array, "B W"]
    value: Float[Array, "B"]
    prior: Float[Array, "B W"]
    best: Int[Array, "B"]
    line: Int[Array, "B L"]
    actions: Int[Array, "B W"]


def known(tree: Tree) -> Known:
    """The arrays for a report of each game, from a tree whose actions are numbers, with one value per node."""
    found, slots = summary(tree), parts_of(tree.state, Slots)
    line = _until_chance(tree, principal_variation(tree, LINE))
    prior = prior_probabilities(tree, edge_view(tree))
    kind = tree.prior_kind
    asked = kind is None or kind.probabilities is not False or kind.mass  # UCB1 stores logits but never uses them
    actions = slots[0].action[:, 0] if slots else jnp.broadcast_to(jnp.arange(prior.shape[-1]), prior.shape)
    return Known(
        visits=found.visits,
        values=found.qvalues,
        value=found.value,
        prior=jnp.where(jnp.isfinite(prior) & asked, prior, 0),
        best=line[:, 0],
        line=action_of(tree, line) if slots else line,
        actions=actions.astype(jnp.int32),
    )


def _until_chance(tree: Tree, line: Int[Array, "B L"]) -> Int[Array, "B L"]:
    """The line, cut where chance moves: the slots of its outcomes are no actions."""
    if edge_view(tree).chance is None:
        return line

    def step(carry: tuple[Array, Array], action: Array) -> tuple[tuple[Array, Array], Array]:
        node, going = carry
        going = going & (action >= 0) & ~edge_view(tree, node).chance
        below = jnp.take_along_axis(by_action(tree, node), jnp.maximum(action, 0)[:, None], 1)[:, 0]
        return (linked(tree, jnp.maximum(below, 0)), going), jnp.where(going, action, -1)

    start = jnp.zeros_like(tree.size), jnp.ones(tree.size.shape, jnp.bool_)
    return jax.lax.scan(step, start, line.T)[1].T


def reported(found: Known, game: int = 0, most: int = 1_000) -> Report:
    """The report of one game, of its best moves.

    Args:
        found: the arrays, those of `known` brought to the host.
        game: which.
        most: how many moves.
    """
    each = found.visits, found.values, found.prior, found.actions
    visits, values, prior, actions = (np.asarray(x[game]) for x in each)
    best, line = int(found.best[game]), tuple(int(a) for a in found.line[game] if a >= 0)
    order = sorted(np.flatnonzero(visits).tolist(), key=lambda a: (a != best, -visits[a], -values[a]))
    candidates = tuple(
        Candidate(move, int(visits[a]), float(values[a]), float(prior[a]), line if a == best else (move,))
        for a, move in ((a, int(actions[a])) for a in order[:most])
    )
    return Report(int(visits.sum()), float(found.value[game]), candidates)


def spread(simulations: int | None, legal: int) -> tuple[int | None, int]:
    """How many simulations a hint takes, and the least number of them that each legal move gets.

    >>> spread(400, 7), spread(20, 9), spread(50, 121), spread(None, 82)
    ((400, 14), (20, 1), (121, 1), (None, 4))
    """
    if simulations is None:
        return None, TIMED
    return max(simulations, legal), max(1, simulations // (SHARED * max(legal, 1)))


def hopeless(report: Report, resign: float) -> bool:
    """Whether enough is known, and the best move's win rate is below `resign`.

    >>> lost = Candidate(action=3, visits=200, value=-0.98, prior=0.5, line=(3,))
    >>> hopeless(Report(200, -0.98, (lost,)), 0.05), hopeless(Report(50, -0.98, (lost,)), 0.05)
    (True, False)
    """
    best = report.candidates[:1]
    return bool(best) and report.visits >= ENOUGH and (best[0].value + 1) / 2 < resign


def prior_probabilities(tree: Tree, view: Any) -> Float[Array, "... W"]:
    """The prior of a view as probabilities. Some rules store probabilities, others logits, a few something else.

    NaN in a row that holds recognisably neither; −inf where illegal.
    """
    legal = ~jnp.isneginf(view.prior)
    weights = jnp.where(legal, prior_weights(view), 0)
    total = jnp.sum(weights, -1, keepdims=True)
    kind = None if tree.prior_kind is None else tree.prior_kind.probabilities
    found = weights if kind else weights / jnp.where(total > 0, total, 1)
    if kind is None:
        found = jnp.where(jnp.abs(total - 1) < 0.05, found, jnp.nan)
    return jnp.where(legal, found, -jnp.inf)
