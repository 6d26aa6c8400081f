"""The subtree that is kept is what it was, node by node. (Searches that go on from it: tests/search/test_oracle.py.)"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import models
from jaxzero.search.node_storage import unpack_facts, unpack_frontier, unpack_stats
from tests import worlds
from tests.compiling import as_users_have_it

GAMES = 64
advance, edge_view = jax.jit(jz.advance), jax.jit(jz.search.edge_view)


def searched(players=2, num_actions=4, simulations=40, **options):
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    world = worlds.make(range(GAMES), kinds, num_actions=num_actions, num_players=players)
    return worlds.grow(world, jz.puct(), simulations, **options)


def by_path(tree):
    """For each game, what the tree says of every node, by the actions that lead there."""
    index = jnp.broadcast_to(jnp.arange(tree.capacity), (tree.size.shape[0], tree.capacity))
    view = edge_view(tree, index)
    stats, facts = unpack_stats(tree.stats[:, :-1]), unpack_facts(tree.facts[:, :-1])
    frontier, below = unpack_frontier(tree.frontier[:, :-1]), worlds.children(tree)
    said = dict(
        of_node=(stats.visits, stats.value, facts.raw_value, facts.to_play, facts.terminal, tree.state[:, :-1]),
        of_edge=(stats.edge_value, facts.action, facts.edge_prior, facts.mover, facts.discount, facts.reward),
        frontier=frontier[:4],
        edges=(view.prior, view.visits, view.value, view.reward, view.discount, view.child_value),
    )
    said = jax.tree.map(np.asarray, said)
    best = np.asarray(tree.best_child)
    found = []
    for game in range(tree.size.shape[0]):
        paths = worlds.paths(below[game])
        nodes = {path: jax.tree.map(lambda x: x[game, i], said) for i, path in paths.items()}
        for i, path in paths.items():
            nodes[path]["best"] = paths[best[game, i]] if best[game, i] >= 0 else None
        found.append(nodes)
    return found


def cut(nodes, prefix):
    """The nodes below a path, by the rest of their paths."""
    rest = {path[len(prefix) :]: dict(node) for path, node in nodes.items() if path[: len(prefix)] == prefix}
    for node in rest.values():
        node["best"] = None if node["best"] is None else node["best"][len(prefix) :]
    return rest


def assert_kept(kept, nodes, prefix):
    wanted = cut(nodes, prefix)
    assert set(kept) == set(wanted)
    for path, node in wanted.items():
        if path == ():
            kept[path]["of_edge"] = node["of_edge"] = None  # there is no edge above a root
        jax.tree.map(np.testing.assert_array_equal, kept[path], node)


@pytest.mark.parametrize(
    "options",
    [
        dict(),
        pytest.param(dict(players=3, num_actions=20, simulations=60), marks=pytest.mark.slow),
        dict(simulations=30, capacity=9),
        pytest.param(dict(max_depth=2), marks=pytest.mark.slow),
    ],
)
def test_every_statistic_of_the_kept_subtree_is_unchanged(options):
    tree = searched(**options)
    before = by_path(tree)
    action = np.random.default_rng(0).integers(tree.num_edges, size=GAMES).astype(np.int32)
    reset = np.arange(GAMES) % 7 == 0
    moved = advance(tree, action, reset)
    after = by_path(moved)
    assert (np.asarray(moved.root.simulations) == 0).all() and moved.root.prior is None
    sizes = []
    for game in range(GAMES):
        known = (action[game],) in before[game]
        if known and not reset[game]:
            assert_kept(after[game], before[game], (action[game],))
            sizes.append(len(after[game]))
        else:
            sizes.append(0)
            assert (np.asarray(moved.visits[game]) == 0).all()
        status = 0 if known or reset[game] else int(jz.Status.NOT_IN_TREE)
        if after[game] and sizes[-1]:
            root = after[game][()]
            stuck = np.isneginf(root["edges"][0]).all() and not root["of_node"][4]
            status |= int(jz.Status.NO_LEGAL_ACTION) if stuck else 0
        assert moved.status[game] == status
    assert moved.size.tolist() == sizes and 5 < np.count_nonzero(sizes) < GAMES - 10
    visits = jz.search.edge_view(moved, jnp.zeros(GAMES, jnp.int32)).visits
    np.testing.assert_array_equal(moved.root.brought, np.where(np.asarray(sizes)[:, None] > 0, visits, 0))


def test_two_plies_at_once_are_two_moves():
    tree = searched()
    rng = np.random.default_rng(1)
    actions = rng.integers(-1, 4, size=(GAMES, 2)).astype(np.int32)
    at_once = advance(tree, actions)
    stepwise = advance(advance(tree, actions[:, 0]), actions[:, 1])
    assert 5 < np.count_nonzero(at_once.size) < GAMES
    np.testing.assert_array_equal(at_once.size, stepwise.size)
    for game, (x, y) in enumerate(zip(by_path(at_once), by_path(stepwise))):
        if at_once.size[game]:
            assert_kept(x, y, ())


def test_no_move_keeps_the_tree():
    tree = searched()
    for x, y in zip(by_path(advance(tree, np.full(GAMES, -1))), by_path(tree)):
        assert_kept(x, y, ())


def test_actions_that_no_game_has():
    moved = advance(searched(), np.array([4, 99, -2, -99] * (GAMES // 4)))
    assert (moved.status == jz.Status.NOT_IN_TREE).all() and (moved.size == 0).all()


@pytest.mark.slow
def test_unused_memory_may_hold_anything():
    world, keys = worlds.make(range(8)), jax.random.split(jax.random.key(0), 8)

    def run(fill):
        tree = jz.search.plant(*worlds.model.root(world, keys, jnp.zeros(8, jnp.int32)), jz.puct(), 30)
        spare = jnp.arange(31) > 0
        tree = tree.replace(
            prior=jnp.where(spare[:, None], fill, tree.prior), facts=jnp.where(spare[:, None], fill, tree.facts)
        )
        tree = jz.search.search(world, keys, tree, worlds.model, jz.puct(), 20)
        tree = jz.advance(tree, jnp.argmax(jz.summary(tree).visits, -1))
        return jz.summary(jz.search.search(world, keys, tree, worlds.model, jz.puct(), 9))

    jax.tree.map(np.testing.assert_array_equal, jax.jit(run)(jnp.nan), jax.jit(run)(0.0))


@pytest.mark.parametrize(
    "build",
    [lambda m: jz.alphazero(m, 24), pytest.param(lambda m: jz.gumbel(m, 24, capacity=60), marks=pytest.mark.slow)],
)
def test_a_policy_plants_games_without_a_tree(build):
    world, keys = worlds.make(range(8), "continuous"), jax.random.split(jax.random.key(0), 8)
    policy, start = jax.jit(build(worlds.model)), jnp.zeros(8, jnp.int32)
    out = policy(world, keys, start)
    nothing = advance(out.tree, out.action, reset=jnp.ones(8, bool))
    again = policy(world, keys, start, nothing)
    np.testing.assert_array_equal(again.info.summary.visits, out.info.summary.visits)
    np.testing.assert_array_equal(again.action, out.action)
    assert (again.info.size == 25).all() or (again.info.size <= 25).all()


@pytest.mark.slow
def test_evaluations_kept_give_the_search_without_reuse():
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    world, keys = worlds.make(range(GAMES), kinds), jax.random.split(jax.random.key(0), GAMES)
    build = lambda model: jz.alphazero(model, 24, act=jz.most_visited)  # noqa: E731
    policy, plain = (
        jax.jit(searched, compiler_options=as_users_have_it())  # equal to the last bit
        for searched in (jz.options.with_evaluations_kept(build, worlds.model), build(worlds.model))
    )
    state, tree, kept = jnp.zeros(GAMES, jnp.int32), None, 0
    for move in range(4):
        out, wanted = policy(world, keys, state, tree), plain(world, keys, state)
        np.testing.assert_array_equal(out.info.summary.visits, wanted.info.summary.visits)
        np.testing.assert_array_equal(out.tree.stats, wanted.tree.stats)
        kept = int(jz.options.num_kept(out.tree).sum())
        assert (kept > GAMES) == (move > 0)
        state = jnp.asarray(world.successor)[jnp.arange(GAMES), state, out.action]
        ended = jnp.asarray(world.terminal)[jnp.arange(GAMES), state]
        state, tree = jnp.where(ended, 0, state), advance(out.tree, out.action, ended)


def test_evaluations_kept_of_half_a_ply_are_not_those_of_the_next_decision():
    """After the action alone the earlier tree's root is a chance node; the state says what chance did."""
    world = worlds.with_chance(worlds.make(range(GAMES)), 3)
    world.chance[:, 0] = False  # the roots are decisions
    build = lambda model: jz.alphazero(model, 16, dirichlet_fraction=0.0)  # noqa: E731
    policy = jax.jit(jz.options.with_evaluations_kept(build, worlds.model))
    keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)
    out = policy(world, keys, start)
    facts, below = unpack_facts(out.tree.facts[:, :-1]), worlds.children(out.tree)
    half = [
        next((int(facts.action[g, c]) for c in below[g, 0] if c >= 0 and facts.chance[g, c]), -1) for g in range(GAMES)
    ]
    assert max(half) >= 0, "some action leads to a chance node"
    again = policy(world, keys, start, jz.advance(out.tree, jnp.array(half)))
    jax.tree.map(np.testing.assert_array_equal, again.info.summary, out.info.summary)
    assert not unpack_facts(again.tree.facts[:, 0]).chance.any()


def masked_at_the_root(params, keys, state):
    """Of four actions two are legal, by the position; below the root, as learned dynamics say, all of them."""
    return (state[:, None] + jnp.arange(4)) % 2 == 0


def learned():
    def dynamics(params, state, action):
        seen = (state * 7 + action * 5) % 11
        return state + 1 + action % 2 * 2, seen / 10 - 0.5, jnp.full(len(state), 0.9)

    def predict(params, state):
        return jnp.sin(state[:, None] * 1.7 + jnp.arange(4)), jnp.cos(state * 0.9)

    legal = lambda state: masked_at_the_root(None, None, state)
    return models.learned(lambda params, seen: seen, predict, dynamics, legal=legal)


@pytest.mark.slow
@pytest.mark.parametrize("build", [jz.muzero, pytest.param(jz.gumbel, marks=pytest.mark.exhaustive)])
def test_a_model_that_masks_at_the_root_only_masks_the_new_root(build):
    keys, state = jax.random.split(jax.random.key(0), 12), jnp.arange(12)
    noiseless = {} if build is jz.gumbel else dict(dirichlet_fraction=0.0)
    policy = jax.jit(build(learned(), 24, capacity=80, **noiseless))
    out = policy((), keys, state)
    assert (masked_at_the_root(None, None, state)[np.arange(12), out.action]).all()
    state = state + 1 + out.action % 2 * 2
    tree, legal = jz.advance(out.tree, out.action), np.asarray(masked_at_the_root(None, None, state))
    assert (jz.summary(tree).visits[~legal] > 0).any(), "something is there to be closed"
    out = policy((), keys, state, tree)
    found = out.info.summary
    assert (out.info.status == 0).all() and legal[np.arange(12), out.action].all()
    assert (found.visits[~legal] == 0).all() and (found.qvalues[~legal] == 0).all()
    assert (out.action_weights[~legal] == 0).all()
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, rtol=1e-5)
    stats = unpack_stats(out.tree.stats[:, 0])
    np.testing.assert_array_equal(stats.visits, 1 + found.visits.sum(-1))
    total = unpack_facts(out.tree.facts[:, 0]).raw_value[:, 0] + (found.visits * found.qvalues).sum(-1)
    np.testing.assert_allclose(out.value, total / stats.visits, atol=1e-5)
    prior = np.asarray(jz.search.edge_view(out.tree, jnp.zeros(12, int)).prior)
    assert np.isneginf(prior[~legal]).all()
    if build is jz.muzero:
        np.testing.assert_allclose(np.where(legal, prior, 0).sum(-1), 1, rtol=1e-5)
    again = jz.advance(out.tree, jnp.argmin(jnp.asarray(legal), -1))
    assert (again.status == jz.Status.NOT_IN_TREE).all(), "what was closed is not there any more"


@pytest.mark.slow
def test_evaluations_kept_of_a_model_that_masks_at_the_root_only():
    keys, state = jax.random.split(jax.random.key(0), 12), jnp.arange(12)
    policy = jax.jit(jz.options.with_evaluations_kept(lambda model: jz.gumbel(model, 24), learned()))
    out = policy((), keys, state)
    state = state + 1 + out.action % 2 * 2
    kept, fresh = policy((), keys, state, jz.advance(out.tree, out.action)), policy((), keys, state)
    np.testing.assert_array_equal(kept.info.summary.visits, fresh.info.summary.visits)
    np.testing.assert_array_equal(kept.action, fresh.action)
    assert (jz.options.num_kept(kept.tree) > 0).any()


def test_slots_of_such_a_model_are_not_thought_on_from():
    keys, state = jax.random.split(jax.random.key(0), 12), jnp.arange(12)
    policy = jz.options.with_legal_slots(lambda model: jz.muzero(model, 8), learned(), 3)
    tree = jax.eval_shape(lambda: jz.advance(policy((), keys, state).tree, jnp.zeros(12, int)))
    with pytest.raises(ValueError, match="knows legal actions at the root only.*Search the position anew"):
        jax.eval_shape(lambda tree: policy((), keys, state, tree), tree)


def test_what_advance_refuses():
    tree = searched()
    for action in (np.zeros(3, int), np.zeros(GAMES), np.zeros((GAMES, 2, 2), int)):
        with pytest.raises(ValueError, match=rf"give integers, \[{GAMES}\] for one ply"):
            jz.advance(tree, action)
    for reset in (np.zeros(GAMES, int), np.zeros(3, bool)):
        with pytest.raises(ValueError, match=rf"give bools, \[{GAMES}\]"):
            jz.advance(tree, np.zeros(GAMES, int), reset)


def test_what_evaluations_kept_refuses():
    policy = jz.options.with_evaluations_kept(lambda model: jz.alphazero(model, 8), worlds.model)
    with pytest.raises(ValueError, match="of another kind of policy"):
        policy(worlds.make(range(GAMES)), jax.random.key(0), jnp.zeros(GAMES, jnp.int32), searched())
    start = worlds.make(range(GAMES)), jax.random.key(0), jnp.zeros(GAMES, jnp.int32)
    with pytest.raises(ValueError, match="was not advanced.*advance"):
        policy(*start, jax.eval_shape(policy, *start).tree)
    rounds = jz.options.with_evaluations_kept(
        lambda model: jz.gumbel(model, 8, rounds=jz.options.virtual_mean()), worlds.model
    )
    with pytest.raises(ValueError, match="was not advanced.*advance"):
        rounds(*start, jax.eval_shape(rounds, *start).tree)
    with pytest.raises(ValueError, match="build=3: give a function of model, like lambda model"):
        jz.options.with_evaluations_kept(3, worlds.model)
