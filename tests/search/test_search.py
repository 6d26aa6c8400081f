"""The search's phases, one by one and together; that trees are right as a whole is for tests/search/test_oracle.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.search.search import fold_simulation
from tests import reference as ref
from tests import worlds
from tests.compiling import as_users_have_it
from tests.test_reference import table

KEYS = jax.random.split(jax.random.key(0), 1)


def one(world):
    """A table of one game as a batch."""
    return jax.tree.map(lambda x: jnp.asarray(x)[None], world)


def by_path(tree, values):
    below = worlds.children(tree)
    return [
        {path: np.asarray(values)[game, node].tolist() for node, path in worlds.paths(below[game]).items()}
        for game in range(len(below))
    ]


# --- the phases ------------------------------------------------------------------------------------------------------

# A win in one for the player to move: action 1. The table's values at the end are rubbish, on purpose.
WIN = one(
    table(
        value=[0.1, 0.9, -0.2],
        successor=[[2, 1], [0, 0], [2, 2]],
        reward=[[0, 1], [0, 0], [0, 0]],
        terminal=[False, True, False],
        to_play=[0, 1, 1],
    )
)


def test_one_simulation_phase_by_phase():
    rule = jz.puct()
    tree = jz.search.plant(*worlds.model.root(WIN, KEYS, jnp.zeros(1, int)), rule, 4)
    tree = jz.search.search(WIN, KEYS, tree, worlds.model, rule, 1)  # takes action 0, and then wants action 1
    path = jz.search.descend(jz.search.choose_at_root(tree, rule))
    assert path.length.tolist() == [1] and path.nodes[0, 0] == 0
    tree, value = jz.search.expand(WIN, KEYS, tree, path, worlds.model, rule)
    new = int(tree.size[0]) - 1
    assert tree.raw_value[0, new].tolist() == [0] and value.tolist() == [[1]]  # a terminal node's value is 0
    assert tree.visits[0, new] == 1 and tree.visits[0, 0] == 2  # above it not before its value is backed up
    tree = jz.search.choose_at_root(jz.search.backup(tree, path, value, rule), rule)
    assert tree.visits[0, new] == 1 and tree.visits[0, 0] == 3
    np.testing.assert_allclose(jz.qvalues(tree), [[0.2, 1.0]], atol=1e-6)  # the reward alone; −(−0.2) for the opponent
    np.testing.assert_allclose(tree.value[0, 0], [(0.1 + 0.2 + 1.0) / 3], atol=1e-6)
    assert jz.search.descend(tree).nodes[0, :2].tolist() == [0, new] and jz.search.descend(tree).length.tolist() == [2]


# Few games, for which one turn of a loop takes more levels; and more.
@pytest.mark.parametrize("seeds", [[3], pytest.param(list(range(9)), marks=pytest.mark.slow)])
def test_simulations_one_by_one_are_a_search(seeds):
    world, rule = worlds.make(seeds, "continuous"), jz.puct()
    keys, start = jax.random.split(jax.random.key(1), len(seeds)), jnp.zeros(len(seeds), int)
    tree = jz.search.plant(*worlds.model.root(world, keys, start), rule, 12)
    expected = jz.search.search(world, keys, tree, worlds.model, rule, 11)
    tree, path = jz.search.enter(tree, rule)
    once = jax.jit(lambda tree, path: jz.search.simulate(world, keys, tree, path, worlds.model, rule, rule))
    for _ in range(11):
        tree, path = once(tree, path)
    np.testing.assert_array_equal(jz.summary(tree).visits, jz.summary(expected).visits)
    np.testing.assert_allclose(jz.qvalues(tree), jz.qvalues(expected), atol=1e-6)


@pytest.mark.parametrize("seeds", [[3], pytest.param(list(range(9)), marks=pytest.mark.slow)])
def test_of_the_walks_before_only_the_memory_matters(seeds):
    world, rule = worlds.make(seeds, "continuous"), jz.puct()
    keys, start = jax.random.split(jax.random.key(1), len(seeds)), jnp.zeros(len(seeds), int)
    tree, path = jz.search.enter(jz.search.plant(*worlds.model.root(world, keys, start), rule, 12), rule)
    once = jax.jit(lambda tree, path: jz.search.simulate(world, keys, tree, path, worlds.model, rule, rule))
    for rubbish in (-1, 0, 17, 5, 999, 2):
        found, left = once(tree, path)
        tree, path = once(tree, path._replace(nodes=jnp.full_like(path.nodes, rubbish), length=path.length + 50))
        jax.tree.map(np.testing.assert_array_equal, (found, left.length), (tree, path.length))


def test_memory_for_shallower_walks_is_refused():
    tree = jz.search.plant(*worlds.model.root(WIN, KEYS, jnp.zeros(1, int)), jz.puct(), 30)
    tree, path = jz.search.enter(tree, jz.puct(), 2)
    assert jz.search.descend(tree, 2, path).length.tolist() == [1]
    with pytest.raises(ValueError, match=r"max_depth=None need 38.*enter\(tree, root_rule, max_depth\)"):
        jz.search.descend(tree, path=path)


@pytest.mark.slow
def test_a_terminal_end_is_backed_up_again_and_nothing_grows():
    tree = worlds.grow(WIN, jz.puct(), 8)
    visits = by_path(tree, tree.visits)[0]
    assert visits[(1,)] == 7 - visits.get((0,), 0) + 1 and sum((tree.visits > 0)[0]) == len(visits)
    assert tree.overflows.tolist() == [0] and tree.status.tolist() == [0]
    np.testing.assert_allclose(jz.qvalues(tree)[0, 1], 1.0)


def test_walks_end_at_max_depth_with_the_stored_mean():
    world = one(table(value=[0.0, 0.6, -0.9], successor=[[1], [2], [2]]))
    tree = worlds.grow(world, jz.puct(), 3, max_depth=1)
    assert by_path(tree, tree.visits) == [{(): 4, (0,): 3}]
    np.testing.assert_allclose(tree.value[0, 0], [1.8 / 4], rtol=1e-6)
    tree = worlds.grow(world, jz.puct(), 3, max_depth=2)
    assert by_path(tree, tree.visits) == [{(): 4, (0,): 3, (0, 0): 2}]


def test_a_full_tree_stops_growing_says_so_and_stays_right():
    world = worlds.make(range(8), "open")
    tree = worlds.grow(world, jz.puct(), 30, capacity=10)
    assert (tree.status == jz.Status.FULL).all() and (tree.overflows > 0).all()
    assert ((tree.visits > 0).sum(1) == 10).all() and (tree.visits[:, 0] == 31).all()
    roomy = worlds.grow(world, jz.puct(), 30)
    assert not roomy.status.any() and not roomy.overflows.any()


# --- laws ------------------------------------------------------------------------------------------------------------


def test_searching_twice_is_searching_once():
    world = worlds.make(range(32), [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(32)])
    rule = jz.muzero_puct()

    def run(*counts):
        keys = jax.random.split(jax.random.key(0), 32)
        tree = jz.search.plant(*worlds.model.root(world, keys, jnp.zeros(32, int)), rule, 25)
        for count in counts:
            tree = jz.search.search(world, keys, tree, worlds.model, rule, count)
        return tree, tree.visits, tree.value, tree.raw_value

    (tree, *once), (resumed, *twice) = (
        jax.jit(lambda: run(*counts)).lower().compile(as_users_have_it())() for counts in ((24,), (10, 14))
    )
    jax.tree.map(np.testing.assert_array_equal, once, twice)
    assert (worlds.children(tree) == worlds.children(resumed)).all()
    for name in ("best_child", "facts", "state", "prior", "size", "status", "overflows", "root"):
        jax.tree.map(np.testing.assert_array_equal, getattr(tree, name), getattr(resumed, name))


@pytest.mark.parametrize("num_actions", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (40, 90))])
def test_a_rule_that_is_shown_the_candidates_only_chooses_as_if_it_saw_all(num_actions):
    """Every width of the core's views: up to 8 and 32 visited edges, and all of them."""
    count = 70
    games, world = 16, worlds.make(range(16), num_actions=num_actions, num_states=32, dtype=np.float64)
    forced = np.zeros((games, num_actions), bool)
    forced[:, 1] = True
    legal = np.where(np.arange(games)[:, None] % 2, world.legal[:, 0], forced)  # the wide node is the root, or below it
    world = world._replace(root_legal=legal, terminal=world.terminal & (np.arange(32) > 9))
    world.successor[:, 0, 1] = 1
    rules = [
        jz.puct(),
        jz.ucb1(),
        jz.muzero_puct(2.0, 19652.0, jz.search.completed_by_mix_value()),
        jz.root.gumbel_interior(),
    ]

    @jax.jit
    def run(world, which):
        prepare, score = ([getattr(rule, name) for rule in rules] for name in ("prepare", "score"))
        rule = jz.Rule(
            lambda x: jax.lax.switch(which, prepare, x),
            lambda x: jax.lax.switch(which, score, x),
            by_prior=True,
            mass=jz.root.gumbel_interior().mass,
        )
        trees = []
        for rule in (rule, rule._replace(by_prior=False)):
            keys = jax.random.split(jax.random.key(0), games)
            tree = jz.search.plant(*worlds.model.root(world, keys, jnp.zeros(games, jnp.int32)), rule, count + 1)
            trees.append(jz.search.search(world, keys, tree, worlds.model, rule, count))
        return trees

    with worlds.x64():
        widest = 0
        for which in range(len(rules)):
            assert rules[which].by_prior
            shown, seen = run(world, which)
            assert by_path(shown, shown.visits) == by_path(seen, seen.visits)
            widest = max(widest, (worlds.children(shown) >= 0).sum(2).max())
    assert widest > min(32, num_actions - 1)


def test_rescoring_with_other_constants_is_the_choice_of_a_tree_that_had_them_all_along():
    world = worlds.make(range(8), num_actions=6)
    before, after = jz.puct(0.2), jz.puct(5.0)
    tree = worlds.grow(world, before, 30, capacity=40)
    changed = jax.jit(jz.search.rescore, static_argnums=1)(tree, after)
    assert (changed.best_child != tree.best_child).any()
    back = jax.jit(jz.search.rescore, static_argnums=1)(changed, before)
    in_use = np.pad(np.asarray(tree.visits) > 0, ((0, 0), (0, 1)))
    np.testing.assert_array_equal(np.where(in_use, back.best_child, 0), np.where(in_use, tree.best_child, 0))
    below = worlds.children(tree)
    for game in range(8):
        root = ref.search(worlds.pick(world, game), 0, ref.puct(0.2), num_simulations=30)
        nodes = ref.by_path(root)
        for i, path in worlds.paths(below[game]).items():
            action = ref.best(nodes[path], ref.puct(5.0), 0)
            expected = -1 if action is None else below[game, i, action]
            assert changed.best_child[game, i] == expected, f"game {game}, {path}"


def test_rescoring_for_a_rule_that_sees_all_edges():
    world = worlds.make(range(8), num_actions=6)
    tree = worlds.grow(world, jz.puct(), 30, capacity=40)
    rescore = jax.jit(jz.search.rescore, static_argnums=1)
    seen, shown = (rescore(tree, jz.puct(5.0)._replace(by_prior=promise)) for promise in (False, True))
    np.testing.assert_array_equal(seen.best_child, shown.best_child)


# --- keys ------------------------------------------------------------------------------------------------------------


def chancy(num_actions=3):
    """A world whose steps are drawn with the key that the search hands over."""

    def say(keys, state):
        zeros = jnp.zeros(len(state))
        value = jax.vmap(lambda key: jax.random.uniform(key, (), minval=-1))(keys)
        return jz.Step(jnp.zeros((len(state), num_actions)), value, zeros, zeros + 1), value

    return jz.Model(lambda params, keys, state: say(keys, state), lambda params, keys, action, state: say(keys, state))


def test_a_draw_depends_on_the_games_key_and_the_simulation_alone():
    keys, model, rule = jax.random.split(jax.random.key(5), 6), chancy(), jz.puct()

    @jax.jit
    def run(keys):
        tree = jz.search.plant(*model.root((), keys, jnp.zeros(len(keys))), rule, 13)
        return jz.search.search((), keys, tree, model, rule, 12).state

    drawn = run(keys)
    for simulation in range(12):
        key = jax.random.fold_in(keys[2], simulation)
        assert drawn[2, simulation + 1] == jax.random.uniform(key, (), minval=-1)
    np.testing.assert_array_equal(run(keys[::-1]), drawn[::-1])
    np.testing.assert_array_equal(run(keys[3:4]), drawn[3:4])
    assert len(np.unique(drawn[:, :13])) == 6 * 13


@pytest.mark.slow
def test_simulation_keys_can_be_derived_otherwise():
    keys, model, rule = jax.random.split(jax.random.key(5), 2), chancy(), jz.puct()
    tree = jz.search.plant(*model.root((), keys, jnp.zeros(2)), rule, 4)
    same = jz.search.search((), keys, tree, model, rule, 3, simulation_keys=lambda keys, simulation: keys)
    assert (same.state[:, 1:4] == same.state[:, 1:2]).all()
    folded = fold_simulation(keys, jnp.array([4, 9]))
    assert (jax.random.key_data(folded[1]) == jax.random.key_data(jax.random.fold_in(keys[1], 9))).all()


@pytest.mark.parametrize("build", [jz.alphazero, jz.gumbel, jz.uct])
def test_what_a_search_says_can_be_a_target_of_the_parameters_it_used(build):
    """The loss of AlphaZero, differentiated together with the search that makes its targets."""

    def network(params, observation):
        logits = observation.reshape(len(observation), -1) @ params["policy"]
        return logits, jnp.tanh(observation.reshape(len(observation), -1) @ params["value"])

    game = games.from_pgx("tic_tac_toe")
    params = {"policy": jnp.full((18, 9), 0.1), "value": jnp.full(18, 0.1)}
    policy, keys = build(models.perfect(game, network), 6), jax.random.split(jax.random.key(0), 2)
    state = jax.vmap(game.init)(keys)
    seen = jax.vmap(game.observe)(jax.vmap(game.step)(state, jnp.array([0, 4]), keys))

    def loss(params, weights=None):
        weights = policy(params, keys, state).action_weights if weights is None else weights
        logits, value = network(params, seen)
        return -(jax.lax.stop_gradient(weights) * jax.nn.log_softmax(logits)).sum() + value.sum()

    together = jax.jit(jax.grad(loss))(params)
    apart = jax.grad(loss)(params, policy(params, keys, state).action_weights)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), together, apart)
    assert abs(together["policy"]).max() > 0.01
