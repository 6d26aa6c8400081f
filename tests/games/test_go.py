"""Go: the rules against OpenSpiel's and pgx's move for move, against worked positions, and the light playouts."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import backend_tuning, games, models
from jaxzero.games.go_game import bitboard
from jaxzero.games.go_game import moves as go_moves
from jaxzero.games.go_game import playouts as go_playouts
from jaxzero.games.go_game import rules as go_rules
from jaxzero.games.go_game.rules import turned
from jaxzero.games.playout_tiles import in_tiles
from jaxzero.models import playout_functions
from tests import worlds


@functools.cache
def random_games(
    size: int, batch: int, length: int, seed: int = 0, light: bool = False, wrong: float = 0.0, **settings
) -> dict:
    """Arrays [T, B, ...] of random games; `light`: that leave their own eyes alone, so that boards fill up.

    `wrong`: how often an action is drawn from all there are, illegal ones too.
    """
    game = games.go(size, **settings)
    weigh = games.keep_eyes(size) if light else lambda state, legal: legal

    def ply(state, key):
        legal = jax.vmap(game.legal)(state)
        weights = jax.vmap(weigh)(state, legal)
        # Passes seldom, or random games would end at once.
        logits = jnp.where(weights, jnp.where(jnp.arange(size**2 + 1) < size**2, 0.0, -3.0), -jnp.inf)
        action = jnp.argmax(logits + jax.random.gumbel(key, logits.shape), axis=1)
        if wrong:
            which, what = jax.random.split(key)
            anything = jax.random.randint(what, (batch,), 0, size**2 + 1)
            action = jnp.where(jax.random.bernoulli(which, wrong, (batch,)), anything, action)
        after = jax.vmap(game.step, (0, 0, None))(state, action, key)
        return after, {
            "legal": legal,
            "action": action,
            "to_play": jax.vmap(game.to_play)(state),
            "terminal": jax.vmap(game.terminal)(state),
            "rewards": jax.vmap(game.rewards)(after),
            "observation": jax.vmap(game.observe)(state),
            "ko": state.ko,
        }

    @jax.jit
    def play(key):
        state = jax.vmap(game.init)(jax.random.split(key, batch))
        return jax.lax.scan(ply, state, jax.random.split(key, length))[1]

    return jax.tree.map(np.asarray, play(jax.random.key(seed)))


def against_open_spiel(size: int, lines: dict, komi: float) -> dict[str, int]:
    """Replays games there; counts positions, disagreements, and games that a repetition ended."""
    pyspiel = pytest.importorskip("pyspiel")
    rules = pyspiel.load_game(f"go(board_size={size},komi={komi})")
    found = dict.fromkeys(["positions", "wrong", "repetitions", "kos", "finished", "by_limit"], 0)
    for i in range(lines["action"].shape[1]):
        state, t = rules.new_initial_state(), 0
        boards = {board_of(state, size)}
        while not state.is_terminal():
            found["positions"] += 1
            found["kos"] += bool(lines["ko"][t, i] >= 0)
            found["wrong"] += bool(lines["terminal"][t, i]) or state.current_player() != lines["to_play"][t, i]
            found["wrong"] += state.legal_actions() != np.flatnonzero(lines["legal"][t, i]).tolist()
            found["wrong"] += board_of(state, size) != our_board(lines, t, i)
            state.apply_action(int(lines["action"][t, i]))
            t += 1
            if lines["action"][t - 1, i] < size * size:
                before, boards = len(boards), boards | {board_of(state, size)}
                if len(boards) == before:  # positional superko: the game is over there, and goes on here
                    break
        else:
            found["finished"] += 1
            found["by_limit"] += t == 2 * size * size
            found["wrong"] += not lines["terminal"][t, i]
            found["wrong"] += lines["rewards"][:t, i].sum(0).tolist() != state.returns()
            found["wrong"] += bool(lines["rewards"][t:, i].any())
            continue
        found["repetitions"] += 1
        found["wrong"] += not state.is_terminal() or bool(lines["terminal"][t - 1, i])
    return found


def board_of(state, size: int) -> bytes:
    planes = np.array(state.observation_tensor(0)).reshape(-1, size, size)
    return (planes[0] - planes[1]).astype(np.int8).tobytes()


def our_board(lines: dict, t: int, i: int) -> bytes:
    mine, theirs, black = lines["observation"][t, i, ..., [0, 1, 7]]
    return ((mine - theirs) * (2 * black - 1)).astype(np.int8).tobytes()


@pytest.mark.parametrize("light", [False, True], ids=["uniform", "light"])
def test_rules_agree_with_open_spiel(light):
    found = against_open_spiel(9, random_games(9, 24, 165, seed=1, light=light), 7.5)
    assert found["wrong"] == 0 and found["positions"] > 24 * 60 and found["kos"] > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "size, batch, light",
    [
        *((9, 600, True), (5, 300, False), (13, 20, True)),
        *(
            pytest.param(*case, marks=pytest.mark.exhaustive)
            for case in ((9, 600, False), (5, 300, True), (19, 8, True))
        ),
    ],
)
def test_rules_agree_with_open_spiel_on_many_games(size, batch, light):
    komi = {5: 0.5}.get(size, 7.5)
    lines = random_games(size, batch, 2 * size * size + 2, light=light, komi=komi)
    found = against_open_spiel(size, lines, komi)
    assert found["wrong"] == 0 and found["positions"] > 20 * batch
    assert found["finished"] + found["repetitions"] == batch
    assert found["repetitions"] < batch / 4 and found["kos"] > batch / 4
    assert size != 5 or found["repetitions"] > 0, "cycles longer than a ko were met"


@pytest.mark.slow
@pytest.mark.optimised
@pytest.mark.parametrize("light", [False, True], ids=["uniform", "light"])
def test_rules_agree_with_pgx_on_many_games(light, batch=500):
    """pgx lets whoever repeats a position lose there; here the game goes on."""
    pytest.importorskip("pgx")
    lines, theirs = random_games(9, batch, 164, seed=2, light=light), games.from_pgx("go_9x9")

    def ply(state, action):
        seen = jax.vmap(theirs.legal)(state), jax.vmap(theirs.terminal)(state), jax.vmap(theirs.to_play)(state)
        after = jax.vmap(theirs.step, (0, 0, None))(state, action, jax.random.key(0))
        return after, (*seen, jax.vmap(theirs.rewards)(after))

    start = jax.vmap(theirs.init)(jax.random.split(jax.random.key(0), batch))
    seen = jax.jit(lambda state, actions: jax.lax.scan(ply, state, actions)[1])(start, lines["action"])
    legal, terminal, to_play, rewards = (np.asarray(x) for x in seen)
    repetitions = 0
    for i in range(batch):
        end = int(np.argmax(terminal[:, i]))
        same = slice(0, end)
        np.testing.assert_array_equal(legal[same, i], lines["legal"][same, i])
        starter = to_play[0, i]
        np.testing.assert_array_equal(to_play[same, i] != starter, lines["to_play"][same, i])
        boards = [our_board(lines, t, i) for t in range(end + 1)]
        repeated = lines["action"][end - 1, i] < 81 and boards[-1] in boards[:-1]
        repetitions += repeated
        if not repeated:
            assert lines["terminal"][end, i] and not lines["terminal"][same, i].any()
            paid = rewards[:end, i].sum(0)
            assert lines["rewards"][:, i].sum(0).tolist() == [paid[starter], paid[1 - starter]]
    assert repetitions < batch / 20


# ------------------------------------------------------------------------------------------------- worked positions
def played(game: games.Game, *actions: int) -> games.GoState:
    state, step = game.init(jax.random.key(0)), jax.jit(game.step)
    for action in actions:
        assert game.legal(state)[action]
        state = step(state, action, jax.random.key(0))
    return state


def test_ko_may_be_taken_back_after_a_move_elsewhere():
    game = games.go(5)
    # . X O . .
    # X 6 7 O .
    # . X O . .
    state = played(game, 1, 2, 5, 8, 11, 12, 7, 6)  # white's 6 takes the stone on 7
    assert state.ko == 7 and not game.legal(state)[7]
    assert game.observe(state)[1, 2, 4] == 1 and game.observe(state)[..., 4].sum() == 1
    later = played(game, 1, 2, 5, 8, 11, 12, 7, 6, 24, 20)
    assert later.ko == -1 and game.legal(later)[7]
    again = game.step(later, 7, jax.random.key(0))
    assert again.ko == 6 and bitboard.count(again.stones[1]) == 4  # 6 was taken, 20 is there


def test_suicide_is_illegal_and_loses_at_once():
    game = games.go(5)
    state = played(game, 1, 24, 5, 23)  # black on 1 and 5: the corner 0 has no liberty for white
    state = game.step(state, 25, jax.random.key(0))
    assert game.to_play(state) == 1 and not game.legal(state)[0] and game.legal(state)[25]
    for wrong in (0, 1):  # suicide, occupied
        lost = game.step(state, wrong, jax.random.key(0))
        assert game.terminal(lost) and game.rewards(lost).tolist() == [1, -1]
        np.testing.assert_array_equal(lost.stones, state.stones)
        assert not game.legal(lost).any()
        after = game.step(lost, 12, jax.random.key(0))
        assert game.rewards(after).tolist() == [0, 0]
        np.testing.assert_array_equal(after.stones, lost.stones)


@pytest.mark.parametrize("komi, paid", [(4.5, 1), (5, 0), (5.5, -1)])
def test_area_after_two_passes(komi, paid):
    """A black wall on the middle column, a white one beside it: 15 points against 10."""
    game = games.go(5, komi=komi)
    state = played(game, *(5 * row + column for row in range(5) for column in (2, 3)), 25)
    assert not game.terminal(state)
    ended = game.step(state, 25, jax.random.key(0))
    assert game.terminal(ended) and game.rewards(ended).tolist() == [paid, -paid]


def flood(board: np.ndarray, start: tuple) -> tuple[set, set, set]:
    """The connected points of the same kind, what is next to them, and of that the empty points."""
    region, edge, todo = {start}, set(), [start]
    while todo:
        y, x = todo.pop()
        for near in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)):
            if min(near) < 0 or max(near) >= len(board) or near in region:
                continue
            if board[near] == board[start]:
                region.add(near)
                todo.append(near)
            else:
                edge.add(near)
    return region, edge, {point for point in edge if board[point] == 0}


def test_the_move_limit_ends_and_scores():
    game = games.go(5, komi=0.5, move_limit=3)
    state = played(game, 12, 25)
    assert not game.terminal(state)
    ended = game.step(state, 7, jax.random.key(0))
    assert game.terminal(ended) and game.rewards(ended).tolist() == [1, -1]


def test_a_turn_out_of_turn_is_a_pass_that_was_not_made():
    game, key = games.go(5, komi=2.5), jax.random.key(0)
    ko = played(game, 1, 2, 5, 8, 11, 12, 7, 6)  # black may not take back on 7
    for state in (played(game), played(game, 12, 7), played(game, 12, 25), ko):
        mover = int(game.to_play(state))
        same, other, passed = turned(state, mover), turned(state, 1 - mover), game.step(state, 25, key)
        chex.assert_trees_all_equal(same, state._replace(passes=jnp.int8(0)))
        assert game.to_play(other) == 1 - mover and not game.terminal(other)
        fields = dict(last=state.last, passes=jnp.int8(0), over=jnp.array(False), result=jnp.int8(0))
        counted = int(state.moves) - 1 if state.moves else 1
        chex.assert_trees_all_equal(other, passed._replace(**fields, moves=jnp.int16(counted)))
    assert turned(ko, 0).ko == 7 and turned(ko, 1).ko == -1
    assert game.legal(turned(ko, 1))[7], "white may fill the ko"


def test_a_game_that_is_over_may_go_on():
    game, key = games.go(5, komi=2.5), jax.random.key(0)
    over = played(game, 12, 25, 25)
    assert game.terminal(over) and game.rewards(over)[0] == 1
    going = turned(over, 1)
    assert not game.terminal(going) and game.rewards(going).tolist() == [0, 0] and game.legal(going).sum() == 25
    once = game.step(going, 25, key)
    assert not game.terminal(once) and game.terminal(game.step(once, 25, key)), "two more passes end it again"


def test_moves_out_of_turn_come_no_nearer_to_the_move_limit():
    game, key = games.go(5, komi=2.5, move_limit=6), jax.random.key(0)
    state = game.init(key)
    for action in range(10):
        state = game.step(turned(state, 0), action, key)
    assert state.moves == 1 and not game.terminal(state)
    state = played(game, 0, 4, 1, 3, 6, 8)
    assert game.terminal(state)
    for player in (0, 1):
        going = turned(state, player)
        assert game.to_play(going) == player and going.moves == player, "after the end the count begins anew"


@pytest.mark.parametrize("size", [2, 5, 9, 13, 16, 19, 25])
def test_sets_of_points_are_what_they_say(size, seed=0):
    on, rng = bitboard.board(size), np.random.default_rng(seed)
    mask = rng.random((size, size)) < 0.3
    points = jnp.asarray(bitboard.fixed_set(size, mask.ravel()))
    np.testing.assert_array_equal(bitboard.squares(on, points), mask)
    beside = np.zeros_like(mask)
    beside[1:] |= mask[:-1]
    beside[:-1] |= mask[1:]
    beside[:, 1:] |= mask[:, :-1]
    beside[:, :-1] |= mask[:, 1:]
    np.testing.assert_array_equal(bitboard.squares(on, bitboard.around(on, points)), beside)
    assert bitboard.count(points) == mask.sum() and bitboard.any_point(points) == mask.any()
    every = jnp.arange(size * size)
    ones = jax.vmap(lambda point: bitboard.point_set(on, point))(every)
    np.testing.assert_array_equal(jax.vmap(lambda one: bitboard.point_index(on, one))(ones), every)
    assert bitboard.point_index(on, jnp.zeros_like(points)) == -1
    assert not bitboard.point_set(on, jnp.int32(-1)).any() and not bitboard.point_set(on, jnp.int32(size**2)).any()


@pytest.mark.parametrize(
    "size, batch, layout",
    [
        *((2, 20, "CPU"), (3, 20, "ACCELERATOR"), (5, 12, "CPU"), (9, 4, "CPU")),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((5, 40, "ACCELERATOR"), (9, 20, "ACCELERATOR"), (19, 2, "CPU"), (19, 2, "ACCELERATOR"))
        ),
    ],
)
def test_every_step_knows_which_chains_have_two_liberties(size, batch, layout):
    """Along random games, with captures, kos and illegal moves that are tried, against a flood fill in Python."""
    with backend_tuning.laid_out_for(getattr(backend_tuning, layout)):
        play = random_games.__wrapped__
        lines = play(size, batch, 2 * size**2, seed=3, light=size > 3, wrong=0.03 * (size < 9), komi=0.5)
    mine, theirs, mine_short, theirs_short = np.moveaxis(lines["observation"][..., :4], -1, 0)
    boards, short = (mine - theirs).astype(int), mine_short + theirs_short
    for t, i in np.ndindex(boards.shape[:2]):
        if t and lines["terminal"][t - 1, i]:
            np.testing.assert_array_equal(short[t, i], short[t - 1, i])
        else:
            np.testing.assert_array_equal(short[t, i], short_chains(boards[t, i]))
    stones = (mine + theirs).sum((2, 3))
    tried = ~np.take_along_axis(lines["legal"], lines["action"][..., None], 2)[..., 0] & ~lines["terminal"]
    assert (stones[1:] < stones[:-1]).any(), "something was captured"
    assert size == 2 or (lines["ko"] >= 0).any()
    assert size > 5 or tried.any()


def short_chains(board: np.ndarray) -> np.ndarray:
    """The stones whose chains have one liberty; every chain has one at least."""
    short, seen = np.zeros(board.shape), set()
    for start in np.argwhere(board):
        if (start := tuple(start)) in seen:
            continue
        region, _, liberties = flood(board, start)
        assert liberties
        seen |= region
        short[tuple(zip(*region))] = len(liberties) == 1
    return short


def test_what_is_asked_of_a_position_takes_no_loop():
    """A turn of a loop costs an accelerator microseconds; `step` has found out already."""
    game = games.go(9)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    for asked in (game.legal, game.observe):
        assert "while" not in str(jax.make_jaxpr(jax.vmap(asked))(states))
    step = lambda states: jax.vmap(game.step, (0, None, None))(states, 0, jax.random.key(0))
    assert "while" in str(jax.make_jaxpr(step)(states))


def test_a_layout_changes_how_far_a_turn_goes_and_no_result():
    on = bitboard.board(9)
    snake = np.zeros((9, 9), bool)
    snake[::2] = snake[1::4, 8] = snake[3::4, 0] = True  # to and fro: 48 steps from end to end
    start, path = jnp.zeros(3, jnp.uint32).at[0].set(1), jnp.asarray(bitboard.fixed_set(9, snake.ravel()))
    for layout, steps in ((backend_tuning.CPU, 1), (backend_tuning.ACCELERATOR, 8)):
        with backend_tuning.laid_out_for(layout):
            taken = []
            further = lambda sets: taken.append(1) or (sets[0] | bitboard.around(on, sets[0]) & path,)
            (reached,) = bitboard.settle(further, (start,))
        np.testing.assert_array_equal(reached, path)
        assert len(taken) == (steps if steps == 1 else 2 * steps), "an accelerator makes a turn before the loop"


@pytest.mark.parametrize("size", [5, 9, pytest.param(19, marks=pytest.mark.slow)])
def test_eyes_and_area_by_hand(size, batch=30):
    """Random pictures, dense and thin, against a flood fill in Python; pictures with dead chains are passed over."""
    on, rng = bitboard.board(size), np.random.default_rng(size)
    boards = [rng.choice([-1, 0, 1], (size, size), p=[f / 2, 1 - f, f / 2]) for f in rng.uniform(0.3, 0.95, batch)]
    boards = [clean(board) for board in boards]
    sets = [jnp.stack([jnp.asarray(bitboard.fixed_set(size, (b == c).ravel())) for b in boards]) for c in (1, -1)]
    show = jax.vmap(lambda points: bitboard.squares(on, points))
    eyes = show(jax.vmap(lambda b, w: go_moves.own_eyes(on, b, w))(*sets))
    winner = [jax.vmap(lambda b, w: go_moves.winner(on, b, w, komi, True))(*sets) for komi in (-2.0, 0.0, 2.5)]
    assert eyes.any()
    for i, board in enumerate(boards):
        area = int(board.sum())
        for start in np.ndindex(size, size):
            _, edge, _ = flood(board, start)
            if not board[start]:
                area += sum(colour for colour in (1, -1) if {board[point] for point in edge} == {colour})
                assert eyes[i][start] == eye_by_hand(board, start)
        assert [int(w[i]) for w in winner] == [np.sign(area - komi) for komi in (-2.0, 0.0, 2.5)]


def clean(board: np.ndarray) -> np.ndarray:
    """Without the chains that have no liberty."""
    dead = [p for p in np.ndindex(board.shape) if board[p] and not flood(board, p)[2]]
    board = board.copy()
    for point in dead:
        board[point] = 0
    return board


def eye_by_hand(board: np.ndarray, point: tuple) -> bool:
    inside = lambda p: min(p) >= 0 and max(p) < len(board)
    y, x = point
    beside = [p for p in ((y - 1, x), (y + 1, x), (y, x - 1), (y, x + 1)) if inside(p)]
    diagonal = [p for p in ((y - 1, x - 1), (y - 1, x + 1), (y + 1, x - 1), (y + 1, x + 1)) if inside(p)]
    theirs = sum(board[p] == -1 for p in diagonal)
    return all(board[p] == 1 for p in beside) and theirs <= (1 if len(diagonal) == 4 else 0)


# --------------------------------------------------------------------------------------------------------- the record
def test_contract():
    game = games.go(9)
    state = jax.eval_shape(game.init, jax.random.key(0))
    later = jax.eval_shape(game.step, state, jnp.int32(0), jax.random.key(0))
    spec = lambda x: [(y.shape, y.dtype, y.weak_type) for y in jax.tree.leaves(x)]
    assert spec(state) == spec(later) == spec(game.pack(state))
    assert sum(np.prod(shape, dtype=int) * dtype.itemsize for shape, dtype, _ in spec(state)) == 45
    assert game is games.go(9) and game.observation_shape == (9, 9, 8) and game.num_actions == 82
    lines = random_games(9, 24, 165, seed=1)
    before = lines["terminal"]
    assert (lines["legal"].any(-1) == ~before).all() and before[-1].all()
    assert (np.abs(lines["rewards"].sum(0)) == 1).all(), "a half-point komi knows no draw, and pays once"
    assert lines["observation"].dtype == np.float32 and lines["rewards"].dtype == np.float32


def test_symmetries_commute_with_the_rules(moves=40):
    game = games.go(9)
    assert len({symmetry.actions for symmetry in game.symmetries}) == 8
    lines, step = random_games(9, 24, 165, seed=1, light=True), jax.jit(game.step)
    observe, legal = jax.jit(game.observe), jax.jit(game.legal)
    for symmetry in game.symmetries:
        state, inverse = game.init(jax.random.key(0)), np.argsort(symmetry.actions)
        for t in range(moves):
            np.testing.assert_array_equal(observe(state), symmetry.observation(lines["observation"][t, 0]))
            np.testing.assert_array_equal(legal(state), lines["legal"][t, 0][..., list(symmetry.actions)])
            state = step(state, int(inverse[lines["action"][t, 0]]), jax.random.key(0))


def test_observation_planes():
    game = games.go(9)
    state = played(game, 0, 1, 80)  # white is to move: black's corner has one liberty
    planes = np.moveaxis(np.asarray(game.observe(state)), -1, 0).reshape(8, -1)
    on = [np.flatnonzero(plane).tolist() for plane in planes]
    assert on == [[1], [0, 80], [], [0], [], [80], [], []]
    passed = np.asarray(game.observe(game.step(state, 81, jax.random.key(0))))
    assert passed[..., 6].all() and passed[..., 7].all() and not passed[..., 5].any()


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"size": 1}, r"go\(size=1\).*from 2 to 25"),
        ({"size": 26}, r"size=26.*from 2 to 25"),
        ({"size": 9.5}, r"size=9.5.*from 2 to 25"),
        ({"move_limit": 0}, r"move_limit=0.*from 1 to 32000"),
        ({"move_limit": 40_000}, r"move_limit=40000.*from 1 to 32000"),
        ({"komi": float("nan")}, "komi=nan.*finite"),
        ({"komi": "7.5"}, "komi='7.5'.*finite"),
    ],
)
def test_what_is_out_of_range_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        games.go(**wrong)


def test_the_same_in_64_bit_mode():
    game, keys = games.go(5), jax.random.split(jax.random.key(0), 8)
    plain = jax.jit(lambda: jax.vmap(game.init)(keys))()
    paid = jax.jit(game.playout, static_argnums=2)(keys, plain, None)
    with worlds.x64():
        again = jax.jit(game.playout, static_argnums=2)(keys, plain, None)
        state = jax.jit(game.step)(game.init(jax.random.key(0)), 12, jax.random.key(0))
        assert game.observe(state).dtype == np.float32 and state.ko.dtype == np.int16
        assert game.legal(state).sum() == 25
    np.testing.assert_array_equal(paid, again)


# ----------------------------------------------------------------------------------------------------------- playouts
def test_a_random_point_is_uniform():
    on = bitboard.board(9)
    mask = np.random.default_rng(0).random(81) < 0.4
    points = jnp.asarray(bitboard.fixed_set(9, mask))[:, None]
    bits = jax.vmap(jax.random.bits)(jax.random.split(jax.random.key(0), 40_000))
    at, found = go_playouts.random_point(jnp.broadcast_to(points, (3, len(bits))), bits)
    count = np.bincount(jax.vmap(lambda one: bitboard.point_index(on, one), 1)(at), minlength=81)
    assert found.all() and count[~mask].sum() == 0
    expected = len(bits) / mask.sum()
    np.testing.assert_allclose(count[mask], expected, atol=5 * np.sqrt(expected))
    at, found = go_playouts.random_point(jnp.zeros((3, 4), jnp.uint32), bits[:4])
    assert not at.any() and not found.any()


def test_playouts_draw_what_the_mask_allows(batch=20_000):
    """The first moves of playouts from a position with eyes, suicide and ko, against the exact mask."""
    game = games.go(5)
    lines = random_games(5, 300, 52, seed=0, light=True, komi=0.5)
    step, policy = jax.jit(game.step), games.keep_eyes(5)
    tried = 0
    for i in range(40):
        length = int(np.argmax(lines["terminal"][:, i]))
        state = game.init(jax.random.key(0))
        for t in range(2 * length // 3):
            state = step(state, int(lines["action"][t, i]), jax.random.key(0))
        legal = np.asarray(game.legal(state))
        mask = np.asarray(policy(state, jnp.asarray(legal)))
        if game.terminal(state) or mask[:-1].sum() < 2 or mask.sum() == legal[:-1].sum():
            continue
        count = np.asarray(_first_moves(state, batch))
        assert (count[~mask] == 0).all()
        np.testing.assert_allclose(count[mask], batch / mask.sum(), atol=5 * np.sqrt(batch / mask.sum()))
        tried += 1
        if tried == 6:
            return
    raise AssertionError(f"only {tried} positions with something to leave out")


@functools.partial(jax.jit, static_argnums=1)
def _first_moves(state, batch):
    """How often light playouts begin with each action."""
    on = bitboard.board(5)
    states = jax.tree.map(lambda x: jnp.repeat(x[None], batch, axis=0), state)
    lanes = go_rules._lanes(on, states)
    seeds = jax.vmap(jax.random.bits)(jax.random.split(jax.random.key(1), batch))
    end = go_playouts.playouts(on, seeds, lanes, lanes.moves + 1)
    new = end.theirs & ~lanes.mine
    action = jax.vmap(lambda points: bitboard.point_index(on, points), 1)(new)
    return jnp.bincount(jnp.where(end.passes > lanes.passes, 25, action), length=26)


def test_light_playouts_and_the_mask_agree(batch=3000):
    """The mean result from three positions, the game's own way and by `keep_eyes`; 4.5 standard errors."""
    game, keys = games.go(5, komi=0.5), jax.random.split(jax.random.key(0), batch)
    own = jax.jit(game.playout, static_argnums=2)
    asked = jax.jit(playout_functions.weighted(game, games.keep_eyes(5)), static_argnums=2)
    for moves in ((), (12, 6, 8), (0, 12, 4, 11, 20)):
        states = jax.tree.map(lambda x: jnp.repeat(x[None], batch, axis=0), played(game, *moves))
        mean = [np.asarray(f(keys, states, None))[:, 0].mean() for f in (own, asked)]
        assert abs(mean[0]) < 0.95, "something is left open"
        assert abs(mean[0] - mean[1]) < 4.5 * np.sqrt(2 / batch)


def test_playouts_do_not_depend_on_their_company():
    game, keys = games.go(5), jax.random.split(jax.random.key(3), 13)
    states = jax.vmap(game.init)(keys)
    run = lambda f, *given: np.asarray(jax.jit(lambda k, s: f(k, s, None))(*given))
    together = run(game.playout, keys, states)
    np.testing.assert_array_equal(run(in_tiles(game.playout, 4), keys, states), together)
    np.testing.assert_array_equal(run(game.playout, keys[2:3], jax.tree.map(lambda x: x[2:3], states)), together[2:3])
    assert (np.abs(together) == 1).all() and len(np.unique(together[:, 0])) == 2


def test_playouts_stop_where_they_are_told():
    game, keys = games.go(5), jax.random.split(jax.random.key(0), 6)
    states = jax.vmap(game.init)(keys)
    assert (game.playout(keys, states, 5) == 0).all(), "cut short: nothing was paid"
    limited = games.go(5, komi=-30, move_limit=5)
    assert (limited.playout(keys, jax.vmap(limited.init)(keys), None)[:, 0] == 1).all(), "the limit scores"
    over = played(game, 25, 25)
    states = jax.tree.map(lambda x: jnp.repeat(x[None], 6, axis=0), over)
    assert (game.playout(keys, states, None) == 0).all(), "what is over pays nothing more"


def test_rollout_takes_the_games_own_playouts():
    game, keys = games.go(5), jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.init)(keys)
    for policy in (None, games.keep_eyes(5)):
        step, _ = jax.jit(models.rollout(game, 40, policy=policy).root)(None, keys, states)
        assert (step.value > -1).all() and (step.value < 1).all() and step.to_play.tolist() == [0, 0, 0]
    seen = []
    spy = game._replace(playout=lambda *given: seen.append(given[2]) or game.playout(*given))
    jax.eval_shape(models.rollout(spy, 2, max_steps=7).root, None, keys, states)
    jax.eval_shape(models.rollout(spy, 2, policy=games.keep_eyes(5)).root, None, keys, states)
    assert seen == [7]
