"""Acting in toy worlds whose observation tells everything: what was recorded is done once more, step by step."""

import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import models
from jaxzero.environments import Bounds, Environment, Outcome
from jaxzero.train.move_selection import exploring
from jaxzero.train.muzero.acting import acting, blank_transition, legal_mask, opening
from jaxzero.types import PolicyOutput


class Walk(NamedTuple):
    id: jax.Array
    position: jax.Array
    time: jax.Array
    broken: jax.Array


def world(goal=999, limit=999, players=1, masked=True, odd_pay=0.0):
    """Actions lead 1, 2 or 3 places on, the last of them from even places only; ends at a goal, is cut at a limit."""
    legal = lambda s: jnp.array([True, True, False]) | (s.position % 2 == 0)

    def step(s, action, key):
        after = Walk(s.id, s.position + action + 1, s.time + 1, s.broken | (masked & ~legal(s)[action]))
        paid = (s.position * 3 + action * 5 + s.time) % 7 - 3.0 + jnp.where(s.position % 2, odd_pay, 0)
        paid = jnp.where((s.position >= goal) | (s.time >= limit), 50 + 0 * odd_pay, paid)  # to be ignored
        return after, Outcome(paid, after.position >= goal, after.time >= limit)

    return Environment(
        id="walk",
        num_actions=3,
        observation_shape=(4,),
        reset=lambda key: Walk(jax.random.randint(key, (), 0, 1 << 20), jnp.int32(0), jnp.int32(0), jnp.bool_(False)),
        step=step,
        observe=lambda s: jnp.stack([s.id, s.position, s.time, s.broken.astype(jnp.int32)]),
        legal=legal if masked else None,
        num_players=players,
    )


def policy_of(environment, first=False):
    """Uniform over what is legal, or the first action always; the value tells the place, and place 3 has a status."""

    def policy(params, keys, state):
        legal = legal_mask(environment, state)
        action = jax.vmap(jax.random.categorical)(keys, jnp.where(legal, 0.0, -1e9))
        return PolicyOutput(
            action=jnp.zeros_like(action) if first else action,
            action_weights=legal / legal.sum(1, keepdims=True),
            value=state.position / 8,
            tree=None,
            info=types.SimpleNamespace(status=jnp.where(state.position == 3, 4, 0)),
        )

    return policy


def acted(environment, batch=6, steps=8, chunks=4, choose=None, openings=0, first=False):
    """Records of all chunks after one another `[B, ...]`, and the stats of each."""
    begin, act = acting(environment, policy_of(environment, first), choose, steps=steps, openings=openings)
    now, act, records, stats = begin(jax.random.key(1), batch), jax.jit(act), [], []
    for _ in range(chunks):
        now, record, told = act(None, now)
        records.append(jax.tree.map(np.asarray, record))
        stats.append(jax.tree.map(float, jax.tree.map(lambda x: x[0], told)))
    return jax.tree.map(lambda *x: np.concatenate(x, 1), *records), stats


def done_again(environment, record):
    """What every recorded action does, in the state that was recorded: the observation after it, and the outcome."""

    def one(seen, action):
        state = Walk(seen[0], seen[1], seen[2], seen[3] > 0)
        after, outcome = environment.step(state, action, jax.random.key(0))
        return environment.observe(after), outcome

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(jax.vmap(one)))(record.observation, record.action))


def episodes(environment, record, most=0):
    """Walks through all rows, checks each against its neighbours, and gives the episodes that ended as lists of rows.

    A row is (time in the record, reward for who acted first, last).
    """
    after, outcome = done_again(environment, record)
    found, (batch, rows) = [], record.reward.shape
    for b in range(batch):
        episode, sign = [], 1
        for t in range(rows):
            row = jax.tree.map(lambda x, b=b, t=t: x[b, t], record)
            assert not row.observation[3]
            if not episode:
                assert 0 <= row.observation[2] <= most
            assert row.value == row.observation[1] / 8
            if row.last:  # comes after a cut, and nothing is done there
                cut = jax.tree.map(lambda x, b=b, t=t: x[b, t - 1], outcome)
                assert cut.truncated and not cut.terminated and episode
                assert row.reward == 0 and not row.terminated and not row.random
            else:
                assert row.reward == outcome.reward[b, t] and row.terminated == outcome.terminated[b, t]
            episode.append((t, sign * row.reward, row.last))
            sign *= -1 if environment.num_players == 2 else 1
            if row.terminated or row.last:
                found.append(episode)
                episode, sign = [], 1
            elif t + 1 < rows:  # what follows is of the same episode; and its last row, where it was cut
                np.testing.assert_array_equal(record.observation[b, t + 1], after[b, t])
                assert record.last[b, t + 1] == outcome.truncated[b, t]
    return found


WORLDS = {
    "terminates": (world(goal=9, masked=False), 0),
    "is cut": (world(limit=3), 0),
    "either, for two": (world(goal=8, limit=4, players=2), 0),
    "after openings": (world(limit=12), 4),
}


@pytest.mark.parametrize("name", WORLDS)
def test_records_are_what_happened_and_stats_what_a_walk_over_them_finds(name):
    environment, most = WORLDS[name]
    steps = 24 if most else 8  # for three openings per chunk
    record, stats = acted(environment, openings=most, steps=steps)
    ended = episodes(environment, record, most)
    assert not record.random.any()
    kinds = record.terminated.any(), record.last.any()
    assert kinds == {"terminates": (True, False), "either, for two": (True, True)}.get(name, (False, True))
    legal = np.ones((*record.reward.shape, 3), bool)
    if environment.legal is None:
        assert record.legal is None
    else:
        legal[..., 2] = record.observation[..., 1] % 2 == 0
        np.testing.assert_array_equal(record.legal, legal)
    np.testing.assert_allclose(record.policy, legal / legal.sum(-1, keepdims=True), rtol=1e-6)
    for chunk, told in enumerate(stats):
        here = slice(steps * chunk, steps * chunk + steps)
        over = [episode for episode in ended if here.start <= episode[-1][0] < here.stop]
        returned = [sum(paid for _, paid, _ in episode) for episode in over]
        seen = record.observation[:, here].reshape(-1, 4)
        assert told.steps == (~record.last[:, here]).sum() and told.episodes == len(over)
        assert told.returned == sum(returned) and told.squared == sum(x**2 for x in returned)
        assert told.length == sum(not last for episode in over for _, _, last in episode)
        assert told.first_wins == sum(x > 0 for x in returned) and told.draws == sum(x == 0 for x in returned)
        assert told.distinct == len({tuple(x) for x in seen.tolist()}) and told.improvement == 0
        assert told.bad == (seen[:, 1] == 3).sum()
        assert told.entropy == pytest.approx(np.log(legal[:, here].sum(-1)).sum(), rel=1e-5)
    assert len(ended) > 24
    if most:
        begun = [record.observation[b, 0] for b in range(6)]
        begun += [record.observation[b, t + 1] for b, t in zip(*np.nonzero(record.last[:, :-1]))]
        assert {int(x[2]) for x in begun} == set(range(most + 1))
        assert len({int(x[0]) for x in begun}) == len(begun) > 24  # every episode begins anew


def test_openings_are_of_all_lengths_alike_legal_and_never_to_an_end():
    many = lambda environment, most: jax.jit(jax.vmap(lambda k: opening(environment, k, most)))(
        jax.random.split(jax.random.key(0), 4000)
    )
    free = many(world(), 3)
    counts = np.bincount(free.time)
    assert ((counts - 1000) ** 2 / 1000).sum() < 21.1 and len(counts) == 4  # 3 degrees: 1e-4
    assert not free.broken.any()
    first = np.asarray(free.position)[np.asarray(free.time) == 1]  # the first of them: any of the three alike
    share = np.bincount(first, minlength=4)[1:] / len(first)
    assert np.abs(share - 1 / 3).max() < 4.5 * np.sqrt(2 / 9 / len(first))
    tight = many(world(goal=5, limit=4), 8)
    assert tight.position.max() == 4 and tight.time.max() == 3 and not tight.broken.any()
    begin, _ = acting(world(), policy_of(world()), steps=1, openings=3)
    assert set(np.asarray(begin(jax.random.key(0), 100).state.time)) == {0, 1, 2, 3}


def test_actions_drawn_at_random_are_marked_and_others_are_the_policys():
    record, _ = acted(world(limit=3), batch=200, chunks=1, choose=exploring(random_rate=0.4), first=True)
    taken, marked = ~record.last, record.random[~record.last]
    assert abs(marked.mean() - 0.4) < 4.5 * np.sqrt(0.24 / taken.sum())
    assert not record.random[record.last].any() and not record.action[taken][~marked].any()
    for three in (True, False):
        drawn = record.action[taken & record.random & (record.legal[..., 2] == three)]
        share, even = np.bincount(drawn, minlength=3) / len(drawn), 1 / (2 + three)
        assert np.abs(share[: 2 + three] - even).max() < 4.5 * np.sqrt(even * (1 - even) / len(drawn))
        assert three or share[2] == 0


def test_a_choice_is_made_by_the_steps_since_the_episode_began():
    by_age = lambda keys, ply, out, legal: (jnp.minimum(ply, 1).astype(jnp.int32), jnp.ones(len(ply)))
    record, _ = acted(world(limit=4), chunks=1, choose=by_age, openings=2, batch=40)
    begins = np.roll(record.last, 1, axis=1)
    begins[:, 0] = True
    np.testing.assert_array_equal(record.action == 0, begins)
    assert set(record.observation[..., 2][begins]) == {0, 1, 2}


def test_environments_do_not_depend_on_those_beside_them():
    environment = world(goal=9, limit=4)
    begin, act = acting(environment, policy_of(environment), exploring(random_rate=0.3), steps=8, openings=2)
    act, whole = jax.jit(act), begin(jax.random.key(5), 6)
    after, record, stats = act(None, whole)
    halves = [jax.tree.map(lambda x, i=i: x[3 * i : 3 * i + 3], whole) for i in (0, 1)]
    parts = [act(None, half) for half in halves]
    raw = lambda now: now._replace(keys=jax.random.key_data(now.keys))
    together = jax.tree.map(lambda *x: np.concatenate(x), *[(raw(after), record) for after, record, _ in parts])
    jax.tree.map(np.testing.assert_array_equal, together, (raw(after), record))
    summed = jax.tree.map(lambda *x: float(sum(x)[0]), *[stats for _, _, stats in parts])
    for name, x in stats._asdict().items():
        assert name == "distinct" or float(x[0]) == pytest.approx(getattr(summed, name), rel=1e-5)


@pytest.mark.parametrize("odd_pay", [np.nan, np.inf, -np.inf])
def test_rewards_that_are_not_finite_are_counted_and_recorded_as_none(odd_pay):
    record, stats = acted(world(limit=3, odd_pay=odd_pay), chunks=1)
    odd = (record.observation[..., 1] % 2 == 1) & ~record.last
    assert odd.any() and not record.reward[odd].any() and record.reward[~odd & ~record.last].any()
    assert stats[0].bad == (odd | (record.observation[..., 1] == 3)).sum()


def test_what_is_drawn_beyond_the_bounds_is_clipped_for_the_environment_alone():
    """Its reward is the root of the action, of which there is none below 0; the sample is recorded as it was drawn."""
    paid = lambda action: Outcome(jnp.sqrt(action[0]), jnp.bool_(False), jnp.bool_(False))
    environment = Environment(
        id="root",
        num_actions=3,
        observation_shape=(1,),
        reset=lambda key: jnp.int32(0),
        step=lambda state, action, key: (state + 1, paid(action)),
        observe=lambda state: state[None],
        bounds=Bounds((0.0,), (4.0,)),
    )

    def policy(params, keys, state):
        sampled, weights = jnp.tile(jnp.array([[-1.0], [9.0], [0.25]]), (len(keys), 1, 1)), jax.nn.one_hot(state, 3)
        info = types.SimpleNamespace(status=jnp.zeros(len(keys), jnp.int32), actions=sampled)
        return PolicyOutput(action=state, action_weights=weights, value=weights[:, 0], tree=None, info=info)

    begin, act = acting(environment, policy, exploring(random_rate=0.0), steps=3)
    _, record, stats = jax.jit(act)(None, begin(jax.random.key(0), 2))
    np.testing.assert_array_equal(record.reward, [[0.0, 2.0, 0.5]] * 2)
    np.testing.assert_array_equal(record.sampled[0, 0, :, 0], [-1.0, 9.0, 0.25])
    assert stats.bad[0] == 0


@pytest.mark.parametrize("masked", [True, False])
def test_a_row_of_the_replay_has_the_shapes_and_types_of_what_is_recorded(masked):
    environment = world(masked=masked)
    begin, act = acting(environment, policy_of(environment), steps=3)
    record = jax.eval_shape(lambda: act(None, begin(jax.random.key(0), 2))[1])
    blank = blank_transition(environment)
    assert jax.tree.structure(record) == jax.tree.structure(blank)
    of = lambda tree, axes: [(x.shape[axes:], x.dtype) for x in jax.tree.leaves(tree)]
    assert of(record, 2) == of(blank, 0)


def test_a_policy_with_a_tree_tells_how_far_it_went_from_its_prior():
    logits = jnp.float32([0.5, 0.0, -1.0])
    model = models.learned(
        lambda params, state: jnp.stack([state.position, state.time], -1).astype(jnp.float32),
        lambda params, s: (jnp.tile(logits, (len(s), 1)), s[:, 0] / 8),
        lambda params, s, action: (s + action[:, None], s[:, 1] / 8, jnp.ones(len(s))),
    )
    environment = world(masked=False)
    begin, act = acting(environment, jz.gumbel(model, 4, max_considered=2), steps=3)
    _, record, stats = jax.jit(act)(None, begin(jax.random.key(0), 4))
    weights = np.float64(record.policy).reshape(-1, 3)
    divergence = (weights * (np.log(weights) - np.asarray(jax.nn.log_softmax(logits)))).sum()
    assert float(stats.improvement[0]) == pytest.approx(divergence, rel=1e-3) and divergence > 0.01


def test_sizes_are_named():
    for steps, openings in ((0, 0), (1, -1)):
        with pytest.raises(ValueError, match=f"steps={steps} must be 1 or more, and openings={openings} 0 or more"):
            acting(world(), policy_of(world()), steps=steps, openings=openings)
