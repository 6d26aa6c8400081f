"""Games through the pgx adapter: the contract, the symmetries, and the rules against OpenSpiel's."""

import functools
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games

pytest.importorskip("pgx")

LENGTH = {"tic_tac_toe": 10, "connect_four": 44, "othello": 80, "hex": 124, "go_9x9": 165}  # more than any game lasts
MAIN = tuple(LENGTH)


@functools.cache
def lines_of_play(env_id: str, batch: int = 12, seed: int = 0) -> dict[str, np.ndarray]:
    """Random games, each played in all its symmetric forms at once: arrays [T, S, B, ...].

    `packed_same` says whether a step from the packed state gave the same state.
    """
    game = games.from_pgx(env_id)
    mirrors = np.array([symmetry.actions for symmetry in game.symmetries])
    inverse = jnp.argsort(mirrors, axis=1)
    every = lambda f: jax.vmap(jax.vmap(f))
    init_key, play_key = jax.random.split(jax.random.key(seed))

    def ply(state, key):
        legal = every(game.legal)(state)
        noise = jax.random.gumbel(key, legal.shape[1:])
        action = inverse[:, jnp.argmax(jnp.where(legal[0], noise, -jnp.inf), axis=1)]
        keys = jnp.broadcast_to(jax.random.split(key, batch), action.shape)
        after, also = every(game.step)(state, action, keys), every(game.step)(every(game.pack)(state), action, keys)
        same = [jnp.array_equal(a, b) for a, b in zip(jax.tree.leaves(after), jax.tree.leaves(also))]
        return after, {
            "legal": legal,
            "action": action,
            "to_play": every(game.to_play)(state),
            "observation": every(game.observe)(state),
            "terminal": every(game.terminal)(state),
            "rewards_after": every(game.rewards)(after),
            "terminal_after": every(game.terminal)(after),
            "observation_after": every(game.observe)(after),
            "packed_same": jnp.stack(same).all(),
        }

    @jax.jit
    def play():
        state = jax.vmap(game.init)(jax.random.split(init_key, batch))
        state = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(mirrors), *x.shape)), state)
        return jax.lax.scan(ply, state, jax.random.split(play_key, LENGTH[env_id]))[1]

    return jax.tree.map(np.asarray, play())


SHORT = [pytest.param(x, marks=[pytest.mark.slow] * (x == "go_9x9")) for x in MAIN]


@pytest.mark.parametrize("env_id", SHORT)
def test_contract(env_id):
    game, lines = games.from_pgx(env_id), lines_of_play(env_id)
    sizes = (game.num_actions, game.num_players, *game.observation_shape)
    assert all(type(size) is int for size in sizes) and game.id == env_id

    state = jax.eval_shape(game.init, jax.random.key(0))
    for later in (state, jax.eval_shape(game.step, state, jnp.int32(0), jax.random.key(0))):
        chex.assert_trees_all_equal(
            [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(state)],
            [(x.shape, x.dtype, x.weak_type) for x in jax.tree.leaves(later)],
        )
        answers = {
            f: jax.eval_shape(getattr(game, f), later) for f in ("observe", "legal", "to_play", "terminal", "rewards")
        }
        assert {f: (x.shape, x.dtype.name) for f, x in answers.items()} == {
            "observe": (game.observation_shape, "float32"),
            "legal": ((game.num_actions,), "bool"),
            "to_play": ((), "int32"),
            "terminal": ((), "bool"),
            "rewards": ((game.num_players,), "float32"),
        }

    before, after = lines["terminal"], lines["terminal_after"]
    assert lines["packed_same"].all()
    assert set(np.unique(lines["to_play"])) == {0, 1}
    assert set(np.unique(lines["to_play"][0])) == {0, 1}, "either player starts"
    assert after[-1].all() and (after >= before).all(), "every game ends, and stays ended"
    assert (lines["legal"].any(axis=-1) == ~before).all(), "something is legal until the end, and nothing after"
    ended = after & ~before
    assert (lines["rewards_after"][~ended] == 0).all(), "board games pay at the end, once"
    assert (lines["rewards_after"].sum(axis=-1) == 0).all()
    assert lines["rewards_after"][ended].any()
    frozen = before[..., None, None, None]
    assert (np.where(frozen, lines["observation"], 0) == np.where(frozen, lines["observation_after"], 0)).all()


@pytest.mark.parametrize("env_id", SHORT)
def test_symmetries_commute_with_the_rules(env_id):
    game, lines = games.from_pgx(env_id), lines_of_play(env_id)
    number = {"tic_tac_toe": 8, "connect_four": 2, "othello": 4, "hex": 2, "go_9x9": 8}[env_id]
    assert len({symmetry.actions for symmetry in game.symmetries}) == number
    assert game.symmetries[0].actions == tuple(range(game.num_actions))
    for i, symmetry in enumerate(game.symmetries):
        assert sorted(symmetry.actions) == list(range(game.num_actions))
        for moment in ("observation", "observation_after"):
            seen = jax.vmap(jax.vmap(symmetry.observation))(lines[moment][:, 0])
            np.testing.assert_array_equal(lines[moment][:, i], seen)
        np.testing.assert_array_equal(lines["legal"][:, i], lines["legal"][:, 0][..., symmetry.actions])
        np.testing.assert_array_equal(lines["action"][:, 0], np.array(symmetry.actions)[lines["action"][:, i]])
        for same in ("terminal_after", "rewards_after", "to_play"):
            np.testing.assert_array_equal(lines[same][:, i], lines[same][:, 0])


def test_a_wrong_symmetry_would_be_noticed():
    """Hex mirrored left to right is another game: the test above must be able to fail."""
    lines = lines_of_play("hex")
    assert (lines["observation"][:, 1] != lines["observation"][:, 0][..., ::-1, :]).any()


@functools.cache
def random_games(env_id: str, batch: int) -> dict[str, np.ndarray]:
    """Arrays [T, B, ...] of random games, without symmetric forms."""
    game = games.from_pgx(env_id)

    def ply(state, key):
        legal = jax.vmap(game.legal)(state)
        action = jnp.argmax(jnp.where(legal, jax.random.gumbel(key, legal.shape), -jnp.inf), axis=1)
        after = jax.vmap(game.step)(state, action, jax.random.split(key, batch))
        return after, {
            "legal": legal,
            "action": action,
            "to_play": jax.vmap(game.to_play)(state),
            "terminal": jax.vmap(game.terminal)(state),
            "rewards_after": jax.vmap(game.rewards)(after),
            "observation_after": jax.vmap(game.observe)(after),
        }

    @jax.jit
    def play():
        state = jax.vmap(game.init)(jax.random.split(jax.random.key(1), batch))
        return jax.lax.scan(ply, state, jax.random.split(jax.random.key(2), LENGTH[env_id]))[1]

    return jax.tree.map(np.asarray, play())


@pytest.mark.parametrize("env_id", ["tic_tac_toe", "connect_four", pytest.param("othello", marks=pytest.mark.slow)])
def test_rules_agree_with_open_spiel(env_id, batch=1000):
    """One convention differs: where neither side can move, pgx's Othello plays the two forced passes before it ends."""
    pyspiel = pytest.importorskip("pyspiel")
    lines, rules = random_games(env_id, batch), pyspiel.load_game(env_id)
    starter, mismatches, positions, forced_passes = lines["to_play"][0], 0, 0, 0
    for i in range(batch):
        state, t = rules.new_initial_state(), 0
        while not state.is_terminal():
            mismatches += bool(lines["terminal"][t, i])
            mismatches += state.legal_actions() != np.flatnonzero(lines["legal"][t, i]).tolist()
            mismatches += (state.current_player() == 0) != (lines["to_play"][t, i] == starter[i])
            state.apply_action(int(lines["action"][t, i]))
            positions, t = positions + 1, t + 1
        if not lines["terminal"][t, i]:
            mismatches += np.flatnonzero(lines["legal"][t : t + 2, i]).tolist() != [64, 64 + 65]
            forced_passes, t = forced_passes + 1, t + 2
        mismatches += not lines["terminal"][t, i]
        paid = lines["rewards_after"][:t, i].sum(axis=0)
        mismatches += state.returns() != [paid[starter[i]], paid[1 - starter[i]]]
    assert mismatches == 0 and positions > 5 * batch
    assert forced_passes == 0 or (env_id == "othello" and forced_passes < batch / 20)


def test_hex_ends_when_two_sides_are_joined(batch=200):
    """OpenSpiel's Hex has no swap, so the end is checked by a flood fill, the mask by the stones on the board."""
    lines = random_games("hex", batch)
    planes = lines["observation_after"]  # my stones, theirs, my colour, may swap
    for i in range(batch):
        last = int(np.argmax(lines["rewards_after"][:, i].any(axis=-1)))
        loser, winner, colour, _ = np.moveaxis(planes[last, i].astype(bool), -1, 0)  # the loser is to move
        winner_joins_rows = bool(colour.all())  # the first colour joins the first row to the last one
        assert joined(winner if winner_joins_rows else winner.T)
        assert not joined(loser.T if winner_joins_rows else loser)
        paid = lines["rewards_after"][last, i]
        assert paid[lines["to_play"][last, i]] == 1 and paid.sum() == 0
        for t in range(1, last + 1):
            stones = planes[t - 1, i, ..., :2].any(axis=-1)
            assert (lines["legal"][t, i, :121] == ~stones.ravel()).all()
            assert lines["legal"][t, i, 121] == (t == 1)
    assert (lines["action"][1] == 121).any(), "someone swapped"


def joined(stones: np.ndarray) -> bool:
    """Whether a chain of Hex stones joins the first row to the last."""
    size = len(stones)
    reached = {(0, y) for y in range(size) if stones[0, y]}
    frontier = list(reached)
    while frontier:
        x, y = frontier.pop()
        for near in ((x, y - 1), (x + 1, y - 1), (x - 1, y), (x + 1, y), (x - 1, y + 1), (x, y + 1)):
            if min(near) >= 0 and max(near) < size and stones[near] and near not in reached:
                reached.add(near)
                frontier.append(near)
    return any(x == size - 1 for x, _ in reached)


def test_the_mover_pays_for_an_illegal_action():
    game = games.from_pgx("tic_tac_toe")
    keys = jax.random.split(jax.random.key(0), 8)
    state = jax.vmap(game.step, (0, None, 0))(jax.vmap(game.init)(keys), 4, keys)
    mover = jax.vmap(game.to_play)(state)
    after = jax.vmap(game.step, (0, None, 0))(state, 4, keys)
    assert jax.vmap(game.terminal)(after).all()
    np.testing.assert_array_equal(jax.vmap(game.rewards)(after)[jnp.arange(8), mover], -1)
    np.testing.assert_array_equal(jax.vmap(game.rewards)(after)[jnp.arange(8), 1 - mover], 1)


def test_pgx_own_states_are_packed_like_the_games():
    import pgx

    game, key = games.from_pgx("tic_tac_toe"), jax.random.key(0)
    own, theirs = jax.eval_shape(game.init, key), jax.eval_shape(pgx.make("tic_tac_toe").init, key)
    assert jax.eval_shape(game.pack, own) == jax.eval_shape(game.pack, theirs)


def test_a_packed_state_is_smaller_and_has_no_mask():
    game = games.from_pgx("connect_four")
    state = game.init(jax.random.key(0))
    size = lambda tree: sum(x.nbytes for x in jax.tree.leaves(tree))
    assert size(game.pack(state)) == size(state) - game.num_actions == 194
    np.testing.assert_array_equal(game.observe(game.pack(state)), game.observe(state))
    with pytest.raises(ValueError, match="packed state.*before pack"):
        game.legal(game.pack(state))


def test_initial_and_later_states_share_compiled_code():
    game = games.from_pgx("othello")
    step = jax.jit(lambda state, action, key: game.step(state, action, key))
    state, key = jax.jit(game.init)(jax.random.key(0)), jax.random.key(1)
    for _ in range(3):
        state = step(state, jnp.argmax(game.legal(state)), key)
    assert step._cache_size() == 1


@pytest.mark.parametrize("env_id", ["2048", "backgammon"])
def test_games_of_chance_follow_the_key(env_id):
    game = games.from_pgx(env_id)
    state, keys = jax.jit(game.init)(jax.random.key(0)), jnp.repeat(jax.random.split(jax.random.key(1), 8), 2)

    def play(key):  # backgammon rolls its dice when the second half of a move was played
        after = game.step(game.pack(state), jnp.argmax(game.legal(state)), jax.random.key(2))
        return game.step(game.pack(after), jnp.argmax(game.legal(after)), key)

    after = jax.jit(jax.vmap(play))(keys)
    seen = np.asarray(jax.vmap(game.observe)(after)).reshape(16, -1)
    np.testing.assert_array_equal(seen[::2], seen[1::2])
    assert len(np.unique(seen, axis=0)) > 1


def test_one_record_per_game():
    assert games.from_pgx("connect_four") is games.from_pgx("connect_four")


@pytest.mark.parametrize("wrong, nearest", [("conect4", "connect_four"), ("go9x9", "go_9x9"), ("hexx", "hex")])
def test_an_unknown_game_is_told_the_nearest(wrong, nearest):
    with pytest.raises(ValueError, match=f"{wrong}.*Did you mean '{nearest}'.*Known games: 2048, .*othello"):
        games.from_pgx(wrong)


def test_without_pgx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ImportError, match="connect_four.*needs pgx.*pip install -U pgx"):
        games.from_pgx.__wrapped__("connect_four")


@pytest.mark.slow
def test_large_go_board_has_the_same_symmetries():
    game = games.from_pgx("go_19x19")
    LENGTH["go_19x19"] = 30
    lines = lines_of_play("go_19x19", batch=2)
    for i, symmetry in enumerate(game.symmetries):
        seen = jax.vmap(jax.vmap(symmetry.observation))(lines["observation_after"][:, 0])
        np.testing.assert_array_equal(lines["observation_after"][:, i], seen)
        np.testing.assert_array_equal(lines["legal"][:, i], lines["legal"][:, 0][..., symmetry.actions])


def test_games_with_hidden_cards_say_that_a_search_sees_them():
    with pytest.warns(UserWarning, match="kuhn_poker has hidden cards, but a search sees the whole state"):
        games.from_pgx.__wrapped__("kuhn_poker")
