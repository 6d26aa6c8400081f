"""Whole trees equal the reference's where first-play urgency and the root's own rule come in: see `test_oracle`.

The rules here differ at the root: in first-play urgency, or by forced playouts, with noise and without.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from tests import reference as ref
from tests import worlds
from tests.search.test_oracle import CLOSE, Pair, assert_same, chosen


def puct(c: float, ours, theirs) -> Pair:
    return Pair(jz.puct(c, jz.search.raw(ours)), ref.puct(c, ref.raw(theirs)))


LOSS = puct(1.0, -1.0, -1.0)
PARENT = puct(1.1, jz.search.parent_value, ref.parent_value)
RAW_PARENT = puct(1.25, jz.search.parent_raw_value, ref.parent_raw_value)
REDUCED = puct(1.1, jz.search.reduced_parent(0.2), ref.reduced_parent(0.2))
REDUCED_RAW = puct(
    0.8, jz.search.reduced_parent(0.4, jz.search.parent_raw_value), ref.reduced_parent(0.4, parent=ref.parent_raw_value)
)
MEAN = puct(1.25, jz.search.mean_of_visited(), ref.mean_of_visited())
MEAN_AND_LOSS = puct(1.25, jz.search.mean_of_visited(-1.0), ref.mean_of_visited(-1.0))
MEAN_AND_RAW = puct(
    0.9, jz.search.mean_of_visited(jz.search.parent_raw_value), ref.mean_of_visited(ref.parent_raw_value)
)
MUZERO = Pair(jz.muzero_puct(), ref.muzero_puct())


def forced(pair: Pair, k: float) -> Pair:
    return Pair(jz.forced_playouts(pair.ours, k), ref.forced_playouts(pair.theirs, k))


# Below the root, and at it.
RULES: dict[str, tuple[Pair, Pair]] = {
    "loss": (LOSS, LOSS),
    "parent": (PARENT, PARENT),
    "raw_parent": (RAW_PARENT, RAW_PARENT),
    "reduced": (REDUCED, PARENT),
    "reduced_everywhere": (REDUCED_RAW, REDUCED_RAW),
    "mean": (MEAN, MEAN),
    "mean_and_loss": (MEAN_AND_LOSS, MEAN_AND_RAW),
    "forced": (PARENT, forced(PARENT, 2.0)),
    "forced_reduced": (REDUCED, forced(PARENT, 2.0)),
    "forced_muzero": (MUZERO, forced(MUZERO, 0.7)),
    "forced_much": (REDUCED, forced(MEAN, 30.0)),
}


class Setting(NamedTuple):
    """What is static: one compiled program."""

    noise: bool = True
    all_edges: bool = False
    root_all_edges: bool = False
    searches: tuple[int, ...] = (24,)
    max_depth: int | None = None
    capacity: int | None = None
    num_players: int = 2
    num_actions: int = 4
    games: int = 64


@functools.cache
def program(setting: Setting) -> Callable:
    """`(world, number of the rules, root prior) -> what is compared`, compiled at the first call."""
    total = sum(setting.searches)

    def switched(which: jax.Array, pairs: list[Pair], by_prior: bool) -> jz.Rule:
        assert all(pair.ours.by_prior and pair.ours.mass is None for pair in pairs)
        return pairs[0].ours._replace(score=chosen(which, [pair.ours.score for pair in pairs]), by_prior=by_prior)

    @jax.jit
    def run(world: worlds.World, which: jax.Array, drawn: jax.Array) -> dict[str, jax.Array]:
        rule = switched(which, [below for below, _ in RULES.values()], not setting.all_edges)
        root_rule = switched(which, [at for _, at in RULES.values()], not (setting.all_edges or setting.root_all_edges))
        keys = jax.random.split(jax.random.key(0), setting.games)
        root = worlds.model.root(world, keys, jnp.zeros(setting.games, jnp.int32))
        tree = jz.search.plant(*root, rule, setting.capacity or total + 1)
        if setting.noise:
            prior = jnp.where(jnp.isneginf(tree.prior[:, 0]), -jnp.inf, drawn)
            tree = tree.replace(root=tree.root.replace(prior=prior))
            root_rule = jz.search.with_root_prior(root_rule)
        for count in setting.searches:
            tree = jz.search.search(
                world, keys, tree, worlds.model, rule, count, root_rule=root_rule, max_depth=setting.max_depth
            )
        return dict(
            tree=tree,
            visits=tree.visits,
            value=tree.value,
            overflows=tree.overflows,
            variation=jz.principal_variation(tree, total),
        )

    return run


def compare(setting: Setting, name: str, first_seed: int) -> int:
    """Runs a batch of cases both ways; answers how many proved something."""
    seeds = range(first_seed, first_seed + setting.games)
    kinds = [list(worlds.KINDS)[seed % len(worlds.KINDS)] for seed in seeds]
    world = worlds.make(
        seeds, kinds, num_actions=setting.num_actions, num_players=setting.num_players, dtype=np.float64
    )
    rng = np.random.default_rng(first_seed)
    drawn = rng.dirichlet(np.full(setting.num_actions, 0.3), setting.games).round(6)
    found = program(setting)(world, list(RULES).index(name), drawn)
    found = jax.device_get(found) | dict(children=worlds.children(found["tree"]))
    below, at, compared = *RULES[name], 0
    for game in range(setting.games):
        root = ref.search(
            worlds.pick(world, game),
            0,
            below.theirs,
            at.theirs,
            sum(setting.searches),
            max_depth=setting.max_depth,
            capacity=setting.capacity,
            root_prior=drawn[game].tolist() if setting.noise else None,
        )
        if ref.margin(root) > CLOSE:
            compared += 1
            assert_same(found, game, root, f"{setting}, {name}, seed {seeds[game]} ({kinds[game]})")
    return compared


@pytest.fixture(autouse=True)
def float64():
    with worlds.x64():
        yield


def check(setting: Setting, names: list[str], first_seed: int) -> None:
    compared = sum(compare(setting, name, first_seed + i * setting.games) for i, name in enumerate(names))
    cases = len(names) * setting.games
    assert compared >= 0.9 * cases, f"{compared} of {cases} cases proved something"


@pytest.mark.slow
def test_whole_trees():
    check(Setting(), list(RULES), 0)


def test_the_rules_here_search_other_trees_than_the_plain_ones():
    """That the comparison could fail: each rule's trees differ from those of PUCT with 0 for what nobody tried."""
    world = worlds.make(range(64), "continuous", dtype=np.float64)
    drawn = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 64).round(6)
    plain = [
        ref.search(worlds.pick(world, g), 0, ref.puct(1.1), None, 24, root_prior=drawn[g].tolist()) for g in range(64)
    ]
    for name in RULES:
        found = np.asarray(program(Setting())(world, list(RULES).index(name), drawn)["visits"])
        same = [sorted(found[g][found[g] > 0]) == sorted(ref.visits_by_path(plain[g]).values()) for g in range(64)]
        assert np.mean(same) < 0.6, name


SLOW = {
    "plain": Setting(noise=False, searches=(30,)),
    "all_edges": Setting(all_edges=True),
    "root_sees_all": Setting(root_all_edges=True, searches=(7, 1, 16)),
    "full": Setting(capacity=9, searches=(5, 15), max_depth=4),
    "all_edges_full": Setting(all_edges=True, capacity=9, searches=(5, 15), max_depth=4, num_players=3),
    "three_players": Setting(num_players=3, noise=False),
    "wide": Setting(num_actions=36, searches=(45,), games=12),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=pytest.mark.exhaustive if x in ("plain", "full", "three_players") else ()) for x in SLOW],
)
def test_whole_trees_in_every_setting(name):
    """(6 · 64 + 12) games · 11 rules = 4,356 cases."""
    check(SLOW[name], list(RULES), 20_000 + 1_000 * list(SLOW).index(name))
