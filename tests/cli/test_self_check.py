"""The canary: its numbers are those of a slow and plain search, and no choice in it is close."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.cli import self_check
from tests import reference as ref
from tests import worlds

GAP = 6e-4  # of scores: what the docstring of jaxzero/cli/self_check.py promises
NO_DRAWS = [0.0] * self_check.ACTIONS


class Plain(NamedTuple):
    """A part of the canary as the reference searches it."""

    rule: ref.Rule
    root_rule: ref.Rule | None = None
    lanes: int = 0


PLAIN = {
    "PUCT, with its tree reused": Plain(ref.puct()),
    "UCB1": Plain(ref.ucb1()),
    "Gumbel": Plain(ref.gumbel_interior(), ref.gumbel_root(NO_DRAWS, self_check.SIMULATIONS, 4)),
    "PUCT, 4 leaves at a time": Plain(ref.puct(), lanes=4),
}


@functools.cache
def table() -> worlds.World:
    """The world as the reference reads it: everything of every state, in float64."""
    states = jnp.arange(self_check.STATES, dtype=jnp.int32)
    step = jax.device_get(jax.jit(self_check.described)(states))
    ways = [self_check.following(states, jnp.full_like(states, action)) for action in range(self_check.ACTIONS)]
    below = np.stack(ways, 1)
    exact = lambda x: np.asarray(x, np.float64)
    return worlds.World(
        logits=exact(step.prior_logits),
        value=exact(step.value),
        legal=step.legal,
        terminal=step.terminal,
        successor=below,
        reward=exact(step.reward)[below],
        discount=exact(step.discount)[below],
        to_play=step.to_play,
    )


def watched(rule: ref.Rule | None, gaps: list[float]) -> ref.Rule | None:
    """The same rule; by how much the best score is ahead of the next is written down, 0 for a tie."""

    def watching(node: ref.Node, simulation: int) -> ref.Scores:
        scores = rule(node, simulation)
        rated = sorted(scores[action] for action in ref._open_actions(node))
        gaps.extend([rated[-1] - rated[-2]] if len(rated) > 1 else [])
        return scores

    return None if rule is None else watching


def most_visited(root: ref.Node, gaps: list[float]) -> int:
    """The action that `jz.most_visited` takes."""
    visits, q = ref.visits(root), ref.qvalues(root)
    first = sorted((a for a in root.children if visits[a] == max(visits)), key=lambda a: q[a])
    gaps.extend([q[first[-1]] - q[first[-2]]] if len(first) > 1 else [])
    return first[-1]


def searched(part: Plain, state: int, moves: int, gaps: list[float]) -> list[dict[tuple[int, ...], int]]:
    """The visits of all nodes after each move."""
    rule, root_rule, world = watched(part.rule, gaps), watched(part.root_rule, gaps), table()
    if part.lanes:
        how = self_check.SIMULATIONS, part.lanes, ref.virtual_mean()
        return [ref.visits_by_path(ref.search_in_lanes(world, state, rule, root_rule, *how))]
    root = ref.search(world, state, rule, root_rule, self_check.SIMULATIONS)
    found = [ref.visits_by_path(root)]
    for _ in range(moves):
        action = most_visited(root, gaps)
        state, root = int(world.successor[state, action]), root.children[action]
        root = ref.search(world, state, rule, root_rule, self_check.SIMULATIONS, root=root)
        found.append(ref.visits_by_path(root))
    return found


@pytest.mark.parametrize("name", [pytest.param(x, marks=[pytest.mark.slow] * (x != "UCB1")) for x in PLAIN])
def test_a_plain_search_comes_to_the_recorded_visits_and_no_choice_is_close(name):
    part, gaps = self_check.searches(self_check.world())[name], []
    outs = jax.device_get(self_check.program(part)())
    counts = np.stack([self_check.counts(out) for out in outs]).reshape(
        len(outs), self_check.COPIES, len(self_check.ROOTS), -1
    )
    assert self_check.fold(counts[:, 0]) == self_check.RECORDED[name]
    assert self_check.faults(counts, np.stack([out.info.status for out in outs])) == ""
    plain = [searched(PLAIN[name], state, part.moves, gaps) for state in self_check.ROOTS]
    for move, out in enumerate(outs):
        children = worlds.children(out.tree)
        for game, expected in enumerate(plain):
            paths = worlds.paths(children[game])
            assert {path: out.tree.visits[game, node] for node, path in paths.items()} == expected[move]
    assert min(gaps) > GAP and len(gaps) > 1000


def test_the_signature_is_folded_of_the_parts():
    assert self_check.fold(list(self_check.RECORDED.values())) == self_check.SIGNATURE
    assert list(self_check.searches(self_check.world())) == list(self_check.RECORDED) == list(PLAIN)
    assert self_check.fold([1, 2]) != self_check.fold([2, 1])


@pytest.mark.slow
def test_in_64_bit_mode_the_visits_are_the_same():
    with worlds.x64():
        (found,) = self_check.canary({"UCB1": self_check.searches(self_check.world())["UCB1"]})
        assert self_check.world().root((), None, jnp.zeros(1, jnp.int32))[0].value.dtype == jnp.float64
    assert found.signature == self_check.RECORDED["UCB1"] and not found.wrong


def test_copies_that_differ_and_a_status_are_faults():
    counts, status = np.zeros((1, 2, 3, 4), int), np.zeros((1, 6), int)
    assert self_check.faults(counts, status) == ""
    other = counts.copy()
    other[0, 1, 2, 3] = 1
    assert self_check.faults(other, status) == "equal games have different visits"
    assert self_check.faults(counts, status + jz.Status.FULL.value) == "info.status is 1 instead of 0"
