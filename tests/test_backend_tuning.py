"""Programs laid out for other machines find the same trees, node for node."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.backend_tuning import ACCELERATOR, CPU, Machine, laid_out_for, machine
from tests import option_combinations, worlds

KINDS = ["continuous", "terminal", "narrow", "stuck", "forced", "ties", "levels", "solo"]
#: As on an accelerator, with the limits so low that every way is taken with few games and few edges, too.
EVERY_WAY = ACCELERATOR._replace(sure_games=1, levels=3, levels_of_few=2)
SWITCHED = ACCELERATOR._replace(sure_edges=0, levels=2)
SLOW, REST = pytest.mark.slow, (pytest.mark.slow, pytest.mark.exhaustive)


def grown(build: Any, world: worlds.World, here: Machine, batch: int) -> jz.PolicyOutput:
    """What a policy, made anew for this machine, answers."""
    keys = jax.random.split(jax.random.key(5), batch)
    with laid_out_for(here):
        return jax.device_get(jax.jit(build())(world, keys, jnp.zeros(batch, jnp.int32)))


def assert_same(one: jz.PolicyOutput, other: jz.PolicyOutput) -> None:
    """Equal numbers of visits everywhere, the same children, the same choices; means up to the order of sums."""
    np.testing.assert_array_equal(one.tree.visits, other.tree.visits)
    np.testing.assert_array_equal(one.tree.size, other.tree.size)
    np.testing.assert_array_equal(one.info.status, other.info.status)
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.tree.overflows, other.tree.overflows)
    np.testing.assert_array_equal(worlds.children(one.tree), worlds.children(other.tree))
    used = np.asarray(one.tree.visits) > 0
    np.testing.assert_array_equal(one.tree.best_child[:, :-1][used], other.tree.best_child[:, :-1][used])
    for name in ("stats", "facts", "prior"):
        a, b = (np.asarray(as_numbers(getattr(out.tree, name)))[:, :-1][used] for out in (one, other))
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def as_numbers(x: np.ndarray) -> np.ndarray:
    """Priors as they are read, where their bits are stored."""
    return np.asarray(x).view(jnp.bfloat16).astype(np.float32) if x.dtype == np.uint16 else np.asarray(x)


def test_which_machine_it_is():
    assert machine() == (CPU if jax.default_backend() == "cpu" else ACCELERATOR)
    with laid_out_for(SWITCHED):
        assert machine() == SWITCHED
        with pytest.raises(KeyError), laid_out_for(CPU):
            raise KeyError
        assert machine() == SWITCHED
    assert machine() != SWITCHED


POLICIES = {
    "puct": lambda: jz.alphazero(worlds.model, 40),
    "gumbel": lambda: jz.gumbel(worlds.model, 40),
    "ucb1": lambda: jz.uct(worlds.model, 40, capacity=30),  # asks all edges, and is full in the end
    "shallow": lambda: jz.alphazero(worlds.model, 40, max_depth=3),
    "proofs": lambda: jz.alphazero(worlds.model, 40, rule=jz.avoid_proven(jz.puct())),
    "lanes": lambda: jz.alphazero(worlds.model, 40, simulate=jz.parallel(4)),
    "free walks": lambda: jz.alphazero(worlds.model, 40, simulate=jz.parallel(4, free_walks=2)),
    "graph": lambda: jz.alphazero(worlds.model, 40, simulate=jz.transpositions()),
    "decided": lambda: jz.alphazero(worlds.model, 40, stop=jz.decided, act=jz.most_visited),
}


MACHINES = {"accelerator": ACCELERATOR, "every way": EVERY_WAY, "switched": SWITCHED}
FAST = {("puct", 8, "every way"), ("puct", 8, "switched")}
OFTEN = {(name, 8, "every way") for name in POLICIES} | {
    ("puct", 1, "accelerator"), ("lanes", 1, "accelerator"), ("gumbel", 72, "accelerator"), ("ucb1", 8, "switched"),
}  # fmt: skip


def cases() -> Iterator[Any]:
    """All policies, with several numbers of games, on all machines."""
    for case in itertools.product(POLICIES, (1, 8, 72), MACHINES):
        yield pytest.param(*case, marks=() if case in FAST else SLOW if case in OFTEN else REST)


@pytest.mark.parametrize("name, batch, here", list(cases()))
def test_the_same_trees(name, batch, here):
    kinds = [KINDS[i % len(KINDS)] for i in range(batch)]
    world = worlds.make(range(batch), kinds, num_actions=20)
    plain = grown(POLICIES[name], world, CPU, batch)
    assert np.asarray(plain.tree.visits)[:, 0].max() > 20
    assert_same(grown(POLICIES[name], world, MACHINES[here], batch), plain)


@pytest.mark.parametrize(
    "number",
    [pytest.param(i, marks=REST if i % 12 else SLOW) for i in range(0, len(option_combinations.covering()), 4)],
)
def test_the_same_trees_with_options(number):
    given = dict(option_combinations.covering()[number])
    chance, players = given["chance"] == "some", 3 if given["players"] == "three" else 2
    world = worlds.make(range(8), KINDS, num_actions=option_combinations.ACTIONS, num_players=players)
    world = worlds.with_chance(world, 1, 0.3) if chance else world

    def build() -> Any:
        return option_combinations.policy_of(given, worlds.model)

    assert_same(grown(build, world, EVERY_WAY, 8), grown(build, world, CPU, 8))


@SLOW
def test_nothing_is_asked_without_need():
    """A CPU asks the model of no finished game, an accelerator with many games does not look."""
    asked = []

    def step(*args: Any) -> Any:
        jax.debug.callback(lambda: asked.append(1))
        return worlds.model.step(*args)

    world = worlds.make(range(4), "terminal", num_actions=3)._replace(terminal=np.ones((4, 16), bool))
    model = worlds.model._replace(step=step)
    for here, times in ((CPU, 0), (ACCELERATOR, 0), (ACCELERATOR._replace(sure_games=4), 9)):
        asked.clear()
        out = grown(lambda: jz.alphazero(model, 9), world, here, 4)
        jax.effects_barrier()
        assert len(asked) == times and out.tree.visits[:, 1:].max() == 0
    assert math.isinf(CPU.sure_games)
