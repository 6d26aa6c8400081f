"""Lanes are sequential search where they must be; answers come from anywhere. (Whole trees: search/test_oracle.py.)"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.options.leaf_parallel.batched_halving import round_sizes
from jaxzero.options.leaf_parallel.leaf_batch import lane_keys
from tests import worlds
from tests.compiling import as_users_have_it
from tests.processes import on_four_devices

GAMES = 20
SIMULATIONS = 24


def world_and_keys(num_actions=4, players=2):
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    return worlds.make(range(GAMES), kinds, num_actions=num_actions, num_players=players), jax.random.split(
        jax.random.key(0), GAMES
    )


def visits_of(tree):
    return np.asarray(jz.summary(tree).visits)


MORE = [pytest.param(build, marks=pytest.mark.slow) for build in (jz.gumbel, jz.uct)]


@pytest.mark.parametrize("build", [jz.alphazero, *MORE])
def test_one_lane_is_the_sequential_search_bit_for_bit(build):
    world, keys = world_and_keys(players=3 if build is jz.uct else 2)
    start = jnp.zeros(GAMES, jnp.int32)

    def run(**how):
        policy = build(worlds.model, SIMULATIONS, max_depth=6, **how)
        return jax.jit(policy, compiler_options=as_users_have_it())(world, keys, start)

    plain, lane = run(), run(simulate=jz.parallel(1))
    jax.tree.map(np.testing.assert_array_equal, plain.info, lane.info)
    np.testing.assert_array_equal(plain.action_weights, lane.action_weights)
    used = np.asarray(plain.tree.visits) > 0
    np.testing.assert_array_equal(np.where(used, plain.tree.visits, 0), np.where(used, lane.tree.visits, 0))
    np.testing.assert_array_equal(plain.tree.value[used], lane.tree.value[used])


@pytest.mark.slow
def test_walks_that_ask_nothing_are_simulations_like_others():
    """One lane with free walks is a sequential search of as many simulations, and asks at every step while it can."""
    world, keys = world_and_keys()
    start, rule = jnp.zeros(GAMES, jnp.int32), jz.puct()

    @functools.partial(jax.jit, static_argnums=0)
    def run(how, most=None):
        tree = jz.search.plant(*worlds.model.root(world, keys, start), rule, 400)
        count, stop = (SIMULATIONS, None) if most is None else (300, jz.options.total_visits(most))
        return jz.search.search(world, keys, tree, worlds.model, rule, count, simulate=how, stop=stop)

    free = run(jz.parallel(1, free_walks=9))
    done = free.root.simulations
    assert (np.asarray(done) >= SIMULATIONS).all() and (np.asarray(done) > SIMULATIONS).any()
    np.testing.assert_array_equal(visits_of(free), visits_of(run(jz.search.simulate, done)))
    assert (visits_of(free).sum(-1) <= done).all()
    plain = run(jz.search.simulate, jnp.full(GAMES, SIMULATIONS))
    assert (jz.options.num_evaluations(free) >= jz.options.num_evaluations(plain)).all()
    assert (jz.options.num_evaluations(free) > jz.options.num_evaluations(plain)).any()


@pytest.mark.slow
def test_free_walks_of_several_lanes_keep_the_laws():
    world, keys = world_and_keys()
    policy = jz.alphazero(worlds.model, SIMULATIONS, simulate=jz.parallel(4, free_walks=3), capacity=200)
    out = jax.jit(policy)(world, keys, jnp.zeros(GAMES, jnp.int32))
    going = ~np.asarray(out.tree.facts[:, 0, 6] > 0) & (visits_of(out.tree).sum(-1) > 0)  # neither over nor stuck
    np.testing.assert_array_equal(visits_of(out.tree).sum(-1)[going], np.asarray(out.tree.root.simulations)[going])
    assert (np.asarray(out.tree.root.simulations) > SIMULATIONS).any() and out.tree.in_flight is None


def test_a_budget_of_evaluations():
    world, keys = world_and_keys()
    policy = jz.alphazero(worlds.model, 60, stop=jz.options.max_evaluations(9))
    out = jax.jit(policy)(world, keys, jnp.zeros(GAMES, jnp.int32))
    done, made = np.asarray(jz.options.num_evaluations(out.tree)), np.asarray(out.tree.root.simulations)
    assert (done <= 9).all() and ((done == 9) | (made == 60)).all() and (done == 9).sum() > GAMES / 2


@pytest.mark.slow
def test_a_budget_of_evaluations_is_looked_at_between_the_steps_of_lanes():
    model, keys, states = board()
    policy = jz.alphazero(model, 40, stop=jz.options.max_evaluations(10), simulate=jz.parallel(4))
    done = np.asarray(jz.options.num_evaluations(jax.jit(policy)((), keys, states).tree))  # lanes that meet ask once
    assert (done >= 10).all() and done.max() == 13  # 1 + 4 + 4 + 4


@pytest.mark.slow
def test_evaluations_less_those_kept_are_those_asked_for():
    """In an endgame, where many nodes are the end of the game: those are evaluated by nobody."""
    game, asked = games.from_pgx("tic_tac_toe"), []
    keys = jax.random.split(jax.random.key(0), 1)
    state = jax.vmap(game.init)(keys)
    for action in (0, 4, 8, 2):
        state = jax.vmap(game.step)(state, jnp.full(1, action), keys)

    def network(params, seen):
        return jnp.zeros((len(seen), 9)), jnp.zeros(len(seen))

    bare = models.perfect(game, network)

    def step(params, keys, action, position):
        said, below = bare.step(params, keys, action, position)
        jax.debug.callback(lambda over: asked.append(not over[0]), said.terminal)
        return said, below

    policy = jax.jit(
        jz.options.with_evaluations_kept(lambda model: jz.uct(model, 64), bare._replace(step=step, move=None))
    )
    out = policy((), keys, state)
    state = jax.vmap(game.step)(state, out.action, keys)
    jax.effects_barrier()
    asked.clear()
    out = policy((), keys, state, jz.advance(out.tree, out.action))
    jax.block_until_ready(out)
    jax.effects_barrier()
    assert int(jz.options.num_kept(out.tree)[0]) > 2
    assert int((jz.options.num_evaluations(out.tree) - jz.options.num_kept(out.tree))[0]) == sum(asked)


def test_any_number_of_free_walks_can_be_counted():
    world, keys = world_and_keys()
    policy = jz.alphazero(worlds.model, 8, simulate=jz.parallel(2, free_walks=10**9), stop=jz.options.total_visits(8))
    assert jax.eval_shape(policy, world, keys, jnp.zeros(GAMES, jnp.int32)).action.shape == (GAMES,)


@pytest.mark.slow
def test_what_remains_counts_free_walks():
    model, keys, states = board()
    how = dict(simulate=jz.parallel(2, free_walks=3), stop=lambda tree, remaining: (remaining <= 16) | (tree.size < 0))
    out = jax.jit(jz.alphazero(model, 8, **how))((), keys, states)  # 4 steps of at most 2 (1 + 3) simulations
    assert (out.tree.root.simulations == 4).all()


def test_keys_of_lanes_are_no_keys_of_the_game():
    keys = jax.random.split(jax.random.key(3), 4)
    assert (lane_keys(keys, 1) == keys).all()
    of_lanes = lane_keys(keys, 6).reshape(4, 6)
    assert (of_lanes[:, 0] == keys).all()
    others = [jax.vmap(lambda key: jax.random.split(key, 9))(keys)]
    others += [jax.vmap(jax.vmap(jax.random.fold_in, (None, 0)), (0, None))(keys, jnp.arange(9))]
    drawn = [jax.random.key_data(x).reshape(-1, 2) for x in (of_lanes, *others[:1])]
    assert len(np.unique(np.concatenate(drawn), axis=0)) == 4 * (6 + 9)
    assert not np.isin(jax.random.key_data(of_lanes[:, 1:])[..., 0], jax.random.key_data(others[1])[..., 0]).any()


@pytest.mark.slow
def test_a_model_is_asked_of_positions_that_there_are():
    """Whatever a lane asks for: games without a legal move, that have ended, or were stopped, stand by."""
    asked, (world, keys) = [], world_and_keys()

    def root(params, keys, state):
        step, state = worlds.model.root(params, keys, state)
        return step, (state, jnp.full(GAMES, 7))  # unwritten memory holds 0

    def step(params, keys, action, state):
        jax.debug.callback(asked.append, state[1])
        answer, below = worlds.model.step(params, keys, action, state[0])
        return answer, (below, state[1])

    for stop in (None, jz.options.total_visits(jnp.arange(GAMES) % 8)):
        policy = jz.alphazero(jz.Model(root, step), 12, simulate=jz.parallel(3), stop=stop)
        jax.block_until_ready(jax.jit(policy)(world, keys, jnp.zeros(GAMES, jnp.int32)))
        jax.effects_barrier()
    assert len(asked) > 4 and all((np.asarray(marks) == 7).all() for marks in asked)


@pytest.mark.parametrize("level", [0.0, *(pytest.param(x, marks=pytest.mark.slow) for x in (-100.0, 100.0))])
def test_lanes_spread_at_every_scale_of_values(level):
    def say(reward):
        zeros = jnp.zeros_like(reward)
        return jz.Step(jnp.zeros((len(reward), 8)), zeros + level, reward, zeros + 1), zeros

    model = jz.Model(lambda p, k, state: say(0 * state), lambda p, k, action, state: say(0.1 * action))
    policy = jz.muzero(model, 64, dirichlet_fraction=0.0, simulate=jz.parallel(8))
    out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(1))
    assert jz.options.num_evaluations(out.tree)[0] > 50 and visits_of(out.tree)[0].argmax() == 7


def test_first_play_of_edges_in_flight_may_be_a_function():
    view = worlds.edges(visits=[0, 2, 0], value=[0, 0.5, 0], in_flight=[1, 1, 0], node_value=0.25)
    for given, wanted in ((0.0, 0), (-1.0, -1), (jz.search.parent_value, 0.25)):
        seen = jz.options.virtual_visits(given)(view)
        np.testing.assert_allclose(seen.value, [wanted, 0.5, 0])
        assert seen.visits.tolist() == [1, 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["stop", "rounds", "free walks"])
def test_lanes_in_64_bits(how):
    with worlds.x64():
        world, keys = world_and_keys()
        policy = {
            "stop": lambda: jz.alphazero(worlds.model, 12, simulate=jz.parallel(3), stop=jz.options.total_visits(7)),
            "rounds": lambda: jz.gumbel(worlds.model, 12, rounds=jz.options.virtual_mean(), max_considered=4),
            "free walks": lambda: jz.alphazero(worlds.model, 12, simulate=jz.parallel(3, free_walks=2), capacity=40),
        }[how]()
        out = jax.jit(policy)(world, keys, jnp.zeros(GAMES, jnp.int32))
        assert out.tree.root.simulations.dtype == jnp.int32 and (out.tree.root.simulations >= 7).sum() > GAMES / 2


def test_free_walks_in_a_full_tree_are_counted():
    def step(params, keys, action, state):
        zeros = jnp.zeros(action.shape)
        return jz.Step(jnp.zeros((*action.shape, 3)), zeros, action / 2, zeros), state

    model = jz.Model(lambda params, keys, state: step(params, keys, jnp.zeros(state.shape, int), state), step)
    for simulate in (jz.search.simulate, jz.parallel(1, free_walks=3)):
        out = jax.jit(jz.alphazero(model, 16, simulate=simulate, capacity=5))((), jax.random.key(0), jnp.zeros(1))
        assert (out.info.overflows == out.tree.root.simulations - 4).all() and out.info.status[0] == jz.Status.FULL


@pytest.mark.slow
def test_what_is_known_is_not_asked_again_for_lanes_that_ask_nothing():
    model, keys, states = board()
    keys, states, calls = keys[:1], jax.tree.map(lambda x: x[:1], states), []
    game = games.from_pgx("tic_tac_toe")
    for action in (0, 1):  # so that the first action is illegal
        states = jax.vmap(game.step)(states, jnp.full(1, action), keys)

    def counted(params, keys, action, state):
        jax.debug.callback(lambda: calls.append(1))
        return model.step(params, keys, action, state)

    def build(model):
        return jz.alphazero(model, 16, dirichlet_fraction=0.0, simulate=jz.parallel(4))

    policy = jax.jit(jz.options.with_evaluations_kept(build, jz.Model(model.root, counted)))
    out = policy((), keys, states)
    jax.block_until_ready(out)
    jax.effects_barrier()
    assert len(calls) == 4
    again = policy((), keys, states, jax.jit(jz.advance)(out.tree, jnp.full(1, -1)))
    jax.block_until_ready(again)
    jax.effects_barrier()
    assert len(calls) == 4 and (visits_of(again.tree) == visits_of(out.tree)).all()


def board():
    game = games.from_pgx("tic_tac_toe")
    weights = jax.random.normal(jax.random.key(1), (18, 10)) / 4

    def network(params, observation):
        out = jnp.tanh(observation.reshape(len(observation), -1) @ weights)
        return out[:, :9], out[:, 9]

    keys = jax.random.split(jax.random.key(0), 6)
    return models.perfect(game, network), keys, jax.vmap(game.init)(keys)


@pytest.mark.slow
def test_ask_and_tell_is_parallel_with_the_evaluations_made_elsewhere():
    model, keys, states = board()
    rule, lanes = jz.puct(), 4

    def planted():
        return jz.search.enter(jz.search.plant(*model.root((), keys, states), rule, 41), rule)

    compiled = functools.partial(jax.jit, compiler_options=as_users_have_it())
    ask = compiled(lambda keys, tree, path: jz.options.ask((), keys, tree, path, model, rule, rule, lanes=lanes))
    tell = compiled(lambda question, *answer: jz.options.tell(question, *answer, rule))
    both = compiled(lambda keys, tree, path: jz.parallel(lanes)((), keys, tree, path, model, rule, rule))
    (tree, path), (wanted, other), needed = planted(), planted(), 0
    for i in range(10):
        step_keys = jax.vmap(jax.random.fold_in)(keys, jnp.full(6, i))
        question = ask(step_keys, tree, path)
        logits, value = map(np.array, model.evaluate((), step_keys, question.position))  # outside
        rubbish = ~np.asarray(question.needed)
        logits[rubbish], value[rubbish] = 7, -7
        tree, path = tell(question, logits, value)
        wanted, other = both(step_keys, wanted, other)
        needed += question.needed.reshape(6, lanes).sum(-1)
    jax.tree.map(np.testing.assert_array_equal, jz.summary(tree), jz.summary(wanted))
    np.testing.assert_array_equal(tree.visits, wanted.visits)
    np.testing.assert_array_equal(jz.options.num_evaluations(tree), needed + 1)


@pytest.mark.slow
def test_lanes_at_the_end_of_a_game_call_no_network():
    model, keys, _ = board()
    game, calls = games.from_pgx("tic_tac_toe"), []
    states = jax.vmap(game.init)(keys)
    for action in (0, 1, 2, 4, 3, 5, 7, 6):  # one square is left
        states = jax.vmap(game.step)(states, jnp.full(6, action), keys)

    def counted(params, keys, position):
        jax.debug.callback(lambda: calls.append(1))
        return model.evaluate(params, keys, position)

    policy = jax.jit(jz.alphazero(model._replace(evaluate=counted), 8, simulate=jz.parallel(2)))
    out = jax.block_until_ready(policy((), keys, states))
    jax.effects_barrier()
    assert not calls and (jz.options.num_evaluations(out.tree) == 1).all() and (visits_of(out.tree)[:, 8] == 8).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "num_actions, simulations, considered",
    [(20, 16, 16), (3, 9, 4), pytest.param(6, 20, 8, marks=pytest.mark.exhaustive)],
)
def test_rounds_make_every_simulation(num_actions, simulations, considered):
    world, keys = world_and_keys(num_actions)
    start = jnp.zeros(GAMES, jnp.int32)
    how = dict(max_considered=considered, gumbel_scale=1.0)
    plain, rounds = (
        jax.jit(jz.gumbel(worlds.model, simulations, rounds=virtual, **how))(world, keys, start)
        for virtual in (None, jz.options.virtual_mean())
    )
    np.testing.assert_array_equal(rounds.tree.root.simulations, simulations)
    np.testing.assert_array_equal(visits_of(rounds.tree).sum(-1), visits_of(plain.tree).sum(-1))
    if simulations == considered:  # no halving follows the first round, where there are enough actions
        enough = np.asarray(world.legal[:, 0].sum(-1)) >= considered
        assert enough.sum() > 5
        np.testing.assert_array_equal(visits_of(plain.tree)[enough], visits_of(rounds.tree)[enough])
        np.testing.assert_array_equal(np.asarray(plain.action)[enough], np.asarray(rounds.action)[enough])
        np.testing.assert_allclose(plain.action_weights[enough], rounds.action_weights[enough], atol=1e-5)


@pytest.mark.slow
def test_rounds_do_not_depend_on_the_other_games():
    world, keys = world_and_keys(9)
    policy = jz.gumbel(worlds.model, 20, rounds=jz.options.virtual_mean(), max_considered=8)
    start = jnp.zeros(GAMES, jnp.int32)
    together = visits_of(jax.jit(policy)(world, keys, start).tree)
    few = jax.tree.map(lambda x: x[5:9], world)
    np.testing.assert_array_equal(together[5:9], visits_of(jax.jit(policy)(few, keys[5:9], start[5:9]).tree))


def test_published_round_sizes():
    calls = {(16, 32): 4, (16, 50): 12, (16, 64): 15, (32, 128): 27, (32, 800): 155}
    assert {case: len(round_sizes(*case)) for case in calls} == calls
    assert all(sum(round_sizes(*case)) == case[1] for case in calls)


def refused(call, *parts):
    with pytest.raises(ValueError) as error:
        call()
    assert all(part in str(error.value) for part in parts), error.value


ON_FOUR_DEVICES = """
import re
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec
import jaxzero as jz
from jaxzero import games, models

game = games.from_pgx("connect_four")
params = jax.random.normal(jax.random.key(1), (6 * 7 * 2, 8)) / 4

def network(params, observation):
    both = jnp.tanh(observation.reshape(len(observation), -1) @ params)
    return both[:, :7], both[:, 7]

assert len(jax.devices()) == 4
mesh = jax.sharding.Mesh(np.reshape(jax.devices(), (2, 2)), ("hosts", "chips"))
model = models.perfect(game, network)
keys = jax.random.split(jax.random.key(0), 1)
states = jax.vmap(game.init)(keys)
found = {}
for name, model in (("one", model), ("four", jz.models.over_devices(model, mesh))):
    run = jax.jit(jz.alphazero(model, 64, simulate=jz.parallel(8)))
    if name == "four":
        given = jax.device_put((params, keys, states), NamedSharding(mesh, PartitionSpec()))
        program = run.lower(*given).compile().as_text()
        assert "all-gather" in program and re.search(r"f32\\[2,84\\]", program), "two positions for each device"
        found[name] = run(*given)
    else:
        found[name] = run(params, keys, states)
one, four = (jax.device_get(found[name].tree) for name in found)
np.testing.assert_array_equal(one.visits, four.visits)
jax.tree.map(np.testing.assert_array_equal, one.state, four.state)
np.testing.assert_allclose(one.value, four.value, atol=1e-6)
try:
    jax.jit(jz.alphazero(jz.models.over_devices(model, mesh), 66, simulate=jz.parallel(6)))(*given)
except ValueError as error:
    assert "6 positions" in str(error) and "4 devices" in str(error) and "parallel(4)" in str(error)
    print("the same on four")
"""


@pytest.mark.slow
def test_one_game_on_four_devices_is_the_game_on_one():
    found = on_four_devices(ON_FOUR_DEVICES)
    assert found.stdout == "the same on four\n", found.stderr


@pytest.mark.slow
def test_what_lanes_refuse():
    world, keys = world_and_keys()
    start = jnp.zeros(GAMES, jnp.int32)
    refused(lambda: jz.parallel(0), "lanes=0", "lanes >= 1")
    refused(lambda: jz.parallel(2, virtual=3), "virtual=3", "virtual_visits()")
    refused(lambda: jz.parallel(2, free_walks=-1), "free_walks=-1", "0 or more")
    refused(
        lambda: jz.parallel(2, jz.options.virtual_mean), "virtual=virtual_mean: it builds", "Call it: virtual_mean(...)"
    )
    refused(
        lambda: jz.gumbel(worlds.model, 8, rounds=jz.options.virtual_loss), "rounds=virtual_loss: it builds", "Call it"
    )
    refused(lambda: jz.options.virtual_loss(weight=0), "weight=0", "weight >= 1")
    refused(lambda: jz.options.max_evaluations(0), "max_evaluations(0)", "n >= 1")
    policy = jz.alphazero(worlds.model, 30, simulate=jz.parallel(8))
    refused(lambda: policy(world, keys, start), "num_simulations=30 with 8", "a multiple of 8, like 32")
    tree, path = jz.search.enter(jz.search.plant(*worlds.model.root(world, keys, start), jz.puct(), 9), jz.puct())
    rules = jz.puct(), jz.puct()
    divided = worlds.model._replace(move=worlds.model.step, evaluate=worlds.model.root)
    auto = jax.sharding.Mesh(jax.devices()[:1], ("devices",))
    explicit = jax.sharding.Mesh(jax.devices()[:1], ("devices",), axis_types=(jax.sharding.AxisType.Explicit,))
    refused(lambda: jz.models.over_devices(worlds.model, auto), "Model.move is None", "models.perfect")
    refused(lambda: jz.models.over_devices(divided, explicit), "Explicit", "jax.sharding.Mesh(devices, ('devices',))")
    game = games.from_pgx("tic_tac_toe")
    policy = jz.uct(
        jz.models.over_devices(models.rollout(game, rollouts=2), auto), 8, simulate=jz.parallel(4)
    )  # has loops
    assert jax.eval_shape(policy, (), keys[:1], jax.vmap(game.init)(keys[:1])).action.shape == (1,)
    refused(
        lambda: jz.options.ask(world, keys, tree, path, worlds.model, *rules), "Model.move is None", "models.perfect"
    )
    refused(lambda: jz.gumbel(worlds.model, 8, rounds=3), "rounds=3", "virtual_mean()")
    refused(lambda: jz.gumbel(worlds.model, 8, wrap=3), "gumbel: wrap=3", "avoid_proven")
    both = dict(rounds=jz.options.virtual_mean(), simulate=jz.parallel(2))
    refused(lambda: jz.gumbel(worlds.model, 8, **both), "rounds=...", "Leave out the one or the other")
    refused(lambda: jz.gumbel(worlds.model, 8, stop=jz.decided), "stop=decided", "stop=solved")
