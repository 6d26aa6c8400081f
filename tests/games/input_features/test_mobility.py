"""Moves and stable stones of Othello, against the rules, and against their definition stone by stone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.input_features.mobility import mobility_features

AXES = ((0, 1), (1, 0), (1, 1), (1, -1))


def seen(board):
    return jnp.stack([board == 1, board == 2], -1)[None].astype(jnp.float32)


def random_game(game, rng):
    """The states of a game of random moves."""
    step, key = jax.jit(game.step), jax.random.key(0)
    states = [game.init(key)]
    while not game.terminal(states[-1]):
        states.append(step(states[-1], jnp.int32(rng.choice(np.flatnonzero(game.legal(states[-1])))), key))
    return states


def test_features_tell_what_the_rules_tell():
    """Of random games: which moves the mover has; and whoever sees the stones as the other one has the other's."""
    game, rng, features = games.from_pgx("othello"), np.random.default_rng(0), jax.jit(mobility_features)
    for _ in range(3):
        for state in random_game(game, rng)[:-1]:
            planes = np.asarray(features(game.observe(state)[None]))[0]
            np.testing.assert_array_equal(planes[..., 0].ravel(), np.asarray(game.legal(state))[:64])
            mirrored = np.asarray(features(game.observe(state)[None, ..., ::-1]))[0]
            np.testing.assert_array_equal(mirrored, planes[..., [2, 3, 0, 1]])


def stable(board, player):
    """By the definition, until nothing changes."""
    size, found = len(board), np.zeros(board.shape, bool)
    inside = lambda r, c: 0 <= r < size and 0 <= c < size

    def full(row, column, down, right):
        squares = [(row + i * down, column + i * right) for i in range(-size, size + 1)]
        return all(board[at] for at in squares if inside(*at))

    def held(row, column, down, right):
        beside = [(row + down, column + right), (row - down, column - right)]
        return full(row, column, down, right) or any(not inside(*at) or found[at] for at in beside)

    while True:
        own = [at for at in np.ndindex(*board.shape) if board[at] == player]
        new = [at for at in own if not found[at] and all(held(*at, *axis) for axis in AXES)]
        if not new:
            return found
        for at in new:
            found[at] = True


@pytest.mark.parametrize("size", [4, 6, 8, 9])
def test_stable_stones_are_those_of_the_definition(size):
    rng, features = np.random.default_rng(size), jax.jit(mobility_features)
    found = 0
    for full in (0.5, 0.8, 0.95, 1):
        for _ in range(10):
            board = np.where(rng.random((size, size)) < full, rng.choice([1, 1, 1, 2], (size, size)), 0)
            planes = np.asarray(features(seen(board)))[0]
            for player in (1, 2):
                np.testing.assert_array_equal(planes[..., 2 * player - 1], stable(board, player))
            found += planes[..., 1].sum()
    assert found > 50


def test_stable_stones_are_never_turned():
    """In random games: whoever has them keeps them, and near the end most are known."""
    game, rng = games.from_pgx("othello"), np.random.default_rng(1)
    features = jax.jit(lambda state: mobility_features(game.observe(state)[None])[0])
    for _ in range(5):
        states = random_game(game, rng)[:-1]
        kept = [np.zeros((8, 8), bool)] * 2
        for state in states:
            planes, mover = np.asarray(features(state)), int(game.to_play(state))
            now = [planes[..., 1 + 2 * (player != mover)] > 0 for player in range(2)]
            assert all((now[player] >= kept[player]).all() for player in range(2))
            kept = now
        assert kept[0].sum() + kept[1].sum() > 20


@pytest.mark.parametrize("shape", [(6, 8), (8, 6), (33, 33)])
def test_other_boards_are_refused(shape):
    with pytest.raises(ValueError, match=f"a board of {shape[0]} x {shape[1]} squares: give a square one, at most 32"):
        mobility_features(jnp.zeros((1, *shape, 2)))
