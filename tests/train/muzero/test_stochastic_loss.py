"""Stochastic MuZero's loss against loops; its gradients; and a world whose chances it has to find."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from jaxzero.models.stochastic import stochastic
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.nets.muzero.stochastic_mlp import stochastic_mlp
from jaxzero.nets.muzero.stochastic_network import StochasticNetwork, for_stochastic_search
from jaxzero.train.muzero import stochastic_loss as module
from jaxzero.train.muzero.stochastic_loss import (
    ChanceWeights,
    drawn_code,
    nearest_code,
    stochastic_loss,
    stochastic_unroll,
)
from jaxzero.train.muzero.targets import Targets, state_masks
from jaxzero.train.muzero.unroll_loss import LossWeights
from tests.worlds import x64

N, K, A, C, SEEN, LENGTH = 6, 3, 2, 4, 5, 4
HEAD = ScalarHead(
    size=1,
    decode=lambda output: output[..., 0],
    loss=lambda output, target: (output[..., 0] - target) ** 2,
    outside=lambda target: jnp.abs(target) > 1,
)
NETWORK = StochasticNetwork(
    codes=C,
    represent=lambda p, seen: jnp.tanh(seen @ p["h"]),
    predict=lambda p, s: (s @ p["policy"], (s @ p["value"])[:, None]),
    afterstate=lambda p, s, a: jnp.tanh(s @ p["after"] + p["taken"][a]),
    foresee=lambda p, s: (s @ p["codes"], (s @ p["worth"])[:, None]),
    dynamics=lambda p, s, c: (jnp.tanh(s @ p["g"] + c @ p["came"]), (s * (c @ p["paid"])).sum(-1, keepdims=True)),
    encode=lambda p, before, after: before @ p["before"] + jnp.sin(after @ p["later"]),
    reconstruct=lambda p, s: s @ p["back"],
    value=HEAD,
    reward=HEAD,
)
SHAPES = dict(h=(SEEN, LENGTH), policy=(LENGTH, A), value=(LENGTH,), after=(LENGTH, LENGTH), taken=(A, LENGTH))
SHAPES |= dict(codes=(LENGTH, C), worth=(LENGTH,), g=(LENGTH, LENGTH), came=(C, LENGTH), paid=(C, LENGTH))
SHAPES |= dict(before=(SEEN, C), later=(SEEN, C), back=(LENGTH, SEEN))
PARTS, OF_CHANCE = LossWeights(policy=1.5, value=0.25, reward=0.75), ChanceWeights(0.5, 1.25, 0.3, 0.2, 0.1)


def problem(seed=0):
    """Parameters, and random windows of which some states are absorbing and some unknown."""
    rng = np.random.default_rng(seed)
    params = {name: rng.normal(size=shape) * 0.7 for name, shape in SHAPES.items()}
    ends = rng.random((N, K)) < 0.3
    terminated = ends & (rng.random((N, K)) < 0.5)
    running, known = (np.asarray(x) for x in state_masks(jnp.array(terminated), jnp.array(ends & ~terminated)))
    policy = rng.dirichlet(np.ones(A), (N, K + 1))
    given = policy, rng.normal(size=(N, K + 1)), rng.normal(size=(N, K)), running, known
    targets = Targets(*given, random=rng.random((N, K)) < 0.3)
    data = dict(seen=rng.normal(size=(N, K + 1, SEEN)), action=rng.integers(0, A, (N, K)), targets=targets)
    return params, data | dict(weight=rng.random(N))


def loss(params, data, **options):
    params, data = jax.tree.map(jnp.asarray, (params, data))
    return stochastic_loss(NETWORK, params, **data, weights=PARTS, chance_weights=OF_CHANCE, **options)


def walked(p, data):
    """The loss, window by window and step by step."""
    t, total = data["targets"], 0.0
    log_softmax = lambda x: x - np.log(np.exp(x).sum())
    for i in range(N):
        s, one = np.tanh(data["seen"][i, 0] @ p["h"]), 0.0
        for k in range(K + 1):
            scale = 1.0 if k == 0 else 1 / K
            if k:
                step = k - 1
                real = t.running[i, step] and t.running[i, k]
                after = np.tanh(s @ p["after"] + p["taken"][data["action"][i, step]])
                said = data["seen"][i, step] @ p["before"] + np.sin(data["seen"][i, k] @ p["later"])
                foreseen = after @ p["codes"]
                chosen = np.argmax(said if real else foreseen)
                code = np.eye(C)[chosen]
                if t.running[i, step] and t.known[i, k] and not t.random[i, step]:
                    one += scale * OF_CHANCE.afterstate * (after @ p["worth"] - t.value[i, step]) ** 2
                if real:
                    one -= scale * OF_CHANCE.chance * log_softmax(foreseen)[chosen]
                    one += scale * OF_CHANCE.commitment * ((said - code) ** 2).sum()
                reward = (after * (code @ p["paid"])).sum()
                if t.known[i, k]:
                    one += scale * PARTS.reward * (reward - t.reward[i, step]) ** 2
                s = np.tanh(after @ p["g"] + code @ p["came"])
                if real:
                    one += scale * OF_CHANCE.reconstruction * ((s @ p["back"] - data["seen"][i, k]) ** 2).sum() / 2
            if t.running[i, k]:
                policy = t.policy[i, k]
                one += scale * PARTS.policy * (policy * (np.log(policy) - log_softmax(s @ p["policy"]))).sum()
            if t.known[i, k]:
                one += scale * PARTS.value * (s @ p["value"] - t.value[i, k]) ** 2
        total += data["weight"][i] * one
    return total / N


@pytest.mark.parametrize("seed", range(4))
def test_the_loss_is_that_of_loops(seed):
    params, data = problem(seed)
    found, (parts, priority) = loss(params, data)
    assert float(found) == pytest.approx(walked(params, data), rel=1e-4)
    t = data["targets"]
    real = t.running[:, :-1] & t.running[:, 1:]
    assert (
        float(parts.chance.code_counts.sum()) == real.sum() and parts.value.shape == (K + 1,) and priority.shape == (N,)
    )


def test_the_code_is_exact_and_its_gradient_goes_straight_through():
    encoded = jax.random.normal(jax.random.key(0), (50, C)) * 1e3
    code, back = jax.vjp(nearest_code, encoded)
    np.testing.assert_array_equal(code, np.eye(C)[np.argmax(encoded, -1)])
    slope = jax.random.normal(jax.random.key(1), (50, C))
    np.testing.assert_array_equal(back(slope)[0], slope)


def test_gradients_are_those_of_differences():
    with x64():
        params, data = problem(1)
        total = jax.jit(lambda p: loss(p, data, into=1.0)[0])
        slopes = jax.grad(total)(jax.tree.map(jnp.asarray, params))
        for name in sorted(set(SHAPES) - {"before", "later"}):  # at the encoder's codes the loss jumps
            for at in np.ndindex(SHAPES[name]):
                bent = [dict(params) for _ in range(2)]
                for sign, some in zip((1, -1), bent):
                    some[name] = params[name].copy()
                    some[name][at] += sign * 1e-6
                difference = (float(total(bent[0])) - float(total(bent[1]))) / 2e-6
                assert float(slopes[name][at]) == pytest.approx(difference, rel=1e-4, abs=1e-7), (name, at)


def test_the_encoders_gradient_is_that_of_the_codes(monkeypatch):
    """By the chain rule: what the loss says of a change of the codes, and of the distance to them."""
    with x64():
        params, data = problem(2)
        params = jax.tree.map(jnp.asarray, params)
        slopes = jax.grad(lambda p: loss(p, data)[0])(params)
        time = jnp.asarray(data["seen"]).swapaxes(0, 1)
        encode = lambda p: NETWORK.encode(p, time[:-1], time[1:])
        encoded, back = jax.vjp(encode, params)
        fixed = jax.nn.one_hot(jnp.argmax(encoded, -1), C)

        def by_codes(codes, distances):
            monkeypatch.setattr(module, "nearest_code", lambda said: codes)
            blind = NETWORK._replace(encode=lambda p, before, after: distances.reshape(-1, C))
            given = jax.tree.map(jnp.asarray, data)
            return stochastic_loss(blind, params, **given, weights=PARTS, chance_weights=OF_CHANCE)[0]

        through = sum(jax.grad(by_codes, (0, 1))(fixed, encoded))
        for name in ("before", "later"):
            np.testing.assert_allclose(slopes[name], back(through)[0][name], rtol=1e-9, atol=1e-12)


def test_the_gradient_is_halved_at_the_beginning_of_each_step():
    params, data = problem(1)
    params, seen, action = (jax.tree.map(jnp.asarray, x) for x in (params, data["seen"], data["action"]))

    def slope(k, into):
        unrolled = lambda p: stochastic_unroll(NETWORK, p, seen, action, jnp.ones((K, N), bool), into)
        return jax.grad(lambda p: unrolled(p).embedding[k].sum())(params)["h"]

    for k in range(K + 1):
        np.testing.assert_allclose(slope(k, 0.5), 0.5**k * slope(k, 1.0), rtol=1e-5, atol=1e-7)
        assert abs(slope(k, 1.0)).max() > 1e-3


def test_predicting_a_code_says_nothing_to_the_encoder():
    """Else it would make codes easy to predict, which is not what they are for; its commitment alone pulls it."""
    params, data = problem(1)
    params, data = jax.tree.map(jnp.asarray, (params, data))
    one = data | dict(seen=data["seen"][:, :2], action=data["action"][:, :1])
    few = {name: x[:, : x.shape[1] - K + 1] for name, x in data["targets"]._asdict().items() if x is not None}
    one["targets"] = Targets(**few)  # a single step: its code has nothing to influence

    def slopes(**weights):
        of_chance = ChanceWeights(**(dict(afterstate=0.0, chance=0.0) | weights))
        of = lambda p: stochastic_loss(NETWORK, p, **one, weights=LossWeights(0, 0, 0), chance_weights=of_chance)[0]
        return jax.grad(of)(params)

    predicted, committed = slopes(chance=1.0), slopes(commitment=1.0)
    assert abs(predicted["codes"]).max() > 1e-3
    for name in ("before", "later"):
        assert not predicted[name].any() and abs(committed[name]).max() > 1e-3


def test_the_entropy_of_codes_is_a_bonus():
    params, data = problem(4)
    keys, weights = jax.random.split(jax.random.key(0), 1), ChanceWeights(afterstate=0.0, chance=0.0, entropy=0.5)
    one = jax.tree.map(jnp.asarray, data) | dict(weight=jnp.ones(N))
    real = data["targets"].running[:, :-1] & data["targets"].running[:, 1:]
    for sharper in (0.0, 1.0, 10.0):
        bent = params | {name: params[name] * sharper for name in ("before", "later")}
        given = dict(weights=LossWeights(0, 0, 0), chance_weights=weights, keys=keys)
        found, (parts, _) = stochastic_loss(NETWORK, jax.tree.map(jnp.asarray, bent), **one, **given)
        bonus = 0.5 * float(parts.chance.code_entropy) * real.sum() / K / N
        assert float(found) == pytest.approx(-bonus, rel=1e-4) and (bonus > 0.01 or sharper == 10)


def test_draws_are_by_the_encoders_probabilities_and_have_the_softmaxs_gradient():
    logits = jnp.array([0.5, -1.0, 1.0, 0.0])
    noise = jax.random.gumbel(jax.random.key(0), (200_000, C))
    code = drawn_code(jnp.broadcast_to(logits, noise.shape), noise)
    np.testing.assert_allclose(code.mean(0), jax.nn.softmax(logits), atol=0.004)
    assert set(np.unique(code)) == {0.0, 1.0}
    slope = jax.random.normal(jax.random.key(1), (50, C))
    encoded = jax.random.normal(jax.random.key(2), (50, C))
    _, back = jax.vjp(lambda x: drawn_code(x, noise[:50]), encoded)
    _, soft = jax.vjp(lambda x: jax.nn.softmax(x + noise[:50]), encoded)
    np.testing.assert_allclose(back(slope)[0], soft(slope)[0], rtol=1e-6)


def test_each_part_draws_its_own_codes():
    """The parts of a batch draw alike whatever else is in it: on one device, and on several."""
    params, data = problem(3)
    keys = jax.random.split(jax.random.key(0), 2)
    seen, action = jnp.asarray(data["seen"], jnp.float32), jnp.asarray(data["action"])
    real = jnp.ones((K, N), bool)
    params = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params)
    both = stochastic_unroll(NETWORK, params, seen, action, real, keys=keys)
    half = N // 2
    for part in range(2):
        own = slice(part * half, (part + 1) * half)
        one = stochastic_unroll(NETWORK, params, seen[own], action[own], real[:, own], keys=keys[part : part + 1])
        np.testing.assert_array_equal(one.code, both.code[:, own])
    assert (both.code != nearest_code(both.encoded)).any()


def test_the_end_of_an_episode_comes_with_every_code_as_often_as_it_is_foreseen():
    """The encoder does not see it. Were it charged to the likeliest code, it would be expected too seldom."""
    params, data = problem(5)
    params, n = jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), params), 100_000
    seen, action = jnp.tile(jnp.float32(data["seen"][:1, :2]), (n, 1, 1)), jnp.zeros((n, 1), jnp.int32)
    told = stochastic_unroll(
        NETWORK, params, seen, action, jnp.zeros((1, n), bool), keys=jax.random.split(jax.random.key(0), 2)
    )
    after = NETWORK.afterstate(params, NETWORK.represent(params, seen[:1, 0]), action[:1, 0])
    rewards = jnp.stack([NETWORK.dynamics(params, after, code[None])[1][0] for code in jnp.eye(C)])
    which = jnp.argmin(jnp.abs(told.reward.reshape(n, 1) - rewards.reshape(1, C)), -1)
    shares = jnp.bincount(which, length=C) / n
    np.testing.assert_allclose(shares, jax.nn.softmax(told.chances[0, 0]), atol=0.006)


def test_an_encoder_that_says_nothing_is_told_from_one_that_uses_all_codes():
    """Both draw all codes equally often."""
    params, data = problem(4)
    keys = jax.random.split(jax.random.key(0), 1)
    blind = loss(params | {"before": params["before"] * 0, "later": params["later"] * 0}, data, keys=keys)[1][0]
    sure = loss(params | {"before": params["before"] * 1e4}, data, keys=keys)[1][0]
    assert float(blind.chance.code_entropy) == pytest.approx(np.log(C)) and float(sure.chance.code_entropy) < 0.01
    np.testing.assert_allclose(blind.chance.code_counts, blind.chance.code_counts.mean(), rtol=1e-5)
    assert float(loss(params, data)[1][0].chance.code_entropy) == 0


CHANCES = np.array([0.1, 0.2, 0.3, 0.4])


def windows(rng, n, unroll):
    """A counter that goes round in three, beside an outcome of four with known chances, which is paid."""
    start, outcome = rng.integers(0, 3, n), rng.choice(4, (n, unroll + 1), p=CHANCES)
    round_ = (start[:, None] + np.arange(unroll + 1)) % 3
    seen = np.concatenate([np.eye(3)[round_], np.eye(4)[outcome]], -1).astype(np.float32)
    reward = outcome[:, 1:] / 3.0
    true = np.ones((n, unroll + 1), bool)
    # The return of one step: a value that depends on nothing.
    value = np.full((n, unroll + 1), (CHANCES * np.arange(4)).sum() / 3)
    targets = Targets(
        np.full((n, unroll + 1, 2), 0.5, np.float32), *(np.float32(x) for x in (value, reward)), true, true
    )
    return seen, rng.integers(0, 2, (n, unroll)), targets, outcome


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_codes_are_found_that_are_the_outcomes_with_their_chances(seed):
    rng = np.random.default_rng(seed)
    network, params = stochastic_mlp(
        (7,), 2, value=HEAD, reward=HEAD, codes=6, embedding=16, width=32, key=jax.random.key(seed)
    )
    optimiser = optax.adam(optax.exponential_decay(3e-3, 1000, 0.2))
    given = dict(weights=LossWeights(1.0, 1.0, 1.0))
    of = lambda p, keys, *data: stochastic_loss(network, p, *data, jnp.ones(256), keys=keys, **given)

    @jax.jit
    def step(params, state, keys, *given):
        slopes, told = jax.grad(of, has_aux=True)(params, keys, *given)
        change, state = optimiser.update(slopes, state)
        return optax.apply_updates(params, change), state, told

    state = optimiser.init(params)
    for keys in jax.random.split(jax.random.key(seed), (2000, 1)):
        params, state, told = step(params, state, keys, *windows(rng, 256, 3)[:3])
    seen, action, _, outcome = windows(rng, 4000, 1)
    drawn = np.asarray(jax.nn.softmax(network.encode(params, seen[:, 0], seen[:, 1])))
    table = np.zeros((4, 6))
    np.add.at(table, outcome[:, 1], drawn / len(drawn))
    entropy = lambda p: -(p[p > 0] * np.log(p[p > 0])).sum()
    information = entropy(table.sum(1)) + entropy(table.sum(0)) - entropy(table.ravel())
    assert information > 0.99 * entropy(table.sum(1)), table
    functions = for_stochastic_search(network, 1.0)
    _, logits, worth = functions[2](params, functions[0](params, seen[:, 0]), action[:, 0])
    chances = np.asarray(jax.nn.softmax(logits))
    of_outcome = np.stack([chances[:, table.argmax(0) == i].sum(1) for i in range(4)], 1)
    np.testing.assert_allclose(of_outcome, np.broadcast_to(CHANCES, of_outcome.shape), atol=0.02)
    # And a search of the model finds that it pays its mean.
    model = stochastic(*functions, num_actions=2, codes=6)
    _, at = model.root(params, None, seen[:5, 0])
    said, at = model.step(params, None, jnp.zeros(5, jnp.int32), at)
    assert said.chance.all() and not said.reward.any()
    paid = [model.step(params, None, jnp.full(5, c), at)[0].reward for c in range(6)]
    mean = sum(chances[:5, c] * np.asarray(paid[c]) for c in range(6))
    np.testing.assert_allclose(mean, (CHANCES * np.arange(4)).sum() / 3, atol=0.03)
