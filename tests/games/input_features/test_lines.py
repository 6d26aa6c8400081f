"""Squares that complete a line, against a search for them square by square, and against the rules."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.input_features.lines import line_features, lines


def completes(board, player, row, column, length):
    """Whether a stone there makes a line of `length`, counted along each direction."""
    height, width = board.shape
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        run = 1
        for sense in (1, -1):
            r, c = row + sense * down, column + sense * right
            while 0 <= r < height and 0 <= c < width and board[r, c] == player:
                run, r, c = run + 1, r + sense * down, c + sense * right
        if run >= length:
            return True
    return False


@pytest.mark.parametrize("shape, length", [((6, 7), 4), ((3, 3), 3), ((5, 4), 3), ((4, 9), 5)])
def test_planes_hold_the_squares_that_complete_a_line(shape, length):
    rng = np.random.default_rng(0)
    for full in (0.3, 0.6, 0.9):
        board = np.where(rng.random(shape) < full, rng.integers(1, 3, shape), 0)
        planes = line_features(*shape, length)(jnp.stack([board == 1, board == 2], -1)[None].astype(jnp.float32))[0]
        assert planes.shape == (*shape, 2) and planes.dtype == jnp.float32
        for row, column in np.ndindex(*shape):
            for player in (1, 2):
                expected = board[row, column] == 0 and completes(board, player, row, column, length)
                assert planes[row, column, player - 1] == expected


def test_lines_are_all_there():
    assert lines(6, 7, 4).shape == (69, 42) and (lines(6, 7, 4).sum(1) == 4).all()
    assert len({row.tobytes() for row in lines(6, 7, 4)}) == 69
    assert lines(2, 3, 4).shape == (0, 6)


@pytest.mark.parametrize("name", ["connect_four", "tic_tac_toe"])
def test_features_tell_what_the_rules_tell(name):
    """In random games: a move wins where the mover's plane and, with stones that fall, the last plane are 1."""
    game = games.from_pgx(name)
    step, observe = jax.jit(game.step), jax.jit(lambda state: game.input_features(game.observe(state)[None])[0])
    rng, key = np.random.default_rng(1), jax.random.key(0)
    for _ in range(5):
        state = game.init(key)
        while not game.terminal(state):
            planes, legal = np.asarray(observe(state)), np.asarray(game.legal(state))
            wins = planes[..., 0] * (planes[..., 2] if name == "connect_four" else 1)
            wins = wins.any(0) if name == "connect_four" else wins.ravel()
            if name == "connect_four":
                np.testing.assert_array_equal(planes[..., 2].sum(0), legal)
            mover = int(game.to_play(state))
            for action in np.flatnonzero(legal):
                after = step(state, jnp.int32(action), key)
                assert bool(wins[action]) == bool(game.terminal(after) & (game.rewards(after)[mover] > 0))
            state = step(state, jnp.int32(rng.choice(np.flatnonzero(legal))), key)


def test_features_can_be_pickled():
    features, seen = line_features(6, 7, 4, falling=True), jnp.ones((3, 6, 7, 2))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features))(seen), features(seen))


@pytest.mark.parametrize("length", [0, 5])
def test_lines_that_fit_no_board_are_refused(length):
    with pytest.raises(ValueError, match=f"no line of {length} squares fits 3 x 4 squares: use a length from 1 to 4"):
        line_features(3, 4, length)


@pytest.mark.parametrize("shape", [(2, 4, 3, 2), (2, 3, 4, 1)])
def test_other_boards_are_refused(shape):
    with pytest.raises(ValueError, match=r"observations must be \[batch, 3, 4, 2 or more planes\], not"):
        line_features(3, 4, 3)(jnp.zeros(shape))


def test_stones_of_any_weight_count_as_one():
    board = jnp.stack([jnp.eye(3).at[2, 2].set(0), jnp.zeros((3, 3))], -1)[None]
    np.testing.assert_array_equal(line_features(3, 3, 3)(3 * board), line_features(3, 3, 3)(board))
