"""What is told of a tree is what the reference, and the library's arrays, have of the same nodes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.options.slot_actions import slots_of
from jaxzero.search.edge_view import edge_view
from tests import reference as ref
from tests import worlds
from tests.viz.grown import GAMES, by_path, hashed, searched, told


def mine(node, value):
    return [value] if np.ndim(value) == 0 else value


@pytest.mark.parametrize("players", [2, 3])
def test_every_number_is_the_references(players):
    tree, roots = searched(players)
    for game, root in enumerate(roots):
        known = told(tree, game)
        nodes, expected = by_path(known["nodes"]), ref.by_path(root)
        assert {tuple(map(int, path)) for path in nodes} == set(expected) and known["total"] == len(expected)
        for path, node in nodes.items():
            one = expected[tuple(map(int, path))]
            assert (node["visits"], node["terminal"], node["mover"]) == (one.visits, one.terminal, one.to_play)
            np.testing.assert_allclose(node["value"], mine(one, one.value), atol=2e-5, rtol=6e-5)
            np.testing.assert_allclose(node["raw"], mine(one, one.raw_value), atol=2e-5, rtol=6e-5)
            legal = [ok and not one.terminal for ok in one.legal]
            prior, visits, values = ref.probabilities(one.logits, legal), ref.visits(one), ref.qvalues(one)
            assert sorted(int(e[0]) for e in node["edges"]) == np.flatnonzero(legal).tolist()
            for name, n, q, p, below in node["edges"]:
                a = int(name)
                assert n == visits[a] and (below is None) == (n == 0)
                np.testing.assert_allclose([q, p], [values[a], prior[a]], atol=2e-5, rtol=6e-5)
            assert [e[1] for e in node["edges"]] == sorted((e[1] for e in node["edges"]), reverse=True)


def test_the_most_visited_are_chosen():
    tree, roots = searched()
    for game, root in enumerate(roots):
        everything, few = told(tree, game), told(tree, game, most=7)
        visits = ref.visits_by_path(root)
        chosen = [tuple(map(int, path)) for path in by_path(few["nodes"])]
        assert len(chosen) == min(7, len(visits)) and few["total"] == len(everything["nodes"]) == len(visits)
        left = [visits[path] for path in visits if path not in chosen]
        assert min(visits[path] for path in chosen) >= max(left, default=0)


def test_the_line_is_the_principal_variation():
    tree, _ = searched()
    lines = np.asarray(jz.principal_variation(tree, 30))
    for game in range(GAMES):
        known = told(tree, game)
        assert [int(name) for name in known["line"]] == [a for a in lines[game] if a >= 0]
        on_line = [path for path, node in by_path(known["nodes"]).items() if node["line"]]
        assert sorted(on_line, key=len) == [tuple(known["line"][:i]) for i in range(len(known["line"]) + 1)]


def test_names_stand_for_actions():
    tree, _ = searched()
    named = told(tree, 3, names=("a", "b", "c", "d"))
    plain = told(tree, 3)
    assert named["line"] == ["abcd"[int(x)] for x in plain["line"]]
    for one, other in zip(named["nodes"], plain["nodes"], strict=True):
        assert [e[0] for e in one["edges"]] == ["abcd"[int(e[0])] for e in other["edges"]]


@pytest.mark.slow
def test_of_many_edges_the_last_are_told_together():
    tree = hashed(300, actions=100)
    root = told(tree)["nodes"][0]
    count, visits, prior, visited = root["rest"]
    edges = root["edges"]
    assert (
        len(edges) >= 40
        and len(edges) + count == (~np.isneginf(np.asarray(edge_view(tree, jnp.zeros(1, int)).prior))).sum()
    )
    assert visited + sum(e[1] > 0 for e in edges) == sum(x > 0 for x in np.asarray(jz.summary(tree).visits[0]))
    assert sum(e[1] for e in edges) + visits == 300 and abs(sum(e[3] for e in edges) + prior - 1) < 1e-3


@pytest.mark.slow
def test_a_root_alone():
    world = worlds.make(range(2))
    keys = jax.random.split(jax.random.key(0), 2)
    alone = jz.search.plant(*worlds.model.root(world, keys, jnp.zeros(2, jnp.int32)), jz.muzero_puct(), 5)
    known = told(alone, 1)
    assert known["total"] == len(known["nodes"]) == 1 and known["line"] == []
    assert all(e[1] == 0 and e[2] == 0.0 and e[4] is None for e in known["nodes"][0]["edges"])


@pytest.mark.slow
def test_a_tree_that_is_full():
    full = worlds.grow(worlds.make(range(2)), jz.muzero_puct(), 24, capacity=6)
    assert int(full.status[0]) & jz.Status.FULL and len(told(full)["nodes"]) == 6


def test_what_is_no_number_is_told_so():
    tree, _ = searched()
    broken = tree.replace(stats=tree.stats.at[0, 1, 1].set(jnp.nan).at[0, 0, 2].set(jnp.inf))
    root = told(broken)["nodes"][0]
    assert root["value"] == ["inf"] and "NaN" in [e[2] for e in root["edges"]]


# ---------------------------------------------------------------------------------------------- other kinds of trees
def agrees(tree, game, label):
    """Whether all that is told of a game's edges is in the arrays of the whole batch, node by node."""
    known, below = told(tree, game), worlds.children(tree)[game]
    index = jnp.broadcast_to(jnp.arange(tree.capacity), (tree.size.shape[0], tree.capacity))
    view = jax.device_get(jax.jit(edge_view)(tree, index))
    slots, todo = {}, [(0, 0)]
    while todo:  # from the root down, beside each other
        here, node = todo.pop()
        slots[here] = node
        told_of = known["nodes"][here]
        assert told_of["visits"] == view.node_visits[game, node]
        named = {label(node, a): a for a in range(tree.num_edges)} if not told_of["chance"] else {
            f"outcome {a}": a for a in range(tree.num_edges)
        }  # fmt: skip
        legal = {a for a in range(tree.num_edges) if not np.isneginf(view.prior[game, node, a])}
        assert {named[e[0]] for e in told_of["edges"]} == legal
        for name, n, q, _, there, *_ in told_of["edges"]:
            a = named[name]
            assert n == view.visits[game, node, a]
            np.testing.assert_allclose(q, view.value[game, node, a], atol=2e-5, rtol=6e-5)
            assert (there is None) == (below[node, a] < 0)
            if there is not None:
                todo.append((there, int(below[node, a])))
    assert len(slots) == len(known["nodes"]) == known["total"]
    return known, view, slots


number = lambda node, a: str(a)


@pytest.mark.slow
def test_a_compact_tree_keeps_eight_bits_of_the_prior():
    world = worlds.make(range(4), "open")
    tree = worlds.grow(world, jz.puct(), 40, layout=jz.COMPACT)
    assert tree.prior.dtype == jnp.uint16
    for game in range(4):
        known, view, slots = agrees(tree, game, number)
        for here, node in slots.items():
            exact = jax.nn.softmax(world.logits[game, tree.state[game, node]])
            for e in known["nodes"][here]["edges"]:
                assert abs(e[3] - exact[int(e[0])]) < exact[int(e[0])] / 100
    assert all(view.visits[0, 0] == np.asarray(jz.summary(tree).visits[0]))


@pytest.mark.slow
def test_edges_that_are_slots_are_called_by_their_actions():
    world = worlds.make(range(3), num_actions=12)
    build = lambda model: jz.alphazero(model, 40, dirichlet_fraction=0.0)
    policy = jax.jit(jz.options.with_legal_slots(build, worlds.model, width=12))
    out = policy(world, jax.random.split(jax.random.key(0), 3), jnp.zeros(3, jnp.int32))
    actions = np.asarray(slots_of(out.tree).action)
    names = tuple("abcdefghijkl")
    for game in range(3):
        label = lambda node, a: str(actions[game, node, a])
        known, *_ = agrees(
            out.tree, game, lambda node, a: label(node, a) if actions[game, node, a] >= 0 else f"none {a}"
        )
        line = jz.options.action_of(out.tree, jz.principal_variation(out.tree, 40))[game]
        assert known["line"] == [str(a) for a in line.tolist() if a >= 0]
        assert told(out.tree, game, names=names)["line"] == [names[int(x)] for x in known["line"]]
    with pytest.raises(ValueError, match="2 names for 12 actions"):
        told(out.tree, names=("a", "b"))


@pytest.mark.slow
def test_where_chance_moves_edges_are_outcomes():
    world = worlds.with_chance(worlds.make(range(6)), 0)
    tree = worlds.grow(world, jz.puct(), 60)
    seen = 0
    for game in range(6):
        known, _, slots = agrees(tree, game, number)
        for here, node in slots.items():
            one = known["nodes"][here]
            assert one["chance"] == bool(world.chance[game, tree.state[game, node]] and not one["terminal"])
            seen += one["chance"]
        assert (
            told(tree, game, names=("x", "y"))["total"] == known["total"]
        )  # fewer names than edges: outcomes have none
    assert seen > 20


@pytest.mark.slow
def test_logits_become_probabilities_and_other_priors_are_not_told():
    world = worlds.make(range(2), "open")
    gumbel = worlds.grow(world, jz.root.gumbel_interior(), 24)
    exact = jax.nn.softmax(world.logits[0, 0])
    for e in told(gumbel)["nodes"][0]["edges"]:
        assert abs(e[3] - exact[int(e[0])]) < 1e-4
    own = jz.puct()._replace(
        prepare=lambda logits: jnp.where(jnp.isneginf(logits), logits, 7.0 + logits), by_prior=False
    )
    tree = worlds.grow(world, own, 24).replace(prior_kind=None)
    assert {e[3] for e in told(tree)["nodes"][0]["edges"]} == {None}


@pytest.mark.slow
def test_what_is_proven_is_told():
    game = games.from_pgx("tic_tac_toe")
    model = models.perfect(game, lambda params, observation: (jnp.zeros((1, 9)), jnp.zeros(1)))
    keys = jax.random.split(jax.random.key(0), 1)
    state = jax.vmap(game.init)(keys)
    for action in (0, 3, 1, 4):  # both have two in a row: who is to move wins by the third
        state = jax.vmap(game.step)(state, jnp.full(1, action), keys)
    policy = jz.alphazero(model, 200, rule=jz.avoid_proven(jz.puct()), dirichlet_fraction=0.0)
    tree = jax.jit(policy)((), keys, state).tree
    known, view, slots = agrees(tree, 0, number)
    root = known["nodes"][0]
    assert root["bounds"] == [1, 1]
    assert next(e for e in root["edges"] if e[0] == "2")[5:] == [1, 1]
    for here, node in slots.items():
        assert known["nodes"][here]["bounds"] == np.asarray(tree.bounds[0, node]).tolist()
        for e in known["nodes"][here]["edges"]:
            assert e[5:] == [view.lower[0, node, int(e[0])], view.upper[0, node, int(e[0])]]


@functools.cache
def graph(by_ply):
    world = worlds.make(range(4), num_states=6)
    how = jz.transpositions(by_ply=by_ply)
    return worlds.grow(world, jz.puct(), 80, simulate=how)


@pytest.mark.slow
@pytest.mark.parametrize("by_ply", [True, False])
def test_positions_that_are_reached_twice_are_told_once(by_ply):
    tree = graph(by_ply)
    merged = 0
    for game in range(4):
        known = told(tree, game)
        nodes = known["nodes"]
        by_path(nodes)  # each is below one that comes before it
        assert known["total"] == len(nodes) and known["graph"]
        for i, node in enumerate(nodes):
            if node["same"] < 0:
                continue
            merged += 1
            first = nodes[node["same"]]
            assert first["same"] < 0 and node["edges"] == [] and node["visits"] == first["visits"]
            assert node["value"] == first["value"]
        positions = [i for i, node in enumerate(nodes) if node["same"] < 0]
        assert len(positions) == int(jz.options.num_positions(tree)[game])
        for i in positions:  # a node's visits are one and those of its edges
            if nodes[i]["edges"]:
                assert nodes[i]["visits"] >= sum(e[1] for e in nodes[i]["edges"])
        line = [a for a in np.asarray(jz.principal_variation(tree, 64))[game].tolist() if a >= 0]
        assert known["line"] == list(map(str, line))[: len(known["line"])]
        assert len(known["line"]) == len(line)
    assert merged > 10
    assert len(told(tree, 0, most=10)["nodes"]) == min(10, told(tree, 0)["total"])


@pytest.mark.slow
def test_a_tree_that_was_moved_on():
    tree, _ = searched()
    lines = jz.principal_variation(tree, 1)[:, 0]
    on = jax.jit(jz.advance)(tree, lines)
    for game in (0, 3, 7):
        if int(on.size[game]):
            known, before = told(on, game), told(tree, game)
            first = by_path(before["nodes"])[(before["line"][0],)]
            assert known["nodes"][0]["visits"] == first["visits"]
            assert [e[:4] for e in known["nodes"][0]["edges"]] == [e[:4] for e in first["edges"]]
    nowhere = jax.jit(jz.advance)(tree, jnp.full(GAMES, -1), jnp.ones(GAMES, bool))
    with pytest.raises(ValueError, match="game 2 has no root"):
        told(nowhere, 2)
