"""Decisive moves: what a game says of them is what trying each action shows."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.teams import as_teams

KEY = jax.random.key(0)
WIPED_OUT = (  # games in which a network lost its last stone to UCT in the opening; the last move is the decisive one
    (26, 34, 42, 20, 13, 18, 10, 43, 44, 25, 24),
    (44, 29, 20, 43, 34, 18, 37, 13, 12, 45, 19, 11, 26, 25),
    (44, 29, 21, 43, 30, 52, 60, 37, 50, 45, 53, 20, 19, 12, 4),
)


def after(game, moves):
    state, step = game.init(KEY), jax.jit(game.step)
    for move in moves:
        state = step(state, move, KEY)
    return state


def test_by_trying_finds_what_completes_a_line():
    """In all positions of tic-tac-toe after four random moves or more, against the lines of the board."""
    game = games.from_pgx("tic_tac_toe")
    rows = np.arange(9).reshape(3, 3)
    lines = [*rows, *rows.T, rows.diagonal(), rows[:, ::-1].diagonal()]
    decisive = jax.jit(jax.vmap(games.decisive_by_trying(game)))
    step, wins = jax.jit(jax.vmap(game.step)), 0
    keys = jax.random.split(KEY, 200)
    states = jax.vmap(game.init)(keys)
    for ply in range(9):
        own, other = np.moveaxis(np.asarray(jax.vmap(game.observe)(states)).reshape(-1, 9, 2), -1, 0) > 0
        over = np.asarray(jax.vmap(game.terminal)(states))
        expected = np.zeros((200, 9), bool)
        for i, line in itertools.product(np.flatnonzero(~over), lines):
            if own[i, line].sum() == 2 and not other[i, line].any():
                expected[i, line[~own[i, line]]] = True
        np.testing.assert_array_equal(decisive(states), expected, f"ply {ply}")
        wins += expected.sum()
        legal = jax.vmap(game.legal)(states)
        states = step(states, jax.random.categorical(jax.random.fold_in(KEY, ply), jnp.where(legal, 0.0, -1e9)), keys)
    assert wins > 200


def test_othello_says_what_trying_shows():
    """At every ply of random games."""
    game = games.from_pgx("othello")
    both = jax.jit(jax.vmap(lambda state: (game.decisive(state), games.decisive_by_trying(game)(state))))
    step, legal = jax.jit(jax.vmap(game.step)), jax.vmap(game.legal)
    keys = jax.random.split(KEY, 128)
    states, wins = jax.vmap(game.init)(keys), 0
    for ply in range(64):
        said, tried = both(states)
        np.testing.assert_array_equal(said, tried, f"ply {ply}")
        wins += int(said.sum())
        action = jax.random.categorical(jax.random.fold_in(KEY, ply), jnp.where(legal(states), 0.0, -1e9))
        states = step(states, action, keys)
    assert wins > 50  # and passes among them, for some games end by two


def test_othello_with_few_stones_left():
    """The other side has one to four stones, so moves that turn all of them are common."""
    game = games.from_pgx("othello")

    def placed(few, key):
        order = jax.random.permutation(key, 64)
        rank = jnp.zeros(64, jnp.int32).at[order].set(jnp.arange(64))
        board = jnp.where(rank < few, -1, jnp.where(rank < 30, 1, 0))
        state = game.init(key)
        legal = _turns(board)
        legal = jnp.append(legal, ~legal.any())
        return state.replace(_x=state._x._replace(board=board), legal_action_mask=legal)

    states = jax.vmap(placed)(jnp.arange(2048) % 4 + 1, jax.random.split(KEY, 2048))
    said = np.asarray(jax.vmap(game.decisive)(states))
    tried = np.asarray(jax.jit(jax.vmap(games.decisive_by_trying(game)))(states))
    np.testing.assert_array_equal(said, tried)
    assert said.any(1).sum() > 200


def test_othello_on_a_board_that_is_nearly_full():
    """One empty square or two, or a board on which nobody can move: ends by the last square, and by two passes."""
    game = games.from_pgx("othello")

    def placed(empty, passed, key):
        order, colour = jax.random.split(key)
        stones = jnp.where(jax.random.bernoulli(colour, 0.5, (64,)), 1, -1)
        board = jnp.where(jax.random.permutation(order, 64) < empty, 0, stones)
        state = game.init(key)
        legal = _turns(board)
        legal = jnp.append(legal, ~legal.any())
        return state.replace(_x=state._x._replace(board=board, passed=passed), legal_action_mask=legal)

    lanes = jnp.arange(3000)
    states = jax.vmap(placed)(lanes % 2 + 1, lanes % 3 == 0, jax.random.split(KEY, 3000))
    said = np.asarray(jax.vmap(game.decisive)(states))
    np.testing.assert_array_equal(said, jax.jit(jax.vmap(games.decisive_by_trying(game)))(states))
    assert said[:, :64].any(1).sum() > 100 and said[:, 64].sum() > 10
    assert (~said.any(1)).sum() > 100  # others lose, or draw


def _turns(board):
    """Whether a stone on an empty square turns any, square by square and step by step."""

    def one(square):
        row, column, any_turned = square // 8, square % 8, jnp.bool_(False)
        for down, right in itertools.product((-1, 0, 1), repeat=2):
            line = jnp.bool_((down, right) != (0, 0))
            for distance in range(1, 8):
                r, c = row + distance * down, column + distance * right
                there = jnp.where((r >= 0) & (r < 8) & (c >= 0) & (c < 8), board[jnp.clip(r * 8 + c, 0, 63)], 0)
                any_turned |= line & (there > 0) & (distance > 1)
                line &= there < 0
        return any_turned & (board[square] == 0)

    return jax.vmap(one)(jnp.arange(64))


@pytest.mark.parametrize("moves", WIPED_OUT)
def test_othello_sees_the_last_stone_go(moves):
    game = games.from_pgx("othello")
    *before, last = moves
    assert jnp.flatnonzero(game.decisive(after(game, before))).tolist() == [last]
    end = after(game, moves)
    assert game.terminal(end) and not game.decisive(end).any()


def test_a_game_that_is_no_game_is_refused():
    with pytest.raises(ValueError, match="decisive_by_trying"):
        games.decisive_by_trying("othello")


def test_only_games_of_two_without_chance_have_it_by_trying():
    plain = games.from_pgx("tic_tac_toe")
    with pytest.raises(ValueError, match="has 3 player"):
        games.decisive_by_trying(plain._replace(num_players=3))
    for chance in (games.backgammon(), games.from_pgx("2048")._replace(num_players=2)):
        with pytest.raises(ValueError, match="are random"):
            games.decisive_by_trying(chance)


def test_other_rules_do_not_keep_it():
    game = games.from_pgx("othello")
    assert game.decisive is not None
    assert as_teams(game, (0, 0)).decisive is None
