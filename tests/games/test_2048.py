"""2048: against pgx's rules, and against a board written out in Python."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games.rules_2048 import FOUR, Board2048, outcomes_2048, slid, slides

GAME = games.game_2048()


def pushed(line):
    """A line after a push towards its beginning, and what that pays."""
    tiles, out, paid = [x for x in line if x], [], 0
    while tiles:
        x = tiles.pop(0)
        if tiles and tiles[0] == x:
            tiles.pop(0)
            x, paid = x + 1, paid + 2 ** (x + 1)
        out.append(x)
    return out + [0] * (4 - len(out)), paid


def by_hand(board, action):
    """One move on a board [4, 4], without a new tile."""
    turned = {0: board, 1: board.T, 2: board[:, ::-1], 3: board[::-1].T}[action]
    lines, paid = zip(*(pushed(line) for line in turned.tolist()))
    out = np.array(lines)
    return {0: out, 1: out.T, 2: out[:, ::-1], 3: out.T[::-1]}[action], sum(paid)


def boards(n, seed=0, most=12):
    """Random boards, some full, some with few kinds of tiles."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(2, most, (n, 1))
    cells = rng.integers(0, 2**30, (n, 16)) % kinds
    return np.where(rng.random((n, 16)) < rng.random((n, 1)), cells, 0).astype(np.uint8)


def test_moves_are_those_of_a_board_in_python():
    cells = boards(2000)
    after, paid = jax.jit(jax.vmap(slides))(cells)
    one, paid_one = jax.jit(jax.vmap(slid))(cells, jnp.arange(2000) % 4)
    for i, board in enumerate(cells.reshape(-1, 4, 4)):
        for action in range(4):
            expected, pays = by_hand(board, action)
            np.testing.assert_array_equal(after[i, action], expected.ravel())
            assert paid[i, action] == pays
        np.testing.assert_array_equal(one[i], after[i, i % 4])
        assert paid_one[i] == paid[i, i % 4]


def test_legal_moves_change_something_and_the_game_ends_without_any():
    cells = np.concatenate([boards(1000), boards(1000, seed=1, most=17)])
    full = np.maximum(cells, 1 + (np.arange(16) * 7 % 11).astype(np.uint8))
    for given in (cells, full):
        at = lambda cells: Board2048(cells, jnp.float32(0), jnp.bool_(False))
        made = jax.vmap(lambda cells: GAME.step(at(cells), 0, jax.random.key(0)))(given)
        legal = np.asarray(jax.vmap(GAME.legal)(made))
        expected = [
            [bool((by_hand(x, a)[0] != x).any()) for a in range(4)] for x in np.asarray(made.cells).reshape(-1, 4, 4)
        ]
        np.testing.assert_array_equal(legal, expected)
        moved = np.any(np.asarray(made.cells) != given, 1)
        np.testing.assert_array_equal(np.asarray(made.over)[moved], ~legal.any(1)[moved])


def same_as_pgx(games_at_once, plies):
    """Random play by pgx's rules, each step made by ours, too: the tile that pgx drew is the one of an outcome."""
    pgx, outcomes = games.from_pgx("2048"), outcomes_2048()

    def ply(carry, key):
        state, mine = carry
        keys = jax.random.split(key, games_at_once + 1)
        legal = jax.vmap(pgx.legal)(state)
        action = jax.random.categorical(keys[0], jnp.where(legal, 0.0, -1e9))
        new = jax.vmap(pgx.step)(state, action, keys[1:])
        over = jax.vmap(pgx.terminal)(state)
        slides_ = jax.vmap(slid)(mine.cells, action)[0]
        board = new._board.astype(jnp.uint8)
        where = jnp.argmax(board != slides_, -1)
        outcome = 2 * where + (jnp.take_along_axis(board, where[:, None], 1)[:, 0] == 2)
        chances = jax.vmap(outcomes.probabilities)(mine, action)
        ours = jax.vmap(outcomes.step)(mine, action, outcome, keys[1:])
        fits = (
            jnp.all(ours.cells == board, -1)
            & (ours.paid == new.rewards[:, 0])
            & (ours.over == new.terminated)
            & jnp.all(jax.vmap(GAME.legal)(ours) == jax.vmap(pgx.legal)(new), -1)
            & (jnp.take_along_axis(chances, outcome[:, None], 1)[:, 0] > 0)
        )
        fresh = jax.vmap(pgx.init)(keys[1:])
        ended = jax.vmap(pgx.terminal)(new)
        state = jax.tree.map(lambda x, y: jnp.where(ended.reshape((-1,) + (1,) * (x.ndim - 1)), x, y), fresh, new)
        cells = state._board.astype(jnp.uint8)
        mine = Board2048(cells, jnp.zeros(games_at_once), jnp.zeros(games_at_once, bool))
        return (state, mine), (jnp.sum(fits), jnp.sum(over), jnp.sum(ended), cells.max())

    state = jax.vmap(pgx.init)(jax.random.split(jax.random.key(1), games_at_once))
    mine = Board2048(state._board.astype(jnp.uint8), jnp.zeros(games_at_once), jnp.zeros(games_at_once, bool))
    run = jax.jit(lambda keys: jax.lax.scan(ply, (state, mine), keys)[1])
    return run(jax.random.split(jax.random.key(2), plies))


def test_steps_are_those_of_pgx():
    fits, over, ended, largest = same_as_pgx(64, 300)
    assert fits.sum() == 64 * 300 and not over.sum() and ended.sum() > 50 and largest.max() >= 7


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_million_steps_are_those_of_pgx():
    fits, over, _, largest = same_as_pgx(1024, 1000)
    assert fits.sum() == 1_024_000 and not over.sum() and largest.max() >= 8


def test_the_tile_that_appears_has_its_chances():
    cells = jnp.uint8([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0, 0, 0, 1])
    state, n = Board2048(cells, jnp.float32(0), jnp.bool_(False)), 20_000
    after = jax.jit(jax.vmap(GAME.step, (None, None, 0)))(state, 0, jax.random.split(jax.random.key(0), n))
    tiles = np.asarray(after.cells)[:, 13:]  # after the push the row begins with the 2
    chances = np.asarray(outcomes_2048().probabilities(state, 0)).reshape(16, 2)
    np.testing.assert_allclose(chances[13:], [[(1 - FOUR) / 3, FOUR / 3]] * 3, rtol=1e-6)
    assert not chances[:13].any()
    counted = np.stack([(tiles == 1).mean(0), (tiles == 2).mean(0)], 1)
    np.testing.assert_allclose(counted, chances[13:], atol=4 * np.sqrt(0.25 / n))


def test_an_illegal_move_and_the_end_change_nothing():
    for cells in ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 1, 2, 3], [1] + [0] * 15):
        state = Board2048(jnp.uint8(cells), jnp.float32(8), jnp.bool_(cells[1] > 0))
        after = GAME.step(state, 1, jax.random.key(0))
        np.testing.assert_array_equal(after.cells, state.cells)
        assert after.paid == 0 and after.over == state.over


def test_symmetries_turn_the_directions_too():
    cells = boards(50)
    for symmetry in GAME.symmetries:
        for x in cells:
            board = x.reshape(4, 4)
            seen = np.asarray(symmetry.observation(board))
            for i, j in enumerate(symmetry.actions):
                np.testing.assert_array_equal(by_hand(seen, i)[0], symmetry.observation(by_hand(board, j)[0]))
    assert len({symmetry.actions for symmetry in GAME.symmetries}) == 8 and GAME.symmetries[0].actions == (0, 1, 2, 3)


def test_observations_show_exponents_and_pictures_numbers():
    state = Board2048(jnp.uint8([0, 1, 11, 17] + [0] * 12), jnp.float32(0), jnp.bool_(False))
    seen = GAME.observe(state)
    assert seen.shape == (4, 4, 18) and seen[0].argmax(-1).tolist() == [0, 1, 11, 17] and float(seen.sum()) == 16
    assert ">2048<" in GAME.draw(state) and ">131072<" in GAME.draw(state) and GAME.draw(state).count("<text") == 3


def test_it_keeps_the_contract_of_a_game():
    games.check_rules(GAME)
