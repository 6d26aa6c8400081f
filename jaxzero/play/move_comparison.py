"""Moves beside one another, for hints: what the search hardly looked at is searched on its own.

A search for strength looks where it expects the best play: with a network that is sure of itself all visits go to one
move, and a hint would have nothing to compare it with.
"""

import jax
import numpy as np

from jaxzero.play.analysis import Candidate, Report
from jaxzero.play.engine import Engine

__all__ = ["compared", "own_simulations"]

SHARE, LEAST, MOST = 10, 8, 400  # of the visits a move is given one in so many, within these bounds


def own_simulations(report: Report) -> int:
    """How many simulations a move is searched with on its own.

    >>> [own_simulations(Report(visits, 0.0, ())) for visits in (30, 400, 100_000)]
    [8, 40, 400]
    """
    return min(max(report.visits // SHARE, LEAST), MOST)


def compared(thinker: Engine, most: int = 5) -> Report:
    """What the search thinks of its best moves, and of others until there are `most` of them, or all that are legal.

    A move with fewer visits than `own_simulations` is made, and the position after it searched: its value is that
    search's, and so is its line; its visits stay those of the search before. Others come in the order of the prior. The
    engine is left as it was, and nothing is compiled. Moves come best first, after the engine's choice by value.

    Args:
        thinker: it has thought about its position, of a game of two without listed chance.
        most: how many moves to compare, at least; those with enough visits are all told.
    """
    report, tree = thinker.report(), thinker.tree()
    if tree is None or not report.candidates:
        return report
    found = jax.device_get(thinker.programs.known(tree))
    prior = dict(zip(found.actions[0].tolist(), found.prior[0].tolist()))
    visited = {one.action: one for one in report.candidates}
    others = sorted(
        (int(a) for a in np.flatnonzero(thinker.legal()) if a not in visited), key=lambda a: -prior.get(a, 0.0)
    )
    few = own_simulations(report)
    moves = list(visited.values()) + [Candidate(a, 0, 0.0, prior.get(a, 0.0), (a,)) for a in others]
    best, *rest = [one for i, one in enumerate(moves) if i < most or one.visits >= few]
    other = thinker.another()
    rest = [one if one.visits >= few else _searched(thinker, other, one, few) for one in rest]
    return report._replace(candidates=(best, *sorted(rest, key=lambda one: -one.value)))


def _searched(thinker: Engine, other: Engine, move: Candidate, simulations: int) -> Candidate:
    """The move with the value, for who makes it, of a search of the position after it."""
    mover = thinker.to_move()
    other.go_to([*thinker.moves, move.action], [*thinker.movers, mover])
    paid = other.paid()[mover] - thinker.paid()[mover]
    if other.over():
        return move._replace(value=paid, line=(move.action,))
    other.think(simulations)
    after = other.report(1)
    value = after.value if other.to_move() == mover else -after.value
    return move._replace(value=paid + value, line=(move.action, *after.candidates[0].line))
