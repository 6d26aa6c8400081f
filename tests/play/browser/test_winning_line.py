"""The winning line, against the rules: at the end of random games there is one exactly where somebody has won."""

import jax
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play.browser.winning_line import winning_stones
from jaxzero.play.notation import stones


def board(*rows):
    return np.array([[".XO".index(square) for square in row] for row in rows])


def test_four_in_a_row_every_way():
    down = board(".......", ".......", "..O....", "..O....", "..O....", "X.OXXX.")
    assert winning_stones("connect_four", down) == [(2, 2), (3, 2), (4, 2), (5, 2)]
    slant = board(".......", "......X", ".....X.", "....X..", "...X...", "OOO.O..")
    assert winning_stones("connect_four", slant) == [(1, 6), (2, 5), (3, 4), (4, 3)]
    five = board(".......", ".......", ".......", ".......", ".......", "XXXXX..")
    assert winning_stones("connect_four", five) == [(5, column) for column in range(5)], "two fours in one"
    edge = board(".......", ".......", ".......", ".......", "XX.....", "OO...XX")
    assert winning_stones("connect_four", edge) == [], "rows do not go on behind the edge"


def test_a_chain_of_hex_is_the_shortest_there_is():
    leaning = board("..X.", ".XX.", "XX..", "X...")
    chain = winning_stones("hex", leaning)
    assert len(chain) == 4 and chain[0] == (0, 2) and chain[-1] == (3, 0)
    across = board("....", "OO.X", "..O.", "..XO")
    assert winning_stones("hex", across) == [], "squares that touch at a corner only are no neighbours"
    assert winning_stones("hex", board("....", "..OO", "OO..", "....")) == [(1, 2), (1, 3), (2, 0), (2, 1)]


def test_other_games_have_none():
    assert winning_stones("go", np.ones((9, 9), int)) == [] and winning_stones("list", np.zeros((0, 0), int)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name, length", [("connect_four", 4), ("tic_tac_toe", 3), ("hex", 11)])
def test_random_games(name, length):
    game, key = games.from_pgx(name), jax.random.key(1)
    init, step = jax.jit(jax.vmap(game.init)), jax.jit(jax.vmap(game.step))
    keys = jax.random.split(key, 12)
    state = start = init(keys)
    legal, over = jax.jit(jax.vmap(game.legal)), jax.jit(jax.vmap(game.terminal))
    paid, rng = np.zeros((12, 2)), np.random.default_rng(0)
    while not np.asarray(over(state)).all():
        actions = [rng.choice(np.flatnonzero(row)) if row.any() else 0 for row in np.asarray(legal(state))]
        state = step(state, np.array(actions, np.int32), keys)
        paid += np.asarray(jax.vmap(game.rewards)(state))
    for i in range(12):
        one, first = jax.tree.map(lambda x, i=i: x[i], (state, start))
        first = int(game.to_play(first))
        seen = stones(game, one, first)
        found = winning_stones(name, seen)
        if paid[i].any():
            winner = 1 if paid[i][first] > 0 else 2
            assert len(found) >= length and {int(seen[square]) for square in found} == {winner}
        else:
            assert found == []
