"""Self-play in a toy game whose observation tells everything, so that each row shows what its target must be."""

import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.games import Game, Symmetry
from jaxzero.train import selfplay
from jaxzero.types import PolicyOutput


class State(NamedTuple):
    id: jax.Array
    length: jax.Array
    winner: jax.Array
    ply: jax.Array
    to_play: jax.Array


class Info(NamedTuple):
    status: jax.Array


def toy(longest=6, draws=False):
    """Games of a random length with a random winner (2: nobody); the same player may move twice in a row."""

    def init(key):
        k_id, k_length, k_winner, k_first = jax.random.split(key, 4)
        return State(
            jax.random.randint(k_id, (), 0, 1 << 20),
            jax.random.randint(k_length, (), 1, longest + 1),
            jax.random.randint(k_winner, (), 0, 2 + draws),
            jnp.int32(0),
            jax.random.randint(k_first, (), 0, 2),
        )

    def step(state, action, key):
        return state._replace(ply=state.ply + 1, to_play=(state.to_play + action) % 2)

    def observe(s):
        return jnp.float32([s.id, s.length, s.winner, s.ply, s.to_play])

    over = lambda s: s.ply >= s.length
    rewards = lambda s: jnp.where(over(s) & (s.winner < 2), jnp.where(jnp.arange(2) == s.winner, 1.0, -1.0), 0.0)
    return Game(
        "toy",
        3,
        2,
        (5,),
        init,
        step,
        observe,
        lambda s: jnp.array([True, True, False]),
        lambda s: s.to_play,
        over,
        rewards,
        lambda s: s,
        (Symmetry(lambda x: x, (0, 1, 2)),),
    )


def policy(params, keys, state, tree=None):
    action = jax.vmap(lambda k: jax.random.randint(k, (), 0, 2))(keys)
    value = jnp.full(action.shape, 0.25)
    return PolicyOutput(
        action=action,
        action_weights=jnp.tile(jnp.float32([0.5, 0.5, 0]), (len(action), 1)),
        value=value,
        tree=None,
        info=Info(jnp.zeros_like(action)),
    )


def outcomes(rows):
    """What each row's player gets at the end of its game."""
    winner, to_play = rows.observation[:, 2], rows.observation[:, 4]
    return np.where(winner == 2, 0, np.where(to_play == winner, 1.0, -1.0))


def collect(game, chunks, batch=8, policy=policy, **options):
    begin, play = selfplay.self_play(game, policy, **options)
    play, state, taken, total = jax.jit(play), begin(jax.random.key(3), batch), [], []
    for _ in range(chunks):
        state, rows, ready, stats = play(None, state)
        taken.append(jax.tree.map(lambda x: np.asarray(x)[np.asarray(ready)], rows))
        total.append(stats)
    rows = jax.tree.map(lambda *x: np.concatenate(x), *taken)
    return state, rows, jax.tree.map(lambda *x: sum(float(y.sum()) for y in x), *total)


@pytest.mark.parametrize("plies", [1, 4, 9])
def test_every_ply_leaves_once_with_the_outcome_of_its_game(plies):
    def marked(params, keys, state):  # every search of a third ply has a status
        return policy(params, keys, state).replace(info=Info(jnp.where(state.ply == 2, 4, 0)))

    game = toy(draws=True)
    state, rows, stats = collect(game, chunks=72 // plies, policy=marked, plies=plies, window=6)
    game_id, length, winner, ply, to_play = rows.observation.T
    np.testing.assert_array_equal(rows.value, outcomes(rows))
    seen = list(zip(game_id, ply))
    assert len(seen) == len(set(seen))
    assert len(seen) == stats.length  # all plies of all finished games
    per_game = {i: set(ply[game_id == i]) for i in set(game_id)}
    assert all(per_game[i] == set(range(int(n))) for i, n in zip(game_id, length))
    assert stats.plies == 72 * 8 and stats.games == len(per_game)
    assert int(state.window.waiting.sum()) == int(state.ply.sum()) == 72 * 8 - len(seen)
    first = ply == 0
    assert stats.first_wins == (first & (to_play == winner)).sum() and stats.draws == (first & (winner == 2)).sum()
    assert 0 < stats.first_wins < stats.games - stats.draws < stats.games
    assert stats.bad == (ply == 2).sum() + int((state.ply > 2).sum())
    assert stats.entropy == pytest.approx(72 * 8 * np.log(2), rel=1e-4)  # of two moves, alike likely


def test_games_that_are_stopped_are_paid_what_they_are_worth():
    def knowing(params, keys, state):  # half of the outcome; every other game stops at its third move
        out = policy(params, keys, state)
        value = jnp.where(state.winner == 2, 0, jnp.where(state.to_play == state.winner, 0.5, -0.5))
        return out.replace(value=value, tree=(state.ply == 2) & (state.id % 2 == 0))

    game = toy(draws=True)
    state, rows, stats = collect(game, 12, policy=knowing, plies=6, window=6, over=lambda tree: tree)
    game_id, length, winner, ply, to_play = rows.observation.T
    stopped = (game_id % 2 == 0) & (length > 3)
    np.testing.assert_array_equal(rows.value, outcomes(rows) * np.where(stopped, 0.5, 1))
    assert ply[stopped].max() == 2 and ply.max() == 5
    first = ply == 0
    assert stats.games == first.sum() and stats.length == len(ply) == 72 * 8 - int(state.ply.sum())
    assert stats.first_wins == (first & (to_play == winner)).sum() and stats.draws == (first & (winner == 2)).sum()
    assert (first & stopped & (to_play == winner)).any()


def test_games_longer_than_the_window_leave_with_the_latest_root_value():
    _, rows, stats = collect(toy(longest=40), chunks=30, plies=4, window=4)
    early = np.abs(rows.value) < 1
    assert 0 < early.sum() < len(early)
    assert set(np.abs(rows.value[early])) == {0.25}
    seen = list(zip(rows.observation[:, 0], rows.observation[:, 3]))
    assert len(seen) == len(set(seen)) >= stats.length  # nothing twice, nothing lost


def test_what_lies_ahead_is_discounted_by_ply():
    _, rows, _ = collect(toy(), chunks=18, plies=4, window=6, discount=0.5)
    left = rows.observation[:, 1] - rows.observation[:, 3]  # plies to the end of the game, this one included
    np.testing.assert_allclose(rows.value, outcomes(rows) * 0.5 ** (left - 1), rtol=1e-6)


@pytest.mark.parametrize("softness", [0.25, 1.0])
def test_softened_targets_are_between_the_outcome_and_the_searched_value(softness):
    _, rows, _ = collect(toy(draws=True), chunks=18, plies=4, window=6, softness=softness)
    np.testing.assert_allclose(rows.value, (1 - softness) * outcomes(rows) + softness * 0.25, rtol=1e-6)


def test_a_random_move_cuts_and_the_rest_keeps_the_outcome():
    choose = selfplay.exploring(random_rate=0.5)
    _, rows, _ = collect(toy(), chunks=30, plies=4, window=6, choose=choose)
    cut = np.abs(rows.value) < 1
    assert 0.2 < cut.mean() < 0.8
    np.testing.assert_array_equal(rows.value[~cut], outcomes(rows)[~cut])


def test_games_begin_with_random_openings_of_different_lengths_and_learn_from_what_follows():
    """The plies of an opening keep their root value, all others learn the outcome; no other move is random."""
    openings = 3
    state, rows, stats = collect(toy(), chunks=60, plies=4, batch=40, window=6, max_opening_plies=openings)
    game_id, length, winner, ply, to_play = rows.observation.T
    cut = np.abs(rows.value) < 1
    np.testing.assert_array_equal(rows.value[~cut], outcomes(rows)[~cut])
    numbers = []
    for i in set(game_id[length == 6]):
        order = np.argsort(ply[game_id == i])
        if list(ply[game_id == i][order]) == list(range(6)):  # it has ended, and no other game has its id
            here = cut[game_id == i][order]
            numbers.append(int(here.sum()))
            assert here[: numbers[-1]].all(), "the plies of its opening"
    shares = np.bincount(numbers, minlength=openings + 1) / len(numbers)
    assert len(numbers) > 200 and len(shares) == openings + 1 and np.all(np.abs(shares - 0.25) < 0.1), shares


def test_the_moves_of_an_opening_are_random_and_plies_count_from_its_end():
    n = 20_000
    out = policy(None, jax.random.split(jax.random.key(0), n), None).replace(action=jnp.zeros(n, jnp.int32))
    legal, keys = jnp.tile(jnp.array([True, True, False]), (n, 1)), jax.random.split(jax.random.key(1), n)
    for choose in (selfplay.exploring(), selfplay.exploring(random_plies=4, temperature=lambda ply: 0.0)):
        action, trace = choose(keys, jnp.full(n, -1), out, legal)
        assert not trace.any() and abs(float((action == 1).mean()) - 0.5) < 0.02 and int(action.max()) == 1
    told = []
    choose = lambda keys, ply, out, legal: (told.append(ply), selfplay.exploring()(keys, ply, out, legal))[1]
    begin, play = selfplay.self_play(toy(longest=1), policy, choose, plies=1, window=1, max_opening_plies=4)
    state = begin(jax.random.key(0), 50)
    with jax.disable_jit():
        _, _, _, stats = play(None, state)  # each game is over after its first move
    np.testing.assert_array_equal(told[0], state.ply)
    assert sorted(set(np.asarray(state.ply).tolist())) == [-4, -3, -2, -1, 0]
    assert int(stats.length[0]) == (state.ply == 0).sum(), "the plies of an opening are not of a game's length"


def test_exploring_plays_legal_moves_at_the_rates_asked_for():
    n = 20_000
    out = policy(None, jax.random.split(jax.random.key(0), n), None)
    out = out.replace(action=jnp.zeros(n, jnp.int32), action_weights=jnp.tile(jnp.float32([0.2, 0.8, 0]), (n, 1)))
    legal, keys = jnp.tile(jnp.array([True, True, False]), (n, 1)), jax.random.split(jax.random.key(1), n)
    ply = lambda p: jnp.full(n, p)
    action, trace = selfplay.exploring(random_plies=4, random_rate=0.1)(keys, ply(2), out, legal)
    assert abs(float((trace == 0).mean()) - 0.5) < 0.02 and abs(float((action == 1).mean()) - 0.25) < 0.02
    action, trace = selfplay.exploring(random_plies=4, random_rate=0.1)(keys, ply(9), out, legal)
    assert abs(float((trace == 0).mean()) - 0.1) < 0.02 and int(action.max()) == 1
    action, trace = selfplay.exploring(sampled_plies=3, trace=0.7)(keys, ply(2), out, legal)
    assert abs(float((action == 1).mean()) - 0.8) < 0.02 and np.allclose(trace, 0.7)
    assert int(selfplay.exploring(sampled_plies=3)(keys, ply(3), out, legal)[0].max()) == 0


def test_after_a_move_that_is_worth_less_than_the_best_one_lambda_is_less():
    found = types.SimpleNamespace(
        visits=jnp.array([[3, 2, 0, 1]] * 3 + [[0, 0, 0, 0]]),
        visit_probs=jnp.float32([[0.5, 0.3, 0, 0.2]] * 3 + [[0.25] * 4]),
        qvalues=jnp.float32([[0.5, -0.3, 9, 0.8]] * 3 + [[9, 9, 9, 9]]),  # 0.8 was visited too rarely, 9 never
    )
    out = PolicyOutput(
        action=jnp.array([0, 1, 2, 0]),
        action_weights=jnp.full((4, 4), 0.25),
        value=jnp.zeros(4),
        tree=None,
        info=types.SimpleNamespace(summary=found),
    )
    keys, ply, legal = jax.random.split(jax.random.key(0), 4), jnp.zeros(4, jnp.int32), jnp.ones((4, 4), bool)
    action, trace = selfplay.exploring(trace=0.9, tolerance=0.4)(keys, ply, out, legal)
    np.testing.assert_array_equal(action, out.action)
    np.testing.assert_allclose(trace, [0.9, 0.9 * np.exp(-0.8 / 0.4), 0.9, 0.9], rtol=1e-6)
    _, trace = selfplay.exploring(random_plies=1, trace=0.9, tolerance=0.4)(keys, ply, out, legal)
    assert (trace == 0).all()
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError, match=f"tolerance={wrong} must be > 0"):
            selfplay.exploring(tolerance=wrong)


@pytest.mark.parametrize("t", [0.5, 1.0, 2.0])
def test_a_temperature_by_ply_is_a_power_of_the_weights(t):
    n, weights = 6_000, np.float32([0.5, 0.3, 0.2])
    out = policy(None, jax.random.split(jax.random.key(0), n), None)
    out = out.replace(action=jnp.full(n, 1, jnp.int32), action_weights=jnp.tile(weights, (n, 1)))
    legal, keys = jnp.tile(jnp.array([True, True, False]), (n, 1)), jax.random.split(jax.random.key(1), n)
    choose = selfplay.exploring(temperature=jz.root.steps((30, 0.0), start=t))
    action, trace = choose(keys, jnp.where(jnp.arange(n) < n // 2, 29, 30), out, legal)
    share = weights[:2] ** (1 / t) / (weights[:2] ** (1 / t)).sum()
    early, late = np.asarray(action[: n // 2]), np.asarray(action[n // 2 :])
    assert abs(early.mean() - share[1]) < 4.5 * np.sqrt(share[0] * share[1] / (n // 2)) and early.max() == 1
    assert (late == 0).all() and (trace == 1).all()  # the highest weight, not the policy's own action


def test_plies_of_fast_searches_make_no_rows_and_lead_to_the_outcomes_of_the_others():
    info = lambda out: out.replace(info=jz.policies.SearchInfo(out.info.status, *[jnp.zeros_like(out.value)] * 3))
    both = [lambda *args, mark=mark: info(policy(*args)).replace(value=policy(*args).value + mark) for mark in (1, 0)]
    capped = jz.playout_cap(*both, p=0.25, group=8)
    begin, play = selfplay.self_play(toy(), capped, plies=9, window=6)
    play, state, rows, plies = jax.jit(play), begin(jax.random.key(3), 16), [], 0
    for _ in range(12):
        state, new, ready, stats = play(None, state)
        rows.append(np.asarray(new.observation)[np.asarray(ready)])
        np.testing.assert_array_equal(
            np.asarray(new.value)[np.asarray(ready)], np.where(rows[-1][:, 4] == rows[-1][:, 2], 1.0, -1.0)
        )
        plies += int(stats.plies.sum())
    rows = np.concatenate(rows)
    assert len(set(zip(rows[:, 0], rows[:, 3]))) == len(rows)
    assert plies == 12 * 9 * 16 and len(rows) + int(state.window.waiting.sum()) == plies // 4


def test_connect_four_rows_are_positions_with_their_outcomes():
    game = games.from_pgx("connect_four")

    def anything(params, keys, state, tree=None):
        legal = jax.vmap(game.legal)(state)
        action = jax.vmap(jax.random.categorical)(keys, jnp.where(legal, 0.0, -1e9))
        return PolicyOutput(
            action=action,
            action_weights=legal / legal.sum(1, keepdims=True),
            value=jnp.zeros(len(action)),
            tree=None,
            info=Info(jnp.zeros_like(action)),
        )

    begin, play = selfplay.self_play(game, anything, plies=20, window=42)
    play, state, seen = jax.jit(play), begin(jax.random.key(0), 16), 0
    for _ in range(4):
        state, rows, ready, stats = play(None, state)
        assert set(np.unique(rows.value[ready])) <= {-1, 0, 1}
        stones = np.asarray(rows.observation.sum((1, 2, 3)))[ready]
        # the last position of a decided game is a win for the player to move; every game has one first position
        assert (stones == 0).sum() == int(stats.games.sum())
        seen += int(ready.sum())
    assert seen > 500
    assert 0 < int(stats.first_wins.sum()) <= int(stats.games.sum())
    assert play._cache_size() == 1  # a second call compiles nothing


def test_bad_sizes_are_named():
    with pytest.raises(ValueError, match="plies=0"):
        selfplay.self_play(toy(), policy, plies=0, window=4)
    with pytest.raises(ValueError, match="max_opening_plies=-1"):
        selfplay.self_play(toy(), policy, plies=1, window=4, max_opening_plies=-1)
    for softness in (-0.1, 1.1):
        with pytest.raises(ValueError, match=f"self_play: softness={softness} is out of range.*between 0 and 1"):
            selfplay.self_play(toy(), policy, plies=1, window=4, softness=softness)
    with pytest.raises(ValueError, match="random_rate=1"):
        selfplay.exploring(random_rate=1.0)
    for wrong in (dict(temperature=0.5), dict(temperature=jz.root.steps((30, 0.0)), sampled_plies=3)):
        with pytest.raises(ValueError, match=r"temperature=.*give one of the two.*Use steps\(\(30, 0.0\)\)"):
            selfplay.exploring(**wrong)


def worth(mine, theirs):
    """Of a tic-tac-toe position to the player to move; stones as sets of squares."""
    lines = [{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {0, 3, 6}, {1, 4, 7}, {2, 5, 8}, {0, 4, 8}, {2, 4, 6}]
    if any(line <= theirs for line in lines):
        return -1
    free = set(range(9)) - mine - theirs
    return max((-worth(theirs, mine | {square}) for square in free), default=0)


@pytest.mark.slow
@pytest.mark.parametrize("over", [None, jz.solved])
def test_what_is_proven_is_the_target_whatever_was_played_afterwards(over):
    game = games.from_pgx("tic_tac_toe")
    knows_nothing = lambda params, observation: (jnp.zeros((len(observation), 9)), jnp.zeros(len(observation)))
    policy = jz.gumbel(models.perfect(game, knows_nothing), 100, wrap=jz.options.seek_proof)
    choose = selfplay.exploring(random_rate=0.5)  # games go on with blunders
    begin, play = selfplay.self_play(game, policy, choose, plies=9, window=9, over=over)
    play, state, taken, proven = jax.jit(play), begin(jax.random.key(1), 32), [], 0
    for _ in range(4):
        state, rows, ready, stats = play(None, state)
        taken.append(jax.tree.map(lambda x: np.asarray(x)[np.asarray(ready)], rows))
        proven += int(stats.proven.sum())
    rows = jax.tree.map(lambda *x: np.concatenate(x), *taken)
    mine, theirs = np.moveaxis(rows.observation.reshape(-1, 9, 2), -1, 0)
    stones = (mine + theirs).sum(1)
    late = stones >= 5  # four squares are left: 64 nodes, all of which are looked at
    exact = [worth(set(np.flatnonzero(a)), set(np.flatnonzero(b))) for a, b in zip(mine[late], theirs[late])]
    np.testing.assert_array_equal(rows.value[late], exact)
    assert proven >= late.sum() > 20 and set(exact) >= {0, 1}
    assert stones.max() == (8 if over is None else 5)  # or the game ends with the first move that all is known of
    assert float(stats.same.sum()) <= float(stats.pairs.sum()) and (over is not None or float(stats.pairs.sum()) > 1)


def test_openings_are_told_apart():
    seen = np.zeros((3, 4, 2, 2), np.float32)
    seen[0, 1, 0, 0] = seen[1, 2, 0, 1] = seen[2, 0, 0, 0] = 1  # the first and the last are the same
    seen[2, 3] = 1
    here = np.zeros((3, 4), bool)
    here[[0, 1, 2], [1, 2, 0]] = True
    compared = lambda: [int(x) for x in selfplay._openings(jnp.array(seen), jnp.array(here))]
    assert compared() == [3, 1]
    here[2, 3] = here[0, 0] = True  # and an empty board is one, too
    assert compared() == [10, 1]
    here[0, 2:] = True  # and three empty ones are three pairs more
    assert compared() == [21, 4]
    here[:] = False
    assert compared() == [0, 0]
    many = np.random.default_rng(0).integers(0, 2, (50, 40, 6, 7, 2)).astype(np.float32)
    pairs, same = selfplay._openings(jnp.array(many), jnp.ones((50, 40), bool))
    assert (pairs, same) == (2000 * 1999 / 2, 0)
