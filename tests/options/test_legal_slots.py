"""A tree over slots is the tree over actions, path by path; what does not fit is dropped, and counted."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.options.legal_slots import of_legal, of_slots
from jaxzero.options.slot_actions import slots_of
from tests import worlds

SLOW, REST = pytest.mark.slow, (pytest.mark.slow, pytest.mark.exhaustive)
GAMES, ACTIONS = 64, 12
KINDS = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]


def sparse(first_seed=0, players=2, share=0.45, most=None, **options):
    """Worlds in which less than half of the actions are legal, and the most legal actions of any state."""
    world = worlds.make(
        range(first_seed, first_seed + GAMES), KINDS, num_actions=ACTIONS, num_players=players, **options
    )
    rng = np.random.default_rng(first_seed)
    one = np.argmax(world.legal, -1)[..., None] == np.arange(ACTIONS)
    legal = world.legal & ((rng.random(world.legal.shape) < share) | one)
    if most is not None:  # the last ones go
        legal = legal & (np.cumsum(legal, -1) <= most)
    return world._replace(legal=legal), int(legal.sum(-1).max())


def over(model, width):
    return of_slots("with_legal_slots", model, lambda keys, step: of_legal(step, width))


def by_path(tree):
    """For each game the visits, value, prior and reward of every node, by the actions that lead there."""
    below, state = worlds.children(tree), tree.state
    ids = np.asarray(state.action) if isinstance(state, jz.options.Slots) else np.arange(tree.num_edges)
    ids = np.broadcast_to(ids, (below.shape[0], tree.capacity + 1, tree.num_edges))
    visits, value, raw = (np.asarray(x) for x in (tree.visits, tree.value, tree.raw_value))
    facts = np.asarray(tree.facts)[:, :-1, 1:]  # without the number of the edge
    found = []
    for game, table in enumerate(below):
        paths, todo = {0: ()}, [0]
        while todo:
            parent = todo.pop()
            for slot in np.flatnonzero(table[parent] >= 0):
                paths[int(table[parent, slot])] = (*paths[parent], int(ids[game, parent, slot]))
                todo.append(int(table[parent, slot]))
        found.append(
            {path: (visits[game, n], value[game, n], raw[game, n], facts[game, n]) for n, path in paths.items()}
        )
    return found


def assert_same_trees(slotted, dense):
    for x, y in zip(by_path(slotted), by_path(dense), strict=True):
        assert {path: node[0] for path, node in x.items()} == {path: node[0] for path, node in y.items()}
        for path in y:
            for a, b in zip(x[path][1:], y[path][1:]):
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


# --- random worlds, in float64: whole trees --------------------------------------------------------------------------


@functools.cache
def searches(name, players, simulations, width, **options):
    """The trees without and with slots; root draws, by action, are the same."""
    rule, root_rule = {
        "puct": (jz.puct(), jz.search.with_root_prior(jz.puct())),
        "muzero": (jz.muzero_puct(), jz.search.with_root_prior(jz.muzero_puct())),
        "ucb1": (jz.ucb1(), None),
        "gumbel": (jz.root.gumbel_interior(), jz.root.gumbel_root(simulations, 8)),
    }[name]

    def grow(model, world, noise):
        keys = jax.random.split(jax.random.key(0), GAMES)
        tree = jz.search.plant(*model.root(world, keys, jnp.zeros(GAMES, jnp.int32)), rule, simulations + 1)
        if root_rule is not None:
            if isinstance(tree.state, jz.options.Slots):
                noise = jnp.take_along_axis(noise, jnp.maximum(tree.state.action[:, 0], 0).astype(int), 1)
            clean = tree.prior[:, 0]
            noise = clean + noise if name == "gumbel" else 0.75 * clean + 0.25 * jnp.exp(noise)
            noise = jnp.where(jnp.isneginf(clean), -jnp.inf, noise)
            tree = tree.replace(root=tree.root.replace(prior=noise))
        return jz.search.search(world, keys, tree, model, rule, simulations, root_rule=root_rule, **options)

    return jax.jit(
        lambda world, noise: (grow(over(worlds.model, width), world, noise), grow(worlds.model, world, noise))
    )


def check(name, players=2, simulations=40, width=9, batches=1, first_seed=0, **options):
    with worlds.x64():
        for batch in range(batches):
            world, most = sparse(first_seed + GAMES * batch, players, most=width, dtype=np.float64)
            noise = np.random.default_rng(batch).gumbel(size=(GAMES, ACTIONS))
            slotted, dense = searches(name, players, simulations, width, **options)(world, noise)
            assert most == width and slotted.num_edges == width
            assert (np.asarray(slotted.state.dropped) == 0).all()
            np.testing.assert_array_equal(slotted.status, dense.status)
            assert_same_trees(slotted, dense)


@SLOW
@pytest.mark.parametrize("name", ["puct", "gumbel"])
def test_whole_trees_over_slots_are_those_over_actions(name):
    check(name)


@SLOW
@pytest.mark.parametrize(
    "name, options",
    [
        ("puct", dict()),
        pytest.param("gumbel", dict(), marks=REST),
        ("muzero", dict(players=3)),
        pytest.param("ucb1", dict(max_depth=4), marks=REST),
        pytest.param("puct", dict(simulations=60, width=5), marks=REST),
    ],
)
def test_whole_trees_in_more_worlds(name, options):
    check(name, batches=5, first_seed=1000, **options)  # 5 x 5 x 64 = 1,600 cases


@pytest.mark.slow
@pytest.mark.parametrize("name", ["puct", pytest.param("gumbel", marks=REST)])
def test_a_world_of_the_size_of_chess(name):
    with worlds.x64():
        model = worlds.hashed(4672, jnp.float64, one_in=156)
        build = {
            "puct": lambda model: jz.alphazero(model, 100, dirichlet_fraction=0.0, act=jz.most_visited),
            "gumbel": lambda model: jz.gumbel(model, 100, gumbel_scale=0.0),
        }[name]
        keys, state = jax.random.split(jax.random.key(0), 3), jnp.arange(3, dtype=jnp.uint32) * 977 + 5
        dense = jax.jit(build(model))((), keys, state)
        out = jax.jit(jz.options.with_legal_slots(build, model, 64))((), keys, state)
        assert_same_trees(out.tree, dense.tree)
    assert_same_outputs(out, dense)
    legal = (np.asarray(slots_of(out.tree).action)[:, :-1] >= 0).sum(-1)[np.asarray(out.tree.visits) > 0]
    assert 25 < legal[legal > 0].mean() < 35 and (out.info.dropped == 0).all()


def assert_same_outputs(out, dense, weights=1e-6):
    np.testing.assert_array_equal(out.action, dense.action)
    np.testing.assert_array_equal(out.info.summary.visits, dense.info.summary.visits)
    for x, y in [(out.action_weights, dense.action_weights), (out.value, dense.value)]:
        np.testing.assert_allclose(x, y, atol=weights)
    for x, y in zip(out.info.summary[1:], dense.info.summary[1:]):
        np.testing.assert_allclose(x, y, atol=weights)
    np.testing.assert_array_equal(out.info.status, dense.info.status)
    np.testing.assert_array_equal(out.info.size, dense.info.size)


def othello(plies, batch):
    """A game, a network that is a fixed random projection, and positions after random plies."""
    game = games.from_pgx("othello")
    rng = np.random.default_rng(0)
    weights = jnp.asarray(rng.normal(size=(128, 66)) / 5, jnp.float32)

    def network(params, observation):
        answer = observation.reshape(len(observation), -1).astype(jnp.float32) @ weights
        return answer[:, :65], jnp.tanh(answer[:, 65])

    keys = jax.random.split(jax.random.key(1), batch)
    state = jax.vmap(game.init)(keys)

    def ply(i, state):
        own = jax.vmap(jax.random.fold_in)(keys, jnp.full(batch, i))
        legal = jax.vmap(game.legal)(state)
        action = jax.vmap(lambda key, mask: jax.random.categorical(key, jnp.where(mask, 0.0, -jnp.inf)))(own, legal)
        played = jax.vmap(game.step)(state, action, own)
        on = i < jnp.arange(batch) * plies // batch
        return jax.tree.map(lambda x, y: jnp.where(on.reshape(-1, *[1] * (x.ndim - 1)), x, y), played, state)

    return models.perfect(game, network), keys, jax.jit(lambda: jax.lax.fori_loop(0, plies, ply, state))()


@SLOW
@pytest.mark.parametrize("name", ["puct", "gumbel"])
def test_othello(name):
    model, keys, state = othello(plies=54, batch=8)
    build = {
        "puct": lambda model: jz.alphazero(model, 100, dirichlet_fraction=0.0, act=jz.most_visited),
        "gumbel": lambda model: jz.gumbel(model, 100, gumbel_scale=0.0),
    }[name]
    dense = jax.jit(build(model))((), keys, state)
    out = jax.jit(jz.options.with_legal_slots(build, model, 34))((), keys, state)
    assert_same_outputs(out, dense, 1e-4)
    assert (out.info.dropped == 0).all()
    for x, y in zip(by_path(out.tree), by_path(dense.tree)):
        assert {path: node[0] for path, node in x.items()} == {path: node[0] for path, node in y.items()}


# --- fewer slots than legal moves ------------------------------------------------------------------------------------


def oracle(logits, legal, width):
    """Which actions are kept of one state, in ascending order."""
    return sorted(sorted(np.flatnonzero(legal), key=lambda action: (-logits[action], action))[:width])


@pytest.mark.slow
@pytest.mark.parametrize("width", [pytest.param(1, marks=REST), 3, pytest.param(ACTIONS, marks=REST)])
def test_the_best_by_prior_are_kept_and_the_others_counted(width):
    world, most = sparse(share=0.8)
    keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)
    kept = np.zeros_like(world.legal)
    for game, state in np.ndindex(*world.terminal.shape):
        kept[game, state, oracle(world.logits[game, state], world.legal[game, state], width)] = True
    build = lambda model: jz.alphazero(model, 30, dirichlet_fraction=0.0, act=jz.most_visited)  # noqa: E731
    out = jax.jit(jz.options.with_legal_slots(build, worlds.model, width))(world, keys, start)
    thinned = jax.jit(build(worlds.model))(world._replace(legal=kept), keys, start)
    assert most > 5
    assert_same_outputs(out, thinned)
    left_out = np.where(world.terminal, 0, world.legal.sum(-1) - kept.sum(-1))
    for game in range(GAMES):
        nodes = np.flatnonzero(out.tree.visits[game])
        ids, at = np.asarray(out.tree.state.action[game, nodes]), np.asarray(out.tree.state.state[game, nodes])
        for actions, state in zip(ids, at):
            wanted = [] if world.terminal[game, state] else np.flatnonzero(kept[game, state]).tolist()
            assert actions.tolist() == wanted + [-1] * (width - len(wanted))
        assert out.info.dropped[game] == left_out[game, at].sum()
        assert out.info.dropped_at_root[game] == left_out[game, 0]
    assert (np.asarray(out.info.dropped).max() > 0) == (width < ACTIONS)


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, pytest.param(4, marks=REST)])
def test_what_is_not_finite_is_kept_and_reported(width):
    def model(logits):
        zeros = jnp.zeros(1)
        step = jz.Step(jnp.asarray([logits]), zeros, zeros, zeros, jnp.array([[True, True, False, True, True]]))
        return jz.Model(lambda *given: (step, zeros), lambda *given: (step, zeros))

    build = lambda model: jz.alphazero(model, 4, dirichlet_fraction=0.0)  # noqa: E731
    for logits, bad in [
        ([0.0, 1.0, 9.0, jnp.nan, -jnp.inf], True),
        ([0.0, jnp.inf, 0.0, 0.0, 0.0], True),
        ([-jnp.inf] * 5, True),
        ([0.0, -jnp.inf, jnp.nan, 0.0, -jnp.inf], False),
    ]:
        out = jz.options.with_legal_slots(build, model(logits), width)(
            (), jax.random.split(jax.random.key(0), 1), jnp.zeros(1)
        )
        assert bool(out.info.status[0] & jz.Status.NON_FINITE) == bad
        kept = np.asarray(out.tree.state.action[0, 0]).tolist()
        assert len(kept) == width and set(kept) <= {0, 1, 3, 4} and (3 in kept or not np.isnan(logits[3]))
        assert np.isfinite(out.action_weights).all() and out.action_weights[0, 2] == 0


# --- from move to move, and what else there is -----------------------------------------------------------------------

PARTS = {
    "puct": lambda model: jz.alphazero(model, 24, dirichlet_fraction=0.0, act=jz.most_visited),
    "muzero": lambda model: jz.muzero(model, 24, dirichlet_fraction=0.0, act=jz.most_visited),
    "uct": lambda model: jz.uct(model, 24),
    "gumbel": lambda model: jz.gumbel(model, 24, gumbel_scale=0.0),
    "parallel": lambda model: jz.uct(model, 24, simulate=jz.parallel(4)),
    "proven": lambda model: jz.uct(model, 24, rule=jz.avoid_proven(jz.puct(), -9, 9)),
    "graph": lambda model: jz.uct(model, 24, rule=jz.puct(), simulate=jz.transpositions()),
    "graph_by_state": lambda model: jz.uct(
        model,
        24,
        rule=jz.puct(),
        simulate=jz.transpositions(lambda x: x.state if isinstance(x, jz.options.Slots) else x),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=REST if n in ("muzero", "graph", "uct") else SLOW) for n in PARTS]
)
def test_parts_compose(name):
    with worlds.x64():
        world, most = sparse(7, dtype=np.float64)
        keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)
        dense = jax.jit(PARTS[name](worlds.model))(world, keys, start)
        out = jax.jit(jz.options.with_legal_slots(PARTS[name], worlds.model, most))(world, keys, start)
        assert_same_outputs(out, dense)
        if "graph" in name:
            np.testing.assert_array_equal(jz.options.num_positions(out.tree), jz.options.num_positions(dense.tree))
            assert (jz.options.num_positions(out.tree) < 25).any()


@SLOW
def test_rollouts_draw_with_the_same_keys():
    game = games.from_pgx("tic_tac_toe")
    build, model = (lambda model: jz.uct(model, 50)), models.rollout(game)
    keys = jax.random.split(jax.random.key(0), 4)
    state = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.arange(4), keys)
    assert_same_outputs(
        jax.jit(jz.options.with_legal_slots(build, model, 8))((), keys, state), jax.jit(build(model))((), keys, state)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["statistics", pytest.param("evaluations", marks=REST)])
def test_moves_with_reuse_are_those_over_actions(kept):
    with worlds.x64():
        world, most = sparse(3, dtype=np.float64)
        keys, state, rows = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32), jnp.arange(GAMES)
        part = lambda model: jz.alphazero(model, 16, capacity=60, dirichlet_fraction=0.0, act=jz.most_visited)  # noqa: E731
        if kept == "evaluations":
            build = lambda model: jz.options.with_evaluations_kept(part, model)  # noqa: E731
        else:
            build = part
        dense, slotted = jax.jit(build(worlds.model)), jax.jit(jz.options.with_legal_slots(build, worlds.model, most))
        advance = jax.jit(jz.advance)
        trees, known = (None, None), 0
        for move in range(4):
            wanted = dense(world, keys, state, trees[0])
            out = slotted(world, keys, state, trees[1])
            assert_same_outputs(out, wanted)
            known += int((out.info.size != 17).sum())
            if kept == "evaluations":
                np.testing.assert_array_equal(jz.options.num_kept(out.tree), jz.options.num_kept(wanted.tree))
                known += int(jz.options.num_kept(out.tree).sum())
            # own move, and a random reply, which may be in no tree
            reply = jnp.asarray(np.random.default_rng(move).integers(ACTIONS, size=GAMES), jnp.int32)
            both = jnp.stack([out.action, reply], 1) if move % 2 else out.action
            moved = advance(out.tree, both)
            trees = advance(wanted.tree, both), moved
            np.testing.assert_array_equal(trees[0].status, moved.status)
            np.testing.assert_array_equal(trees[0].size, moved.size)
            for action in both.T if move % 2 else [both]:
                legal = jnp.asarray(world.legal)[rows, state, action] & ~jnp.asarray(world.terminal)[rows, state]
                state = jnp.where(legal, jnp.asarray(world.successor)[rows, state, action], 0)
        assert known > GAMES


# --- reading ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    world, most = sparse(5)
    keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)
    build = PARTS["puct"]
    out = jax.jit(jz.options.with_legal_slots(build, worlds.model, most))(world, keys, start)
    return world, out, jax.jit(build(worlds.model))(world, keys, start)


def test_slots_and_actions_are_inverse(found):
    _, out, dense = found
    variation = jax.jit(jz.principal_variation, static_argnums=1)
    line, wanted = variation(out.tree, 5), variation(dense.tree, 5)
    actions = jz.options.action_of(out.tree, line)
    np.testing.assert_array_equal(actions, wanted)
    np.testing.assert_array_equal(jz.options.slot_of(out.tree, actions), line)
    assert (wanted[:, 2] >= 0).any() and (wanted[:, 4] < 0).any()
    slot_of, legal = (
        jax.jit(jz.options.slot_of),
        ~np.isneginf(jz.search.edge_view(dense.tree, jnp.zeros(GAMES, int)).prior),
    )
    for action in range(ACTIONS):
        slot, open_ = np.asarray(slot_of(out.tree, jnp.full(GAMES, action))), legal[:, action]
        np.testing.assert_array_equal(slot >= 0, open_)
        assert (slot[~open_] == -2).all()
        back = np.asarray(jz.options.action_of(out.tree, jnp.asarray(slot)))
        np.testing.assert_array_equal(back, np.where(open_, action, -1))


def test_actions_that_have_no_slot(found):
    _, out, _ = found
    stays = jz.options.slot_of(out.tree, jnp.full(GAMES, -1))
    assert (stays == -1).all()
    for action in (99, -7):
        assert (jz.options.slot_of(out.tree, jnp.full(GAMES, action)) == -2).all()
    moved = jz.advance(out.tree, jnp.full(GAMES, 99))
    assert (moved.status == jz.Status.NOT_IN_TREE).all()
    below = jz.options.slot_of(out.tree, jnp.stack([jnp.full(GAMES, 99), out.action], 1))
    assert (below == -2).all()
    first = jz.options.slot_of(out.tree, out.action)
    np.testing.assert_array_equal(
        jz.options.slot_of(out.tree, jnp.stack([jnp.full(GAMES, -1), out.action], 1))[:, 1], first
    )
    assert (jz.options.action_of(out.tree, jnp.full(GAMES, out.tree.num_edges)) == -1).all()


def test_qvalues_by_action(found):
    _, out, dense = found
    spread = jz.options.to_action_space(out.tree, jz.qvalues(out.tree), ACTIONS)
    np.testing.assert_allclose(spread, jz.qvalues(dense.tree), atol=1e-5)
    priors = jz.search.edge_view(out.tree, jnp.ones(GAMES, int)).prior
    spread = jz.options.to_action_space(out.tree, priors, ACTIONS, jnp.ones(GAMES, int), fill=-jnp.inf)
    there = np.asarray(out.tree.visits)[:, 1] > 0
    wanted = jz.search.edge_view(dense.tree, jnp.ones(GAMES, int)).prior
    np.testing.assert_allclose(spread[there], wanted[there], atol=1e-6)


@SLOW
def test_thinking_on_and_a_single_key():
    world, most = sparse(5)
    start = jnp.zeros(GAMES, jnp.int32)
    build = lambda model: jz.alphazero(model, 12, capacity=40, dirichlet_fraction=0.0, act=jz.most_visited)  # noqa: E731
    policy, dense = jax.jit(jz.options.with_legal_slots(build, worlds.model, most)), jax.jit(build(worlds.model))
    key = jax.random.key(4)
    out, wanted = policy(world, key, start), dense(world, key, start)
    assert_same_outputs(policy(world, key, tree=out.tree), dense(world, key, tree=wanted.tree))


@pytest.mark.slow
def test_results_do_not_depend_on_the_batch():
    world, most = sparse(5)
    keys, start = jax.random.split(jax.random.key(0), GAMES), jnp.zeros(GAMES, jnp.int32)
    policy = jax.jit(jz.options.with_legal_slots(lambda model: jz.alphazero(model, 24), worlds.model, most))
    out = policy(world, keys, start)
    few = policy(jax.tree.map(lambda x: x[10:17], world), keys[10:17], start[10:17])
    np.testing.assert_array_equal(few.info.summary.visits, out.info.summary.visits[10:17])
    np.testing.assert_array_equal(few.action, out.action[10:17])


# --- bad input -------------------------------------------------------------------------------------------------------


def refused(function, *parts):
    with pytest.raises(ValueError) as error:
        function()
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_what_is_refused(found):
    world, out, dense = found
    build, keys, start = PARTS["puct"], jax.random.key(0), jnp.zeros(GAMES, jnp.int32)
    wrap = jz.options.with_legal_slots
    refused(lambda: wrap(build, worlds.model, 0), "width=0", "width >= 1")
    refused(lambda: wrap(build, worlds.model, 2.5), "width=2.5", "width >= 1")
    refused(lambda: wrap(build, worlds.model, 13)(world, keys, start), "width=13", "12 actions", "between 1 and 12")
    refused(lambda: wrap(8, worlds.model, 3), "build=8", "lambda model: jz.alphazero(model, 64)")
    refused(lambda: wrap(lambda model: 8, worlds.model, 3), "build(model) returned=8", "lambda model")
    refused(lambda: wrap(build, "network", 3)(world, keys, start), "a str as the model", "models.perfect")
    refused(lambda: wrap(build, worlds.model, 3)(world, keys), "state is None")
    refused(lambda: wrap(build, worlds.model, 3)(world, keys, tree=dense.tree), "another kind of policy", "not slots")
    refused(lambda: wrap(build, worlds.model, 3)(world, keys, tree=out.tree), "Step.prior_logits has shape")
    twice = wrap(lambda model: wrap(build, model, 3), worlds.model, 3)
    refused(lambda: twice(world, keys, start), "slots already", "with_sampled_actions")
    outside = jz.options.with_evaluations_kept(lambda model: wrap(build, model, 3), worlds.model)
    refused(lambda: outside(world, keys, start), "inside with_evaluations_kept", "Put it inside")
    fewer = worlds.model._replace(
        step=lambda *given: (lambda step, state: (step._replace(prior_logits=step.prior_logits[:, :5]), state))(
            *worlds.model.step(*given)
        )
    )
    refused(lambda: wrap(build, fewer, 3)(world, keys, start), "(64, 5) from model.step", "(64, 12) from model.root")
    bare = worlds.model._replace(root=lambda *given: worlds.model.root(*given)[0])
    refused(lambda: wrap(build, bare, 3)(world, keys, start), "model.root returned a Step")


def test_what_reading_refuses(found):
    _, out, dense = found
    refused(lambda: jz.options.slot_of(dense.tree, dense.action), "not slots")
    refused(lambda: jz.options.action_of(dense.tree, dense.action), "not slots")
    refused(lambda: jz.options.to_action_space(dense.tree, jz.qvalues(dense.tree), ACTIONS), "not slots")
    for action in (jnp.zeros(3, int), jnp.zeros(GAMES), jnp.zeros((GAMES, 2, 2), int), jnp.int32(0)):
        refused(lambda: jz.options.slot_of(out.tree, action), "give integers, (64,) for one ply")
        refused(lambda: jz.options.action_of(out.tree, action), "give integers, [64] for one ply")
    refused(lambda: jz.options.to_action_space(out.tree, jnp.zeros((GAMES, 99)), ACTIONS), "(64, 99)", "one per slot")
