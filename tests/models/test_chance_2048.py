"""A search that knows the chances of 2048, against expectimax by brute force."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero.games.rules_2048 import FOUR, Board2048, game_2048, slides
from jaxzero.models.chance import for_actions
from jaxzero.models.chance_2048 import afterstate_model, expectimax_model, move_values
from jaxzero.options import expected_outcomes

GAME = game_2048()
WORTH = np.random.default_rng(0).normal(size=(16, 18)) * 30  # of each tile on each cell
all_slides = jax.jit(jax.vmap(slides))


def value(params, cells):
    """Of afterstates: empty cells are good, and so are some tiles in some places."""
    del params
    placed = jnp.sum(jax.nn.one_hot(cells, 18) * WORTH, (-1, -2))
    return 100.0 * jnp.sum(cells == 0, -1) + placed


def expectimax(cells, depth):
    """The value of each move, -inf where it is illegal, of boards [n, 16]: chance has its part `depth` times."""
    after, paid = (np.asarray(x) for x in all_slides(jnp.asarray(cells)))
    legal = (after != cells[:, None]).any(-1)
    if depth == 0:
        return np.where(legal, paid + np.asarray(value(None, after)), -np.inf)
    found = np.where(legal, paid, -np.inf).astype(np.float64)
    boards, chances, owners = [], [], []
    for i, a in zip(*np.nonzero(legal)):
        empty = np.flatnonzero(after[i, a] == 0)
        for cell in empty:
            for exponent, chance in ((1, 1 - FOUR), (2, FOUR)):
                board = after[i, a].copy()
                board[cell] = exponent
                boards.append(board)
                chances.append(chance / len(empty))
                owners.append((i, a))
    best = expectimax(np.array(boards), depth - 1).max(1)
    np.add.at(found, tuple(np.array(owners).T), np.array(chances) * np.where(np.isfinite(best), best, 0.0))
    return found


@functools.cache
def crowded(n):
    """Boards with at most four empty cells and two legal moves or more, from play that keeps cells empty."""

    def step(cells, key):
        values = move_values(value, None, cells)
        state = Board2048(cells, jnp.zeros(256), jnp.any(jnp.isfinite(values), -1) == 0)
        keys = jax.random.split(key, 257)
        after = jax.vmap(GAME.step)(state, jnp.argmax(values, -1), keys[1:]).cells
        fresh = jax.vmap(GAME.init)(keys[1:]).cells
        return jnp.where(state.over[:, None], fresh, after), cells

    start = jax.vmap(GAME.init)(jax.random.split(jax.random.key(0), 256)).cells
    _, seen = jax.jit(lambda keys: jax.lax.scan(step, start, keys))(jax.random.split(jax.random.key(1), 200))
    boards = np.unique(np.asarray(seen).reshape(-1, 16), axis=0)
    legal = (np.asarray(all_slides(boards)[0]) != boards[:, None]).any(-1).sum(1)
    good = boards[((boards == 0).sum(1) <= 4) & (legal >= 2)]
    assert len(good) >= n
    return good[np.random.default_rng(0).permutation(len(good))[:n]]


def searched(boards, simulations, max_depth, c=2000.0, model=afterstate_model, wrap=lambda rule: rule):
    """Each move's mean return and visits, and what else the search says."""
    given = dict(rule=wrap(jz.puct(c=c)), dirichlet_fraction=0.0, max_depth=max_depth)
    policy = for_actions(jz.alphazero(model(value), simulations, **given), 4)
    n = len(boards)
    state = Board2048(jnp.asarray(boards), jnp.zeros(n), jnp.zeros(n, bool))
    out = jax.jit(policy)(None, jax.random.split(jax.random.key(0), n), state)
    return np.asarray(out.info.summary.qvalues), np.asarray(out.info.summary.visits), out


@pytest.mark.parametrize("max_depth, simulations, n", [
    (1, 100, 200),  # to the afterstates
    (2, 500, 30),  # to what chance makes of them
    pytest.param(2, 1500, 200, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_search_to_a_depth_is_expectimax(max_depth, simulations, n):
    boards = crowded(n)
    exact = expectimax(boards, max_depth - 1)
    legal = np.isfinite(exact)
    found, visits, out = searched(boards, simulations, max_depth)
    assert not out.info.status.any()
    spread = np.where(legal, exact, -np.inf).max(1) - np.where(legal, exact, np.inf).min(1)
    best = np.where(legal & (visits > 0), found, -np.inf).argmax(1)
    loss = exact.max(1) - exact[np.arange(n), best]
    same = np.mean(loss < 1e-3 * np.maximum(spread, 1.0))
    off = np.abs(found[np.arange(n), best] - exact.max(1)) / np.maximum(spread, 1.0)
    print(f"depth {max_depth}: {same:.3f} the same move, off by {np.median(off):.4f}, {off.max():.3f} at most")
    assert same >= 0.95 and np.mean(off < 0.02) >= 0.95


def test_a_new_chance_node_is_worth_its_afterstate():
    boards = crowded(100)
    found, visits, _ = searched(boards, 4, None, c=1e5)
    once = visits == 1
    np.testing.assert_allclose(found[once], expectimax(boards, 0)[once], rtol=1e-5)
    assert once.sum() > 100


@pytest.mark.parametrize("wrap", [lambda rule: rule, expected_outcomes], ids=["mean", "expected"])
@pytest.mark.parametrize("simulations", [4, 60])
def test_two_plies_are_exact_from_the_first_visit_on(simulations, wrap):
    """Which outcomes were visited makes no difference, where the search finds nothing beyond what they were worth."""
    boards = crowded(60)
    found, visits, _ = searched(boards, simulations, 2, c=1e5, model=expectimax_model, wrap=wrap)
    seen = visits > 0
    np.testing.assert_allclose(found[seen], expectimax(boards, 1)[seen], rtol=1e-5)
    assert seen.sum() > 120


def test_three_plies_are_closer_with_outcomes_that_are_worth_their_expectation():
    boards = crowded(40)
    exact = expectimax(boards, 2)
    off = []
    for model in (afterstate_model, expectimax_model):
        found, visits, _ = searched(boards, 300, None, model=model, wrap=expected_outcomes)
        off.append(np.abs(found - exact)[visits >= 20].mean())
    assert off[1] < off[0]
