"""What is read off a tree is what the reference knows about the same nodes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root.summary import principal_variation, qvalues, summary
from jaxzero.search import tree as t
from jaxzero.search.edge_view import candidate_view, edge_view, parents
from tests import reference as ref
from tests import worlds
from tests.viz.grown import GAMES, SIMULATIONS, searched


def nodes_of(tree, roots):
    """`(game, node, the reference's node)` for all nodes of all games."""
    below = worlds.children(tree)
    for game, root in enumerate(roots):
        by_path = ref.by_path(root)
        yield from ((game, node, by_path[path]) for node, path in worlds.paths(below[game]).items())


@pytest.mark.parametrize("players", [2, 3])
def test_an_edge_view_says_what_the_reference_says(players):
    tree, roots = searched(players)
    index = jnp.broadcast_to(jnp.arange(tree.capacity), (GAMES, tree.capacity))
    seen = jax.device_get(edge_view(tree, index))
    for game, i, node in nodes_of(tree, roots):
        edges = jax.tree.map(lambda x: x[game, i] if x.shape[:2] == index.shape else x, seen._replace(root=None))
        legal = [ok and not node.terminal for ok in node.legal]
        assert edges.visits.tolist() == ref.visits(node)
        np.testing.assert_allclose(edges.value, ref.qvalues(node), atol=1e-5)
        prior = np.where(legal, ref.probabilities(node.logits, legal), -np.inf)
        np.testing.assert_allclose(edges.prior, prior, atol=1e-6)
        assert edges.node_visits == node.visits
        np.testing.assert_allclose(edges.node_value, mine(node, node.value), atol=1e-5)
        np.testing.assert_allclose(edges.raw_value, mine(node, node.raw_value), atol=1e-6)
        for action, child in node.children.items():
            np.testing.assert_allclose(edges.reward[action], mine(node, child.reward), atol=1e-6)
            np.testing.assert_allclose(edges.discount[action], child.discount, atol=1e-6)
            np.testing.assert_allclose(edges.child_value[action], mine(node, child.value), atol=1e-5)
        unvisited = edges.visits == 0
        assert not any(x[unvisited].any() for x in (edges.value, edges.reward, edges.discount, edges.child_value))


def mine(node, value):
    return value if np.ndim(value) == 0 else value[node.to_play]


def test_candidates_are_the_visited_edges_and_the_next_one():
    tree, roots = searched(2)
    width = tree.num_edges
    index = jnp.broadcast_to(jnp.arange(tree.capacity), (GAMES, tree.capacity))
    full = jax.device_get(edge_view(tree, index))
    roomy = tree.replace(size=tree.size - 1)  # a tree that is full has no next edge
    some = jax.device_get(candidate_view(roomy, t.rows_of(roomy, index), width)[0])
    for game, i, node in nodes_of(tree, roots):
        prior, visits = full.prior[game, i], full.visits[game, i]
        untried = [a for a in range(width) if visits[a] == 0 and prior[a] > -np.inf]
        following = sorted(untried, key=lambda a: (-prior[a], a))[:1]
        shown = some.prior[game, i] > -np.inf
        assert sorted(some.action[game, i][shown]) == sorted([*node.children, *following])
        for slot in np.flatnonzero(shown):
            action = some.action[game, i, slot]
            assert some.prior[game, i, slot] == prior[action] and some.visits[game, i, slot] == visits[action]
            assert some.value[game, i, slot] == full.value[game, i, action]
        assert not some.visits[game, i][~shown].any()
    last, _ = candidate_view(tree, t.rows_of(tree, index), width)
    assert ((last.prior > -np.inf).sum(-1) == (last.visits > 0).sum(-1)).all()


def test_parents_and_children_agree():
    tree, _ = searched(2)
    below, above = worlds.children(tree), np.asarray(parents(tree))
    for game in range(GAMES):
        expected = np.full(tree.capacity, -1)
        for node, row in enumerate(below[game]):
            expected[row[row >= 0]] = node
        np.testing.assert_array_equal(above[game], expected)


def test_the_summary_is_the_roots():
    tree, roots = searched(2)
    found = summary(tree)
    for game, root in enumerate(roots):
        assert found.visits[game].tolist() == ref.visits(root)
        np.testing.assert_allclose(found.qvalues[game], ref.qvalues(root), atol=1e-5)
        np.testing.assert_allclose(found.value[game], root.value, atol=1e-5)
        np.testing.assert_allclose(found.visit_probs[game].sum(), 1, rtol=1e-6)
        if root.children:
            np.testing.assert_allclose(found.visit_probs[game], np.array(ref.visits(root)) / SIMULATIONS, rtol=1e-6)
    np.testing.assert_array_equal(found.qvalues, qvalues(tree))
    children = worlds.children(tree)[:, 0].max(1)
    np.testing.assert_array_equal(qvalues(tree, jnp.asarray(children))[3], edge_view(tree, children).value[3])


def test_an_unvisited_root_is_uniform_over_what_is_legal():
    world = worlds.make(range(3), "open", num_actions=4)
    world = world._replace(root_legal=np.array([[True, False, True, False], [True] * 4, [False] * 4]))
    tree = jz.search.plant(*worlds.model.root(world, None, jnp.zeros(3, int)), jz.puct(), 2)
    np.testing.assert_allclose(summary(tree).visit_probs, [[0.5, 0, 0.5, 0], [0.25] * 4, [0.25] * 4])
    assert tree.status.tolist() == [0, 0, jz.Status.NO_LEGAL_ACTION]
    assert (principal_variation(tree, 3) == -1).all()


def test_the_principal_variation_follows_the_most_visited():
    tree, roots = searched(3)
    lines = np.asarray(principal_variation(tree, 5))
    for game, root in enumerate(roots):
        line = lines[game][lines[game] >= 0].tolist()
        assert ref.is_principal_variation(line, root, None, 5) and (lines[game][len(line) :] == -1).all()
