"""The batched search is the reference's search: whole trees, node by node, over every rule and every kind of world.

Everything that varies from case to case is data, the rule included, so a setting compiles once. In float64, so that
no choice hangs on float noise; where two scores come closer than that noise all the same, the case proves nothing and
is left out (`margin`), and few are.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root.gumbel import improved_policy, last_action
from jaxzero.search.search import replant
from tests import reference as ref
from tests import worlds

BATCH = 64
CLOSE = 1e-9
RETURNS = -1.0, 1.0  # in the worlds here there is more, which is as good for comparing
CONSIDERED = 4  # actions that Gumbel search begins with


class Pair(NamedTuple):
    """The same thing twice: ours and the reference's."""

    ours: Callable
    theirs: Callable


PRIOR = {
    "puct": Pair(jz.puct(), ref.puct()),
    "puct_first_play": Pair(jz.puct(0.7, jz.search.raw(-0.4)), ref.puct(0.7, ref.raw(-0.4))),
    "puct_virtual_zero": Pair(jz.puct(2.0, jz.search.with_virtual_zero()), ref.puct(2.0, ref.virtual_zero())),
    "muzero_siblings": Pair(jz.muzero_puct(), ref.muzero_puct()),
    "muzero_min_max": Pair(
        jz.muzero_puct(1.0, 100.0, jz.search.by_min_max(-2.0, 1.5)), ref.muzero_puct(1.0, 100.0, ref.min_max(-2.0, 1.5))
    ),
    "muzero_mix": Pair(
        jz.muzero_puct(2.0, 30.0, jz.search.completed_by_mix_value(0.05, 5.0)),
        ref.muzero_puct(2.0, 30.0, ref.completed_by_mix_value(0.05, 5.0)),
    ),
    "ucb1": Pair(jz.ucb1(), ref.ucb1()),
    "ucb1_uctk": Pair(jz.search.ucb1_uctk(0.8), ref.ucb1_uctk(0.8)),
}
TRANSFORMS = {
    "gumbel": Pair(jz.search.completed_by_mix_value(), ref.completed_by_mix_value()),
    "gumbel_as_published": Pair(
        jz.search.completed_by_mix_value(1.0, 50.0, False), ref.completed_by_mix_value(1.0, 50.0, False)
    ),
    "gumbel_raw_value": Pair(
        jz.search.completed_by_mix_value(0.3, 5.0, use_mixed_value=False),
        ref.completed_by_mix_value(0.3, 5.0, use_mixed_value=False),
    ),
}
VIRTUAL = {
    "visits": Pair(jz.options.virtual_visits(0.1), ref.virtual_visits(0.1)),
    "mean": Pair(jz.options.virtual_mean(), ref.virtual_mean()),
    "loss": Pair(jz.options.virtual_loss(2), ref.virtual_loss(2)),
}
INTERIOR = {
    name: Pair(jz.root.gumbel_interior(q.ours), ref.gumbel_interior(q.theirs)) for name, q in TRANSFORMS.items()
}


class Setting(NamedTuple):
    """What is static: one compiled program."""

    root: str = "same"  # or "noise", or "gumbel"
    all_edges: bool = False  # show every edge to rules that promise to need the candidates only, too
    searches: tuple[int, ...] = (24,)  # simulations, search after search
    max_depth: int | None = None
    capacity: int | None = None  # None: enough
    num_players: int = 2
    num_actions: int = 4
    signed: bool = False  # signs in the discounts, nobody knows the players
    planned: int | None = None  # what Gumbel's halving is planned for; None: all simulations
    root_all_edges: bool = False  # show every edge to the root's rule only
    games: int = BATCH
    lanes: int = 0  # walks that are evaluated together; 0: sequential search
    virtual: str = "visits"
    solver: bool = False  # values are proven, edges proven worse avoided
    played: bool = False  # between the searches a move is made: the subtree below it is kept
    chance: bool = False  # chance moves in half of the states

    def is_an_option(self) -> bool:
        """Whether it is about one of the options of a search."""
        return bool(self.lanes or self.solver or self.played or self.chance)

    @property
    def rules(self) -> dict[str, Pair]:
        rules = INTERIOR if self.root == "gumbel" else PRIOR
        if not self.solver:
            return rules
        return {
            name: Pair(jz.avoid_proven(rule.ours, *RETURNS), ref.avoid_proven(rule.theirs, RETURNS))
            for name, rule in rules.items()
        }


def chosen(which: jax.Array, functions: list[Callable]) -> Callable:
    """One of the functions; which one is data."""
    return lambda *args: jax.lax.switch(which, functions, *args)


class Moves(NamedTuple):
    """What happens between searches, for `Setting.played`: one entry for each move.

    Attributes:
        action: what is played; anything, illegal actions among it.
        reset: where the game is given up.
        state: the state that follows.
    """

    action: np.ndarray
    reset: np.ndarray
    state: np.ndarray


def with_draws(setting: Setting, tree: jz.Tree, drawn: jax.Array) -> jz.Tree:
    """The tree with noise or Gumbel draws in force at the root."""
    if setting.root == "same":
        return tree
    clean = jz.search.edge_view(tree, jnp.zeros_like(tree.size)).prior
    prior = drawn + clean if setting.root == "gumbel" else jnp.where(jnp.isneginf(clean), -jnp.inf, drawn)
    return tree.replace(root=tree.root.replace(prior=prior))


def moves_of(setting: Setting, world: worlds.World, first_seed: int) -> Moves:
    """Random moves, some resets to state 0."""
    rng, shape = np.random.default_rng(first_seed + 77), (setting.games, len(setting.searches) - 1)
    action, reset = rng.integers(setting.num_actions, size=shape), rng.random(shape) < 0.1
    states, state = [], np.zeros(setting.games, int)
    for i in range(shape[1]):
        after = world.successor[np.arange(setting.games), state, action[:, i]]
        state = np.where(reset[:, i], 0, after)
        states.append(state)
    return Moves(action, reset, np.stack(states, 1).astype(np.int32) if states else np.zeros(shape, np.int32))


@functools.cache
def program(setting: Setting) -> Callable:
    """`(world, number of the rule, root prior or Gumbel draws) -> what is compared`, compiled at the first call."""
    rules, total = [pair.ours for pair in setting.rules.values()], sum(setting.searches)
    transforms = [q.ours for q in TRANSFORMS.values()]

    @jax.jit
    def run(world: worlds.World, which: jax.Array, drawn: jax.Array, moves: Moves) -> dict[str, jax.Array]:
        assert all(rule.by_prior and rule.mass is rules[0].mass for rule in rules)
        prepare, score = (chosen(which, [getattr(rule, name) for rule in rules]) for name in ("prepare", "score"))
        rule = root_rule = jz.Rule(prepare, score, not setting.all_edges, *rules[0][3:])
        keys = jax.random.split(jax.random.key(0), setting.games)
        root = worlds.model.root(world, keys, jnp.zeros(setting.games, jnp.int32))
        tree = jz.search.plant(*root, rule, setting.capacity or total + 1)
        if setting.root == "noise":
            root_rule = jz.search.with_root_prior(rule)
        if setting.root == "gumbel":
            planned = setting.planned or setting.searches[-1] if setting.played else setting.planned or total
            root_rule = jz.root.gumbel_root(planned, min(CONSIDERED, planned), chosen(which, transforms))
            root_rule = jz.avoid_proven(root_rule, *RETURNS) if setting.solver else root_rule
        if setting.root_all_edges:
            root_rule = root_rule._replace(by_prior=False)
        tree = with_draws(setting, tree, drawn)
        for i, count in enumerate(setting.searches):
            if setting.played and i > 0:
                tree = jz.advance(tree, moves.action[:, i - 1], moves.reset[:, i - 1])
                kept = tree.status
                tree = replant(tree, *worlds.model.root(world, keys, moves.state[:, i - 1]), rule)
                tree = with_draws(setting, tree, drawn)
            tree = jz.search.search(
                world,
                keys,
                tree,
                worlds.model,
                rule,
                count,
                root_rule=root_rule,
                max_depth=setting.max_depth,
                simulate=jz.parallel(setting.lanes, VIRTUAL[setting.virtual].ours)
                if setting.lanes
                else jz.search.simulate,
            )
        found = dict(
            tree=tree,
            visits=tree.visits,
            value=tree.value,
            overflows=tree.overflows,
            variation=jz.principal_variation(tree, total),
        )
        if setting.played:
            found |= dict(kept=kept)
        if setting.solver:
            found |= dict(bounds=tree.bounds)
        if setting.root == "gumbel":
            view, q = jz.search.edge_view(tree, jnp.zeros_like(tree.size)), chosen(which, transforms)
            found |= dict(weights=improved_policy(view, q), last=last_action(view, q))
        return found

    return run


def draws(setting: Setting, seeds: range) -> np.ndarray:
    """A root prior with noise (zeros among it), or Gumbel draws (ties among them)."""
    rng, shape = np.random.default_rng(seeds[0]), (setting.games, setting.num_actions)
    if setting.root == "gumbel":
        return np.where(rng.random((setting.games, 1)) < 0.2, 0.0, rng.gumbel(size=shape))
    return rng.dirichlet(np.full(setting.num_actions, 0.3), setting.games).round(6)


def compare(setting: Setting, name: str, first_seed: int) -> int:
    """Runs a batch of cases both ways; answers how many proved something."""
    seeds = range(first_seed, first_seed + setting.games)
    kinds = [list(worlds.KINDS)[seed % len(worlds.KINDS)] for seed in seeds]
    world = worlds.make(
        seeds, kinds, num_actions=setting.num_actions, num_players=setting.num_players, dtype=np.float64
    )
    world, drawn = worlds.signed(world) if setting.signed else world, draws(setting, seeds)
    world = worlds.with_chance(world, first_seed) if setting.chance else world
    moves = moves_of(setting, world, first_seed)
    found = program(setting)(world, list(setting.rules).index(name), drawn, moves)
    found = jax.device_get(found) | dict(children=worlds.children(found["tree"]))
    compared = 0
    for game in range(setting.games):
        mine = Moves(*(x[game].tolist() for x in moves))
        root, brought = by_reference(setting, name, worlds.pick(world, game), drawn[game].tolist(), mine)
        if ref.margin(root) > CLOSE:
            compared += 1
            case = f"{setting}, {name}, seed {seeds[game]} ({kinds[game]})"
            assert_same(found, game, root, case)
            if setting.played:
                lost = root.fresh and not mine.reset[-1]
                assert bool(found["kept"][game] & jz.Status.NOT_IN_TREE) == lost, case
            if setting.root == "gumbel":
                assert_same_answer(found, game, root, drawn[game].tolist(), TRANSFORMS[name].theirs, brought)
    return compared


def by_reference(
    setting: Setting, name: str, world: worlds.World, drawn: list[float], moves: Moves
) -> tuple[ref.Node, list[int] | None]:
    """The root at the end of all searches, and the visits that its actions had before the last."""
    rule, total = setting.rules[name].theirs, sum(setting.searches)
    searches = setting.searches if setting.played else (total,)
    state, root, brought, margin = 0, None, None, math.inf
    returns = RETURNS if setting.solver else None
    for i, count in enumerate(searches):
        if i > 0:
            below = root.children.get(moves.action[i - 1])
            state, root = moves.state[i - 1], None if moves.reset[i - 1] else below
            brought = ref.visits(root) if root else [0] * setting.num_actions
        root_rule = root_prior = None
        if setting.root == "gumbel":
            planned = setting.planned or searches[-1]
            root_rule = ref.gumbel_root(drawn, planned, CONSIDERED, TRANSFORMS[name].theirs, brought)
            root_rule = ref.avoid_proven(root_rule, RETURNS) if setting.solver else root_rule
        if setting.root == "noise":
            root_prior = drawn
        fresh = root is None
        if setting.lanes:
            root = ref.search_in_lanes(
                world,
                state,
                rule,
                root_rule,
                count,
                setting.lanes,
                VIRTUAL[setting.virtual].theirs,
                max_depth=setting.max_depth,
                capacity=setting.capacity,
                root_prior=root_prior,
                returns=returns,
            )
            break
        root = ref.search(
            world,
            state,
            rule,
            root_rule,
            count,
            max_depth=setting.max_depth,
            capacity=setting.capacity,
            root_prior=root_prior,
            root=root or (ref.planted(world, state, returns) if i > 0 else None),
            returns=returns,
        )
        root.fresh, margin = fresh, min(margin, ref.margin(root))
    root.margin, root.closed = min(margin, ref.margin(root)), frozenset()
    return root, brought


def assert_same(found: dict[str, np.ndarray], game: int, root: ref.Node, case: str) -> None:
    where = worlds.paths(found["children"][game])
    assert len(where) == (found["visits"][game] > 0).sum(), f"{case}: a visited node that no path leads to"
    nodes = ref.by_path(root)
    visits = {path: int(found["visits"][game, i]) for i, path in where.items()}
    assert visits == {path: node.visits for path, node in nodes.items()}, case
    for i, path in where.items():
        np.testing.assert_allclose(
            found["value"][game, i], np.reshape(nodes[path].value, -1), rtol=0, atol=1e-9, err_msg=f"{case}, {path}"
        )
        if "bounds" in found:
            proven = nodes[path].lower, nodes[path].upper
            np.testing.assert_allclose(found["bounds"][game, i], proven, rtol=0, atol=1e-12, err_msg=f"{case}, {path}")
    assert found["overflows"][game] == root.overflows, case
    variation = found["variation"][game]
    returns = RETURNS if "bounds" in found else None
    assert ref.is_principal_variation(variation[variation >= 0].tolist(), root, returns, len(variation)), case


def assert_same_answer(
    found: dict, game: int, root: ref.Node, gumbel: list[float], q: ref.Transform, brought: list[int] | None
) -> None:
    legal = [ok and not root.terminal for ok in root.legal]
    if not any(legal):
        assert found["last"][game] == 0 and len(set(found["weights"][game])) == 1
        return
    last, best = found["last"][game], ref.gumbel_action(root, gumbel, q, brought)
    scores = ref.gumbel_scores(root, gumbel, q, brought)
    assert last == best or (legal[last] and abs(scores[last] - scores[best]) < CLOSE)  # a tie but for float noise
    np.testing.assert_allclose(found["weights"][game], ref.improved_policy(root, q), rtol=0, atol=1e-9)


@pytest.fixture(autouse=True)
def float64():
    with worlds.x64():
        yield


FAST = {
    "plain": (Setting(), 8),
    "noise_depth": (Setting("noise", max_depth=3), 4),
    "full_resumed": (Setting(searches=(5, 1, 12), capacity=9, num_players=3, max_depth=5), 3),
    "few": (Setting(games=7, max_depth=7, searches=(20,)), 2),  # ends of walks are visited with the rest; with 9, apart
    "more": (Setting(games=9, num_players=3, searches=(9, 11)), 2),
    "played": (Setting("noise", searches=(20, 7, 9), capacity=17, played=True), 4),
    "solver": (Setting("noise", solver=True, searches=(40,)), 4),
    "lanes": (Setting("noise", lanes=4, searches=(40,), max_depth=9), 3),
    "chance": (Setting(chance=True), 8),
    "gumbel_everything": (Setting("gumbel", True, searches=(9, 11), capacity=13, num_players=3, max_depth=4), 2),
}


LATER = {"full_resumed", "few", "more", "played", "lanes", "chance", "gumbel_everything"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in LATER else []) for n in FAST])
def test_whole_trees(name):
    setting, batches = FAST[name]
    check(setting, batches, first_seed=0)


def check(setting: Setting, batches: int, first_seed: int) -> None:
    """Batches of cases, the rules in turn."""
    names = list(setting.rules)
    compared = sum(compare(setting, names[i % len(names)], first_seed + i * setting.games) for i in range(batches))
    cases = batches * setting.games
    assert compared >= 0.9 * cases, f"{compared} of {cases} cases proved something"


SLOW = {
    "plain": Setting(),
    "signed": Setting(signed=True),
    "three_players": Setting(num_players=3),
    "one_player": Setting(num_players=1),
    "one_simulation": Setting(searches=(1,)),
    "one_action": Setting(num_actions=1, searches=(7,)),
    "depth": Setting(max_depth=2),
    "full": Setting(capacity=8),
    "no_room": Setting(capacity=1, searches=(3,)),
    "resumed": Setting(searches=(7, 1, 16)),
    "resumed_when_full": Setting(searches=(9, 15), capacity=7, max_depth=3),
    "noise": Setting("noise"),
    "noise_resumed_full": Setting("noise", searches=(9, 11), capacity=12, num_players=3),
    "noise_all_edges": Setting("noise", all_edges=True, max_depth=4),
    "noise_one_action": Setting("noise", num_actions=1, searches=(3,)),
    "wide": Setting(num_actions=70, searches=(50,)),  # more than 8 and 32 visited edges: every width of the core
    "all_edges": Setting(all_edges=True),
    "all_edges_full": Setting(all_edges=True, searches=(5, 15), capacity=9, max_depth=4),
    "all_edges_one_simulation": Setting(all_edges=True, searches=(1,)),
    "gumbel": Setting("gumbel"),
    "gumbel_all_edges": Setting("gumbel", all_edges=True),
    "gumbel_all_edges_full": Setting("gumbel", all_edges=True, searches=(9, 11), capacity=9),
    "gumbel_signed": Setting("gumbel", signed=True),
    "gumbel_three_players": Setting("gumbel", num_players=3),
    "gumbel_one_simulation": Setting("gumbel", searches=(1,)),
    "gumbel_one_action": Setting("gumbel", num_actions=1, searches=(7,)),
    "gumbel_wide": Setting("gumbel", num_actions=20, searches=(40,)),
    "gumbel_resumed": Setting("gumbel", searches=(9, 15)),
    "gumbel_beyond_its_plan": Setting("gumbel", searches=(8, 9), planned=8),
    "gumbel_full": Setting("gumbel", capacity=8, max_depth=3),
    "root_sees_all": Setting(root_all_edges=True, searches=(5, 15), capacity=9),
    "gumbel_root_sees_all": Setting("gumbel", root_all_edges=True),
    "chance": Setting(chance=True),
    "chance_all_edges": Setting(chance=True, all_edges=True),
    "chance_signed": Setting(chance=True, signed=True),
    "chance_three_players": Setting(chance=True, num_players=3, searches=(7, 17)),
    "chance_one_player": Setting(chance=True, num_players=1, max_depth=4),
    "chance_full": Setting("noise", chance=True, capacity=9),
    "chance_all_edges_full": Setting(chance=True, all_edges=True, capacity=9),
    "chance_gumbel": Setting("gumbel", chance=True),
    "chance_gumbel_full": Setting("gumbel", chance=True, searches=(9, 11), capacity=13, num_players=3, max_depth=5),
    "chance_wide": Setting(chance=True, num_actions=70, searches=(50,)),
    "tiles": Setting(games=96, num_actions=70, searches=(40,)),  # gone up in tiles, views of several widths
    "tiles_chance": Setting(games=96, chance=True, num_actions=20, searches=(30,)),
    "tiles_three_players": Setting("noise", games=96, num_actions=20, searches=(30,), num_players=3, max_depth=3),
    "tiles_gumbel": Setting("gumbel", games=96, num_actions=20, searches=(30,)),
}
SLOW |= {
    "one_lane": Setting("noise", lanes=1, searches=(20,), max_depth=5),
    "two_lanes": Setting(lanes=2, virtual="loss"),
    "many_lanes": Setting(lanes=16, virtual="mean", searches=(64,), num_players=3),
    "lanes_full": Setting("noise", lanes=4, capacity=9, searches=(24,), max_depth=3),
    "lanes_all_edges": Setting(lanes=4, all_edges=True, virtual="loss", capacity=15),
    "lanes_wide": Setting(lanes=8, num_actions=40, searches=(64,), virtual="loss"),
    "lanes_solver": Setting("noise", lanes=4, solver=True, searches=(60,), virtual="mean"),
    "lanes_signed": Setting(lanes=3, signed=True, games=7),
    "lanes_gumbel": Setting("gumbel", lanes=4, searches=(32,), virtual="mean"),
    "chance_lanes": Setting("noise", lanes=4, chance=True, searches=(40,)),
    "chance_solver": Setting(solver=True, chance=True, searches=(60,)),
    "chance_played": Setting("gumbel", chance=True, searches=(24, 16), played=True),
    "solver": Setting(solver=True, searches=(60,)),
    "solver_all_edges": Setting(solver=True, all_edges=True, searches=(20, 20), max_depth=4),
    "solver_full": Setting("noise", solver=True, searches=(30,), capacity=14, num_players=1),
    "solver_signed": Setting(solver=True, signed=True),
    "solver_wide": Setting(solver=True, num_actions=40, searches=(60,)),
    "solver_tiles": Setting(solver=True, games=96, num_actions=20, searches=(40,)),
    "solver_played": Setting("noise", solver=True, searches=(40, 20, 20), played=True),
    "solver_gumbel": Setting("gumbel", solver=True, searches=(40,)),
    "solver_gumbel_played": Setting("gumbel", solver=True, searches=(40, 20), capacity=50, played=True),
    "noise_root_sees_all": Setting("noise", root_all_edges=True, searches=(9, 15)),
    "played": Setting(searches=(30, 12), played=True),
    "played_all_edges": Setting(all_edges=True, searches=(12, 12, 12), capacity=30, played=True),
    "played_full": Setting("noise", searches=(20, 4, 4, 20), capacity=12, played=True, num_players=3, max_depth=4),
    "played_wide": Setting("noise", num_actions=40, searches=(60, 20), played=True),
    "played_tiles": Setting(games=96, num_actions=20, searches=(30, 9), played=True),
    "played_gumbel": Setting("gumbel", searches=(24, 16), played=True),
    "played_gumbel_full": Setting("gumbel", searches=(24, 9, 9), capacity=16, played=True, num_players=3),
}
# With those that only `make test-all` runs: over 11,000 of plain search, over 1,000 of each option.
BATCHES, OF_WIDE, OF_OPTIONS = 9, 3, 3  # with many actions the reference takes most of the time
# Two of these at a time, or near to others: for when there is an hour.
REST = """
    gumbel_all_edges gumbel_all_edges_full gumbel_one_simulation gumbel_one_action gumbel_beyond_its_plan gumbel_signed
    signed one_simulation no_room noise_one_action noise_all_edges all_edges_one_simulation gumbel_root_sees_all
    chance_signed chance_all_edges_full chance_gumbel tiles_chance tiles_gumbel lanes_signed lanes_all_edges
    solver_signed solver_all_edges solver_gumbel_played chance_played played_wide played_gumbel
""".split()
ALL = [pytest.param(name, marks=pytest.mark.exhaustive if name in REST else ()) for name in SLOW]


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_whole_trees_in_every_setting(name):
    setting = SLOW[name]
    batches = OF_OPTIONS if setting.is_an_option() else OF_WIDE if setting.num_actions >= 20 else BATCHES
    check(setting, batches, first_seed=10_000 + 1_000 * list(SLOW).index(name))
