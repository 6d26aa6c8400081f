"""Sampled actions: shares of the draws against the closed form, and what a search makes of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.options.sampled_actions import draw, of_draws
from tests import worlds

SLOW = pytest.mark.slow
ACTIONS, DRAWS = 8, 30_000
LOGITS = np.array([0.3, -2.0, 1.1, -np.inf, 0.0, -0.7, 2.0, 0.4])  # the fourth is illegal
LEGAL = np.isfinite(LOGITS)


def softmax(x):
    weights = np.exp(x - np.max(x))
    return weights / weights.sum()


def says(logits, legal=None, batch=DRAWS):
    zeros = jnp.zeros(batch)
    tile = lambda x: None if x is None else jnp.tile(jnp.asarray(x), (batch, 1))  # noqa: E731
    return jz.Step(tile(jnp.where(jnp.isfinite(jnp.asarray(logits)), logits, 5.0)), zeros, zeros, zeros, tile(legal))


@functools.cache
def sampled(num_samples, temperature, batch=DRAWS):
    """The slots of many draws, and log β̂/β π of each, up to a constant, by action."""
    keys = jax.random.split(jax.random.key(7), batch)
    run = jax.jit(lambda keys: of_draws(keys, says(LOGITS, LEGAL, batch), num_samples, temperature))
    step, action, dropped = run(keys)
    action, logits = np.asarray(action), np.asarray(step.prior_logits, np.float64)
    assert action.shape == (batch, min(num_samples, ACTIONS))
    np.testing.assert_array_equal(step.legal, action >= 0)
    np.testing.assert_array_equal(dropped, LEGAL.sum() - (action >= 0).sum(-1))
    weights = np.zeros((batch, ACTIONS + 1))
    weights[np.arange(batch)[:, None], np.where(action >= 0, action, ACTIONS)] = np.exp(logits)
    return action, weights[:, :ACTIONS]


@pytest.mark.parametrize("temperature", [1.0, 2.0, 0.5])
def test_the_correction_is_unbiased(temperature):
    """E of Σ β̂/β π f is Σ π f for any f: each action's mean weight is its probability, within five deviations."""
    num_samples = 6
    action, weights = sampled(num_samples, temperature)
    assert (weights[:, ~LEGAL] == 0).all() and not np.isin(action, np.flatnonzero(~LEGAL)).any()
    beta, pi = softmax(LOGITS / temperature), softmax(LOGITS)
    # the logits are log(count) + (1 - 1/τ) ℓ with the highest legal ℓ at 0; here the constants are put back
    shifted = LOGITS[LEGAL] - LOGITS.max()
    constant = np.exp(shifted / temperature).sum() / np.exp(shifted).sum() / num_samples
    weights = weights[:, LEGAL] * constant
    error = weights.std(0) / np.sqrt(DRAWS)
    assert (np.abs(weights.mean(0) - pi[LEGAL]) < 5 * error).all()
    f = np.random.default_rng(0).normal(size=LEGAL.sum())
    total = weights @ f
    assert abs(total.mean() - pi[LEGAL] @ f) < 5 * total.std() / np.sqrt(DRAWS)
    # and the draws are those of β: a count has the binomial's mean and variance
    counts = weights / pi[LEGAL] * beta[LEGAL] * num_samples
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
    assert (counts.sum(-1).round() == num_samples).all()
    expected = num_samples * beta[LEGAL]
    assert (np.abs(counts.var(0) / (expected * (1 - beta[LEGAL])) - 1) < 5 / np.sqrt(DRAWS * expected) + 0.03).all()


def test_equal_draws_are_one_slot_in_ascending_order():
    for num_samples in (1, 3, 40):
        action, _ = sampled(num_samples, 1.0, batch=200)
        for row in action:
            kept = row[row >= 0].tolist()
            assert kept == sorted(set(kept)) and row.tolist() == kept + [-1] * (len(row) - len(kept))
            assert 1 <= len(kept) <= num_samples


def test_an_action_without_probability_is_never_drawn():
    rng = np.random.default_rng(0)
    logits = np.where(rng.random((50, 4672)) < 0.01, rng.normal(size=(50, 4672)), -np.inf)
    logits[:, 17] = 0
    drawn = np.asarray(
        jax.jit(lambda keys: draw(keys, jnp.asarray(logits), 2000))(jax.random.split(jax.random.key(0), 50))
    )
    assert np.isfinite(np.take_along_axis(logits, drawn, 1)).all()
    shares = np.array([np.bincount(row, minlength=4672) for row in drawn]) / 2000
    wanted = np.array([softmax(row) for row in logits])
    assert np.abs(shares - wanted).max() < 6 * np.sqrt(wanted.max() / 2000)


# --- in a search -----------------------------------------------------------------------------------------------------

VALUES = np.linspace(-1, 1, ACTIONS)[::-1].copy()


def bandit(params, keys, action, state):
    """One move of eight, of known payoff."""
    step = says(LOGITS, LEGAL, len(state))
    return step._replace(reward=jnp.asarray(VALUES, jnp.float32)[action]), state


BANDIT = jz.Model(lambda *given: (says(LOGITS, LEGAL, len(given[2])), given[2]), bandit)


@pytest.mark.slow
def test_the_prior_at_the_root_is_the_share_of_draws():
    batch, num_samples = 500, 5
    build = lambda model: jz.alphazero(model, 4, dirichlet_fraction=0.0)  # noqa: E731
    policy = jax.jit(jz.options.with_sampled_actions(build, BANDIT, num_samples))
    out = policy((), jax.random.split(jax.random.key(1), batch), jnp.zeros(batch))
    prior = np.asarray(jz.search.edge_view(out.tree, jnp.zeros(batch, int)).prior)
    counts = np.where(np.isneginf(prior), 0, prior) * num_samples
    np.testing.assert_allclose(counts, counts.round(), atol=1e-5)
    np.testing.assert_allclose(counts.sum(-1), num_samples, atol=1e-5)
    assert (np.isneginf(prior) == (np.asarray(out.tree.state.action[:, 0]) < 0)).all()


def improved(num_samples, batch=4000):
    """π′ of Gumbel search with every sampled action visited, and the same by NumPy from the tree's sample."""
    scaled = jz.search.completed_by_mix_value(value_scale=1.0, maxvisit_init=1.0, rescale_values=False)
    simulations = ACTIONS
    build = lambda model: jz.gumbel(model, simulations, gumbel_scale=0.0, qvalues=lambda view: scaled(view) / 2)  # noqa: E731
    policy = jax.jit(jz.options.with_sampled_actions(build, BANDIT, num_samples))
    out = policy((), jax.random.split(jax.random.key(2), batch), jnp.zeros(batch))
    return np.asarray(out.action_weights, np.float64), out


@pytest.mark.slow
def test_the_improved_policy_is_that_of_the_sample():
    weights, out = improved(6, batch=200)
    visits = np.asarray(out.info.summary.visits)
    prior = np.asarray(
        jz.options.to_action_space(
            out.tree, jz.search.edge_view(out.tree, jnp.zeros(200, int)).prior, ACTIONS, fill=-np.inf
        )
    )
    all_visited = (np.isneginf(prior) | (visits > 0)).all(-1)
    assert all_visited.sum() > 100
    wanted = np.array([softmax(p + (1 + n.max()) * VALUES / 2) for p, n in zip(prior, visits)])
    np.testing.assert_allclose(weights[all_visited], wanted[all_visited], atol=1e-5)
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)


@SLOW
def test_the_improved_policy_tends_to_that_of_all_actions():
    """The bias of Σ π̂′ f, by the sum over the sample in its denominator, falls with K as 1/K."""
    # σ(q) = 2 q, whatever the visits, so that π′ has a closed form
    fixed = lambda view: jnp.where(view.visits > 0, view.value, 0.0) * 2  # noqa: E731
    build = lambda model: jz.gumbel(model, 16, gumbel_scale=0.0, qvalues=fixed)  # noqa: E731
    wanted = softmax(LOGITS + 2 * VALUES) @ VALUES
    biases, batch = [], 4000
    for num_samples in (4, 64):
        policy = jax.jit(jz.options.with_sampled_actions(build, BANDIT, num_samples))
        out = policy((), jax.random.split(jax.random.key(2), batch), jnp.zeros(batch))
        assert ((np.asarray(out.action_weights) > 0) <= (np.asarray(out.info.summary.visits) > 0)).all()
        values = np.asarray(out.action_weights) @ VALUES
        biases.append(abs(values.mean() - wanted))
        error = values.std() / np.sqrt(batch)
    assert biases[1] < 5 * error + 0.02 and biases[0] > 4 * biases[1], biases


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [1, pytest.param(4, marks=SLOW)])
def test_draws_depend_on_the_game_key_and_the_simulation_only(lanes):
    model = worlds.hashed(200, one_in=3)
    build = lambda model: jz.alphazero(model, 24, simulate=jz.parallel(lanes))  # noqa: E731
    policy = jax.jit(jz.options.with_sampled_actions(build, model, 7, temperature=1.5))
    keys, state = jax.random.split(jax.random.key(0), 16), jnp.arange(16, dtype=jnp.uint32) * 77
    out, few = policy((), keys, state), policy((), keys[5:8], state[5:8])
    assert len(np.unique(np.asarray(out.tree.state.action[:, 0]), axis=0)) == 16
    same = lambda x, y: np.testing.assert_allclose(x, y[5:8], rtol=1e-6)  # batches of other sizes round otherwise
    jax.tree.map(same, few.info, out.info)
    np.testing.assert_array_equal(few.tree.state.action[:, :25], out.tree.state.action[5:8, :25])
    other = policy((), jax.random.split(jax.random.key(1), 16), state)
    assert (np.asarray(other.tree.state.action[:, 0]) != np.asarray(out.tree.state.action[:, 0])).any()
    assert (np.asarray(out.action_weights)[~np.asarray(model.root((), keys, state)[0].legal)] == 0).all()


@SLOW
def test_many_samples_of_few_actions_are_the_search_over_all():
    """With a proposal that is all but uniform and K large every legal action is drawn, about equally often."""
    build = lambda model: jz.alphazero(model, 40, dirichlet_fraction=0.0, act=jz.most_visited)  # noqa: E731
    keys, start = jax.random.split(jax.random.key(0), 32), jnp.zeros(32)
    dense = jax.jit(build(BANDIT))((), keys, start)
    out = jax.jit(jz.options.with_sampled_actions(build, BANDIT, 20_000, temperature=1000.0))((), keys, start)
    assert out.tree.num_edges == ACTIONS and (out.info.dropped == 0).all()
    np.testing.assert_array_equal(out.action, dense.action)
    assert np.abs(np.asarray(out.action_weights - dense.action_weights)).max() < 2.5 / 40


# --- continuous ------------------------------------------------------------------------------------------------------


def quadratic(action):
    """One torque, best at the state's own place; the policy is a standard normal, and knows nothing of it."""
    zeros = jnp.zeros(len(action))
    return jz.Step(jnp.zeros((len(action), 2)), zeros, zeros, zeros), zeros


def play(params, keys, action, state):
    step, _ = quadratic(action)
    return step._replace(reward=-((action[:, 0] - state) ** 2)), state


TORQUES = jz.Model(lambda params, keys, state: (quadratic(state[:, None])[0], state), play)


@functools.cache
def payoff(simulations, num_samples=32, batch=256):
    build = lambda model: jz.gumbel(model, simulations, max_considered=min(simulations, 32), gumbel_scale=0.0)  # noqa: E731
    policy = jax.jit(jz.options.with_continuous_actions(build, TORQUES, jz.options.gaussian_sample(num_samples)))
    state = jnp.linspace(-1, 1, batch)
    out = policy((), jax.random.split(jax.random.key(3), batch), state)
    assert out.action.shape == (batch, 1) and out.info.actions.shape == (batch, num_samples, 1)
    return float(-jnp.mean((out.action[:, 0] - state) ** 2)), out


@pytest.mark.slow
def test_continuous_actions_improve_with_simulations():
    (few, _), (most, out) = payoff(8), payoff(64)
    assert -4 / 3 / 10 < few < 5 * most < 0 and most > -0.01  # -4/3: an action drawn from the policy
    best = jnp.take_along_axis(out.info.actions, jnp.argmax(out.action_weights, -1)[:, None, None], 1)[:, 0]
    assert float(jnp.mean((best[:, 0] - jnp.linspace(-1, 1, 256)) ** 2)) < 0.05
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, atol=1e-5)


@pytest.mark.slow
def test_continuous_actions_and_their_slots():
    _, out = payoff(8)
    batch = len(out.action)
    slot = jz.options.slot_of(out.tree, out.action)
    assert (slot >= 0).all()
    np.testing.assert_array_equal(jz.options.action_of(out.tree, slot), out.action)
    moved = jz.advance(out.tree, out.action)
    assert (moved.status == 0).all() and (moved.size >= 1).all()
    assert (jz.options.slot_of(out.tree, out.action + 99) == -2).all()
    line = jz.options.action_of(out.tree, jnp.stack([slot, jnp.full(batch, -1)], 1))
    assert line.shape == (batch, 2, 1) and np.isnan(line[:, 1]).all()
    np.testing.assert_array_equal(jz.options.slot_of(out.tree, out.action[:, None]), slot[:, None])


GRID = jnp.linspace(-1.0, 1.0, 5)


def on_grid(temperature, num_samples):
    """Draws of points of a grid with the probabilities of its logits, which are often equal."""

    def sample(keys, logits):
        drawn = draw(keys, logits / temperature, num_samples)
        log = lambda x: jnp.take_along_axis(jax.nn.log_softmax(x), drawn, 1)  # noqa: E731
        proposal = None if temperature == 1 else log(logits / temperature)
        return jz.options.Sample(GRID[drawn][..., None], log(logits), proposal)

    return sample


@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_equal_arrays_are_one_edge(temperature):
    """The prior of each point is its (β̂/β) π; the search visits and weighs each point once."""
    batch, num_samples, logits = 40, 8, jnp.array([2.0, 0.0, 1.0, -1.0, 0.5])

    def say(action, state):
        zeros = jnp.zeros(batch)
        return jz.Step(jnp.tile(logits, (batch, 1)), zeros, -((action - 0.4) ** 2), zeros), state

    model = jz.Model(
        lambda params, keys, state: say(jnp.zeros(batch), state),
        lambda params, keys, action, state: say(action[:, 0], state),
    )
    build = lambda model: jz.alphazero(model, 30, dirichlet_fraction=0.0)  # noqa: E731
    policy = jax.jit(jz.options.with_continuous_actions(build, model, on_grid(temperature, num_samples)))
    out = policy((), jax.random.key(2), jnp.zeros(batch))
    prior = np.asarray(jz.search.edge_view(out.tree, jnp.zeros(batch, int)).prior)
    actions, visits = np.asarray(out.info.actions)[..., 0], np.asarray(out.info.summary.visits)
    pi, beta = softmax(np.asarray(logits)), softmax(np.asarray(logits) / temperature)
    for row in range(batch):
        points, first, count = np.unique(actions[row], return_index=True, return_counts=True)
        assert len(points) < num_samples  # eight draws of five points
        wanted = count * (pi / beta)[np.searchsorted(np.asarray(GRID), points)]
        np.testing.assert_allclose(prior[row, first], wanted / wanted.sum(), rtol=1e-5)
        others = np.setdiff1d(np.arange(num_samples), first)
        assert np.isneginf(prior[row, others]).all()
        assert not visits[row, others].any() and not np.asarray(out.action_weights)[row, others].any()
    np.testing.assert_allclose(out.action_weights.sum(-1), 1, rtol=1e-5)


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_a_gaussian_sample_has_the_densities_it_says(temperature):
    keys, parameters = jax.random.split(jax.random.key(0), 4), jnp.tile(jnp.array([0.5, -1.0, 0.3, -0.4]), (4, 1))
    sample = jz.options.gaussian_sample(20_000, temperature)(keys, parameters)
    mean, std = np.array([0.5, -1.0]), np.exp([0.3, -0.4])
    action = np.asarray(sample.action, np.float64)

    def log_density(width):
        return (-(((action - mean) / (std * width)) ** 2) / 2 - np.log(std * width * np.sqrt(2 * np.pi))).sum(-1)

    np.testing.assert_allclose(sample.log_prior, log_density(1), atol=1e-4)
    np.testing.assert_allclose(sample.log_proposal, log_density(np.sqrt(temperature)), atol=1e-4)
    np.testing.assert_allclose(action.reshape(-1, 2).mean(0), mean, atol=0.05)
    np.testing.assert_allclose(action.reshape(-1, 2).std(0), std * np.sqrt(temperature), rtol=0.02)
    weights = np.exp(sample.log_prior - sample.log_proposal)  # importance weights: of mean 1, and they undo the width
    np.testing.assert_allclose(weights.mean(), 1, atol=0.03)
    np.testing.assert_allclose((weights[..., None] * action).mean((0, 1)), mean, atol=0.05)


# --- bad input -------------------------------------------------------------------------------------------------------


def refused(function, *parts):
    with pytest.raises(ValueError) as error:
        function()
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_what_is_refused():
    build, key, start = (lambda model: jz.uct(model, 4, rule=jz.puct())), jax.random.key(0), jnp.zeros(4)
    refused(lambda: jz.options.with_sampled_actions(build, BANDIT, 0), "num_samples=0", "num_samples >= 1")
    refused(lambda: jz.options.with_sampled_actions(3, BANDIT, 4), "with_sampled_actions: build=3", "lambda model")
    refused(
        lambda: jz.options.with_sampled_actions(build, "network", 4)((), key, start),
        "a str as the model",
        "models.perfect",
    )
    refused(lambda: jz.options.gaussian_sample(0), "num_samples=0", "num_samples >= 1")
    for temperature in (0, -1.0, float("nan")):
        for build_it in (
            lambda t: jz.options.with_sampled_actions(build, BANDIT, 4, t),
            lambda t: jz.options.gaussian_sample(4, t),
        ):
            refused(lambda: build_it(temperature), f"temperature={temperature}", "above 0")  # noqa: B023
    refused(lambda: jz.options.gaussian_sample(4, jnp.ones(3)), "temperature of shape (3,)", "one number")
    proving = lambda model: jz.uct(model, 4, rule=jz.avoid_proven(jz.puct()))  # noqa: E731
    ending = jz.Model(*(
        lambda *given, ask=ask: (lambda step, state: (step._replace(terminal=jnp.zeros(4, bool)), state))(*ask(*given))
        for ask in BANDIT
    ))  # fmt: skip
    policy = jz.options.with_sampled_actions(proving, ending, 4)
    refused(lambda: jax.eval_shape(policy, (), key, start), "avoid_proven", "with_legal_slots")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_parameters_that_are_not_finite_are_reported_and_not_played(bad):
    def say(actions, sick):
        mean = jnp.where(sick, bad, 0.3)
        zeros = jnp.zeros(len(actions))
        return jz.Step(jnp.stack([mean, zeros], -1), zeros, actions[:, 0], zeros + 0.9), sick

    model = jz.Model(
        lambda params, keys, state: say(jnp.zeros((len(state), 1)), state),
        lambda params, keys, action, state: say(action, state),
    )
    policy = jz.options.with_continuous_actions(lambda model: jz.muzero(model, 8), model, jz.options.gaussian_sample(5))
    out = jax.jit(policy)((), jax.random.key(0), jnp.array([False, True, False]))
    assert out.info.status.tolist() == [0, jz.Status.NON_FINITE, 0]
    for x in (out.action, out.action_weights, out.value, out.info.actions):
        assert jnp.isfinite(x).all()


def test_what_continuous_actions_refuse():
    build, key, start = (lambda model: jz.uct(model, 4, rule=jz.puct())), jax.random.key(0), jnp.zeros(4)
    refused(lambda: jz.options.with_continuous_actions(build, TORQUES, 20), "sample=20", "gaussian_sample(20)")

    def answer(sample, model=TORQUES):
        return lambda: jax.eval_shape(jz.options.with_continuous_actions(build, model, sample), (), key, start)

    zeros = jnp.zeros
    refused(answer(lambda keys, x: zeros((4, 3, 1))), "sample returned a", "Sample(action, log_prior)")
    refused(answer(lambda keys, x: jz.options.Sample(zeros((4, 3)), zeros((4, 3)))), "(4, 3)", "at least one axis")
    refused(answer(lambda keys, x: jz.options.Sample(zeros((4, 3, 1)), zeros((4, 2)))), "(4, 3, 1)", "(4, 2)")
    refused(
        answer(lambda keys, x: jz.options.Sample(zeros((4, 3, 1)), zeros((4, 3)), zeros(3))), "log_proposal", "(4, 3)"
    )
    refused(answer(jz.options.gaussian_sample(3), BANDIT), "Step.legal is given", "sample legal actions only")
    odd = lambda keys, x: jz.options.gaussian_sample(3)(keys, x[:, :1])  # noqa: E731
    refused(answer(odd), "(4, 1)", "[B, 2S]")
    out = jax.jit(jz.options.with_continuous_actions(build, TORQUES, jz.options.gaussian_sample(3)))((), key, start)
    refused(lambda: jz.options.to_action_space(out.tree, jz.qvalues(out.tree), 9), "arrays", "action_of(tree, slot)")
    refused(lambda: jz.options.slot_of(out.tree, zeros(4)), "(4, 1) for one ply")
