"""Options of the search beside `plain_search`: every visit of every tree, and the values.

A tree may differ only where two scores of some choice are nearer than float32 tells (`NEAR`). That is rare, and
counted.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jaxzero as jz
from tests.independent import plain_search as plain

GAMES, SIMULATIONS, ACTIONS, NEAR = 64, 48, 5, 2e-5
QUIET = dict(dirichlet_fraction=0.0, act=jz.most_visited)
SEEDS = [seed if seed == 0 else pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(8)]


@functools.cache
def games(seed: int) -> list[plain.World]:
    return [plain.world(1000 * seed + i) for i in range(GAMES)]


def tables(worlds: list[plain.World]) -> plain.World:
    """All games as one: state s of game g is g · M + s."""
    states = len(worlds[0].terminal)
    moved = [w._replace(successor=w.successor + i * states) for i, w in enumerate(worlds)]
    return plain.World(*(np.concatenate(x) for x in zip(*moved)))


def told(table: plain.World, state: Any, reward: Any, over: Any) -> jz.Step:
    return jz.Step(
        prior_logits=jnp.asarray(table.logits)[state],
        value=jnp.asarray(table.value)[state],
        reward=reward,
        discount=jnp.where(over, 0.0, 1.0),
        legal=jnp.asarray(table.legal)[state],
        terminal=over,
        to_play=jnp.asarray(table.player)[state],
    )


def root_of(table: plain.World, keys: Any, state: Any) -> Any:
    del keys
    return told(table, state, jnp.zeros(len(state)), jnp.asarray(table.terminal)[state]), state


def step_of(table: plain.World, keys: Any, action: Any, state: Any) -> Any:
    del keys
    below = jnp.asarray(table.successor)[state, action]
    return told(table, below, jnp.asarray(table.reward)[state, action], jnp.asarray(table.terminal)[below]), below


MODEL = jz.Model(root_of, step_of)
START = np.arange(GAMES, dtype=np.int32) * 81
KEYS = jax.random.split(jax.random.key(0), GAMES)


@functools.cache
def compiled(name: str) -> Any:
    return jax.jit(POLICIES[name]())


def library(name: str, seed: int) -> Any:
    return compiled(name)(tables(games(seed)), KEYS, START)


def compare(out: Any, game: int, root: plain.Node, margin: plain.Margin, tree: bool = True) -> bool:
    """Whether a tree is that of the reference; False: it differs, where rounding decides."""
    ours = np.asarray(out.info.summary.visits)[game]
    theirs = np.array([root.edge(a)[0] if a in root.legal else 0 for a in range(ACTIONS)])
    same = (ours == theirs).all()
    if same and tree:
        visits = np.asarray(out.tree.visits)[game]
        same = sorted(visits[visits > 0].tolist()) == plain.visits_below(root)
    if not same:
        assert margin.least < NEAR, (game, ours, theirs, margin.least)
        return False
    value = root.v if isinstance(root, plain.Position) else root.mean
    np.testing.assert_allclose(np.asarray(out.value)[game], value, atol=1e-4)
    return True


LANES = {"visits": jz.options.virtual_visits, "mean": jz.options.virtual_mean, "loss": jz.options.virtual_loss}
bfloat16 = lambda x: float(ml_dtypes.bfloat16(np.float32(x)))


def slots(width: int) -> Any:
    return jz.options.with_legal_slots(lambda model: jz.alphazero(model, SIMULATIONS, **QUIET), MODEL, width)


def lanes(k: int, virtual: str) -> Any:
    return jz.alphazero(MODEL, SIMULATIONS, simulate=jz.parallel(k, LANES[virtual]()), **QUIET)


def rounds(considered: int) -> Any:
    how = dict(max_considered=considered, gumbel_scale=0.0, rounds=jz.options.virtual_mean())
    return jz.gumbel(MODEL, 32, **how)


# Each option as the library has it, and how the reference is called.
CASES = {
    "plain": (lambda: jz.alphazero(MODEL, SIMULATIONS, **QUIET), {}),
    "compact": (lambda: jz.alphazero(MODEL, SIMULATIONS, layout=jz.COMPACT, **QUIET), dict(rounded=bfloat16)),
    "decided": (lambda: jz.alphazero(MODEL, SIMULATIONS, stop=jz.decided, **QUIET), dict(decided=True)),
    "slots": (lambda: slots(ACTIONS), {}),
    "few slots": (lambda: slots(2), dict(keep=2)),
    **{
        f"{k} lanes, virtual {virtual}": (functools.partial(lanes, k, virtual), dict(lanes=k, virtual=virtual))
        for k, virtual in ((2, "visits"), (4, "mean"), (4, "loss"), (8, "visits"), (8, "mean"), (3, "loss"))
    },
}
POLICIES = {name: build for name, (build, _) in CASES.items()}
POLICIES |= {
    "rounds of 4": lambda: rounds(4),
    "rounds of 5": lambda: rounds(5),
    "graph": lambda: jz.alphazero(MODEL, SIMULATIONS, simulate=jz.transpositions(), **QUIET),
    "kept": lambda: jz.options.with_evaluations_kept(lambda model: jz.alphazero(model, SIMULATIONS, **QUIET), MODEL),
}
IN_INTEGRATION = ("4 lanes, virtual loss", "few slots", "decided")


def params(names: Any) -> list:
    return [name if name in IN_INTEGRATION else pytest.param(name, marks=pytest.mark.exhaustive) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", params(CASES))
def test_trees(name, seed):
    out, (_, how) = library(name, seed), CASES[name]
    same = 0
    for game, world in enumerate(games(seed)):
        root, margin, made = plain.search(world, 0, SIMULATIONS, **how)
        same += compare(out, game, root, margin)
        if margin.least > NEAR:
            assert np.asarray(out.tree.root.simulations)[game] == made
    print(f"{name}: {same} of {GAMES} the same")
    assert same >= 0.9 * GAMES


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("considered", [4, pytest.param(5, marks=pytest.mark.exhaustive)])
def test_rounds(considered, seed):
    out, same = library(f"rounds of {considered}", seed), 0
    for game, world in enumerate(games(seed)):
        same += compare(out, game, *plain.search_in_rounds(world, 0, 32, considered))
    print(f"rounds of {considered}: {same} of {GAMES} the same")
    assert same >= 0.9 * GAMES


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_graphs(seed):
    out, same = library("graph", seed), 0
    positions = np.asarray(jz.options.num_positions(out.tree))
    for game, world in enumerate(games(seed)):
        root, margin, known = plain.search_graph(world, 0, SIMULATIONS)
        here = compare(out, game, root, margin, tree=False)
        same += here
        assert not here or margin.least < NEAR or positions[game] == len(known)
    print(f"graph: {same} of {GAMES} the same")
    assert same >= 0.9 * GAMES


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(8))
def test_kept_evaluations(seed):
    """After a move the search with evaluations kept is that of the reference, begun anew at the next position."""
    first, table, same = library("kept", seed), tables(games(seed)), 0
    state = table.successor[START, np.asarray(first.action)]
    out = jax.jit(POLICIES["kept"]())(table, KEYS, state, jz.advance(first.tree, first.action))
    for game, world in enumerate(games(seed)):
        here = int(state[game]) - START[game]
        if not world.terminal[here]:
            root, margin, _ = plain.search(world, here, SIMULATIONS)
            same += compare(out, game, root, margin)
        else:
            same += 1
    print(f"kept: {same} of {GAMES} the same")
    assert same >= 0.9 * GAMES
