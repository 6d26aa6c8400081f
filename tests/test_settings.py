"""JAX's settings and transformations around a search: those that refuse implicit promotions find none.

What promotes is found while tracing, so most of this is traced and never compiled.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify

import jaxzero as jz
from jaxzero import games, models
from jaxzero.backend_tuning import ACCELERATOR, CPU, laid_out_for
from jaxzero.models import chance, symmetry
from jaxzero.train import value_targets
from tests import option_combinations, worlds

GAMES = 4
KEYS = jax.random.split(jax.random.key(0), GAMES)
START = np.zeros(GAMES, np.int32)


@pytest.fixture
def strict():
    """JAX refuses to broadcast to more axes, and to promote types, unless it is told to."""
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        yield


def world_of(players=2, chance=False):
    world = worlds.make(range(GAMES), ["alternate", "terminal", "continuous", "stuck"], num_players=players)
    return worlds.with_chance(world, 1, 0.3) if chance else world


# --- nothing is promoted ---------------------------------------------------------------------------------------------


def read(tree):
    """What is read off a tree."""
    root, plies = jnp.zeros_like(tree.size), jnp.zeros((GAMES, 2), jnp.int32)
    found = [jz.summary(tree), jz.qvalues(tree), jz.principal_variation(tree, 3), jz.search.edge_view(tree, root)]
    found += [
        jz.root.win_rates(tree),
        jz.root.prior_at_root(tree),
        jz.root.policy_improvement(tree, jz.summary(tree).visit_probs),
    ]
    if tree.graph is None:
        found += [jz.root.player_values(tree), jz.advance(tree, root), jz.advance(tree, plies)]
    return found


def searched_on(given):
    """One combination of options: a search, what is read off its tree, and the search after it."""
    policy = option_combinations.policy_of(given, worlds.model)
    world = world_of(3 if given["players"] == "three" else 2, given["chance"] == "some")
    out = jax.eval_shape(policy, world, KEYS, START)
    if not isinstance(out.tree, jz.Tree):
        return
    if given["players"] == "two":
        jax.eval_shape(read, out.tree)
    if given["then"] == "think_on":
        jax.eval_shape(policy, world, KEYS, START, out.tree)
    elif given["then"] in ("advance", "keep_evaluations"):
        jax.eval_shape(policy, world, KEYS, START, jax.eval_shape(jz.advance, out.tree, START))


@pytest.mark.parametrize("machine", [CPU, ACCELERATOR], ids=["cpu", "accelerator"])
@pytest.mark.parametrize("rule", ["puct", "muzero_puct", "ucb1", "gumbel"])
def test_a_search_promotes_nothing(rule, machine, strict):
    plain = {name: values[0] for name, values in option_combinations.OPTIONS.items()} | dict(rule=rule)
    with laid_out_for(machine):
        for how in (dict(), dict(simulate="lanes")):
            searched_on(plain | how)


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in (1, 2, 3))])
def test_nor_does_one_with_options(strict, part):
    for given in option_combinations.covering()[part::4]:
        searched_on(dict(given))


def know_nothing(params, seen):
    return jnp.zeros((len(seen), 10)), jnp.zeros(len(seen))


def go(build=models.perfect):
    """Go on 3×3, seen by a network that knows nothing."""
    return games.go(3), build(games.go(3), know_nothing)


def of_game(game, model, **how):
    return jax.eval_shape(jz.alphazero(model, 4, **how), None, KEYS, jax.eval_shape(jax.vmap(game.init), KEYS))


def with_slots():
    policy = jz.options.with_legal_slots(lambda model: jz.alphazero(model, 4), worlds.model, width=3)
    tree = jax.eval_shape(policy, world_of(), KEYS, START).tree
    jax.eval_shape(
        lambda tree: jz.options.slot_of(tree, jz.options.action_of(tree, jz.principal_variation(tree, 2))), tree
    )
    jax.eval_shape(lambda tree: jz.options.to_action_space(tree, jz.qvalues(tree), 4), tree)


def with_samples():
    jax.eval_shape(
        jz.options.with_sampled_actions(lambda model: jz.gumbel(model, 4), worlds.model, 3), world_of(), KEYS, START
    )


def with_arrays():
    def say(action):
        zeros = jnp.zeros(len(action))
        return jz.Step(jnp.zeros((len(action), 2)), zeros, 1 - (action[:, 0] - 0.7) ** 2, zeros), zeros

    root = lambda params, keys, state: say(jnp.zeros((len(state), 1)))
    model = jz.Model(root, lambda params, keys, action, state: say(action))
    build = lambda model: jz.muzero(model, 4)
    jax.eval_shape(
        jz.options.with_continuous_actions(build, model, jz.options.gaussian_sample(3)), None, KEYS, jnp.zeros(GAMES)
    )


def with_chance():
    game, model = go()
    outcomes = chance.sampled(game, 3)
    of_game(game, chance.with_outcomes(model, game, outcomes))
    keyed = chance.by_keys(game, jax.random.split(jax.random.key(0), 2), jnp.ones(2) / 2)
    of_game(game, chance.with_outcomes(model, game, keyed))


def asked_and_told():
    game, model = go()
    states, rule = jax.eval_shape(jax.vmap(game.init), KEYS), jz.puct()

    def once(keys, states):
        tree, path = jz.search.enter(jz.search.plant(*model.root(None, keys, states), rule, 5), rule)
        assert model.evaluate is not None
        question = jz.options.ask(None, keys, tree, path, model, rule, rule, lanes=2)
        return jz.options.tell(question, *model.evaluate(None, keys, question.position), rule)

    jax.eval_shape(once, KEYS, states)


def learned():
    model = models.learned(
        lambda params, seen: seen, lambda params, state: (state, state[:, 0]),
        lambda params, state, action: (state, state[:, 0], jnp.ones(len(state))), legal=lambda state: state > 0,
    )  # fmt: skip
    jax.eval_shape(jz.muzero(model, 4), None, KEYS, jnp.ones((GAMES, 3)))


OTHERS = {
    "slots": with_slots,
    "samples": with_samples,
    "continuous actions": with_arrays,
    "chance": with_chance,
    "asked": asked_and_told,
    "learned": learned,
    "targets": lambda: value_targets.for_players(jnp.zeros(GAMES), jnp.zeros(GAMES, jnp.int32), 2),
    "playouts": lambda: of_game(games.go(3), models.rollout(games.go(3), 2)),
    "masked playouts": lambda: of_game(games.go(3), models.rollout(games.go(3), 2, policy=games.keep_eyes(3))),
    "averaged": lambda: of_game(games.go(3), models.perfect(games.go(3), symmetry.averaged(games.go(3), know_nothing))),
    "drawn": lambda: of_game(*go(symmetry.drawn)),
    "schedule": lambda: of_game(
        *go(), act=jz.by_temperature(jz.root.by_move(jz.root.falling(1.0, 0.1), lambda s: s.moves))
    ),
}


@pytest.mark.parametrize("what", OTHERS.values(), ids=OTHERS)
def test_nor_does_what_is_put_around_it(what, strict):
    what()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float64])
def test_nor_does_a_model_of_other_types(dtype, strict):
    with jax.enable_x64(True):
        for build in (jz.alphazero, jz.gumbel):
            for how in ({}, dict(simulate=jz.parallel(2))):
                out = jax.eval_shape(build(worlds.model, 4, **how), of_type(world_of(), dtype), KEYS, START)
                assert out.value.dtype == (np.float64 if dtype == np.float64 else np.float32)
                assert out.action.dtype == out.tree.size.dtype == np.int32


def of_type(world, dtype):
    return jax.tree.map(lambda x: x.astype(dtype) if x.dtype == np.float32 else x, world)


# --- nothing is NaN on the way, and nothing infinite but closed edges ------------------------------------------------


def told(policy):
    """A policy that answers all but the tree, in which −inf marks closed edges."""
    return lambda *given: policy(*given).replace(tree=None)


@pytest.mark.parametrize("name", ["alphazero", "gumbel"])
def test_under_debug_infs_whatever_is_not_the_tree_can_be_asked_for(name):
    build = {"alphazero": lambda: jz.alphazero(worlds.model, 4, target=jz.root.pruned_visits(jz.puct())),
             "gumbel": lambda: jz.gumbel(worlds.model, 4)}[name]  # fmt: skip
    with jax.debug_infs(True), jax.debug_nans(True):
        out = jax.jit(told(build()))(world_of(), KEYS, START)
    assert out.info.summary.visits.sum(-1).tolist() == [4, 0, 4, 4]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alphazero", "gumbel", "uct", "lanes"])
def test_checkify_finds_no_nan_and_no_division_by_zero(name):
    policy = {
        "alphazero": jz.alphazero(worlds.model, 4, rule=jz.avoid_proven(jz.puct()), explore=jz.root.shaped_dirichlet()),
        "gumbel": jz.gumbel(worlds.model, 4),
        "uct": jz.uct(worlds.model, 4),
        "lanes": jz.alphazero(worlds.model, 4, simulate=jz.parallel(2, jz.options.virtual_loss())),
    }[name]  # fmt: skip
    error, out = jax.jit(checkify.checkify(policy, errors=checkify.float_checks))(world_of(), KEYS, START)
    error.throw()
    plain = jax.jit(policy)(world_of(), KEYS, START)
    np.testing.assert_array_equal(out.info.summary.visits, plain.info.summary.visits)


# --- transformations -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_policy_may_be_shared_among_devices_and_its_tree_given_away():
    policy, mesh = jz.gumbel(worlds.model, 4, capacity=9), jax.sharding.Mesh(jax.devices()[:1], ("games",))
    here = jax.sharding.PartitionSpec("games")
    shared = jax.shard_map(policy, mesh=mesh, in_specs=(here,) * 3, out_specs=here, check_vma=False)
    world = jax.tree.map(jnp.asarray, world_of())
    out, plain = jax.jit(shared)(world, KEYS, START), jax.jit(policy)(world, KEYS, START)
    np.testing.assert_array_equal(out.tree.visits, plain.tree.visits)
    again = jax.jit(policy)(world, KEYS, START, out.tree)
    given = jax.jit(policy, donate_argnums=3)(world, KEYS, START, plain.tree)
    assert plain.tree.stats.is_deleted() and not out.tree.stats.is_deleted()
    np.testing.assert_array_equal(given.tree.visits, again.tree.visits)
