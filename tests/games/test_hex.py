"""Hex: the same as pgx's on 11 × 11, and on other boards as a flood fill says."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games

NEAR = (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1)


def played(game, actions):
    key = jax.random.key(0)
    state = game.init(key)
    for action in actions:
        state = game.step(state, action, key)
    return state


def random_games(game, count, plies, seed=0):
    """Actions, and what the rules say after each: legal moves, observation, end, rewards."""

    def run(key):
        state = jax.vmap(game.init)(jax.random.split(key, count))

        def move(state, key):
            mask = jax.vmap(game.legal)(state)
            swap = jnp.zeros(mask.shape[1]).at[-1].set(2.0)  # often, where it is legal
            action = jax.random.categorical(key, jnp.where(mask, swap, -1e9))
            state = jax.vmap(game.step)(state, action, jax.random.split(key, count))
            told = [jax.vmap(f)(state) for f in (game.legal, game.observe, game.terminal, game.rewards)]
            return state, (action, *told)

        return jax.lax.scan(move, state, jax.random.split(key, plies))[1]

    return [np.asarray(x) for x in jax.jit(run)(jax.random.key(seed))]


def plain(size, actions):
    """Stones by player, whose turn, and who has won, of a game by its actions."""
    stones = np.zeros((size, size), int)
    for ply, action in enumerate(actions):
        player = 1 + ply % 2
        if action == size * size:
            ((row, column),) = np.argwhere(stones)
            stones[row, column], stones[column, row] = 0, player
        else:
            assert stones.flat[action] == 0
            stones.flat[action] = player
        for side in (1, 2):
            board = stones.T if side == 1 else stones
            reached = {(row, 0) for row in range(size) if board[row, 0] == side}
            waiting = list(reached)
            while waiting:
                row, column = waiting.pop()
                for down, right in NEAR:
                    at = row + down, column + right
                    if min(at) >= 0 and max(at) < size and board[at] == side and at not in reached:
                        reached.add(at)
                        waiting.append(at)
            if any(column == size - 1 for _, column in reached):
                return stones, ply + 1, side
    return stones, len(actions), 0


@pytest.mark.parametrize("size", [2, 5])
def test_games_end_when_two_edges_are_connected(size):
    game, count = games.hex_game(size), 40
    actions, legal, observation, over, rewards = random_games(game, count, size * size + 1)
    assert over[-1].all()
    swaps = 0
    for i in range(count):
        stones, plies, winner = plain(size, actions[:, i])
        assert over[:, i].tolist() == [ply + 1 >= plies for ply in range(len(actions))]
        assert rewards[plies - 1, i].tolist() == ([1, -1] if winner == 1 else [-1, 1])
        assert not rewards[plies:, i].any() and not rewards[: plies - 1, i].any() and not legal[plies - 1 :, i].any()
        mover = 1 + plies % 2
        np.testing.assert_array_equal(observation[plies - 1, i, :, :, 0], stones == mover)
        np.testing.assert_array_equal(observation[plies - 1, i, :, :, 1], stones == 3 - mover)
        assert (observation[plies - 1, i, :, :, 2] == (mover == 2)).all()
        swaps += actions[1, i] == size * size
    assert 3 < swaps < count  # of both kinds
    assert legal[0, :, -1].all() and (observation[0, ..., 3] == 1).all() and not observation[1:, ..., 3].any()


@pytest.mark.slow
def test_eleven_by_eleven_is_as_in_pgx():
    own, theirs = games.hex_game(), games.from_pgx("hex")
    count = 30
    actions, *told = random_games(own, count, 122)

    def replay(keys):
        state = jax.vmap(theirs.init)(keys)

        def move(state, action):
            state = jax.vmap(theirs.step)(state, action, keys)
            first = jax.vmap(lambda s: s._player_order[0])(state)
            rewards = jnp.take_along_axis(jax.vmap(theirs.rewards)(state), jnp.stack([first, 1 - first], 1), 1)
            return state, [*(jax.vmap(f)(state) for f in (theirs.legal, theirs.observe, theirs.terminal)), rewards]

        return jax.lax.scan(move, state, actions)[1]

    expected = [np.asarray(x) for x in jax.jit(replay)(jax.random.split(jax.random.key(0), count))]
    going = ~np.concatenate([np.zeros((1, count), bool), expected[2][:-1]])
    for name, one, other in zip(("legal", "observation", "over", "rewards"), told, expected, strict=True):
        rows = going & ~expected[2] if name == "observation" else going
        np.testing.assert_array_equal(one[rows], other[rows], err_msg=name)
    assert (own.id, own.num_actions, own.observation_shape) == (theirs.id, theirs.num_actions, theirs.observation_shape)
    assert [s.actions for s in own.symmetries] == [s.actions for s in theirs.symmetries]


def test_illegal_moves_lose_at_once():
    game, key = games.hex_game(4), jax.random.key(0)
    state = game.step(game.init(key), 5, key)
    assert game.rewards(game.step(state, 5, key)).tolist() == [1, -1]
    early = game.step(game.init(key), 16, key)  # nothing to swap yet
    assert early.over and game.rewards(early).tolist() == [-1, 1] and not early.groups.any()
    again = game.step(game.step(state, 16, key), 16, key)
    assert again.over and game.rewards(again).tolist() == [-1, 1]
    late = game.step(early, 3, key)
    assert not late.groups.any() and not game.rewards(late).any()


def test_half_a_turn_changes_nothing():
    game = games.hex_game(3)
    turned = game.symmetries[1]
    one, other = game.init(jax.random.key(0)), game.init(jax.random.key(0))
    for action in (1, 9, 4, 0, 5, 8):
        one = game.step(one, action, jax.random.key(0))
        other = game.step(other, list(turned.actions).index(action), jax.random.key(0))
        np.testing.assert_array_equal(turned.observation(game.observe(one)), game.observe(other))
        assert game.terminal(one) == game.terminal(other)


@pytest.mark.parametrize("size", [3, 5])
def test_in_canonical_form_a_position_is_the_one_with_the_roles_exchanged(size):
    """The mirrored moves, made by the other player each time, lead to it, and it ends as the other one does."""
    game, key = games.hex_game(size), jax.random.key(0)
    form, squares = game.canonical, size * size
    mirrored = lambda action: action % size * size + action // size
    step, seen_by_both, ended = jax.jit(game.step), 0, 0
    for seed in range(12):
        order = np.random.default_rng(seed).permutation(squares)
        one = step(step(game.init(key), order[0], key), order[1], key)
        late = game.init(key)._replace(moves=jnp.int16(3))  # the second player begins, and nobody may swap
        other = step(step(late, mirrored(order[0]), key), mirrored(order[1]), key)
        for action in order[2:]:
            assert int(game.to_play(one)) == 1 - int(game.to_play(other))
            second, first = (one, other) if int(game.to_play(one)) else (other, one)
            assert form.of_second(game.observe(second)) and not form.of_second(game.observe(first))
            np.testing.assert_array_equal(form.symmetry.observation(game.observe(second)), game.observe(first))
            legal = np.asarray(game.legal(second))[list(form.symmetry.actions)]
            np.testing.assert_array_equal(legal, game.legal(first))
            one, other, seen_by_both = step(one, action, key), step(other, mirrored(action), key), seen_by_both + 1
            np.testing.assert_array_equal(game.rewards(one), -game.rewards(other))
            assert bool(game.terminal(one)) == bool(game.terminal(other))
            if game.terminal(one):
                ended += 1
                break
    assert ended == 12 and seen_by_both > 12


def test_the_swap_is_mirrored_as_the_board_is():
    """The second player sees the stone that may be swapped at the mirrored place; the swap stays the last action."""
    game = games.hex_game(4)
    state = played(game, [1])
    shown = np.asarray(game.canonical.symmetry.observation(game.observe(state)))
    assert np.argwhere(shown[..., 1]).tolist() == [[1, 0]] and shown[..., 3].all() and not shown[..., 2].any()
    assert game.canonical.symmetry.actions[16] == 16


def test_pgx_names_the_same_form():
    """Whoever is drawn to be first: plane 2 is the colour."""
    own, theirs = games.hex_game(11), games.from_pgx("hex")
    assert own.canonical.symmetry.actions == theirs.canonical.symmetry.actions
    state = theirs.init(jax.random.key(3))
    for action in (5, 17, 60):
        state = theirs.step(state, action, jax.random.key(0))
    seen, form = theirs.observe(state), theirs.canonical
    assert form.of_second(seen)
    np.testing.assert_array_equal(form.symmetry.observation(seen)[..., :2], jnp.swapaxes(seen, 0, 1)[..., :2])


@pytest.mark.parametrize("size", [1, 20, 7.0, "7"])
def test_sizes_out_of_range_are_refused(size):
    with pytest.raises(ValueError, match="an integer from 2 to 19"):
        games.hex_game(size)


def test_names_lead_to_boards_of_hex():
    assert games.by_name("hex_7x7").id == "hex_7x7" and games.by_name("hex") is games.hex_game(11)
    with pytest.raises(ValueError, match="hex_7x7"):
        games.by_name("hex_7x8")
