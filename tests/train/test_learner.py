"""The learner against formulas, and that it learns."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxzero import games, nets
from jaxzero.train import learner, replay
from jaxzero.train.parameter_update import parameter_update
from jaxzero.train.selfplay import Row


@pytest.fixture(scope="module")
def game():
    return games.from_pgx("connect_four")


def random_rows(game, n, seed=0):
    rng = np.random.default_rng(seed)
    observation = rng.integers(0, 2, size=(n, *game.observation_shape))
    policy = rng.dirichlet(np.ones(game.num_actions), size=n)
    return Row(jnp.float32(observation), jnp.float32(policy), jnp.float32(rng.choice([-1, 0, 1], size=n)))


def one_key(seed):
    return jax.random.split(jax.random.key(seed), 1)


def full_buffer(rows):
    buffer = replay.new_buffer(jax.tree.map(lambda x: x[0], rows), len(rows.value))
    return replay.add(buffer, rows, jnp.ones(len(rows.value), bool))


def test_loss_is_squared_error_plus_cross_entropy(game):
    rows = random_rows(game, 20)
    logits = np.random.default_rng(1).normal(size=(20, 7)).astype(np.float32)
    value = np.linspace(-1, 1, 20, dtype=np.float32)
    total, parts = learner.loss(
        lambda params, x: (jnp.asarray(logits), jnp.asarray(value)), None, rows, value_weight=0.5
    )
    log_p = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    policy = -(np.asarray(rows.policy) * log_p).sum(1).mean()
    square = ((np.asarray(rows.value) - value) ** 2).mean()
    np.testing.assert_allclose([total, parts.policy, parts.value], [policy + 0.5 * square, policy, square], rtol=1e-5)
    entropy = -(np.asarray(rows.policy) * np.log(np.asarray(rows.policy))).sum(1).mean()
    np.testing.assert_allclose(parts.target_entropy, entropy, rtol=1e-5)
    assert parts.policy > parts.target_entropy


def test_the_cross_entropy_of_the_score_and_its_gradient(game):
    """Against its formula; with v = tanh(x) the gradient is v - z in x, however sure v is."""
    rows, x = random_rows(game, 20), jnp.linspace(-5, 5, 20)
    score, chance = (1 + np.float64(rows.value)) / 2, (1 + np.tanh(np.float64(x))) / 2

    def total(x):
        network = lambda params, observation: (jnp.zeros((20, 7)), jnp.tanh(x))
        return learner.loss(network, None, rows, 0.5, learner.score_cross_entropy)[1].value

    entropy = np.where(score == 0.5, np.log(2), 0)  # of draws, wins and losses
    expected = -(score * np.log(chance) + (1 - score) * np.log(1 - chance) + entropy).mean()
    np.testing.assert_allclose(total(x), expected, rtol=1e-4)
    np.testing.assert_allclose(20 * jax.grad(total)(x), np.tanh(x) - np.asarray(rows.value), rtol=2e-3, atol=1e-5)
    ends = jnp.float32([1, -1, 1, -1, 1.0000001])
    assert np.isfinite(learner.score_cross_entropy(ends, jnp.float32([-1, 1, 1, -1, 1]))).all()
    for x in (-8.0, -7.0, 7.0, 8.0):  # sure, and wrong
        slope = jax.grad(lambda x: learner.score_cross_entropy(-jnp.sign(x), jnp.tanh(x)))(jnp.float32(x))
        assert slope == pytest.approx(np.sign(x) + np.tanh(x), rel=0.3)  # as exactly as float32 holds 1 - v
    for sign in (-1, 1):
        last = sign * (1 - jnp.float32(2.0**-24))  # before ±1
        slope = jax.grad(lambda v: learner.score_cross_entropy(jnp.float32(-sign), v))(last)  # noqa: B023
        assert slope * (1 - last) * (1 + last) == pytest.approx(2 * sign, rel=1e-5)


def test_a_network_that_knows_the_score_has_no_loss():
    for value in (-1.0, -0.3, 0.0, 1.0):
        assert float(learner.score_cross_entropy(jnp.float32(value), jnp.float32(value))) == pytest.approx(0, abs=1e-6)


def test_shapes_that_disagree_are_an_error(game):
    rows = random_rows(game, 4)
    with pytest.raises(ValueError, match=r"returned values of shape \[4, 1\], but the target has shape \[4\]"):
        learner.loss(lambda params, x: (jnp.zeros((4, 7)), jnp.zeros((4, 1))), None, rows)


def test_augmentation_mirrors_board_and_policy_together(game):
    rows = random_rows(game, 200)
    shown = learner.augment(game, jax.random.key(0), rows)
    same = np.asarray((shown.observation == rows.observation).all((1, 2, 3)))
    mirrored = np.asarray((shown.observation == rows.observation[:, :, ::-1]).all((1, 2, 3)))
    assert (same ^ mirrored).all() and 60 < same.sum() < 140
    np.testing.assert_array_equal(shown.policy[same], rows.policy[same])
    np.testing.assert_array_equal(shown.policy[mirrored], rows.policy[mirrored][:, ::-1])
    np.testing.assert_array_equal(shown.value, rows.value)


def test_augmentation_turns_board_and_policy_the_same_way():
    game = games.from_pgx("tic_tac_toe")
    cells = np.float32([5, 1, 0, 2, 0, 0, 0, 0, 3])  # no symmetry maps it to itself
    rows = Row(jnp.tile(cells.reshape(1, 3, 3, 1), (100, 1, 1, 2)), jnp.tile(cells, (100, 1)), jnp.zeros(100))
    shown = jax.jit(functools.partial(learner.augment, game))(jax.random.key(0), rows)
    for plane in (0, 1):
        np.testing.assert_array_equal(shown.observation[..., plane].reshape(100, 9), shown.policy)
    assert len({tuple(policy) for policy in shown.policy.tolist()}) == len(game.symmetries) == 8  # rotations among them


def test_it_learns_a_fixed_set_by_heart(game):
    rows = random_rows(game, 64)
    rows = rows._replace(observation=rows.observation.at[..., 0].set(rows.observation[:, :, ::-1, 0]))
    net, params = nets.mlp(game, (128,), key=jax.random.key(0))
    begin, update = learner.learner(
        game._replace(symmetries=game.symmetries[:1]), net, batch_size=64, weight_decay=0.0, average_decay=0.9
    )
    update = jax.jit(functools.partial(update, minibatches=100), donate_argnums=0)
    start = learner.loss(net, params, rows)[1]  # the first mean below has a hundred steps of learning in it already
    state, buffer = begin(params), full_buffer(rows)
    losses = []
    for i in range(6):
        state, mean = update(state, buffer, one_key(i), jnp.float32(3e-3))
        losses.append(mean)
    assert int(state.steps) == 600
    assert losses[-1].value < 0.01 * start.value
    assert losses[-1].policy - losses[-1].target_entropy < 0.05 * (start.policy - start.target_entropy)
    of_average = learner.loss(net, state.average, rows)[1]
    assert of_average.value < 0.05
    assert update._cache_size() == 1


def test_a_minibatch_is_one_parameter_update_with_the_gradient_of_its_loss(game):
    rows = jax.tree.map(lambda x: jnp.repeat(x, 32, 0), random_rows(game, 1))  # every minibatch is the same
    net, params = nets.mlp(game, (8,), key=jax.random.key(0))
    settings = dict(weight_decay=0.5, average_decay=0.05, clip_norm=0.01)
    begin, update = learner.learner(
        game._replace(symmetries=game.symmetries[:1]), net, batch_size=16, value_weight=0.5, **settings
    )
    state, losses = update(begin(params), full_buffer(rows), one_key(0), 0.01, 1)
    begin, apply = parameter_update(**settings)
    gradients, known = jax.grad(lambda p: learner.loss(net, p, rows, 0.5), has_aux=True)(params)
    want, norm, _ = apply(begin(params), gradients, known.total, 0.01)
    near = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    jax.tree.map(near, state._replace(opt_state=()), want._replace(opt_state=()))
    assert losses.gradient_norm > 0.1 and float(losses.gradient_norm) == pytest.approx(float(norm), rel=1e-5)
    momentum = lambda learned: optax.tree_utils.tree_get(learned.opt_state, "mu")  # Adam's steps hide the clipping
    jax.tree.map(near, momentum(state), momentum(want))
    assert float(losses.total) == pytest.approx(float(known.total), rel=1e-5)


def test_what_is_learned_is_what_was_asked_for(game):
    """Softened policies, another loss of the value, and rows through symmetries, against the parts by themselves."""
    rows = jax.tree.map(lambda x: jnp.repeat(x, 32, 0), random_rows(game, 1))
    net, params = nets.mlp(game, (8,), key=jax.random.key(0))
    settings = dict(policy_temperature=3.0, value_loss=learner.score_cross_entropy)
    begin, update = learner.learner(game, net, batch_size=16, **settings)
    _, found = update(begin(params), full_buffer(rows), one_key(0), 0.0, 1)
    k_symmetry = jax.random.split(jax.random.split(one_key(0)[0], 1)[0])[1]
    shown = learner.augment(game, k_symmetry, jax.tree.map(lambda x: x[:16], rows))
    assert 0 < float((shown.observation != rows.observation[:16]).any((1, 2, 3)).mean()) < 1  # some are mirrored
    shown = shown._replace(policy=learner.softened(shown.policy, 3.0))
    want = learner.loss(net, params, shown, 1.0, learner.score_cross_entropy)[1]
    for name in ("total", "policy", "value", "target_entropy"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(want, name)), rel=1e-5), name


def test_rows_are_drawn_from_the_newest(game):
    old, new = random_rows(game, 48), random_rows(game, 16, seed=1)
    rows = jax.tree.map(lambda x, y: jnp.concatenate([x, y]), old, new._replace(value=jnp.full(16, 1.0)))
    rows = rows._replace(value=rows.value.at[:48].set(-1.0))
    says_one = lambda params, seen: (jnp.zeros((len(seen), 7)) + params["x"], jnp.ones(len(seen)))
    begin, update = learner.learner(game, says_one, batch_size=16)
    for newest, least, most in ((16, 0.0, 0.0), (None, 1.0, 4.0)):
        losses = update(begin({"x": jnp.float32(0)}), full_buffer(rows), one_key(0), 0.0, 4, newest)[1]
        assert least <= float(losses.value) <= most


def test_a_learning_rate_of_zero_changes_nothing(game):
    net, params = nets.mlp(game, (8,), key=jax.random.key(0))
    begin, update = learner.learner(game, net, batch_size=16)
    state, losses = update(begin(params), full_buffer(random_rows(game, 32)), one_key(0), 0.0, 3)
    jax.tree.map(np.testing.assert_array_equal, state.params, params)
    assert losses.gradient_norm > 0


@pytest.mark.parametrize("where", ["value", "logits", "gradient"])
def test_a_minibatch_that_is_not_finite_changes_nothing_and_is_counted(game, where):
    net, params = nets.mlp(game, (8,), key=jax.random.key(0))

    def network(params, x):
        logits, value = net(params["net"], x)
        broken = jnp.where(params["break"] > 0, jnp.nan, 0.0)
        if where == "gradient":  # sqrt at 0: the value is finite, its slope is not
            root = jnp.sqrt(jnp.where(params["break"] > 0, value - jax.lax.stop_gradient(value), 1))
            return logits, value + root - jax.lax.stop_gradient(root)
        return (logits, value + broken) if where == "value" else (logits + broken, value)

    begin, update = learner.learner(game, network, batch_size=16, weight_decay=0.0)
    update, buffer = jax.jit(update, static_argnames="minibatches"), full_buffer(random_rows(game, 32))
    state = begin({"net": params, "break": jnp.float32(0)})
    state, losses = update(state, buffer, one_key(0), 1e-3, 2)
    assert (int(state.skipped), int(state.in_a_row), float(losses.skipped)) == (0, 0, 0) and np.isfinite(losses.total)
    broken = state._replace(params=state.params | {"break": jnp.float32(1)})
    after, losses = update(broken, buffer, one_key(1), 1e-3, 3)
    jax.tree.map(
        np.testing.assert_array_equal,
        after._replace(steps=0, skipped=0, in_a_row=0),
        broken._replace(steps=0, skipped=0, in_a_row=0),
    )
    assert (int(after.steps), int(after.skipped), int(after.in_a_row), float(losses.skipped)) == (5, 3, 3, 3)
    mended = after._replace(params=after.params | {"break": jnp.float32(0)})
    mended, losses = update(mended, buffer, one_key(2), 1e-3, 1)
    assert (int(mended.skipped), int(mended.in_a_row)) == (3, 0) and np.isfinite(losses.total)
    assert np.abs(mended.params["net"]["policy"]["bias"] - after.params["net"]["policy"]["bias"]).max() > 0
