"""Policy targets: the equation solved in float64, visits taken away one by one, and what neither may do."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.root import target_pruning
from tests import worlds

# --- the closed form -------------------------------------------------------------------------------------------------


def problems(seed, cases, width=40):
    """Q, P, c(N)·√N and N of root nodes: few actions and many, tiny priors, values that tie or all but tie."""
    rng = np.random.default_rng(seed)
    legal = np.arange(width) < rng.integers(1, width + 1, (cases, 1))
    alpha = 10 ** rng.uniform(-2, 1, cases)
    prior = np.stack([rng.dirichlet(np.full(width, a)) for a in alpha]) * legal + 1e-30 * legal
    prior = prior / prior.sum(1, keepdims=True)
    q = rng.uniform(-1, 1, prior.shape)
    kind = rng.integers(4, size=(cases, 1))
    q = np.where(kind == 1, np.sign(q), np.where(kind == 2, 1e-4 * q, np.where(kind == 3, 0.0, q)))
    total = np.floor(10 ** rng.uniform(0, 4, (cases, 1)))
    pull = 10 ** rng.uniform(-1, 1, (cases, 1)) * np.sqrt(total)
    return [x.astype(np.float32) for x in (q, prior, pull, total)]


def solved(q, prior, pull, total):
    """The same in float64, by bisecting ln δ till it does not move."""
    q, prior, pull, total = (x.astype(np.float64) for x in (q, prior, pull, total))
    gap = np.where(prior > 0, np.max(np.where(prior > 0, q, -np.inf), 1, keepdims=True) - q, np.inf)
    low, high = np.full_like(total, -300.0), np.full_like(total, 50.0)
    for _ in range(200):
        middle = (low + high) / 2
        visits = np.maximum(pull * prior / (np.exp(middle) + gap) - 1, 0)
        enough = visits.sum(1, keepdims=True) >= total
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.maximum(pull * prior / (np.exp(low) + gap) - 1, 0)


def check_closed_form(seed, cases):
    given = problems(seed, cases)
    found = np.asarray(jax.jit(target_pruning.ideal_visits)(*given), np.float64)
    total = given[3].astype(np.float64)
    assert (found >= 0).all() and (found[given[1] == 0] == 0).all()
    error = np.abs(found.sum(1, keepdims=True) - total) / total
    assert error.max() <= 1e-5, f"case {error.argmax()} of seed {seed}: {error.max()}"
    expected = solved(*given)
    # Where a value is within float32 of the best, its share hangs on the last digit: the sum is what is exact there.
    close = np.abs(found - expected) <= 1e-4 * expected + 1e-4 * np.sqrt(total)
    assert close.mean() > 0.9999, f"{(~close).sum()} of {close.size}"


def test_the_closed_form_solves_the_equation():
    check_closed_form(0, 2_000)


@pytest.mark.slow
def test_the_closed_form_solves_the_equation_often():
    for seed in range(1, 21):
        check_closed_form(seed, 5_000)


def test_as_narrow_and_as_flat_as_can_be():
    one = jax.jit(target_pruning.ideal_visits)
    for width in (1, 2, 362, 4672):
        flat = np.full((1, width), 1 / width, np.float32)
        for total in (1.0, 16.0, 800.0):
            visits = np.asarray(one(0 * flat, flat, np.float32([[1.25 * total**0.5]]), np.float32([[total]])), float)
            slack = 1e-5 * total + 2e-7 * width  # all actions are rounded alike: one rounding each
            np.testing.assert_allclose(visits.sum(), total, rtol=0, atol=slack, err_msg=f"{width}, {total}")
            assert np.ptp(visits) == 0
    visits = one(np.float32([[0.5, -1]]), np.float32([[1e-30, 1]]), np.float32([[20]]), np.float32([[400]]))
    assert jnp.isfinite(visits).all() and abs(float(visits.sum()) - 400) < 4e-3 and visits[0, 1] < 13


def bandit(rewards, prior):
    """Arms that pay and end."""

    def step(params, keys, action, state):
        zeros = jnp.zeros(action.shape)
        paid = jnp.take_along_axis(rewards, action[:, None], 1)[:, 0]
        return jz.Step(jnp.log(prior), zeros, paid, zeros, terminal=state > 0), state

    def root(params, keys, state):
        return step(params, keys, jnp.zeros(state.shape, int), state)[0], state + 0

    def below(params, keys, action, state):
        return step(params, keys, action, state + 1)[0], state + 1

    return jz.Model(root, below)


@pytest.mark.slow
def test_it_is_what_an_undisturbed_search_comes_to():
    """PUCT on values that do not change, without noise, rounds up: it visits no action 1 more than the equation says.

    And none much less than the others leave it. All are tried first: what is found out late cannot be made up for.
    """
    rng = np.random.default_rng(0)
    rewards = jnp.asarray(rng.uniform(-1, 1, (200, 5)), jnp.float32)
    prior = jnp.asarray(rng.dirichlet(np.full(5, 2.0), 200), jnp.float32)
    rule = jz.puct(1.5, jz.search.raw(2.0))
    policy = jz.alphazero(
        bandit(rewards, prior), 300, rule=rule, dirichlet_fraction=0.0, target=jz.root.solved_visits(rule)
    )
    out = jax.jit(policy)((), jax.random.key(0), jnp.zeros(200))
    difference = 300 * np.asarray(out.action_weights) - np.asarray(out.info.summary.visits)
    assert -1.01 < difference.min() and difference.max() < 4.01


# --- on trees: the search's own factor and values --------------------------------------------------------------------

GAMES, SIMULATIONS = 100, 40


def c_puct(view):
    return 1.1 * jnp.sqrt(jnp.maximum(view.visits.sum(-1, keepdims=True), 1))


def c_muzero(view):
    n = view.node_visits[:, None]
    return jnp.sqrt(n) * (1.25 + jnp.log((n + 19652.0 + 1) / 19652.0))


RULES = {  # the rule; and its parts, from the view
    "puct": (jz.puct(1.1), jz.search.raw(), c_puct),
    "reduced": (jz.puct(1.1, jz.search.raw(jz.search.reduced_parent(0.3))),
                jz.search.raw(jz.search.reduced_parent(0.3)), c_puct),
    "muzero": (jz.muzero_puct(), jz.search.by_parent_and_siblings(), c_muzero),
    "muzero_mix": (
        jz.muzero_puct(qvalues=jz.search.completed_by_mix_value(0.05, 5.0)),
        jz.search.completed_by_mix_value(0.05, 5.0), c_muzero
    ),
}  # fmt: skip


@functools.cache
def program(name):
    """`(world, key) -> what was searched with noise and forced playouts, and its targets`, compiled once."""
    rule, q, c = RULES[name]

    @jax.jit
    def run(world, key):
        policy = jz.alphazero(
            worlds.model, SIMULATIONS, rule=rule, root_rule=jz.forced_playouts(rule), dirichlet_fraction=0.5
        )
        out = policy(world, key, jnp.zeros(GAMES, jnp.int32))
        view, in_force = jz.search.edge_view(out.tree, jnp.zeros(GAMES, int)), jz.root.prior_at_root(out.tree)
        noisy = view._replace(prior=in_force)
        answers = [
            target(out.tree)
            for target in (jz.root.solved_visits(rule), jz.root.pruned_visits(rule), jz.root.pruned_visits(rule, None))
        ]
        return view, in_force, [q(view), q(noisy)], c(view), answers, out.info.summary.visit_probs

    return run


def one_by_one(visits, q, prior, pull, k):
    """Wu 2019: visits taken away while that keeps the score below the best's, up to √(k·P·ΣN) of them."""
    best = int(np.argmax(visits))
    score = lambda a, n: q[a] + pull * prior[a] / (1 + n)
    top, left = score(best, visits[best]), visits.copy()
    closest = np.inf
    for a in np.flatnonzero(visits):
        if a == best:
            continue
        gone, most = 0, np.sqrt(k * prior[a] * visits.sum())
        closest = min(closest, abs(most - round(most)))
        while gone + 1 <= most and left[a] > 0:
            closest = min(closest, abs(score(a, left[a] - 1) - top))
            if score(a, left[a] - 1) >= top:
                break
            gone, left[a] = gone + 1, left[a] - 1
        if left[a] == 1:
            left[a] = 0
    return left, closest


def as_katago(visits, q, prior, pull):
    """What its present code does, without the lower confidence bound."""
    weight = np.where(visits > 0, visits * np.maximum(visits - 1, 0) / np.maximum(visits, 1) + 2 * prior, -np.inf)
    best = int(np.argmax(weight))
    top, left, closest = q[best] + pull * prior[best] / (1 + visits[best]), visits.copy(), np.inf
    for a in np.flatnonzero(visits):
        if a != best and top > q[a]:
            wanted = max(pull * prior[a] / (top - q[a]) - 1, 0)
            closest = min(closest, abs(wanted - round(wanted)))
            left[a] = np.ceil(min(visits[a], wanted))
    return left, closest


def check_trees(name, seed):
    kinds = [list(worlds.KINDS)[i % len(worlds.KINDS)] for i in range(GAMES)]
    with worlds.x64():
        world = worlds.make(range(seed, seed + GAMES), kinds, num_actions=6, dtype=np.float64)
        found = jax.device_get(program(name)(world, jax.random.key(seed)))
    view, in_force, (q, q_noisy), pull, (solved_, pruned, katago), shares = found
    prior = np.maximum(view.prior, 0)
    ideal = solved(q, prior, pull, view.visits.sum(-1, keepdims=True))
    proved = 0
    for game in range(GAMES):
        for target in (solved_, pruned, katago):
            np.testing.assert_allclose(target[game].sum(), 1, rtol=1e-12)
            assert (target[game] >= 0).all()
        visits = view.visits[game].astype(float)
        if visits.sum() == 0:
            for target in (solved_, pruned, katago):
                np.testing.assert_allclose(target[game], shares[game])
            continue
        assert (solved_[game][np.isneginf(view.prior[game])] == 0).all()
        np.testing.assert_allclose(solved_[game], ideal[game] / ideal[game].sum(), atol=1e-7)
        noisy = np.maximum(in_force[game], 0)
        for target, (left, closest) in (
            (pruned, one_by_one(visits, q_noisy[game], noisy, pull[game, 0], 2.0)),
            (katago, as_katago(visits, q_noisy[game], noisy, pull[game, 0])),
        ):
            if closest > 1e-9:
                proved += 1
                np.testing.assert_allclose(target[game], left / left.sum(), atol=1e-12, err_msg=f"{name}, {game}")
    assert proved > GAMES
    assert np.abs(pruned - shares).max() > 0.02 and np.abs(solved_ - shares).max() > 0.02


@pytest.mark.parametrize("name", ["reduced"])
def test_targets_of_trees(name):
    check_trees(name, 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_targets_of_many_trees(name):
    """4 · 400 roots, each with three targets."""
    for seed in range(1000, 1400, 100):
        check_trees(name, seed)


TARGETS = [jz.root.solved_visits, jz.root.pruned_visits, lambda rule: jz.root.pruned_visits(rule, None)]


@pytest.mark.slow
def test_where_there_is_nothing_to_prune():
    legal = np.array([[1, 1, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]], bool)
    world = worlds.make(range(4), "open", num_actions=4)._replace(root_legal=legal)
    world.terminal[3, 0] = True
    rule, keys, start = jz.puct(), jax.random.split(jax.random.key(0), 4), jnp.zeros(4, jnp.int32)

    @jax.jit
    def run(world):
        policy = jz.alphazero(worlds.model, 12, rule=rule, target=TARGETS[0](rule))
        out = policy(world, keys, start)
        planted = jz.search.plant(*worlds.model.root(world, keys, start), rule, 3)
        return out.action_weights, *([build(rule)(tree) for build in TARGETS] for tree in (out.tree, planted))

    given, searched, unsearched = run(world)
    np.testing.assert_array_equal(given, searched[0])  # the policy hands on its target's answer
    for weights in searched:
        assert (weights[1] == legal[1]).all()  # one legal action
        np.testing.assert_allclose(weights[2:], 0.25)  # none, and a terminal root
        np.testing.assert_allclose(weights.sum(1), 1, rtol=1e-6)
    for weights in unsearched:  # without a visit
        np.testing.assert_allclose(weights, [[0.25] * 4, [0, 1, 0, 0], [0.25] * 4, [0.25] * 4])


@pytest.mark.slow
def test_numbers_of_the_rule_may_be_traced_and_one_per_game():
    world = worlds.make([1] * 6, "open", num_actions=5)

    @jax.jit
    def run(c):
        rule = jz.puct(c)
        policy = jz.alphazero(worlds.model, 30, rule=rule, dirichlet_fraction=0.0, target=jz.root.solved_visits(rule))
        return policy(world, jax.random.key(0), jnp.zeros(6, jnp.int32)).action_weights

    both, one, other = run(jnp.array([0.3] * 3 + [3.0] * 3)), run(jnp.full(6, 0.3)), run(jnp.full(6, 3.0))
    np.testing.assert_array_equal(both, np.concatenate([one[:3], other[3:]]))
    assert np.abs(one - other).max() > 0.01


@pytest.mark.parametrize("build", [jz.root.solved_visits, jz.root.pruned_visits])
@pytest.mark.parametrize(
    "rule",
    [jz.ucb1(), jz.forced_playouts(jz.puct()), jz.search.with_root_prior(jz.puct()), jz.root.gumbel_interior()],
    ids=["ucb1", "forced", "root_prior", "gumbel"],
)
def test_a_rule_that_is_not_puct(build, rule):
    with pytest.raises(ValueError, match=f"{build.__name__} of a rule that is not PUCT.*Give the puct"):
        build(rule)


@pytest.mark.parametrize("build", [jz.root.solved_visits, jz.root.pruned_visits])
@pytest.mark.parametrize("proving", [jz.avoid_proven, jz.options.seek_proof])
def test_a_rule_that_proves(build, proving):
    with pytest.raises(ValueError, match=f"{build.__name__} of a rule with avoid_proven.*give the puct.. inside"):
        build(proving(jz.puct()))


def test_numbers_out_of_range_and_a_builder_not_called():
    with pytest.raises(ValueError, match=r"k=-1 is out of range. Use a value between 0"):
        jz.root.pruned_visits(jz.puct(), -1)
    with pytest.raises(ValueError, match="solved_visits: rule=puct: give a Rule"):
        jz.root.solved_visits(jz.puct)
    with pytest.raises(ValueError, match="target=0.5: give a function of tree"):
        jz.alphazero(worlds.model, 8, target=0.5)
