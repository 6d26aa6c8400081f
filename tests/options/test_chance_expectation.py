"""Expected outcomes: every node of a tree is worth what is below it; and it helps where visits are few."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.options import expected_outcomes
from jaxzero.search.node_storage import Facts, unpack_facts
from tests import worlds

RULES = {"puct": jz.puct(), "ucb1": jz.ucb1(0.7), "gumbel": jz.root.gumbel_interior()}
KINDS = ["continuous", "terminal", "narrow", "stuck", "forced", "ties", "levels", "solo"]


def random_worlds(games: int, players: int) -> worlds.World:
    world = worlds.make(range(games), [KINDS[i % 8] for i in range(games)], 16, 5, players, np.float64)
    return worlds.with_chance(world, 3, 0.5)


def worth(p: np.ndarray, facts: Facts, value: np.ndarray, visits: np.ndarray, node: int, below: np.ndarray) -> Any:
    """What a node of one game must be worth: the mean of what went up there, or the expectation where chance moves."""
    raw, children = facts.raw_value[node], [(a, c) for a, c in enumerate(below[node]) if c >= 0]
    edges = {a: facts.reward[c] + facts.discount[c] * value[c] for a, c in children}
    if facts.chance[node]:
        return raw + sum(p[a] * (edges[a] - raw) for a, _ in children)
    own = visits[node] - sum(visits[c] for _, c in children)  # 1; more where walks end again and again
    return (raw * own + sum(visits[c] * edges[a] for a, c in children)) / visits[node]


def check(world: worlds.World, tree: jz.Tree, *, least: int) -> None:
    """Every node of every tree; of them at least so many where chance moves and something was visited."""
    assert (tree.status & jz.Status.NON_FINITE.value == 0).all()
    below, compared = worlds.children(tree), 0
    facts, value, visits = jax.device_get((unpack_facts(tree.facts), tree.value, tree.visits))
    weights = np.where(world.legal, np.exp(world.logits), 0)
    chances = weights / np.maximum(weights.sum(-1, keepdims=True), 1e-300)
    for game in range(len(below)):
        state, of_game = np.asarray(tree.state)[game], jax.tree.map(lambda x, game=game: x[game], facts)
        for node in np.flatnonzero(visits[game] > 0):
            p = chances[game, state[node]]
            expected = worth(p, of_game, value[game], visits[game], node, below[game])
            np.testing.assert_allclose(value[game, node], expected, atol=1e-9)
            compared += bool(of_game.chance[node] and (below[game, node] >= 0).any())
    assert compared >= least


@pytest.mark.slow
@pytest.mark.parametrize("players", [1, 2, 3])
@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_node_is_worth_what_is_below_it(rule, players):
    with worlds.x64():
        world = random_worlds(48, players)
        check(world, worlds.grow(world, expected_outcomes(RULES[rule]), 60), least=200)


@pytest.mark.parametrize("games, options", [(1, {}), (24, {"max_depth": 3}), (24, {"capacity": 30})])
def test_of_one_game_and_where_walks_are_cut_or_find_no_room(games, options):
    with worlds.x64():
        world = random_worlds(games, 2)
        check(world, worlds.grow(world, expected_outcomes(jz.puct()), 60, **options), least=games)


def test_a_walk_that_is_cut_at_a_chance_node_with_children_leaves_its_expectation():
    """A tree of deep walks, searched on with walks that end below the root: nothing below changes, nor does E."""
    with worlds.x64():
        world, rule = random_worlds(48, 2), expected_outcomes(jz.puct())
        tree, keys = worlds.grow(world, rule, 60, capacity=121), jax.random.split(jax.random.key(0), 48)
        more = jax.jit(lambda tree: jz.search.search(world, keys, tree, worlds.model, rule, 60, max_depth=1))(tree)
        facts = jax.device_get(unpack_facts(tree.facts[:, :-1]))
    cut = facts.chance & (np.asarray(more.visits) > np.asarray(tree.visits)) & (np.asarray(tree.visits) > 1)
    cut[:, 0] = False  # the root passes walks on
    assert cut.sum() > 20
    np.testing.assert_allclose(np.asarray(more.value)[cut], np.asarray(tree.value)[cut], atol=1e-12)


def test_the_search_may_begin_at_a_chance_node():
    with worlds.x64():
        world = random_worlds(48, 2)
        start = np.argmax(world.chance & ~world.terminal, -1)
        tree = worlds.grow(world, expected_outcomes(jz.puct()), 20, state=start)
        check(world, tree, least=100)


def test_two_searches_one_after_the_other_are_one():
    rule, keys = expected_outcomes(jz.puct()), jax.random.split(jax.random.key(0), 16)
    with worlds.x64():
        world = random_worlds(16, 2)
        half, once = (worlds.grow(world, rule, n, capacity=41) for n in (20, 40))
        more = jax.jit(lambda tree: jz.search.search(world, keys, tree, worlds.model, rule, 20))(half)
    np.testing.assert_allclose(once.stats, more.stats, atol=1e-12)


@pytest.mark.slow
def test_it_keeps_what_is_known_when_the_tree_moves_on():
    with worlds.x64():
        world = random_worlds(48, 2)
        rule = expected_outcomes(jz.puct())
        tree = worlds.grow(world, rule, 60, capacity=121)
        action = jnp.argmax(jz.summary(tree).visits, -1)
        outcome = jnp.zeros_like(action)
        moved = jz.advance(tree, jz.options.action_and_outcome(tree, action, outcome))
        assert moved.hooks is tree.hooks
        kept = np.asarray(moved.size > 3)
        keys = jax.random.split(jax.random.key(1), 48)
        moved = jax.jit(lambda tree: jz.search.search(world, keys, tree, worlds.model, rule, 30))(moved)
        assert kept.sum() > 10
        some = jax.tree.map(lambda x: x[kept], moved)
        check(worlds.World(*(None if x is None else x[kept] for x in world)), some, least=30)


# --- that it helps ---------------------------------------------------------------------------------------------------


def test_of_few_visits_little_is_made(outcomes=40, simulations=7):
    """Where the model is right of the chance node, six of 40 outcomes move it a sixth as far as they move the mean."""
    with worlds.x64():
        world = worlds.make(range(64), "solo", outcomes + 2, outcomes, 1, np.float64)
        chance, ends = np.arange(outcomes + 2) == 1, np.arange(outcomes + 2) >= 2
        world.successor[:, 0], world.successor[:, 1] = 1, np.arange(outcomes) + 2
        world.legal[:, 0], world.legal[:, 1], world.logits[:, 1] = np.arange(outcomes) == 0, True, 0
        world.terminal[:], world.discount[:], world.reward[:, 0] = ends, 1, 0
        world.value[:, 1] = world.reward[:, 1].mean(-1)
        world = world._replace(chance=np.broadcast_to(chance, world.terminal.shape))
        off = [
            np.asarray(worlds.grow(world, rule, simulations).value)[:, 1, 0] - world.value[:, 1]
            for rule in (expected_outcomes(jz.puct()), jz.puct())
        ]
    expected, mean = (np.abs(x).mean() for x in off)
    assert 0 < expected < mean / 5


# --- bad input -------------------------------------------------------------------------------------------------------


def test_what_does_not_go_together_is_refused():
    rule = expected_outcomes(jz.puct())
    with pytest.raises(ValueError, match="values cannot be proven where chance moves"):
        expected_outcomes(jz.avoid_proven(jz.puct()))
    with pytest.raises(ValueError, match="values cannot be proven where chance moves"):
        jz.avoid_proven(rule)
    with pytest.raises(ValueError, match="a model without chance nodes"):
        worlds.grow(worlds.make(range(2)), rule, 4)
    for simulate in (jz.parallel(4), jz.transpositions()):
        with pytest.raises(ValueError, match="one walk at a time"):
            worlds.grow(random_worlds(2, 2), rule, 4, simulate=simulate)
