"""Fresh targets: of which states they are, and how many windows of a minibatch get them."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.environments import Environment
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.train.muzero import sequence_replay as replay
from jaxzero.train.muzero.learner import muzero_learner
from jaxzero.train.muzero.reanalyse import observed, reanalyse, reanalysed, replaced
from jaxzero.train.muzero.sequence_replay import Transition
from jaxzero.types import PolicyOutput

K, STEPS, A = 2, 3, 2
WINDOW = K + STEPS + 1
HEAD = ScalarHead(1, lambda x: x[..., 0], lambda x, target: (x[..., 0] - target) ** 2, lambda target: target > 99)
# Says the same of every state: value 0, reward 0, both actions alike.
NETWORK = LearnedNetwork(
    represent=lambda p, seen: jnp.zeros((len(seen), 1)),
    dynamics=lambda p, s, a: (s, s),
    predict=lambda p, s: (jnp.zeros((len(s), A)) + 0 * p["x"], s),
    value=HEAD,
    reward=HEAD,
    project=lambda p, s: s,
    foretell=lambda p, s: s,
)
ENVIRONMENT = Environment("none", A, (1,), reset=None, step=None, observe=None, discount=0.9)


def weights_of(seen, legal):
    first = jax.nn.sigmoid(seen[..., 0])
    shares = jnp.where(legal, jnp.stack([first, 1 - first], -1), 0.0)
    return shares / shares.sum(-1, keepdims=True)


def policy(params, keys, state):
    """Made of what is seen and legal, and of the parameters."""
    seen, *legal = state
    legal = legal[0] if legal else jnp.ones((len(seen), A), bool)
    return PolicyOutput(
        action=jnp.zeros(len(seen), jnp.int32),
        action_weights=weights_of(seen + params["x"], legal),
        value=evaluate(params, seen),
        tree=None,
        info=types.SimpleNamespace(draws=jax.vmap(jax.random.uniform)(keys)),
    )


def evaluate(params, seen):
    return jnp.tanh(seen[..., 0]) + params["x"]


def rows(environments, length, seed=0):
    """Random steps, some of which end episodes; policy and value are those that x = 0 gives."""
    rng = np.random.default_rng(seed)
    shape = environments, length
    seen, legal = rng.normal(size=(*shape, 1)).astype(np.float32), rng.random((*shape, A)) < 0.7
    legal[..., 0] |= ~legal.any(-1)
    ends = rng.random(shape) < 0.2
    cut = ends & (rng.random(shape) < 0.5)
    steps = Transition(
        observation=seen,
        legal=legal,
        action=rng.integers(0, A, shape).astype(np.int32),
        reward=rng.normal(size=shape).astype(np.float32),
        terminated=ends & ~cut,
        last=cut,
        random=(rng.random(shape) < 0.2) & ~cut,
        policy=weights_of(seen, legal),
        value=evaluate(dict(x=0.0), jnp.array(seen)),
    )
    return jax.tree.map(jnp.asarray, steps)


def filled(steps, prioritised=False):
    blank = jax.tree.map(lambda x: x[0, 0], steps)
    return replay.add(replay.new_sequences(blank, *steps.reward.shape, prioritised), steps)


def losses_of(share, steps, average, parts=2, batch=8, **given):
    """One minibatch that changes nothing; the average of the parameters is another than the parameters."""
    fresh = reanalyse(policy, evaluate)
    sizes = dict(batch_size=batch, unroll=K, steps=STEPS)
    begin, update = muzero_learner(ENVIRONMENT, NETWORK, fresh=fresh, share=share, **sizes, **given)
    state = begin(dict(x=jnp.float32(5.0)))._replace(average=dict(x=jnp.float32(average)))
    keys = jax.random.split(jax.random.key(0), parts)
    return jax.jit(update, static_argnums=4)(state, filled(steps), keys, 0.0, 1)[2].parts


@pytest.mark.parametrize("masked", [True, False])
def test_first_states_are_searched_and_of_later_ones_the_network_says_a_value(masked):
    steps = rows(5, WINDOW)
    head, later = steps.observation[:, : K + 1], steps.observation[:, K + 1 :]
    legal = steps.legal[:, : K + 1].at[0, 0].set(False) if masked else None
    keys, params = jax.random.split(jax.random.key(0), 5), dict(x=0.25)
    search = lambda *x: policy(*x).replace(value=policy(*x).value + 7)
    policies, searched, valued = reanalyse(search, evaluate)(params, keys, head, legal, later)
    want = np.array(weights_of(head + 0.25, legal if masked else jnp.ones((*head.shape[:2], A), bool)))
    if masked:
        want[0, 0] = 0  # nothing is legal, and nothing is learned
    np.testing.assert_allclose(policies, want, rtol=1e-6)
    np.testing.assert_allclose(searched, np.tanh(head[..., 0]) + 7.25, rtol=1e-5)
    np.testing.assert_allclose(valued, np.tanh(later[..., 0]) + 0.25, rtol=1e-5)
    assert len(observed(head, legal)) == 1 + masked


def test_every_search_has_a_key_of_its_own():
    by_key = lambda *x: policy(*x).replace(action_weights=policy(*x).info.draws[:, None])
    keys = jax.random.split(jax.random.key(0), 4)
    seen, later = jnp.zeros((4, K + 1, 1)), jnp.zeros((4, STEPS, 1))
    draws, _, _ = reanalyse(by_key, evaluate)(dict(x=0.0), keys, seen, None, later)
    assert draws.shape == (4, K + 1, 1) and len(np.unique(draws)) == 4 * (K + 1)
    alone, _, _ = reanalyse(by_key, evaluate)(dict(x=0.0), keys[2:3], seen[:1], None, later[:1])
    np.testing.assert_array_equal(alone[0], draws[2])  # whatever stands beside it


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_each_minibatch_has_the_targets_of_the_average_parameters(share):
    steps = jax.tree.map(lambda x: jnp.broadcast_to(x[:1, :1], (2, WINDOW, *x.shape[2:])), rows(1, 1))
    none = jnp.zeros((2, WINDOW), bool)  # all rows alike, and no ends: so are all windows
    steps = steps._replace(
        terminated=none, last=none, random=none, reward=jnp.zeros((2, WINDOW)), legal=~none[..., None]
    )
    steps = steps._replace(legal=jnp.ones((2, WINDOW, A), bool), policy=jnp.full((2, WINDOW, A), 0.5))
    found = losses_of(share, steps, average=0.75)
    fresh = np.float64(weights_of(steps.observation[0, 0] + 0.75, True))
    divergence = share * (fresh * np.log(fresh / 0.5)).sum()  # nothing to be learned from the stored ones
    np.testing.assert_allclose(found.policy, [divergence] * (K + 1), atol=1e-6)
    stored, new = float(steps.value[0, 0]), float(steps.value[0, 0]) + 0.75
    error = 0.9**STEPS * (share * abs(new) + (1 - share) * abs(stored))
    np.testing.assert_allclose(found.value_error, [error] * (K + 1), rtol=1e-5)
    assert abs(abs(new) - abs(stored)) > 0.1 and divergence >= 0.01 * (share > 0)


def test_where_the_network_is_as_it_was_fresh_targets_are_the_stored_ones():
    steps = rows(4, 4 * WINDOW)
    stored = losses_of(0.0, steps, average=0.0)
    for share in (0.5, 1.0):
        jax.tree.map(
            lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), losses_of(share, steps, average=0.0), stored
        )
    traced = losses_of(0.0, steps, average=0.0, trace=0.6)  # every state's value counts
    fresh = losses_of(1.0, steps, average=0.0, trace=0.6)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5), fresh, traced)
    other = losses_of(1.0, steps, average=0.5)
    assert (np.abs(other.policy - stored.policy) > 1e-3).all()


def test_of_each_part_the_first_windows_are_replaced():
    stored, fresh = np.arange(24).reshape(12, 2), -np.arange(1, 13).reshape(6, 2)
    found = np.asarray(replaced(stored, fresh, 3))
    for part in range(3):
        np.testing.assert_array_equal(found[4 * part : 4 * part + 2], fresh[2 * part : 2 * part + 2])
        np.testing.assert_array_equal(found[4 * part + 2 : 4 * part + 4], stored[4 * part + 2 : 4 * part + 4])
    np.testing.assert_array_equal(replaced(stored, stored + 100, 3), stored + 100)


def test_shares_that_are_none_are_named():
    assert [reanalysed(share, 8) for share in (0, 0.25, 0.8, 1)] == [0, 2, 6, 8]
    for share in (-0.1, 1.5):
        with pytest.raises(ValueError, match=f"share of {share}"):
            reanalysed(share, 8)
    with pytest.raises(ValueError, match="share=0.5 .* give fresh="):
        muzero_learner(ENVIRONMENT, NETWORK, batch_size=8, share=0.5)


def test_returns_that_are_cut_far_off_stop_at_a_fresh_value():
    steps, average = rows(4, 4 * WINDOW, seed=3), 0.75
    random = jnp.zeros_like(steps.random).at[:, ::2].set(True)  # in every window beyond the searched states
    steps = steps._replace(random=random & ~steps.last, policy=weights_of(steps.observation + average, steps.legal))
    stored = steps._replace(value=evaluate(dict(x=average), steps.observation))
    jax.tree.map(  # as if all values were those of the network as it is
        lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5),
        losses_of(1.0, steps, average),
        losses_of(0.0, stored, average),
    )
