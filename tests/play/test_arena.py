"""The arena on players whose results are known."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, models
from jaxzero.play import arena
from jaxzero.types import PolicyOutput


def by_rank(game, order):
    """Plays the first legal action in the given order."""
    rank = jnp.zeros(game.num_actions).at[jnp.array(order)].set(jnp.arange(game.num_actions, dtype=jnp.float32))

    def policy(params, keys, state, tree=None):
        legal = jax.vmap(game.legal)(state)
        action = jnp.argmin(jnp.where(legal, rank, 99), 1)
        return PolicyOutput(
            action=action,
            action_weights=jax.nn.one_hot(action, game.num_actions),
            value=jnp.zeros(len(action)),
            tree=None,
            info=None,
        )

    return policy


def score_of(game, first, second, pairs, seed=0, **options):
    play = jax.jit(functools.partial(arena.play, game, (first, second), (None, None), **options))
    return tuple(int(x) for x in play(jax.random.split(jax.random.key(seed), pairs)))


def test_a_fixed_line_is_won_by_whoever_moves_first():
    # both play squares 0, 1, 2 ... : X has 0, 2, 4, 6 after its fourth move, the diagonal 2-4-6: the first to move wins
    game = games.from_pgx("tic_tac_toe")
    player = by_rank(game, range(9))
    assert score_of(game, player, player, pairs=8, opening_plies=0) == (8, 0, 8, 0)


def test_colours_swap_and_results_mirror():
    game = games.from_pgx("tic_tac_toe")
    a, b = by_rank(game, [4, 0, 2, 6, 8, 1, 3, 5, 7]), by_rank(game, range(9))
    wins, draws, losses, unfinished = score_of(game, a, b, pairs=64, opening_plies=2)
    assert score_of(game, b, a, pairs=64, opening_plies=2) == (losses, draws, wins, unfinished)
    assert wins + draws + losses == 128 and unfinished == 0 and wins > losses


def test_random_players_are_even_whoever_is_named_first():
    game = games.from_pgx("connect_four")
    player = arena.random_player(game)
    score = arena.Score(*score_of(game, player, player, pairs=400, opening_plies=1))
    low, high = arena.interval(score, z=3.9)
    assert low < 0.5 < high
    assert sum(score) == 800


def test_the_two_games_of_a_pair_are_drawn_apart():
    game = games.from_pgx("tic_tac_toe")
    players, keys = (arena.random_player(game),) * 2, jax.random.split(jax.random.key(0), 32)
    play = functools.partial(arena.play_pairs, game, players, (None, None), opening_plies=0)
    assert (arena.half_points(jax.jit(play)(keys)) != 2).any()  # one game seen from both sides shares the points


def test_games_stop_at_max_plies():
    game = games.from_pgx("connect_four")
    player = arena.random_player(game)
    assert score_of(game, player, player, pairs=4, opening_plies=2, max_plies=5) == (0, 0, 0, 8)


def test_raw_network_plays_the_best_legal_logit():
    game = games.from_pgx("connect_four")
    model = models.perfect(game, lambda params, x: (jnp.tile(jnp.arange(7.0), (len(x), 1)), jnp.zeros(len(x))))
    state = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    for _ in range(6):  # fill the last column of the first game
        state = jax.vmap(game.step, (0, 0, None))(state, jnp.array([6, 0]), jax.random.key(0))
    out = arena.raw_network(model)(None, jax.random.split(jax.random.key(0), 2), state)
    assert out.action.tolist() == [5, 6]


def test_share_and_interval():
    score = arena.Score(60, 20, 20, 0)
    assert arena.share(score) == 0.7
    low, high = arena.interval(score)
    assert 0.6 < low < 0.7 < high < 0.8
    assert arena.interval(arena.Score(50, 0, 0, 0))[0] > 0.9


def test_one_player_games_are_refused():
    game = games.from_pgx("connect_four")._replace(num_players=1)
    with pytest.raises(ValueError, match=r"1 player\(s\), but play needs two"):
        arena.play(game, (None, None), (None, None), jax.random.split(jax.random.key(0), 2))


def test_pairs_add_up_to_the_score_and_can_be_told_apart():
    game = games.from_pgx("tic_tac_toe")
    policies = by_rank(game, [4, 0, 2, 6, 8, 1, 3, 5, 7]), by_rank(game, range(9))
    keys = jax.random.split(jax.random.key(0), 64)
    one, all_ = (
        jax.jit(functools.partial(play, game, policies, (None, None))) for play in (arena.play_pairs, arena.play)
    )
    pairs, score = one(keys), all_(keys)
    assert tuple(int(x.sum()) for x in pairs) == tuple(int(x) for x in score)
    assert (sum(pairs) == 2).all()
    points = arena.half_points(pairs)
    assert points.shape == (64,) and int(points.sum()) == round(2 * 128 * arena.share(score))
    assert 3 <= len(set(points.tolist()))  # the openings decide: not all pairs end alike
    # a pair's result is that of its key, whatever the others are
    assert (arena.half_points(one(keys[::-1])) == points[::-1]).all()


def test_a_player_shares_the_points_of_each_pair_with_itself():
    # deterministic, so that the two games of a pair are one game, seen from both sides
    game = games.from_pgx("tic_tac_toe")
    player = by_rank(game, range(9))
    keys = jax.random.split(jax.random.key(0), 16)
    pairs = jax.jit(functools.partial(arena.play_pairs, game, (player, player), (None, None)))(keys)
    assert (arena.half_points(pairs) == 2).all()
    stopped = jax.jit(functools.partial(arena.play_pairs, game, (player, player), (None, None), max_plies=3))(keys)
    assert (arena.half_points(stopped) == 2).all() and (stopped.unfinished == 2).all()


def sums(rewards=(1.0, -0.5)):
    """Three players name numbers in turn, three times each; the greatest sum wins."""
    won, lost = rewards

    def step(state, action, key):
        sums, ply, _ = state
        over = ply >= 9
        sums = jnp.where(over, sums, sums.at[ply % 3].add(action.astype(jnp.float32)))
        ply = jnp.where(over, ply, ply + 1)
        best = sums == sums.max()
        paid = jnp.where(~over & (ply == 9), jnp.where(best, won, lost), jnp.zeros(3))
        return sums, ply, paid

    return games.Game(
        id="sums",
        num_actions=4,
        num_players=3,
        observation_shape=(4,),
        init=lambda key: (jnp.zeros(3), jnp.int32(0), jnp.zeros(3)),
        step=step,
        observe=lambda state: jnp.append(state[0], state[1].astype(jnp.float32)),
        legal=lambda state: jnp.full(4, state[1] < 9),
        to_play=lambda state: state[1] % 3,
        terminal=lambda state: state[1] >= 9,
        rewards=lambda state: state[2],
    )


@pytest.mark.parametrize("opening", [0, 1, 2])
def test_who_is_better_wins_in_every_seat_of_three(opening):
    game = sums()
    games.check_rules(game)
    best, worst = by_rank(game, [3, 0, 1, 2]), by_rank(game, [0, 1, 2, 3])
    keys = jax.random.split(jax.random.key(0), 8)
    play = lambda one, other: arena.play_seats(game, (one, other), (None, None), keys, opening_plies=opening)  # noqa: E731
    score, points = jax.jit(lambda: play(best, worst))()
    assert score.wins.shape == (3, 8) and score.wins.sum() >= 23 and score.losses.sum() == 0
    assert float(points.sum()) >= 23
    score, points = jax.jit(lambda: play(worst, best))()  # the two others are as good as one another
    assert score.wins.sum() == 0 and float(points.sum()) < 2


@pytest.mark.parametrize("opening", [0, 1, 2])
def test_rows_are_the_seats_in_the_order_of_moving(opening):
    """Player 0 wins, whoever it is: all points are in the row where it moves next after the opening."""
    game = sums()
    ahead = game._replace(rewards=lambda state: jnp.where(state[1] >= 9, jnp.array([1.0, -0.5, -0.5]), 0.0))
    keys, player = jax.random.split(jax.random.key(0), 4), arena.random_player(game)
    play = lambda: arena.play_seats(ahead, (player, player), (None, None), keys, opening_plies=opening)  # noqa: E731
    score, points = jax.jit(play)()
    wins = [[int(row == -opening % 3)] * 4 for row in range(3)]
    assert score.wins.tolist() == points.tolist() == wins
    assert score.losses.tolist() == [[1 - x for x in row] for row in wins]


def test_equal_players_of_games_that_are_always_drawn_have_a_third_each():
    game = sums(rewards=(0.0, 0.0))
    keys, player = jax.random.split(jax.random.key(0), 4), arena.random_player(game)
    score, points = jax.jit(lambda: arena.play_seats(game, (player, player), (None, None), keys))()
    assert score.draws.sum() == 12
    np.testing.assert_allclose(points, 1 / 3, rtol=1e-6)


def test_openings_that_lead_to_one_position_count_once():
    """In Othello two moves make twelve positions."""
    othello = games.from_pgx("othello")
    assert arena.different_openings(othello, jax.random.split(jax.random.key(0), 300)) == 12
    assert arena.different_openings(othello, jax.random.split(jax.random.key(0), 1)) == 1
    assert arena.different_openings(othello, jax.random.split(jax.random.key(0), 300), 0) == 1
    hex_3 = games.hex_game(3)  # 9 · 8 · 7 orders, two for each position of three stones; and 9 · 8 after swaps
    assert arena.different_openings(hex_3, jax.random.split(jax.random.key(0), 4000), 3) == 252 + 72
