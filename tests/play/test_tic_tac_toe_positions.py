"""All positions of tic-tac-toe beside what `perfect_player` works out from the rules alone."""

import jax
import numpy as np
import pytest

from jaxzero import games
from jaxzero.play.perfect_player import perfect_player, solve
from jaxzero.play.tic_tac_toe_positions import tic_tac_toe_positions

GAME = games.from_pgx("tic_tac_toe")


@pytest.fixture(scope="module")
def positions():
    return tic_tac_toe_positions(GAME)


def boards(positions):
    return np.asarray(jax.vmap(GAME.observe)(positions.state)).reshape(len(positions.scores), -1)


def test_each_position_in_which_a_move_can_be_made_is_there_once(positions):
    seen = boards(positions)
    assert len(np.unique(seen, axis=0)) == len(seen) == 4520  # of 5,478, 958 are over
    assert not np.asarray(jax.vmap(GAME.terminal)(positions.state)).any()
    moves = seen.sum(1)
    assert np.bincount(moves.astype(int)).tolist() == [1, 9, 72, 252, 756, 1140, 1372, 696, 222]
    names = np.array(["opening", "middle", "end"])[np.minimum(moves.astype(int) // 3, 2)]
    assert (names == positions.phase).all()
    assert 0.35 < positions.tuning.mean() < 0.45, "two in five"


def test_scores_and_best_moves_are_those_of_perfect_play(positions):
    keys = jax.random.split(jax.random.key(0), len(positions.scores))
    found = jax.jit(perfect_player(GAME, solve(GAME)))(None, keys, positions.state)
    highest = np.nanmax(positions.scores, 1)
    np.testing.assert_array_equal(found.value, highest)
    np.testing.assert_array_equal(np.asarray(found.action_weights) > 0, positions.scores == highest[:, None])
    assert set(np.unique(positions.scores[~np.isnan(positions.scores)])) == {-1.0, 0.0, 1.0}
