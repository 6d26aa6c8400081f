"""Graph search is the reference's: position by position; and what it merges is equal."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.edge_view import by_action, linked
from tests import reference as ref
from tests import worlds

GAMES, STATES, RETURNS = 64, 6, (-1.0, 1.0)  # few states, so that ways meet often
RULES = {
    "puct": (jz.puct(), ref.puct()),
    "muzero": (jz.muzero_puct(), ref.muzero_puct()),
    "ucb1": (jz.ucb1(), ref.ucb1()),
    "gumbel": (jz.root.gumbel_interior(), ref.gumbel_interior()),
}


@pytest.fixture(autouse=True)
def float64():
    with worlds.x64():
        yield


@functools.cache
def program(name, players, simulations, capacity, max_depth, noise, solver, all_edges, how):
    rule = RULES[name][0]
    rule = jz.avoid_proven(rule, *RETURNS) if solver else rule
    rule = rule._replace(by_prior=False) if all_edges else rule

    @jax.jit
    def run(world, drawn):
        keys = jax.random.split(jax.random.key(0), GAMES)
        tree = jz.search.plant(
            *worlds.model.root(world, keys, jnp.zeros(GAMES, jnp.int32)), rule, capacity or simulations + 1
        )
        root_rule = None
        if noise:
            prior = jnp.where(jnp.isneginf(tree.prior[:, 0]), -jnp.inf, drawn)
            tree, root_rule = tree.replace(root=tree.root.replace(prior=prior)), jz.search.with_root_prior(rule)
        tree = jz.search.search(
            world, keys, tree, worlds.model, rule, simulations, root_rule=root_rule, max_depth=max_depth, simulate=how
        )
        slots = jnp.broadcast_to(jnp.arange(tree.capacity), (GAMES, tree.capacity))
        below = jax.vmap(by_action, (None, 1), 1)(tree, slots)
        return (
            tree,
            below,
            linked(tree, jnp.maximum(below, 0)),
            jz.search.edge_view(tree, slots),
            jz.options.num_positions(tree),
        )

    return run


def compare(
    first_seed,
    name="puct",
    players=2,
    simulations=40,
    capacity=None,
    max_depth=None,
    noise=False,
    solver=False,
    all_edges=False,
    how=jz.transpositions(),
):
    seeds = range(first_seed, first_seed + GAMES)
    kinds = [list(worlds.KINDS)[seed % len(worlds.KINDS)] for seed in seeds]
    world = worlds.make(seeds, kinds, num_states=STATES, num_players=players, dtype=np.float64)
    drawn = np.random.default_rng(first_seed).dirichlet(np.full(4, 0.3), GAMES).round(6)
    run = program(name, players, simulations, capacity, max_depth, noise, solver, all_edges, how)
    tree, below, nodes, view, positions = jax.device_get(run(world, drawn))
    rule = ref.avoid_proven(RULES[name][1], RETURNS) if solver else RULES[name][1]
    compared = merged = 0
    for game in range(GAMES):
        root = ref.graph_search(
            worlds.pick(world, game),
            0,
            rule,
            None,
            simulations,
            max_depth=max_depth,
            capacity=capacity,
            root_prior=drawn[game].tolist() if noise else None,
            returns=RETURNS if solver else None,
        )
        if root.node.margin > 1e-9:
            compared += 1
            found = same(tree, below, nodes, view, game, root, f"{name}, seed {seeds[game]} ({kinds[game]})")
            assert found == positions[game]
            merged += (tree.graph.node[game] != np.arange(tree.capacity + 1)).sum()
            assert tree.overflows[game] == root.node.overflows
    return compared, merged


def same(tree, below, nodes, view, game, root, case):
    """Walks through both graphs side by side; answers how many positions there are."""
    partner, todo = {0: root}, [0]
    while todo:
        i = todo.pop()
        at = partner[i]
        assert set(np.flatnonzero(below[game, i] >= 0)) == set(at.edges), case
        value = np.reshape(at.node.value, -1)
        np.testing.assert_allclose(tree.stats[game, i, 2:], value, rtol=0, atol=1e-9, err_msg=case)
        assert tree.graph.visits[game, i] == 1 + sum(edge.visits for edge in at.edges.values()), case
        if tree.bounds is not None:
            np.testing.assert_allclose(tree.bounds[game, i], (at.node.lower, at.node.upper), atol=1e-12, err_msg=case)
        for action, edge in at.edges.items():
            assert view.visits[game, i, action] == edge.visits, case
            j = int(nodes[game, i, action])
            todo += [] if j in partner else [j]
            assert partner.setdefault(j, edge.to) is edge.to, f"{case}: merged what is different"
    assert len({id(at) for at in partner.values()}) == len(partner), f"{case}: two nodes of one position"
    return len(partner)


FAST = [dict(noise=True), dict(solver=True, max_depth=6)]
SLOW = [
    dict(name="gumbel", players=3, capacity=20),
    dict(name="muzero"),
    dict(name="ucb1", all_edges=True),
    dict(name="gumbel", simulations=60),
    dict(players=3, max_depth=4),
    dict(players=1, noise=True, all_edges=True, capacity=15),
    dict(solver=True, simulations=80),
    dict(solver=True, noise=True, capacity=30, name="muzero"),
]
SLOW = [case if i % 2 == 0 else pytest.param(case, marks=pytest.mark.exhaustive) for i, case in enumerate(SLOW)]


@pytest.mark.parametrize("case", FAST, ids=str)
def test_whole_graphs(case):
    compared, merged = compare(0, **case)
    assert compared > 0.9 * GAMES and merged > GAMES


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=str)
def test_whole_graphs_in_every_setting(case):
    compared, merged = np.sum([compare(10_000 + GAMES * i, **case) for i in range(3)], 0)
    assert compared > 0.9 * 3 * GAMES and merged > 3 * GAMES


def searched(how, kind="alternate", simulations=60, rule=jz.puct()):
    world = worlds.make(range(GAMES), kind, num_states=STATES)
    return worlds.grow(world, rule, simulations, simulate=how), world


def assert_merged_are_equal(tree):
    """Every slot's state is that of the node it is linked to, and so is its ply; answers how many are linked."""
    visits = np.asarray(jax.jit(jz.summary)(tree).visits)
    tree = jax.device_get(tree)
    node = tree.graph.node
    assert (np.take_along_axis(node, node, 1) == node).all()  # a node is its own
    slots = np.broadcast_to(np.arange(tree.capacity + 1), node.shape)
    merged = node != slots
    there = np.take_along_axis(tree.state, node, 1)
    assert (tree.state == there)[merged].all()
    assert (visits.sum(-1) == tree.graph.visits[:, 0] - 1).all()
    return merged.sum()


def constant(state):
    return jnp.zeros((len(jax.tree.leaves(state)[0]), 2), jnp.uint32)


@pytest.mark.slow
def test_a_key_that_lies_costs_duplicates_only():
    honest, _ = searched(jz.transpositions())
    lying, _ = searched(jz.transpositions(key=constant))
    assert 0 < assert_merged_are_equal(lying) < 0.8 * assert_merged_are_equal(honest)  # one position of each ply is met
    assert jz.options.num_positions(lying).sum() > 1.2 * jz.options.num_positions(honest).sum()


def test_a_table_that_is_full_costs_duplicates_only(monkeypatch):
    honest, _ = searched(jz.transpositions())
    monkeypatch.setattr("jaxzero.options.graph_search.ROOM", 1 / 16)
    monkeypatch.setattr("jaxzero.options.graph_search.PROBES", 2)
    crowded, _ = searched(jz.transpositions())
    assert crowded.graph.table.shape[1] <= 8 and bool((crowded.graph.table >= 0).all(1).any())
    assert 0 < assert_merged_are_equal(crowded) < assert_merged_are_equal(honest)


def test_without_plies_a_walk_that_comes_back_ends():
    tree, world = searched(jz.transpositions(by_ply=False), kind="continuous")
    assert assert_merged_are_equal(tree) > GAMES
    tree = jax.device_get(tree)
    for game in range(GAMES):
        own = tree.graph.visits[game, :-1] > 0
        states = tree.state[game, :-1][own]
        assert len(set(states.tolist())) == len(states) <= STATES
    assert (tree.graph.visits[:, 0] == 61).all()


def test_the_canonical_part_decides():
    part = jz.transpositions(canonical=lambda state: state // 2)  # two states count as one
    tree = jax.device_get(searched(part, "continuous")[0])
    node, merged = np.asarray(tree.graph.node), tree.graph.node != np.arange(tree.capacity + 1)
    there = np.take_along_axis(tree.state, node, 1)
    assert (tree.state // 2 == there // 2)[merged].all() and (tree.state != there)[merged].any()


def test_what_cannot_be_combined_is_refused():
    def attempt():
        graph, world = searched(jz.transpositions(), simulations=8)
        plain = worlds.grow(world, jz.puct(), 8)
        with pytest.raises(ValueError, match="the tree is a graph.*Search the next position anew"):
            jz.advance(graph, np.zeros(GAMES, np.int32))
        keys = jax.random.split(jax.random.key(0), GAMES)
        with pytest.raises(ValueError, match="the tree is a graph.*search it with the same"):
            jz.search.search(world, keys, graph, worlds.model, jz.puct(), 8)
        with pytest.raises(ValueError, match="the tree is a graph.*search it with the same"):
            jz.search.simulate(
                world, keys, graph, jz.search.enter(plain, jz.puct())[1], worlds.model, jz.puct(), jz.puct()
            )
        with pytest.raises(ValueError, match="embeddings that hold no arrays.*canonical="):
            searched(jz.transpositions(canonical=lambda state: ()), simulations=8)
        with pytest.raises(ValueError, match=r"key=.*keys of shape \(64,\) for 64 games.*\[B, 2\]"):
            searched(jz.transpositions(key=lambda state: state.astype(np.uint32)), simulations=8)
        with pytest.raises(ValueError, match="where positions repeat"):
            searched(jz.transpositions(by_ply=False), rule=jz.avoid_proven(jz.puct()))
        tree = jz.advance(plain, np.zeros(GAMES, np.int32))
        with pytest.raises(ValueError, match="Search the position anew"):
            jz.search.search(world, keys, tree, worlds.model, jz.puct(), 8, simulate=jz.transpositions())
        with pytest.raises(ValueError, match=r"transpositions\(key=3\)"):
            jz.transpositions(key=3)

    jax.eval_shape(attempt)  # all of it is refused while tracing
