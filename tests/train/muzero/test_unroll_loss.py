"""The unrolled loss against loops over windows and steps; its gradients against differences and products."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.train.muzero.targets import Targets, state_masks
from jaxzero.train.muzero.unroll_loss import LossWeights, scale_gradient, unroll, unroll_loss
from tests.worlds import x64

N, K, A, SEEN, LENGTH, FEATURES = 7, 3, 2, 3, 4, 2
HEAD = ScalarHead(
    size=1,
    decode=lambda output: 2 * output[..., 0],
    loss=lambda output, target: (2 * output[..., 0] - target) ** 2,
    outside=lambda target: jnp.abs(target) > 1,
)
NETWORK = LearnedNetwork(
    represent=lambda p, seen: jnp.tanh(seen @ p["h"]),
    dynamics=lambda p, s, a: (s @ p["g"] + p["taken"][a], (s * p["paid"][a]).sum(-1, keepdims=True)),
    predict=lambda p, s: (s @ p["policy"], (s @ p["value"])[:, None]),
    value=HEAD,
    reward=HEAD,
    project=lambda p, s: s @ p["project"],
    foretell=lambda p, s: s @ p["foretell"],
)
SHAPES = dict(h=(SEEN, LENGTH), g=(LENGTH, LENGTH), taken=(A, LENGTH), paid=(A, LENGTH), policy=(LENGTH, A))
SHAPES |= dict(value=(LENGTH,), project=(LENGTH, FEATURES), foretell=(LENGTH, FEATURES))
PARTS = LossWeights(policy=1.5, value=0.25, reward=0.75, consistency=2.0)


def problem(seed=0):
    """Parameters, and random windows of which some states are absorbing and some unknown."""
    rng = np.random.default_rng(seed)
    params = {name: rng.normal(size=shape) * 0.7 for name, shape in SHAPES.items()}
    ends = rng.random((N, K)) < 0.3
    terminated = ends & (rng.random((N, K)) < 0.5)
    running, known = (np.asarray(x) for x in state_masks(jnp.array(terminated), jnp.array(ends & ~terminated)))
    policy = rng.dirichlet(np.ones(A), (N, K + 1))
    policy[0, 0] = 1, 0  # of which the logarithm is not taken
    targets = Targets(policy, rng.normal(size=(N, K + 1)), rng.normal(size=(N, K)), running, known)
    data = dict(observation=rng.normal(size=(N, SEEN)), action=rng.integers(0, A, (N, K)), targets=targets)
    return params, data | dict(weight=rng.random(N), later=rng.normal(size=(N, K, SEEN)))


def loss(params, data, weights=PARTS, **options):
    """`unroll_loss`, with everything by name."""
    params, data = jax.tree.map(jnp.asarray, (params, data))
    return unroll_loss(NETWORK, params, **(data | options), weights=weights)


def walked(params, data, weights=PARTS, fixed=None):
    """The loss, its parts by window and step, and the errors: loops over windows and steps. `fixed`: of projections."""
    p, q, t = params, params if fixed is None else fixed, data["targets"]
    names = ("policy", "value", "reward", "consistency", "value_error", "reward_error", "outside", "said")
    parts = {name: np.zeros((N, K + 1)) for name in names}
    total = 0.0
    embeddings = np.zeros((N, K + 1, LENGTH))
    for i in range(N):
        state = np.tanh(data["observation"][i] @ p["h"])
        for k in range(K + 1):
            said = {}
            if k:
                action = data["action"][i, k - 1]
                reward = 2 * (state @ p["paid"][action])
                parts["said"][i, k] = reward
                state = state @ p["g"] + p["taken"][action]
                if t.known[i, k]:
                    said["reward"] = (reward - t.reward[i, k - 1]) ** 2
                    said["reward_error"] = abs(reward - t.reward[i, k - 1])
                if t.running[i, k] and data.get("later") is not None:
                    one = np.tanh(data["later"][i, k - 1] @ q["h"]) @ q["project"]
                    two = state @ p["foretell"]
                    said["consistency"] = 1 - one @ two / np.sqrt((one @ one) * (two @ two))
            if t.running[i, k]:
                logits = state @ p["policy"]
                likely = np.exp(logits) / np.exp(logits).sum()
                said["policy"] = sum(x * np.log(x / y) for x, y in zip(t.policy[i, k], likely) if x > 0)
            if t.known[i, k]:
                value = 2 * (state @ p["value"])
                said["value"] = (value - t.value[i, k]) ** 2
                said["value_error"] = abs(value - t.value[i, k])
                said["outside"] = abs(t.value[i, k]) > 1
            for name, x in said.items():
                parts[name][i, k] = x
                if name in LossWeights._fields:
                    total += data["weight"][i] * getattr(weights, name) * x * (1 if k == 0 else 1 / K) / N
            embeddings[i, k] = state
    return total, parts, embeddings


def differences(function, params, width=1e-5):
    """Central differences, by each number of each parameter."""
    found = {}
    for name, x in params.items():
        found[name] = np.zeros(x.shape)
        for at in np.ndindex(*x.shape):
            up, down = (params | {name: x.copy()} for _ in range(2))
            up[name][at] += width
            down[name][at] -= width
            found[name][at] = (function(up) - function(down)) / (2 * width)
    return found


def close(one, two, tolerance=1e-7):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=tolerance, rtol=tolerance), one, two)


@pytest.mark.parametrize("seed", range(3))
def test_loss_parts_and_errors_are_those_of_a_walk_along_each_window(seed):
    params, data = problem(seed)
    total, (parts, error) = jax.jit(loss)(params, data)
    want, by_window, embeddings = walked(params, data)
    np.testing.assert_allclose(total, want, rtol=1e-4)
    np.testing.assert_allclose(error, by_window["value_error"][:, 0], rtol=1e-4)
    t = data["targets"]
    counted = dict(policy=t.running, value=t.known, value_error=t.known)
    counted |= dict(reward=t.known[:, 1:], consistency=t.running[:, 1:], reward_error=t.known[:, 1:])
    for name, which in counted.items():  # means over the windows that count
        found = by_window[name][:, -which.shape[1] :].sum(0) / np.maximum(np.sum(which, 0), 1)
        np.testing.assert_allclose(getattr(parts, name), found, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(parts.outside, by_window["outside"].sum() / np.sum(t.known), rtol=1e-5)
    np.testing.assert_allclose(parts.spread, embeddings[:, -1].std(0).mean(), rtol=1e-4)
    paid = np.asarray(t.known[:, 1:], bool)
    np.testing.assert_allclose(parts.reward_spread, np.asarray(t.reward)[paid].std(), rtol=1e-4)
    np.testing.assert_allclose(parts.reward_said, by_window["said"][:, 1:][paid].std(), rtol=1e-4)
    assert (~t.running & t.known).any() and (~t.known).any() and 0 < parts.outside < 1


def test_without_a_consistency_loss_none_is_computed():
    params, data = problem()
    bare = {name: x for name, x in data.items() if name != "later"}
    weights = PARTS._replace(consistency=0.0)
    want, _, _ = walked(params, bare)
    for total, (parts, _) in (loss(params, bare), loss(params, data, weights)):
        np.testing.assert_allclose(total, want, rtol=1e-4)
        assert parts.consistency.tolist() == [0.0] * K


def test_gradients_are_those_of_differences_with_the_projections_held_fixed():
    params, data = problem()
    with x64():
        gradients = jax.jit(jax.grad(lambda p: loss(p, data, into=1.0)[0]))(params)
        close(gradients, differences(lambda p: walked(p, data, fixed=params)[0], params))
    assert all(np.abs(x).max() > 1e-3 for name, x in gradients.items() if name != "project")
    np.testing.assert_array_equal(gradients["project"], 0)


@pytest.mark.parametrize("into", [0.5, 0.0])
def test_gradients_are_a_product_of_the_steps_with_a_half_where_each_begins(into):
    params, data = problem(1)
    t = data["targets"]

    def of_state(params, state, k):  # what state k itself costs
        logits, value = NETWORK.predict(params, state)
        cost = jnp.where(t.known[:, k], PARTS.value * HEAD.loss(value, t.value[:, k]), 0.0)
        surprise = -PARTS.policy * jnp.sum(t.policy[:, k] * jax.nn.log_softmax(logits), -1)
        cost = cost + jnp.where(t.running[:, k], surprise, 0.0)
        return (data["weight"] * cost).sum() / N * (1 / K if k else 1)

    def of_step(params, state, k):  # where step k leads, and what its reward costs
        state, reward = NETWORK.dynamics(params, state, data["action"][:, k])
        cost = jnp.where(t.known[:, k + 1], PARTS.reward * HEAD.loss(reward, t.reward[:, k]), 0.0)
        return state, (data["weight"] * cost).sum() / N / K

    with x64():
        t = jax.tree.map(jnp.asarray, t)
        bare = {name: x for name, x in data.items() if name != "later"}
        gradients = jax.jit(jax.grad(lambda p: loss(p, bare, into=into)[0]))(params)
        states, back = [], []
        state, first = jax.vjp(lambda p: NETWORK.represent(p, data["observation"]), params)
        for k in range(K):
            states.append(state)
            (state, _), pulled = jax.vjp(lambda p, s, k=k: of_step(p, s, k), params, state)
            back.append(pulled)
        states.append(state)
        want, into_state = jax.grad(of_state, (0, 1))(params, states[K], K)
        for k in reversed(range(K)):
            of_params, through = back[k]((into_state, 1.0))
            more, here = jax.grad(of_state, (0, 1))(params, states[k], k)
            want = jax.tree.map(lambda *x: sum(x), want, of_params, more)
            into_state = into * through + here
        want = jax.tree.map(lambda *x: sum(x), want, *first(into_state))
        close(gradients, want, 1e-12)


def test_no_gradient_goes_into_targets_or_later_observations():
    params, data = problem()

    def of(later, floats):
        policy, value, reward = floats
        targets = data["targets"]._replace(policy=policy, value=value, reward=reward)
        return loss(params, data | dict(targets=targets, later=later))[0]

    gradients = jax.grad(of, (0, 1))(jnp.array(data["later"]), [jnp.array(x) for x in data["targets"][:3]])
    jax.tree.map(lambda x: np.testing.assert_array_equal(x, 0), gradients)


def test_nothing_is_learned_from_unknown_states_and_no_policy_from_absorbing_ones():
    params, data = problem(2)
    t, both = data["targets"], jax.jit(jax.value_and_grad(lambda p, data: loss(p, data)[0]))
    before = both(params, data)
    other = lambda x, where: np.where(where.reshape(where.shape + (1,) * (x.ndim - 2)), x[::-1] + 1, x)
    reward = other(t.reward, ~t.known[:, 1:])
    changed = t._replace(policy=other(t.policy, ~t.running), value=other(t.value, ~t.known), reward=reward)
    later = other(data["later"], ~t.running[:, 1:])
    action = np.where(t.known[:, 1:], data["action"], 1 - data["action"])
    after = both(params, data | dict(targets=changed, later=later, action=action))
    jax.tree.map(np.testing.assert_array_equal, before, after)
    absorbing = t.known & ~t.running
    assert (~t.known).any() and absorbing.any()
    learned = both(params, data | dict(targets=t._replace(value=other(t.value, absorbing))))
    assert float(learned[0]) != float(before[0])


def test_what_begins_a_step_is_the_embedding_and_its_gradient_is_scaled():
    params, data = problem()
    given = jax.tree.map(jnp.asarray, (params, data["observation"], data["action"]))
    embedding, reward = unroll(NETWORK, *given, 0.5)
    np.testing.assert_allclose(embedding.swapaxes(0, 1), walked(params, data)[2], rtol=1e-4, atol=1e-5)
    assert reward.shape == (K, N, 1)
    x = dict(one=jnp.float32(0.3), two=jnp.float32([0.1, 7.0]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), scale_gradient(x, 0.25), x)
    gradient = jax.grad(lambda x: 3 * scale_gradient(x, 0.25)["one"] + scale_gradient(x, 0.25)["two"].sum())(x)
    assert float(gradient["one"]) == 0.75 and gradient["two"].tolist() == [0.25, 0.25]
