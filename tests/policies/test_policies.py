"""Policies: the parts put together, resumed, under transformations, with one key per game."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.search.checks.argument_checks import one_per_game
from tests import reference as ref
from tests import worlds
from tests.compiling import as_users_have_it

GAMES, SIMULATIONS = 20, 16
MODEL = worlds.model


def world_of(players=2):
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    return worlds.make(range(GAMES), kinds, num_players=players, dtype=np.float64)


def keys_of(seed=0, games=GAMES):
    return jax.random.split(jax.random.key(seed), games)


START = np.zeros(GAMES, np.int32)

# A policy, and what the reference makes of a game and of what the policy drew for it: `(world, prior drawn) -> root`.
POLICIES = {
    "alphazero": (
        jz.alphazero(MODEL, SIMULATIONS, act=jz.most_visited),
        lambda world, prior: ref.search(world, 0, ref.puct(), None, SIMULATIONS, root_prior=prior),
    ),
    "muzero": (
        jz.muzero(MODEL, SIMULATIONS, act=jz.most_visited),
        lambda world, prior: ref.search(world, 0, ref.muzero_puct(), None, SIMULATIONS, root_prior=prior),
    ),
    "uct": (jz.uct(MODEL, SIMULATIONS), lambda world, prior: ref.search(world, 0, ref.ucb1(), None, SIMULATIONS)),
    "gumbel": (
        jz.gumbel(MODEL, SIMULATIONS, max_considered=3),
        lambda world, prior: ref.search(
            world, 0, ref.gumbel_interior(), ref.gumbel_root(draws(world, prior), SIMULATIONS, 3), SIMULATIONS
        ),
    ),
}


def draws(world, in_force):
    """The Gumbel draws of a game, from what is in force at its root: draws plus logits."""
    legal = world.legal[0] & ~world.terminal[0]
    top = max(world.logits[0][legal], default=0)
    return np.where(legal, np.asarray(in_force) - (world.logits[0] - top), 0).tolist()


@pytest.mark.parametrize("players", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_the_reference_with_the_noise_it_drew(name, players):
    policy, reference = POLICIES[name]
    world, proved = world_of(players), 0
    with worlds.x64():
        out = jax.device_get(jax.jit(policy)(world, keys_of(), START))
    for game in range(GAMES):
        table = worlds.pick(world, game)
        prior = None if name == "uct" else np.maximum(out.tree.root.prior[game], -1e30)
        root = reference(table, prior if prior is None or name == "gumbel" else np.maximum(prior, 0).tolist())
        if ref.margin(root) < 1e-9:
            continue
        proved += 1
        visits = ref.visits(root)
        assert out.info.summary.visits[game].tolist() == visits, f"game {game}"
        np.testing.assert_allclose(out.value[game], root.value, atol=1e-9)
        legal = np.array(root.legal) & (not root.terminal)
        if not legal.any():
            assert out.action[game] == 0 and len(set(out.action_weights[game])) == 1
        elif name == "gumbel":
            drawn = draws(table, prior)
            assert out.action[game] == ref.gumbel_action(root, drawn)
            np.testing.assert_allclose(out.action_weights[game], ref.improved_policy(root), atol=1e-9)
        else:
            most = np.where(legal, visits, -1)
            tied = np.where(most == most.max(), np.round(ref.qvalues(root), 9), -np.inf)  # the best value breaks ties
            assert out.action[game] in np.flatnonzero(tied == tied.max())
            np.testing.assert_allclose(out.action_weights[game], np.array(visits) / SIMULATIONS, atol=1e-9)
        stuck = not legal.any() and not root.terminal
        assert out.info.status[game] == (jz.Status.NO_LEGAL_ACTION if stuck else 0)
    assert proved > 0.9 * GAMES
    np.testing.assert_allclose(out.action_weights.sum(1), 1, rtol=1e-6)
    assert (out.action_weights >= 0).all()


@pytest.mark.parametrize("build, rule", [(jz.ucb1, ref.ucb1), (jz.search.ucb1_uctk, ref.ucb1_uctk)], ids=["c", "uctk"])
def test_uct_tries_every_legal_action_however_low_its_logit(build, rule):
    world, policy = worlds.make(range(GAMES), "open"), jax.jit(jz.uct(MODEL, SIMULATIONS, rule=build()))
    for low in (-np.inf, np.finfo(np.float32).min, -1e31):
        masked = world._replace(logits=np.where(np.arange(4) == 2, np.float32(low), world.logits))
        out = policy(masked, keys_of(), START)
        assert (out.info.summary.visits > 0).all() and not out.info.status.any()
        roots = [ref.search(worlds.pick(masked, game), 0, rule(), None, SIMULATIONS) for game in range(GAMES)]
        sure = [game for game, root in enumerate(roots) if ref.margin(root) > 1e-4]
        assert len(sure) > GAMES / 2
        np.testing.assert_array_equal(
            out.info.summary.visits[np.array(sure)], [ref.visits(roots[game]) for game in sure]
        )


EMPTY_LEAVES = {
    "alphazero": lambda model: jz.alphazero(model, 4),
    "gumbel": lambda model: jz.gumbel(model, 4),
    "rounds": lambda model: jz.gumbel(model, 4, rounds=jz.options.virtual_mean()),
    "lanes": lambda model: jz.alphazero(model, 4, simulate=jz.parallel(2)),
    "graph": lambda model: jz.alphazero(model, 4, simulate=jz.transpositions()),
    "proofs": lambda model: jz.alphazero(model, 4, rule=jz.avoid_proven(jz.puct()), stop=jz.solved),
    "slots": lambda model: jz.options.with_legal_slots(lambda model: jz.alphazero(model, 4), model, width=3),
    "samples": lambda model: jz.options.with_sampled_actions(lambda model: jz.gumbel(model, 4), model, 3),
    "kept": lambda model: jz.options.with_evaluations_kept(lambda model: jz.alphazero(model, 4), model),
    "playout cap": lambda model: jz.playout_cap(jz.alphazero(model, 4), jz.alphazero(model, 2), p=0.5, group=4),
}


def with_empty_leaves(model):
    """The same model, of states and embeddings that hold arrays of no numbers, too."""
    nothing = lambda state: (state, jnp.zeros((len(state), 0)), jnp.zeros((len(state), 2, 0), jnp.int8))

    def answer(function):
        def call(params, keys, *given):
            step, embedding = function(params, keys, *given[:-1], given[-1][0])
            return step, nothing(embedding)

        return call

    return jz.Model(answer(model.root), answer(model.step)), nothing(START)


@pytest.mark.parametrize("name", EMPTY_LEAVES)
def test_an_embedding_may_hold_arrays_of_no_numbers(name):
    model, state = with_empty_leaves(MODEL)
    policy = EMPTY_LEAVES[name](model)
    out = jax.eval_shape(policy, world_of(), keys_of(), state)
    if name not in ("graph", "playout cap"):
        tree = jax.eval_shape(jz.advance, out.tree, START)
        assert jax.eval_shape(policy, world_of(), keys_of(), state, tree).action.shape == (GAMES,)


def test_and_is_searched_with_them():
    model, state = with_empty_leaves(MODEL)
    world = world_of()
    out = jax.jit(jz.muzero(model, 6))(world, keys_of(), state)
    plain = jax.jit(jz.muzero(MODEL, 6))(world, keys_of(), START)
    np.testing.assert_array_equal(out.tree.visits, plain.tree.visits)
    assert jz.advance(out.tree, out.action).state[1].shape == (GAMES, 8, 0)


def test_positions_of_no_numbers_cannot_be_told_apart():
    root = lambda params, keys, state: (MODEL.root(params, keys, START)[0], jnp.zeros((GAMES, 0)))
    step = lambda params, keys, action, state: (MODEL.step(params, keys, action, START)[0], state)
    policy = jz.alphazero(jz.Model(root, step), 4, simulate=jz.transpositions())
    with pytest.raises(ValueError, match="embeddings that hold no arrays"):
        jax.eval_shape(policy, world_of(), keys_of(), START)


def test_given_its_tree_back_a_policy_thinks_on():
    world, keys = world_of(), keys_of()
    step = jz.uct(MODEL, 8, capacity=17)

    def run(world):
        return step(world, keys, tree=step(world, keys, START).tree), jz.uct(MODEL, 16)(world, keys, START)

    twice, once = jax.jit(run).lower(world).compile(as_users_have_it())(world)
    np.testing.assert_array_equal(twice.tree.visits, once.tree.visits)
    np.testing.assert_array_equal(twice.value, once.value)
    assert not twice.info.status[once.info.status == 0].any()


@pytest.mark.slow
def test_gumbel_thinks_on_with_its_draws_and_beyond_its_plan_with_the_last_ones_left():
    world = worlds.make(range(GAMES), "open", num_actions=6, num_states=40)
    policy = jz.gumbel(MODEL, 24, max_considered=4, capacity=49)

    @jax.jit
    def run(world):
        first = policy(world, keys_of(), START)
        return first, policy(world, keys_of(9), tree=first.tree)

    first, second = run(world)
    np.testing.assert_array_equal(first.tree.root.prior, second.tree.root.prior)
    more = np.asarray(second.info.summary.visits - first.info.summary.visits)
    finalists = np.argsort(-np.asarray(first.info.summary.visits), 1, kind="stable")[:, :2]
    np.testing.assert_array_equal(np.take_along_axis(more, finalists, 1), 12)
    assert not second.info.status.any()


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_one_key_is_split(make):
    split = jax.random.split(make(0), 5)
    assert (one_per_game(make(0), 5) == split).all()
    assert one_per_game(split, 5) is split


@pytest.mark.slow
def test_old_style_keys_will_do():
    policy = jax.jit(jz.alphazero(MODEL, 2))
    new, old = (policy(world_of(), make(0), START) for make in (jax.random.key, jax.random.PRNGKey))
    np.testing.assert_array_equal(new.tree.root.prior, old.tree.root.prior)
    np.testing.assert_array_equal(new.action, old.action)


@pytest.mark.slow
def test_searching_noise_and_action_draw_from_streams_of_their_own():
    world, keys = worlds.make([3] * 400, "open", num_actions=4), keys_of(1, 400)
    policy = jz.alphazero(MODEL, 12, dirichlet_alpha=1.0, dirichlet_fraction=0.5)
    out = jax.jit(policy)(world, keys, np.zeros(400, np.int32))
    again = jax.jit(jz.alphazero(MODEL, 12, dirichlet_alpha=1.0, dirichlet_fraction=0.5, act=jz.most_visited))(
        world, keys, np.zeros(400, np.int32)
    )
    np.testing.assert_array_equal(out.action_weights, again.action_weights)  # how one acts does not change the search
    expected = np.asarray(out.action_weights).sum(0)
    seen = np.bincount(out.action, minlength=4)
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected + 1)).all() and (out.action != again.action).any()


def test_no_noise_is_no_noise():
    world = world_of()
    quiet = jax.jit(jz.alphazero(MODEL, 6, dirichlet_fraction=0.0))(world, keys_of(), START)
    assert quiet.tree.root.prior is None
    zero = jax.jit(jz.alphazero(MODEL, 6, dirichlet_fraction=jnp.float32(0)))(world, keys_of(), START)
    np.testing.assert_array_equal(quiet.tree.visits, zero.tree.visits)


@pytest.mark.slow
def test_numbers_may_be_traced_and_one_per_game():
    world = worlds.make([1] * 6, "open")
    start, keys = np.zeros(6, np.int32), jnp.broadcast_to(jax.random.key(0), (6,))

    @jax.jit
    def run(c, alpha, fraction, temperature, scale):
        az = jz.alphazero(
            MODEL,
            12,
            rule=jz.puct(c),
            dirichlet_alpha=alpha,
            dirichlet_fraction=fraction,
            act=jz.by_temperature(temperature),
        )
        return az(world, keys, start), jz.gumbel(MODEL, 12, gumbel_scale=scale)(world, keys, start)

    by_game = jnp.array([0.1, 0.1, 0.1, 50.0, 50.0, 50.0])
    fraction = jnp.array([0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    az, gumbel = run(by_game, 0.3, fraction, jnp.zeros(6), 0.0)
    visits = np.asarray(az.info.summary.visits)
    assert (visits[0] == visits[1]).all() and (visits[3] == visits[4]).all() and (visits[0] != visits[3]).any()
    assert visits[3].max() < visits[0].max()
    np.testing.assert_allclose(gumbel.tree.root.prior, jz.search.edge_view(gumbel.tree, jnp.zeros(6, int)).prior)
    same = jax.jit(lambda: jz.alphazero(MODEL, 12, rule=jz.puct(50.0), dirichlet_fraction=0.0)(world, keys, start))()
    np.testing.assert_array_equal(same.info.summary.visits[3], visits[3])


@pytest.mark.slow
def test_a_game_in_a_tile_has_its_own_constant():
    games = 96  # gone up in two tiles
    world, c = worlds.make(range(games), "continuous"), jnp.linspace(0.1, 5.0, games)
    visits = np.asarray(jz.summary(worlds.grow(world, jz.puct(c), 20)).visits)
    for game in (3, 47, 48, 90):
        alone = worlds.grow(worlds.make([game], "continuous"), jz.puct(c[game]), 20)
        np.testing.assert_array_equal(jz.summary(alone).visits[0], visits[game])


def test_noise_of_a_search_before_is_forgotten():
    world = world_of()
    noisy = jax.jit(jz.alphazero(MODEL, 6, capacity=32, dirichlet_fraction=1.0))(world, keys_of(), START).tree
    policy = jz.alphazero(MODEL, 12, dirichlet_fraction=0.0)
    tree = jax.jit(policy)(world, keys_of(), tree=noisy).tree
    clean = noisy.replace(root=noisy.root.replace(prior=None))
    expected = jax.jit(policy)(world, keys_of(), tree=clean).tree
    assert tree.root.prior is None
    np.testing.assert_array_equal(tree.visits, expected.visits)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alphazero", "gumbel"])
def test_an_outer_vmap_changes_nothing(name):
    world, policy = world_of(), POLICIES[name][0]
    split = functools.partial(jax.tree.map, lambda x: jnp.reshape(x, (4, GAMES // 4, *x.shape[1:])))
    plain = jax.jit(policy)(world, keys_of(), START)
    mapped = jax.jit(jax.vmap(policy))(split(world), split(keys_of()), split(START))
    for field in ("action", "action_weights", "value"):
        got, expected = getattr(mapped, field), getattr(plain, field)
        np.testing.assert_allclose(got.reshape(expected.shape), expected, atol=1e-6)
    np.testing.assert_array_equal(mapped.tree.visits.reshape(plain.tree.visits.shape), plain.tree.visits)


def test_max_depth_reaches_the_search():
    world = worlds.make(range(GAMES), "forced")
    out = jax.jit(jz.gumbel(MODEL, 8, max_depth=2))(world, keys_of(), START)
    assert ((out.tree.visits > 0).sum(1) <= 3).all()


@pytest.mark.parametrize("name", ["alphazero", "gumbel"])
def test_no_nan_on_the_way(name):
    """All kinds of worlds, terminal and stuck roots among them, under jax_debug_nans."""
    build = {"alphazero": jz.alphazero, "gumbel": jz.gumbel}[name]
    with jax.debug_nans(True):
        out = jax.block_until_ready(jax.jit(build(MODEL, 6))(world_of(), keys_of(), START))
    assert (out.tree.visits[:, 0] == 7).all()


TO_EVALUATE = {
    "alphazero": dict(dirichlet_fraction=0.0, act=jz.most_visited),
    "muzero": dict(dirichlet_fraction=0.0, act=jz.most_visited),
    "gumbel": dict(gumbel_scale=0.0),
}


@pytest.mark.parametrize("name", TO_EVALUATE)
def test_the_docstring_begins_with_how_to_evaluate(name):
    loud = getattr(jz, name).__doc__.split("\n\n")[1]
    written = ", ".join(f"{key}={'jz.most_visited' if key == 'act' else x}" for key, x in TO_EVALUATE[name].items())
    assert "BY DEFAULT IT EXPLORES" in loud and f"`{name}(model, n, {written})`" in loud


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alphazero", "gumbel"])
def test_so_nothing_is_drawn_and_by_default_it_is(name):
    world, build = world_of(), getattr(jz, name)
    calm, by_default = (jax.jit(build(MODEL, SIMULATIONS, **given)) for given in (TO_EVALUATE[name], {}))
    one, other = (calm(world, keys_of(seed), START) for seed in (0, 1))
    np.testing.assert_array_equal(one.action, other.action)
    np.testing.assert_array_equal(one.action_weights, other.action_weights)
    assert (by_default(world, keys_of(0), START).action != by_default(world, keys_of(1), START).action).any()
