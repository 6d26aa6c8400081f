"""Distances in Hex against Dijkstra's algorithm, square by square, and against the rules."""

import heapq
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.input_features.connections import connection_features

NEIGHBOURS = {(0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1)}
# Two steps that lead to one square over two others, which are neighbours of both ends.
BRIDGES = {
    (a[0] + b[0], a[1] + b[1]): (a, b)
    for a, b in itertools.combinations(sorted(NEIGHBOURS), 2)
    if (a[0] - b[0], a[1] - b[1]) in NEIGHBOURS and (a[0] + b[0], a[1] + b[1]) not in NEIGHBOURS
}


def distances(board, player, edge):
    """Of all squares from that edge, in empty squares to fill; -1 where no way leads."""
    size = len(board)
    line = {"top": [(-1, i) for i in range(size + 1)], "bottom": [(size, i) for i in range(-1, size)]}
    line |= {"left": [(j, i) for i, j in line["top"]], "right": [(j, i) for i, j in line["bottom"]]}
    found = np.full((size, size), -1)
    queue = [(0, square) for square in line[edge]]
    done = set()
    empty = lambda r, c: 0 <= r < size and 0 <= c < size and board[r, c] == 0
    while queue:
        length, (r, c) = heapq.heappop(queue)
        if (r, c) in done:
            continue
        done.add((r, c))
        if 0 <= r < size and 0 <= c < size:
            found[r, c] = length
        links = [(r + i, c + j) for i, j in NEIGHBOURS]
        links += [(r + i, c + j) for (i, j), pair in BRIDGES.items() if all(empty(r + x, c + y) for x, y in pair)]
        for s, t in links:
            if 0 <= s < size and 0 <= t < size and board[s, t] in (0, player):
                heapq.heappush(queue, (length + (board[s, t] == 0), (s, t)))
    return found


def expected(board, player, edges):
    """The four planes of a player."""
    one, other = (distances(board, player, edge) for edge in edges)
    open_, own = board != 3 - player, board == player
    through = np.where(open_ & (one >= 0) & (other >= 0), one + other - ~own, 10**6)
    near = lambda steps: np.where((steps < 0) | (steps >= 10**6), 0, 1 / (1.0 + np.maximum(steps, 0)))
    least = through.min()
    longer = np.where(through < 10**6, through - least, -1)
    return [near(one), near(other), near(longer), near(np.full_like(one, least))]


def observation(board, second):
    mine = 2 if second else 1
    planes = board == mine, board == 3 - mine, np.full(board.shape, second), np.zeros(board.shape)
    return np.stack(planes, -1).astype(np.float32)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_distances_are_those_of_dijkstra(size):
    rng = np.random.default_rng(size)
    boards = [
        np.where(rng.random((size, size)) < full, rng.integers(1, 3, (size, size)), 0)
        for full in (0, 0.1, 0.2, 0.3, 0.4, 0.5)
        for _ in range(4)
    ]
    seen = np.stack([observation(board, second) for board in boards for second in (False, True)])
    planes = np.asarray(jax.jit(connection_features)(jnp.asarray(seen)))
    for board, pair in zip(boards, planes.reshape(len(boards), 2, size, size, 8), strict=True):
        down, across = expected(board, 1, ("top", "bottom")), expected(board, 2, ("left", "right"))
        for found, planes in zip(pair, (down + across, across + down), strict=True):
            np.testing.assert_allclose(found, np.stack(planes, -1), atol=1e-6)


def test_who_has_won_is_at_distance_zero():
    """And the other one has no way left."""
    game = games.hex_game(5)
    step, rng, key = jax.jit(game.step), np.random.default_rng(0), jax.random.key(0)
    for _ in range(20):
        state = game.init(key)
        while not game.terminal(state):
            state = step(state, jnp.int32(rng.choice(np.flatnonzero(game.legal(state)))), key)
        planes = np.asarray(connection_features(game.observe(state)[None]))[0]
        mover = int(game.to_play(state))
        assert game.rewards(state)[1 - mover] == 1, "who moved last has won"
        assert (planes[..., 7] == 1).all() and (planes[..., 2:4] == 0).all()


def test_they_are_mirrored_as_the_canonical_form_is():
    game = games.hex_game(6)
    seen = jax.random.randint(jax.random.key(1), (9, 6, 6), 0, 3)
    seen = jnp.stack([seen == 1, seen == 2, jnp.ones_like(seen), jnp.zeros_like(seen)], -1).astype(jnp.float32)
    shown = jax.vmap(game.canonical.symmetry.observation)(seen)
    np.testing.assert_allclose(connection_features(shown), connection_features(seen).swapaxes(1, 2), atol=1e-6)


def test_on_full_boards_no_square_seems_nearer_than_it_is():
    """Winding paths may be missed, none is made up."""
    rng = np.random.default_rng(0)
    for full in (0.7, 0.8, 0.95):
        board = np.where(rng.random((7, 7)) < full, rng.integers(1, 3, (7, 7)), 0)
        planes = np.asarray(connection_features(jnp.asarray(observation(board, False))[None]))[0]
        for at, (player, edge) in {0: (1, "top"), 1: (1, "bottom"), 4: (2, "left"), 5: (2, "right")}.items():
            exact = distances(board, player, edge)
            assert (planes[..., at] <= np.where(exact < 0, 0, 1 / (1 + np.maximum(exact, 0))) + 1e-6).all()
