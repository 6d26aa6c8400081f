"""The prior in force at the root: noise over what is legal, KataGo's shape of it, temperature, one after another."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root import exploration
from tests import worlds


def planted(prior, legal):
    """Trees of a root only, one per row of prior."""
    prior, legal = jnp.asarray(prior), jnp.asarray(legal)
    zeros = jnp.zeros(len(prior), prior.dtype)
    step = jz.Step(jnp.log(jnp.where(legal, prior, 1)), zeros, zeros, zeros, legal=legal)
    return jz.search.plant(step, zeros, jz.puct(), 2)


def keys_of(games, seed=0):
    return jax.random.split(jax.random.key(seed), games)


def priors(seed, cases, width=30):
    """Peaked ones and flat ones, of one legal action and of many."""
    rng = np.random.default_rng(seed)
    legal = rng.random((cases, width)) < rng.random((cases, 1))
    legal[np.arange(cases), rng.integers(width, size=cases)] = True
    weights = np.exp(rng.normal(size=(cases, width)) * 10 ** rng.uniform(-2, 1, (cases, 1))) * legal
    return (weights / weights.sum(1, keepdims=True)).astype(np.float32), legal


def shape_by_hand(prior, legal):
    """What `computeDirichletAlphaDistribution` of KataGo computes, for one unit of α."""
    x = {a: math.log(min(0.01, float(prior[a])) + 1e-20) for a in np.flatnonzero(legal)}
    mean = sum(x.values()) / len(x)
    above = {a: max(0.0, y - mean) for a, y in x.items()}
    total = sum(above.values())
    return [
        0.0 if a not in x else 1 / len(x) if total <= 1e-4 else 0.5 * (above[a] / total + 1 / len(x))
        for a in range(len(prior))
    ]


def test_the_shape_of_the_noise_is_katagos():
    prior, legal = priors(0, 2_000)
    found = np.asarray(jax.jit(exploration.shape_of_noise)(np.where(legal, prior, -np.inf), legal))
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    assert (found[~legal] == 0).all()
    same = [np.allclose(row, shape_by_hand(p, ok), atol=2e-3) for row, p, ok in zip(found, prior, legal)]
    assert np.mean(same) > 0.999, np.mean(same)
    uniform = np.full((1, 7), 1 / 7, np.float32)
    np.testing.assert_allclose(exploration.shape_of_noise(uniform, uniform > 0), 1 / 7, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("shaped", [False, True], ids=["plain", "shaped"])
def test_the_share_that_moves_is_epsilon_all_of_it_over_legal_actions(shaped):
    noise = jz.root.shaped_dirichlet(10.83, 0.25) if shaped else jz.dirichlet(0.3, 0.25)
    games, actions = 128, 4672
    rng = np.random.default_rng(0)
    legal, prior = np.zeros((games, actions), bool), np.zeros((games, actions), np.float32)
    legal[:, rng.choice(actions, 30, replace=False)] = True
    one = np.sort(rng.dirichlet(np.full(30, 0.5)))
    prior[legal] = np.tile(one, games)
    tree = planted(prior, legal)
    found = np.asarray(noise(keys_of(games), tree))
    assert np.isneginf(found[~legal]).all()
    found = found[legal].reshape(games, 30)
    np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
    share = (found - 0.75 * one) / 0.25  # the noise itself
    np.testing.assert_allclose(share.sum(1), 1, atol=1e-4)
    shape = np.array(shape_by_hand(one, one > 0)) if shaped else np.full(30, 1 / 30)
    total = 10.83 if shaped else 0.3 * 30
    deviation = np.sqrt(shape * (1 - shape) / (total + 1) / games)  # of the mean of a Dirichlet's component
    assert (np.abs(share.mean(0) - shape) < 4.5 * deviation).all()
    assert share.var(0).mean() == pytest.approx((shape * (1 - shape) / (total + 1)).mean(), rel=0.1)


@pytest.mark.slow
def test_temperature_is_a_power_over_the_legal_actions():
    prior, legal = priors(1, 2_000)
    temperature = np.random.default_rng(2).uniform(0.3, 3, 2_000).astype(np.float32)
    tree = planted(prior, legal)
    found = np.asarray(jax.jit(lambda t: jz.root.root_temperature(t)(None, tree))(temperature))
    expected = np.where(legal, prior, 0).astype(np.float64) ** (1 / temperature[:, None])
    np.testing.assert_allclose(np.where(legal, found, 0), expected / expected.sum(1, keepdims=True), atol=2e-5)
    assert np.isneginf(found[~legal]).all()
    one = np.where(legal, jz.root.root_temperature(1.0)(None, tree), 0)
    np.testing.assert_allclose(one, prior, atol=1e-5)


@pytest.mark.slow
def test_one_after_another():
    prior, legal = priors(3, 200)
    tree, keys = planted(prior, legal), keys_of(200)
    flatter, noise = jz.root.root_temperature(2.0), jz.dirichlet(0.3, 0.25)

    @jax.jit
    def run(keys):
        first, second = (jax.vmap(lambda key, i=i: jax.random.fold_in(key, i))(keys) for i in (0, 1))
        flat = tree.replace(root=tree.root.replace(prior=flatter(keys, tree)))
        return (
            jz.root.chain(flatter, noise)(keys, tree),
            noise(second, flat),
            jz.root.chain(noise, flatter)(keys, tree),
            jz.root.chain(noise, noise)(keys, tree),
            noise(first, tree),
        )

    both, expected, swapped, twice, once = (np.where(legal, x, 0) for x in run(keys))
    np.testing.assert_allclose(both, expected, rtol=1e-5, atol=1e-7)
    assert np.abs(both - swapped).max() > 0.05
    again = twice - 0.75 * once  # what the second step adds, of keys of its own
    first = once - 0.75 * prior
    assert np.abs(again - first).max(1)[legal.sum(1) > 3].min() > 1e-4


STEPS = [
    jz.dirichlet(),
    jz.root.shaped_dirichlet(),
    jz.root.root_temperature(0.5),
    jz.root.chain(jz.root.root_temperature(), jz.dirichlet()),
]


def test_where_there_is_hardly_anything_to_choose():
    legal = np.array([[False] * 4, [False, True, False, False]])
    tree = planted(np.full((2, 4), 0.25, np.float32), legal)
    with jax.debug_nans(True):
        for found in jax.jit(lambda keys: [step(keys, tree) for step in STEPS])(keys_of(2)):
            np.testing.assert_allclose(found, np.where(legal, 1, -np.inf), rtol=1e-6)


# --- in a policy -----------------------------------------------------------------------------------------------------

WORLD, START = worlds.make(range(32), "continuous", num_actions=6), np.zeros(32, np.int32)


def searched(**options):
    policy = jz.alphazero(worlds.model, 16, act=jz.most_visited, **options)
    return jax.jit(policy)(WORLD, keys_of(32), START)


@pytest.mark.slow
def test_the_plain_noise_is_the_default():
    programs = [
        str(jax.make_jaxpr(jz.alphazero(worlds.model, 16, **options))(WORLD, keys_of(32), START))
        for options in ({}, dict(root_rule=jz.puct()), dict(dirichlet_alpha=1.0))
    ]
    assert programs[0] == programs[1] != programs[2]
    tree = planted(*priors(5, 50))
    noisy = [np.asarray(noise(keys_of(50), tree)) for noise in (jz.dirichlet(), exploration.checked(jz.dirichlet()))]
    np.testing.assert_array_equal(*noisy)
    np.testing.assert_array_equal(noisy[0], jz.root.with_dirichlet(tree, keys_of(50), 0.3, 0.25).root.prior)


@pytest.mark.slow
def test_a_search_explores_what_is_in_force_and_keeps_the_prior_clean():
    out, plain = searched(explore=jz.root.root_temperature(1e4)), searched(dirichlet_fraction=0.0)
    legal = np.isfinite(out.tree.root.prior)
    np.testing.assert_allclose(np.where(legal, out.tree.root.prior, 0), legal / legal.sum(1, keepdims=True), atol=1e-3)
    clean = [jz.search.edge_view(x.tree, jnp.zeros(32, int)).prior for x in (out, plain)]
    np.testing.assert_array_equal(*clean)
    assert (out.tree.visits != plain.tree.visits).any()


@pytest.mark.slow
def test_a_root_rule_of_its_own_sees_the_noise():
    rule = jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(0.2)))
    same = searched(rule=rule)
    other = searched(rule=rule, root_rule=jz.forced_playouts(rule, 5.0))
    visits, prior = np.asarray(other.info.summary.visits), np.maximum(other.tree.root.prior, 0)
    wanted = np.sqrt(5.0 * prior * 15)  # what was wanted before the last simulation
    tried = visits > 0
    assert (other.tree.root.prior == same.tree.root.prior).all() and (visits != same.info.summary.visits).any()
    assert np.mean((visits >= np.floor(wanted))[tried]) > np.mean(
        (np.asarray(same.info.summary.visits) >= np.floor(wanted))[tried]
    )


@pytest.mark.slow
def test_muzero_and_uct_hand_on_what_the_root_is_told():
    rule = jz.muzero_puct()
    options = dict(
        root_rule=jz.forced_playouts(rule), explore=jz.root.shaped_dirichlet(), target=jz.root.solved_visits(rule)
    )
    one = jax.jit(jz.muzero(worlds.model, 12, **options))(WORLD, keys_of(32), START)
    other = jax.jit(jz.alphazero(worlds.model, 12, rule=rule, **options))(WORLD, keys_of(32), START)
    jax.tree.map(np.testing.assert_array_equal, one, other)
    wide = jax.jit(jz.uct(worlds.model, 12, root_rule=jz.ucb1(50.0)))(WORLD, keys_of(32), START)
    visits = np.asarray(wide.info.summary.visits)
    legal = np.isfinite(jz.search.edge_view(wide.tree, jnp.zeros(32, int)).prior)
    assert (np.ptp(np.where(legal, visits, np.nan)[legal.sum(1) == 6], 1) <= 1).all()


@pytest.mark.slow
def test_a_temperature_by_move_number_is_each_games_own():
    schedule = jz.root.steps((10, 4.0))
    by_move = jz.root.by_move(schedule, lambda state: state)  # the embedding of a world is the state's number
    start = np.where(np.arange(32) < 16, 3, 12).astype(np.int32)
    policy = jz.alphazero(worlds.model, 8, explore=jz.root.root_temperature(by_move))
    out = jax.jit(policy)(WORLD, keys_of(32), start)
    clean = jax.jit(jz.alphazero(worlds.model, 8, dirichlet_fraction=0.0))(WORLD, keys_of(32), start).tree
    prior = np.asarray(jz.search.edge_view(clean, jnp.zeros(32, int)).prior)
    found, legal = np.asarray(out.tree.root.prior), np.isfinite(prior)
    np.testing.assert_allclose(np.where(legal, found, 0)[:16], np.where(legal, prior, 0)[:16], atol=1e-6)
    expected = np.where(legal, np.maximum(prior, 0) ** 0.25, 0)[16:]
    np.testing.assert_allclose(
        np.where(legal, found, 0)[16:], expected / np.maximum(expected.sum(1, keepdims=True), 1e-9), atol=1e-5
    )


# --- what cannot hold together ---------------------------------------------------------------------------------------

MODEL = worlds.model


@pytest.mark.parametrize(
    "build, says",
    [
        (lambda: jz.dirichlet(0, 0.25), "alpha=0 is out of range. Use a value above 0"),
        (lambda: jz.dirichlet(0.3, 1.5), "fraction=1.5 is out of range. Use a value between 0 and 1"),
        (lambda: jz.root.shaped_dirichlet(-1.0), "concentration=-1.0 is out of range. Use a value above 0"),
        (lambda: jz.root.shaped_dirichlet(10.83, -0.1), "fraction=-0.1 is out of range. Use a value between 0 and 1"),
        (lambda: jz.root.root_temperature(0.0), "temperature=0.0 is out of range. Use a value above 0"),
        (lambda: jz.root.chain(), "chain.*give at least one function"),
        (lambda: jz.root.chain(jz.dirichlet(), 0.5), "chain: step=0.5: give a function of keys, tree"),
        (lambda: jz.forced_playouts(jz.puct(), -2), "k=-2 is out of range. Use a value between 0"),
        (lambda: jz.forced_playouts(jz.puct), "forced_playouts: rule=puct: give a Rule, like puct"),
        (lambda: jz.forced_playouts(jz.ucb1()), "stores no probabilities.*ucb1, which tries every"),
        (lambda: jz.forced_playouts(jz.root.gumbel_root(8, 4)), "stores no probabilities.*gumbel needs none"),
        (lambda: jz.search.reduced_parent(-0.2), "reduction=-0.2 is out of range. Use a value between 0"),
        (lambda: jz.alphazero(MODEL, 8, rule=jz.ucb1(), explore=jz.dirichlet()), "explore with a rule .*no explore"),
        (lambda: jz.alphazero(MODEL, 8, explore=jz.dirichlet(), dirichlet_fraction=0.0), "explore replaces that"),
        (lambda: jz.alphazero(MODEL, 8, explore=jz.dirichlet(), dirichlet_alpha=1.0), "explore replaces that"),
        (lambda: jz.alphazero(MODEL, 8, explore=0.3), "explore=0.3: give a function of keys, tree"),
        (lambda: jz.alphazero(MODEL, 8, root_rule=jz.puct), "root_rule=.*give a Rule"),
        (lambda: jz.alphazero(MODEL, 8, root_rule=jz.root.gumbel_root(8, 4)), "reads logits, but .* needs jz.gumbel"),
        (lambda: jz.uct(MODEL, 8, root_rule=jz.puct()), "reads probabilities, but rule stores logits.*rules of one"),
    ],
)  # fmt: skip
def test_what_cannot_hold_together_is_refused_with_a_way_out(build, says):
    with pytest.raises(ValueError, match=says):
        build()


def test_an_illegal_action_stays_illegal_whatever_explore_says():
    out = searched(explore=lambda keys, tree: jnp.ones((32, 6)))
    legal = np.isfinite(jz.search.edge_view(out.tree, jnp.zeros(32, int)).prior)
    assert (~legal).any() and (np.asarray(out.info.summary.visits)[~legal] == 0).all()


def test_a_temperature_of_zero_leaves_the_highest_prior():
    tree = planted(*priors(0, 20))
    explored = jax.jit(lambda t: exploration.with_explored(tree, keys_of(20), exploration.root_temperature(t)))(
        jnp.float32(0)
    )
    prior, clean = np.asarray(explored.root.prior), np.asarray(exploration.prior_at_root(tree))
    np.testing.assert_array_equal(prior.argmax(-1), clean.argmax(-1))
    np.testing.assert_allclose(prior.max(-1), 1, rtol=1e-6)
    assert (explored.status == 0).all()


def test_what_is_no_number_is_not_in_force_and_reported():
    tree = planted(*priors(0, 20))
    half = jnp.arange(20) % 2 == 0

    def wrong(keys, tree):
        return jnp.where(half[:, None], jnp.nan, exploration.prior_at_root(tree))

    explored = exploration.with_explored(tree, keys_of(20), exploration.checked(wrong))
    np.testing.assert_array_equal(explored.root.prior, exploration.prior_at_root(tree))
    np.testing.assert_array_equal(explored.status, np.where(half, jz.Status.NON_FINITE, 0))


def test_what_does_not_answer_with_a_prior():
    wrong = jz.alphazero(MODEL, 4, explore=lambda keys, tree: jnp.zeros(3))
    with pytest.raises(ValueError, match=r"explore returned .*\(32, 6\).*with its parentheses"):
        jax.eval_shape(wrong, WORLD, keys_of(32), START)
    with pytest.raises(ValueError, match=r"shape \(3,\) in a search of 32 games: give a number, or \[32\]"):
        jax.eval_shape(jz.alphazero(MODEL, 4, explore=jz.root.root_temperature(jnp.ones(3))), WORLD, keys_of(32), START)
