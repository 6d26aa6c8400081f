"""The learner against formulas, a world that it learns by heart, and windows seen through symmetries."""

import functools
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import environments, games, nets
from jaxzero.environments import Bounds, Environment, Outcome
from jaxzero.nets.muzero.learned_network import LearnedNetwork
from jaxzero.nets.muzero.scalar_heads import ScalarHead
from jaxzero.train.move_selection import exploring
from jaxzero.train.muzero import learner as module
from jaxzero.train.muzero import sequence_replay as replay
from jaxzero.train.muzero.acting import acting, blank_transition
from jaxzero.train.muzero.learner import muzero_learner
from jaxzero.train.muzero.sequence_replay import Transition
from jaxzero.train.muzero.targets import Targets, make_targets
from jaxzero.train.muzero.unroll_loss import LossWeights, unroll_loss
from jaxzero.train.parameter_update import parameter_update
from jaxzero.types import PolicyOutput

K, STEPS, A, SEEN = 2, 2, 2, 3
WINDOW = K + STEPS + 1
HEAD = ScalarHead(1, lambda x: x[..., 0], lambda x, target: (x[..., 0] - target) ** 2, lambda target: target > 99)
NETWORK = LearnedNetwork(
    represent=lambda p, seen: jnp.tanh(seen @ p["h"]),
    dynamics=lambda p, s, a: (s @ p["g"] + p["taken"][a], (s * p["paid"][a]).sum(-1, keepdims=True)),
    predict=lambda p, s: (s @ p["policy"], (s @ p["value"])[:, None]),
    value=HEAD,
    reward=HEAD,
    project=lambda p, s: s,
    foretell=lambda p, s: s,
)
SHAPES = dict(h=(SEEN, 4), g=(4, 4), taken=(A, 4), paid=(A, 4), policy=(4, A), value=(4,))
ENVIRONMENT = Environment("none", A, (SEEN,), reset=None, step=None, observe=None, discount=0.9)
SIZES = dict(unroll=K, steps=STEPS)


def params_of(seed=0):
    rng = np.random.default_rng(seed)
    return {name: jnp.float32(rng.normal(size=shape) * 0.7) for name, shape in SHAPES.items()}


def rows(environments, length, seed=0, ends=0.15):
    rng = np.random.default_rng(seed)
    shape = environments, length
    over = rng.random(shape) < ends
    cut = over & (rng.random(shape) < 0.5)
    number = lambda *more: rng.normal(size=(*shape, *more)).astype(np.float32)
    steps = Transition(
        observation=number(SEEN),
        legal=None,
        action=rng.integers(0, A, shape).astype(np.int32),
        reward=number(),
        terminated=over & ~cut,
        last=cut,
        random=(rng.random(shape) < 0.2) & ~cut,
        policy=rng.dirichlet(np.ones(A), shape).astype(np.float32),
        value=number(),
    )
    return jax.tree.map(jnp.asarray, steps)


def filled(steps, prioritised=False):
    blank = jax.tree.map(lambda x: x[0, 0], steps)
    return replay.add(replay.new_sequences(blank, *steps.reward.shape, prioritised), steps)


def keys(parts=1, seed=0):
    return jax.random.split(jax.random.key(seed), parts)


def learning(network=NETWORK, **settings):
    begin, update = muzero_learner(ENVIRONMENT, network, **(SIZES | settings))
    return begin, jax.jit(update, static_argnums=4)


@pytest.mark.parametrize("players, consistency", [(1, 0.0), (2, 1.5)])
def test_a_minibatch_is_one_parameter_update_with_the_gradient_of_its_loss(players, consistency):
    steps, params = rows(1, WINDOW, ends=0), params_of()  # one window only, of which no state is absorbing
    settings = dict(weight_decay=0.5, average_decay=0.05, clip_norm=0.1)
    parts = LossWeights(consistency=consistency)
    environment = ENVIRONMENT._replace(num_players=players)
    begin, update = muzero_learner(environment, NETWORK, batch_size=4, weights=parts, trace=0.7, **(SIZES | settings))
    state, _, losses = jax.jit(update, static_argnums=4)(begin(params), filled(steps), keys(), 0.01, 1)
    targets = make_targets(
        steps.policy[:, : K + 1], steps.reward, steps.value, steps.terminated, steps.last, steps.random,
        **SIZES, discount=-0.9 if players == 2 else 0.9, trace=0.7,
    )  # fmt: skip
    seen, action = steps.observation, steps.action[:, :K]
    (total, (found, _)), gradients = jax.value_and_grad(
        lambda p: unroll_loss(
            NETWORK, p, seen[:, 0], action, targets, jnp.ones(1), weights=parts, later=seen[:, 1 : K + 1]
        ),
        has_aux=True,
    )(params)
    start, apply = parameter_update(**settings)
    want, norm, _ = apply(start(params), gradients, total, 0.01)
    near = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6)
    jax.tree.map(near, (state, losses.total, losses.parts, losses.gradient_norm), (want, total, found, norm))
    assert float(losses.skipped) == 0 and (consistency == 0) == (float(losses.parts.consistency[0]) == 0)


def test_devices_learn_the_same_as_one():
    steps, params = rows(4, 3 * WINDOW), params_of()
    by_seen = lambda seen: jax.nn.softmax(seen[..., :A])

    def fresh(params, keys, seen, legal, later):
        say = lambda seen: seen[..., 0] + params["g"][0, 1]
        return by_seen(seen + params["g"][0, 0]), say(seen), say(later)

    found = {}
    for shares in (1, 2):
        devices = ("many", shares) if shares > 1 else None
        begin, update = muzero_learner(
            ENVIRONMENT, NETWORK, batch_size=16, fresh=fresh, share=0.5, devices=devices, **SIZES
        )
        split = lambda tree, n=shares: jax.tree.map(lambda x: x.reshape(n, 4 // n, *x.shape[1:]), tree)
        every = jax.vmap(lambda *x, update=update: update(*x, 0.01, 3), in_axes=(None, 0, 0), axis_name="many")
        rings = split(filled(steps, prioritised=True))
        state, rings, losses = jax.jit(every)(begin(params), rings, split(keys(4)))
        jax.tree.map(lambda x: np.testing.assert_array_equal(x, np.broadcast_to(x[:1], x.shape)), state)
        parts = [getattr(losses.parts, name) for name in ("policy", "value", "reward", "value_error")]
        of_first = jax.tree.map(lambda x: x[0], (state, losses.total, losses.gradient_norm, parts))
        found[shares] = of_first, rings.priority.reshape(4, -1)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5, rtol=1e-4), found[1], found[2])
    assert np.abs(found[1][0][0].params["g"] - params["g"]).max() > 1e-3


@pytest.mark.parametrize("prioritised", [False, True])
@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_minibatches_with_rewards_that_are_not_finite_are_skipped_and_learning_goes_on(odd, prioritised):
    steps = rows(2, WINDOW, ends=0)
    steps = steps._replace(reward=steps.reward.at[1].set(odd), random=jnp.zeros_like(steps.random))
    begin, update = learning(batch_size=1, clip_norm=1.0)
    rings, minibatches = filled(steps, prioritised), 30
    state, rings, losses = update(begin(params_of()), rings, keys(), 0.003, minibatches)
    skipped = int(losses.skipped)
    assert 3 < skipped < 27 and int(state.skipped) == skipped and int(state.steps) == minibatches
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((state.params, state.average, losses)))
    assert all((x != y).any() for x, y in zip(jax.tree.leaves(state.params), jax.tree.leaves(params_of())))
    if prioritised:
        assert float(rings.priority.max()) < 100
    rings = replay.add(rings, rows(2, WINDOW, seed=1, ends=0))  # and what was not finite is forgotten
    state, rings, losses = update(state, rings, keys(seed=1), 0.003, minibatches)
    assert int(losses.skipped) == 0 and int(state.in_a_row) == 0
    only_odd = steps._replace(reward=jnp.full_like(steps.reward, odd))
    before = state
    state, _, losses = update(state, filled(only_odd, prioritised), keys(), 0.003, minibatches)
    jax.tree.map(np.testing.assert_array_equal, state[:3], before[:3])
    assert int(losses.skipped) == int(state.in_a_row) == minibatches


def test_windows_by_priority_are_weighted_and_get_new_priorities():
    says = NETWORK._replace(predict=lambda p, s: (s @ p["policy"], 0 * s[:, :1] + 0.25))
    steps = rows(1, WINDOW + 1, ends=0)  # two windows; each state's target is its own value, for all is random
    steps = steps._replace(random=jnp.ones_like(steps.random))
    rings, n, beta = filled(steps, prioritised=True), 64, 0.5
    rings = rings._replace(priority=rings.priority.at[0, :2].set(jnp.array([0.2, 0.6])))
    begin, update = learning(says, batch_size=n, weights=LossWeights(policy=0.0, value=1.0, reward=0.0), beta=beta)
    state, after, losses = update(begin(params_of()), rings, keys(), 0.0, 1)
    value = np.asarray(steps.value[0], np.float64)
    np.testing.assert_allclose(after.priority[0, :2], np.abs(0.25 - value[:2]), rtol=1e-5)
    np.testing.assert_array_equal(after.priority[0, 2:], rings.priority[0, 2:])
    square = (0.25 - value) ** 2
    count = round(n * float((losses.parts.value[0] - square[1]) / (square[0] - square[1])))  # of the first window
    of_two = np.array([count, n - count]) / n
    np.testing.assert_allclose(losses.parts.value[0], of_two @ square[:2], rtol=1e-4)
    assert abs(count / n - 0.25) < 4.5 * np.sqrt(0.25 * 0.75 / n)
    weight = (1 / (2 * np.array([0.25, 0.75]))) ** beta
    each = square[:2] + (square[1:3] + square[2:4]) / K
    np.testing.assert_allclose(losses.total, of_two @ (weight / weight.max() * each), rtol=1e-4)


def test_after_the_end_any_action_is_learned_from_and_before_it_what_was_done():
    running = np.arange(4) <= np.random.default_rng(0).integers(0, 4, (2000, 1))
    action = jnp.full((2000, 3), 3)
    targets = Targets(None, None, None, jnp.array(running), None)
    found = np.asarray(module._any_after_the_end(keys(2), action, targets, 4))
    assert (found[running[:, :-1]] == 3).all()
    rest = np.bincount(found[~running[:, :-1]], minlength=4)
    assert len(rest) == 4 and ((rest - rest.mean()) ** 2 / rest.mean()).sum() < 21.1  # 3 degrees: 1e-4


def test_a_window_through_a_symmetry_is_a_game_by_the_same_rules():
    environment = environments.from_game(games.from_pgx("tic_tac_toe"))
    n, length = 64, 9

    def play(key):
        def ply(state, key):
            legal = environment.legal(state)
            action = jax.random.categorical(key, jnp.where(legal, 0.0, -jnp.inf))
            after, outcome = environment.step(state, action, key)
            return after, (environment.observe(state), action, legal / legal.sum(), outcome)

        return jax.lax.scan(ply, environment.reset(key), jax.random.split(key, length))[1]

    def again(actions):  # the same actions' game, from the beginning
        def ply(state, action):
            legal = environment.legal(state)
            after, outcome = environment.step(state, action, jax.random.key(0))
            return after, (environment.observe(state), legal / legal.sum(), outcome)

        return jax.lax.scan(ply, environment.reset(jax.random.key(0)), actions)[1]

    seen, action, policy, outcome = jax.jit(jax.vmap(play))(keys(n))
    over = jnp.cumsum(outcome.terminated, 1) > 0
    running = np.concatenate([np.ones((n, 1), bool), ~over[:, :-1]], 1)
    targets = Targets(policy, outcome.reward, outcome.reward, running, running)
    through = jax.jit(functools.partial(module._through_symmetries, environment))
    shown, turned, told = through(keys(4), seen, action, targets)
    new_seen, new_policy, new_outcome = jax.jit(jax.vmap(again))(turned)
    np.testing.assert_array_equal(np.asarray(shown)[running], np.asarray(new_seen)[running])
    np.testing.assert_allclose(np.asarray(told.policy)[running], np.asarray(new_policy)[running])  # legal alike
    for name in ("reward", "terminated"):
        same = [np.asarray(getattr(x, name))[running] for x in (outcome, new_outcome)]
        np.testing.assert_array_equal(*same)
    for name in ("value", "reward", "running", "known"):
        np.testing.assert_array_equal(getattr(told, name), getattr(targets, name))
    forms = [jax.vmap(jax.vmap(symmetry.observation))(seen) for symmetry in environment.symmetries]
    drawn = [(form == shown).all((1, 2, 3, 4)).any() for form in forms]
    assert len(drawn) == 8 and all(drawn)
    alone = environment._replace(symmetries=environment.symmetries[:1])
    for one, two in zip((seen, action), module._through_symmetries(alone, keys(4), seen, action, targets)):
        assert one is two


PAYS = [[0.0, -0.2], [0.3, 0.0], [-0.1, 0.1], [0.0, -0.4], [0.2, 0.0], [-0.3, 0.6]]  # by state and action
DISCOUNT = 0.8


def leads(state, action):
    """Six places in a ring, left and right; to the right of the last one is the end (None)."""
    return None if (state, action) == (5, 1) else (state + (1 if action else -1)) % 6


def worth():
    """The value of each place, by as many sweeps as it takes."""
    value = [0.0] * 6
    for _ in range(200):
        value = [max(q) for q in action_values(value)]
    return value


def action_values(value):
    after = lambda place: 0.0 if place is None else value[place]
    return [[PAYS[s][a] + DISCOUNT * after(leads(s, a)) for a in (0, 1)] for s in range(6)]


@pytest.mark.slow
@pytest.mark.optimised
def test_a_known_world_is_learned_by_heart_from_what_an_agent_did_there():
    value, qvalues = jnp.float32(worth()), np.array(action_values(worth()))
    best = qvalues.argmax(1)
    likely = jnp.float32(0.1 + 0.8 * np.eye(2)[best])

    def step(state, action, key):
        place, time = state
        over = (place == 5) & (action == 1)
        place = jnp.where(over, place, (place + jnp.where(action == 1, 1, -1)) % 6)
        return (place, time + 1), Outcome(jnp.array(PAYS)[state[0], action], over, time + 1 >= 7)

    ring = Environment(
        "ring", 2, (6,), lambda key: (jax.random.randint(key, (), 0, 6), jnp.int32(0)), step,
        lambda state: jax.nn.one_hot(state[0], 6), discount=DISCOUNT,
    )  # fmt: skip

    def knowing(params, keys, state):
        return PolicyOutput(
            action=jnp.array(best, jnp.int32)[state[0]],
            action_weights=likely[state[0]],
            value=value[state[0]],
            tree=None,
            info=types.SimpleNamespace(status=jnp.zeros_like(state[0])),
        )

    begin, act = acting(ring, knowing, exploring(random_rate=0.7), steps=64)
    _, record, _ = jax.jit(act)(None, begin(jax.random.key(0), 32))
    assert record.last.any() and record.terminated.any() and 0.3 < record.random.mean() < 0.8
    rings = replay.add(replay.new_sequences(blank_transition(ring), 32, 64), record)
    head, unroll = nets.bounded(), 3
    network, params = nets.muzero_mlp((6,), 2, value=head, reward=head, embedding=16, width=64, key=jax.random.key(1))
    begin, update = muzero_learner(
        ring,
        network,
        batch_size=64,
        unroll=unroll,
        steps=3,
        weights=LossWeights(policy=0.2, value=2.0, reward=2.0),
        weight_decay=0.0,
    )
    state, update = begin(params), jax.jit(update, static_argnums=4)
    for i, rate in enumerate([3e-3] * 6 + [1e-3] * 2 + [3e-4] * 2 + [1e-4]):
        state, rings, losses = update(state, rings, keys(seed=i), rate, 300)
    for path in itertools.product((0, 1), repeat=unroll):
        places = list(range(6))
        embedding = network.represent(state.average, jnp.eye(6))
        for k in range(unroll + 1):
            logits, said = network.predict(state.average, embedding)
            want = [0.0 if place is None else float(value[place]) for place in places]
            np.testing.assert_allclose(head.decode(said), want, atol=3e-3)
            here = [i for i, place in enumerate(places) if place is not None]
            shares = jax.nn.softmax(logits)[jnp.array(here)]
            np.testing.assert_allclose(shares, likely[jnp.array([places[i] for i in here])], atol=0.01)
            if k < unroll:
                embedding, said = network.dynamics(state.average, embedding, jnp.full(6, path[k]))
                want = [0.0 if place is None else PAYS[place][path[k]] for place in places]
                np.testing.assert_allclose(head.decode(said), want, atol=3e-3)
                places = [None if place is None else leads(place, path[k]) for place in places]


def test_errors_name_the_numbers():
    build = functools.partial(muzero_learner, ENVIRONMENT, NETWORK)
    with pytest.raises(ValueError, match=r"batch_size=6 on 4 device\(s\): give a multiple of 4"):
        build(batch_size=6, devices=("many", 4))
    with pytest.raises(ValueError, match="batch_size=0"):
        build(batch_size=0)
    for wrong in (dict(unroll=-1), dict(steps=0), dict(trace=1.5)):
        with pytest.raises(ValueError, match="unroll=.* steps=.* trace="):
            build(batch_size=4, **wrong)
    endless = ENVIRONMENT._replace(bounds=Bounds((-1.0,), (1.0,)))
    with pytest.raises(ValueError, match="share=0.5 with continuous actions: .* Use share=0"):
        muzero_learner(endless, NETWORK, batch_size=4, share=0.5, fresh=lambda *_: None)
    for share in (-0.5, 2):
        with pytest.raises(ValueError, match=f"share of {share}"):
            build(batch_size=4, share=share)


def test_a_share_that_is_no_window_of_a_part_is_refused():
    begin, update = muzero_learner(ENVIRONMENT, NETWORK, batch_size=8, share=0.1, fresh=lambda *_: None, **SIZES)
    rings, given = filled(rows(4, 2 * WINDOW)), (keys(4), 0.01, 1)
    says = "share=0.1 of the 2 windows of each of 4 parts rounds to 0: give a larger share"
    with pytest.raises(ValueError, match=says):
        update(begin(params_of()), rings, *given)
