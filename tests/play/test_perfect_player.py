"""Perfect play against plain recursion, known theory, and players that err."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.games import Game
from jaxzero.play import arena, perfect_player

LINES = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]


@functools.cache
def minimax(board):
    """The value for who is to move (stones 1; the other's -1), and the moves that get it."""
    if any(all(board[i] == -1 for i in line) for line in LINES):
        return -1, ()
    free = [i for i in range(9) if board[i] == 0]
    values = {i: -minimax(tuple(-1 if j == i else -x for j, x in enumerate(board)))[0] for i in free}
    value = max(values.values(), default=0)
    return value, tuple(i for i in free if values[i] == value)


@pytest.fixture(scope="module")
def game():
    return games.from_pgx("tic_tac_toe")


@pytest.fixture(scope="module")
def solution(game):
    return perfect_player.solve(game)


def test_tic_tac_toe_is_judged_as_by_recursion(solution):
    boards, grown = {}, [(0,) * 9]
    while grown:
        board = grown.pop()
        boards[board] = minimax(board)
        if boards[board][1]:
            after = (tuple(-1 if j == i else -x for j, x in enumerate(board)) for i in range(9) if not board[i])
            grown += [child for child in after if child not in boards]
    boards = list(boards)
    assert len(solution.value) == len(boards) == 5478
    seen = np.array(boards).reshape(-1, 3, 3)
    words = np.asarray(perfect_player.hash_state(jnp.stack([seen == 1, seen == -1], -1).astype(jnp.float32)))
    order = np.lexsort((words[:, 1], words[:, 0]))
    np.testing.assert_array_equal(words[order], solution.words)
    for row, board in zip(solution.best, (boards[i] for i in order)):
        assert tuple(np.flatnonzero(row)) == minimax(board)[1]
    over = ~solution.best.any(1)
    expected = [minimax(boards[i])[0] for i in order]
    np.testing.assert_array_equal(solution.value, np.where(over, 0, expected))
    assert over.sum() == 958  # known: 626 + 316 + 16 ends


def test_the_player_keeps_the_value_and_plays_all_that_do(game, solution):
    policy = jax.jit(perfect_player.perfect_player(game, solution))
    keys = jax.random.split(jax.random.key(0), 900)
    states = jax.vmap(game.init)(keys)
    assert set(np.asarray(states.current_player).tolist()) == {0, 1}  # whoever begins
    out = policy(None, keys, states)
    counts = np.bincount(out.action, minlength=9)
    assert (abs(counts - 100) < 4.5 * 10).all(), counts  # nine moves draw; 4.5 standard deviations
    assert (out.value == 0).all() and out.info.known.all() and (out.info.status == 0).all()
    np.testing.assert_allclose(out.action_weights, 1 / 9)
    states = jax.vmap(game.step, (0, None, 0))(states, 0, keys)
    out = policy(None, keys, states)
    assert (out.action == 4).all() and (out.action_weights[:, 4] == 1).all()  # the centre alone holds a corner


def play(game, first, second, pairs, **options):
    keys = jax.random.split(jax.random.key(7), pairs)
    return jax.jit(lambda keys: arena.play_pairs(game, (first, second), (None, None), keys, **options))(keys)


def test_it_loses_nothing_and_draws_with_itself(game, solution):
    player = perfect_player.perfect_player(game, solution)
    pairs = play(game, player, arena.random_player(game), 100, opening_plies=1)
    assert pairs.losses.sum() == 0 and pairs.wins.sum() > 150
    mirrored = play(game, player, player, 50, opening_plies=0)
    assert (mirrored.draws == 2).all()


def test_games_that_are_over_and_positions_that_cannot_be(game, solution):
    policy = jax.jit(perfect_player.perfect_player(game, solution))
    keys = jax.random.split(jax.random.key(0), 64)
    state = jax.vmap(game.init)(keys)
    for action in (0, 3, 1, 4, 2):
        state = jax.vmap(game.step, (0, None, 0))(state, action, keys)
    assert jax.vmap(game.terminal)(state).all()
    out = policy(None, keys, state)
    assert (out.action == 0).all() and (out.value == 0).all() and out.info.known.all()
    np.testing.assert_allclose(out.action_weights, 1 / 9)
    # a small game's table knows nothing of a larger game's positions
    policy = jax.jit(perfect_player.perfect_player(heap(9), perfect_player.solve(heap(5))))
    out = policy(None, keys, Heap(jnp.tile(jnp.arange(6, 22), 4), jnp.zeros(64, jnp.int32), jnp.zeros((64, 2))))
    assert not out.info.known.any() and (out.value == 0).all() and set(out.action.tolist()) == {0, 1, 2}


# ---------------------------------------------------------------------------------------------------------------- nim
class Heap(NamedTuple):
    stones: jax.Array
    mover: jax.Array
    paid: jax.Array


def heap(stones, **changes):
    """Nim: two players take one, two or three stones in turn; who takes the last one wins."""

    def step(state, action, key):
        over = state.stones == 0
        left = jnp.where(over, 0, state.stones - action - 1)
        paid = jnp.where(~over & (left == 0), jnp.where(jnp.arange(2) == state.mover, 1.0, -1.0), 0.0)
        return Heap(left, jnp.where(over, state.mover, 1 - state.mover), paid)

    record = Game(
        id=f"heap of {stones}",
        num_actions=3,
        num_players=2,
        observation_shape=(22,),
        init=lambda key: Heap(jnp.int32(stones), jnp.int32(0), jnp.zeros(2)),
        step=step,
        observe=lambda state: jax.nn.one_hot(state.stones, 22),
        legal=lambda state: jnp.arange(3) < state.stones,
        to_play=lambda state: state.mover,
        terminal=lambda state: state.stones == 0,
        rewards=lambda state: state.paid,
    )
    return record._replace(**changes)


def judged(game, stones):
    """Value and best moves of a heap, as the policy tells them."""
    policy = jax.jit(perfect_player.perfect_player(game, perfect_player.solve(game)))
    stones = jnp.asarray(stones)
    keys = jax.random.split(jax.random.key(0), len(stones))
    out = policy(None, keys, Heap(stones, stones % 2, jnp.zeros((len(stones), 2))))
    assert out.info.known.all() and (jnp.take_along_axis(out.action_weights, out.action[:, None], 1) > 0).all()
    return np.asarray(out.value), [np.flatnonzero(w) + 1 for w in np.asarray(out.action_weights)]


def test_nim_is_lost_at_multiples_of_four():
    stones = np.arange(1, 22)
    values, takes = judged(heap(21), stones)
    np.testing.assert_array_equal(values, np.where(stones % 4 == 0, -1, 1))
    for n, take in zip(stones, takes):
        assert take.tolist() == ([n % 4] if n % 4 else [1, 2, 3])


def test_all_starts_are_known_or_it_says_so(monkeypatch):
    game = heap(21, init=lambda key: Heap(21, jax.random.bernoulli(key, 0.8).astype(jnp.int32), jnp.zeros(2)))
    assert len(perfect_player.solve(game).value) == 22
    monkeypatch.setattr(perfect_player, "STARTS", 1)  # the one key draws another player than the next one
    says = "heap of 21 has too many first positions to find them all with 1 keys.*perfect_player.STARTS"
    with pytest.raises(ValueError, match=says):
        perfect_player.solve(game)


# ----------------------------------------------------------------------------------------------------- random graphs
class Place(NamedTuple):
    node: jax.Array
    mover: jax.Array
    paid: jax.Array


def maze(seed, nodes=60, num_actions=4):
    """Random nodes: each action leads to a later one, pays something, and says who moves there."""
    rng = np.random.default_rng(seed)
    to = rng.integers(np.arange(nodes)[:, None] + 1, np.minimum(np.arange(nodes)[:, None] + 6, nodes) + 1, (nodes, 4))
    legal = rng.random((nodes + 1, num_actions)) < 0.7
    legal[np.arange(nodes), rng.integers(num_actions, size=nodes)], legal[nodes] = True, False
    pays, mover = rng.integers(-2, 3, (nodes, num_actions)) / 4, rng.integers(2, size=nodes + 1)
    tables = [jnp.asarray(x) for x in (np.vstack([to, np.full(4, nodes)]), legal, pays, mover)]

    def step(state, action, key):
        to, legal, pays, mover = tables
        over = state.node == nodes
        paid = jnp.where(over, 0.0, pays[jnp.minimum(state.node, nodes - 1), action])
        after = to[state.node, action]
        return Place(after, mover[after], jnp.stack([paid, -paid]))

    game = Game(
        id="maze",
        num_actions=num_actions,
        num_players=2,
        observation_shape=(nodes + 1,),
        init=lambda key: Place(tables[0][0, 0] * 0, tables[3][0], jnp.zeros(2)),
        step=step,
        observe=lambda state: jax.nn.one_hot(state.node, nodes + 1),
        legal=lambda state: tables[1][state.node],
        to_play=lambda state: state.mover,
        terminal=lambda state: state.node == nodes,
        rewards=lambda state: state.paid,
        pack=lambda state: state._replace(paid=None),  # no part of the position
    )
    return game, (to, legal, pays, mover)


@pytest.mark.parametrize("seed", range(3))
def test_payments_on_the_way_and_any_order_of_turns(seed):
    game, (to, legal, pays, mover) = maze(seed)
    end = len(to)

    @functools.cache
    def returns(node):  # of each move, to player 0
        moves = np.flatnonzero(legal[node]).tolist()
        return {a: pays[node, a] + worth(int(to[node, a])) for a in moves}

    def worth(node):
        return (min if mover[node] else max)(returns(node).values()) if node < end else 0.0

    reached = {0}
    for node in range(end):
        reached |= {int(x) for x in to[node][legal[node]]} if node in reached else set()
    solution = perfect_player.solve(game)
    assert len(solution.value) == len(reached)
    nodes = jnp.array(sorted(reached))
    keys = jax.random.split(jax.random.key(0), len(nodes))
    out = jax.jit(perfect_player.perfect_player(game, solution))(
        None, keys, Place(nodes, jnp.asarray(mover)[nodes], None)
    )
    sign = np.where(mover[nodes], -1, 1)
    np.testing.assert_allclose(out.value, sign * [worth(int(n)) for n in nodes], atol=1e-6)
    for i, node in enumerate(nodes.tolist()[:-1]):
        good = [a for a, gain in returns(node).items() if abs(gain - worth(node)) < 1e-9]
        assert np.flatnonzero(out.action_weights[i]).tolist() == good


# -------------------------------------------------------------------------------------------------------------- errors
def test_a_game_that_is_too_large_is_refused_soon():
    with pytest.raises(ValueError, match="connect_four has more than 2,000 positions, as many within 4 moves"):
        perfect_player.solve(games.from_pgx("connect_four"), limit=2_000)


def noisy(state, action, key):
    after = heap(9).step(state, jnp.int32(0), key)
    return after._replace(stones=jnp.maximum(after.stones - jax.random.randint(key, (), 0, 2), 0))


@pytest.mark.parametrize("game, message", [
    (heap(9, num_players=1), "1 players"),
    (heap(9, step=noisy), "heap of 9 is a game of chance"),
    (heap(9, rewards=lambda state: jnp.abs(state.paid)), "do not add up to 0"),
    (heap(9, step=lambda s, a, k: s._replace(stones=jnp.where(a == 2, 9, s.stones - 1))), "positions can repeat"),
    (heap(9, observe=lambda s: jax.nn.one_hot(s.stones // 2, 6)), "look the same"),
    ("heap", "game is a str"),
])  # fmt: skip
def test_other_games_are_refused(game, message):
    with pytest.raises(ValueError, match=message):
        perfect_player.solve(game)


def test_a_collision_of_hashes_is_found(monkeypatch):
    monkeypatch.setattr(perfect_player, "hash_state", lambda seen: jnp.zeros((len(seen), 2), jnp.uint32))
    with pytest.raises(ValueError, match="the same 64-bit hash"):
        perfect_player.solve(heap(5))


def test_positions_that_share_half_a_hash_are_told_apart(monkeypatch):
    plain, mask = perfect_player.hash_state, np.array([1, 2**32 - 1], np.uint32)
    monkeypatch.setattr(perfect_player, "hash_state", lambda seen: plain(seen) & mask)
    stones = np.arange(1, 22)
    values, _ = judged(heap(21), stones)
    np.testing.assert_array_equal(values, np.where(stones % 4 == 0, -1, 1))


def test_a_solution_of_another_game_is_refused(game):
    with pytest.raises(ValueError, match=r"3 actions, tic_tac_toe has 9. Give solve\(game\)"):
        perfect_player.perfect_player(game, perfect_player.solve(heap(5)))
