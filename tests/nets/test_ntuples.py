"""N-tuple networks: the weights that are summed, by hand."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.games.game import SQUARE, turn
from jaxzero.nets import weights
from jaxzero.nets.files.ntuple_weights import load_ntuples
from jaxzero.nets.ntuples import FIVE_FOURS, FOUR_SIXES, ntuples

RNG = np.random.default_rng(0)


def by_hand(tuples, board):
    """The index of each weight, digit by digit."""
    found, start = [], 0
    for cells in tuples:
        for quarters, mirror in SQUARE:
            at = turn(np.arange(16).reshape(4, 4), quarters, mirror).ravel()
            digits = [min(int(board[at[cell]]), 15) for cell in cells]
            found.append(start + sum(digit * 16**i for i, digit in enumerate(digits)))
        start += 16 ** len(cells)
    return found


@pytest.mark.parametrize("tuples", [FIVE_FOURS, ((3,), (0, 1, 4, 5, 8, 9)), FOUR_SIXES])
def test_features_are_the_digits_of_each_tuple_at_all_turns(tuples):
    boards = RNG.integers(0, 18, (20, 16)).astype(np.uint8)
    boards[0] = 15  # the largest index of each table
    network = ntuples(tuples)
    found = np.asarray(network.features(jnp.asarray(boards)))
    assert found.shape == (20, network.count) and network.count == 8 * len(tuples)
    np.testing.assert_array_equal(found, [by_hand(tuples, board) for board in boards])
    assert found[0].max() == network.size - 1


def test_turned_and_mirrored_boards_have_the_same_value():
    network = ntuples(((0, 1, 2), (0, 1, 4, 5)))
    weights = jnp.asarray(RNG.normal(size=network.size), jnp.float32)
    board = RNG.integers(0, 12, (4, 4)).astype(np.uint8)
    turned = jnp.asarray(np.stack([turn(board, *way).ravel() for way in SQUARE]))
    values = network.value(weights, turned)
    assert len({x.tobytes() for x in np.asarray(turned)}) == 8
    np.testing.assert_allclose(values, values[0], rtol=1e-5)


def test_the_published_tuples_cover_the_board():
    for tuples in (FOUR_SIXES, FIVE_FOURS):
        at = [turn(np.arange(16).reshape(4, 4), *way).ravel() for way in SQUARE]
        seen = {int(way[cell]) for cells, way in itertools.product(tuples, at) for cell in cells}
        assert seen == set(range(16))


@pytest.mark.parametrize("tuples", [(), ((),), ((0, 0),), ((16,),), (tuple(range(7)),), ((1.0,),)])
def test_tuples_that_mean_nothing_are_refused(tuples):
    with pytest.raises(ValueError, match="ntuples"):
        ntuples(tuples)


def test_weights_of_another_game_are_named():
    with pytest.raises(weights.WeightsError, match="it is for the game 'tic_tac_toe', but must be an n-tuple network"):
        load_ntuples(weights.trained("tic_tac_toe"))
