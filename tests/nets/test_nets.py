"""Networks: shapes, purity, gradients, and that one position's answer is its own."""

import math
import pickle

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets.network import as_first_player


def board_game(shape=(6, 7, 2), num_actions=7, num_players=2):
    """A network asks a game for its sizes only."""
    nothing = [None] * (len(games.Game._fields) - 4)
    return games.Game("board", num_actions, num_players, shape, *nothing)


BUILDERS = {
    "mlp": lambda game, key: nets.mlp(game, hidden=(16, 16), key=key),
    "windows": lambda game, key: nets.windows(game, window=3, channels=8, hidden=(16,), key=key),
    "resnet": lambda game, key: nets.resnet(game, channels=8, blocks=2, key=key),
    "windows, parity": lambda game, key: nets.windows(game, 3, 8, (16,), stone_parity=game.num_players == 2, key=key),
    "mlp, bfloat16": lambda game, key: nets.mlp(game, hidden=(16, 16), key=key, dtype=jnp.bfloat16),
    "windows, bfloat16": lambda game, key: nets.windows(game, 3, 8, (16,), key=key, dtype=jnp.bfloat16),
    "resnet, bfloat16": lambda game, key: nets.resnet(game, channels=8, blocks=2, key=key, dtype=jnp.bfloat16),
}


@pytest.fixture(params=BUILDERS)
def build(request):
    return lambda game, seed=0: BUILDERS[request.param](game, jax.random.key(seed))


def observations(game, batch=6, seed=0):
    return jax.random.bernoulli(jax.random.key(seed), 0.4, (batch, *game.observation_shape)).astype(jnp.float32)


@pytest.mark.parametrize(
    "game",
    [board_game(), board_game((3, 3, 2), 9), board_game((5, 4, 3), 21, num_players=3)],
    ids=["connect four", "tic-tac-toe", "three players"],
)
def test_shapes_and_types(build, game):
    net, params = build(game)
    logits, value = jax.jit(net)(params, observations(game))
    chex.assert_shape(logits, (6, game.num_actions))
    chex.assert_shape(value, (6, 3) if game.num_players == 3 else (6,))
    chex.assert_type([logits, value, *jax.tree.leaves(params)], jnp.float32)
    chex.assert_tree_all_finite((logits, value))
    assert (jnp.abs(value) < 1).all()


def test_params_are_a_plain_dictionary_of_arrays(build):
    _, params = build(board_game())
    paths = jax.tree_util.tree_leaves_with_path(params)
    assert all(isinstance(key, jax.tree_util.DictKey) and isinstance(key.key, str) for path, _ in paths for key in path)
    assert all(isinstance(leaf, jax.Array) for _, leaf in paths)


def test_the_network_is_a_pure_function(build):
    game = board_game()
    (net, params), (_, others) = build(game), build(game, seed=1)
    seen = observations(game)
    first, before = net(params, seen), jax.tree.map(jnp.copy, params)
    jitted = jax.jit(net)
    different = jitted(others, seen)
    chex.assert_trees_all_close(jitted(params, seen), first, atol=1e-2)  # bfloat16 rounds elsewhere when compiled
    chex.assert_trees_all_equal(net(params, seen), first)
    chex.assert_trees_all_equal(params, before)
    assert jitted._cache_size() == 1
    assert not np.allclose(different[0], first[0], atol=1e-3), "the parameters given are the ones used"
    chex.assert_trees_all_equal(build(game)[1], params)


def test_a_position_is_judged_alone(build):
    game = board_game()
    net, params = build(game)
    net, seen = jax.jit(net), observations(game)
    together = net(params, seen)
    for i in range(len(seen)):
        alone = net(params, seen[i : i + 1])
        chex.assert_trees_all_close(alone, jax.tree.map(lambda x: x[i : i + 1], together), atol=1e-5)
    assert len(np.unique(together[1])) == len(seen)


def test_every_parameter_learns(build):
    """Convolutions behind a zero-initialised one get their first gradient in the second step."""
    game = board_game()
    net, params = build(game)
    seen, target = observations(game, batch=32), jnp.linspace(-0.9, 0.9, 32)

    def loss(params):
        logits, value = net(params, seen)
        chosen = jax.nn.log_softmax(logits)[jnp.arange(32), jnp.arange(32) % 7]
        return jnp.square(value - target).mean() - chosen.mean()

    start = loss(params)
    step = jax.jit(lambda params: jax.tree.map(lambda p, g: p - 0.03 * g, params, jax.grad(loss)(params)))
    later = step(params)
    for _ in range(60):
        later = step(later)
    still = [
        jax.tree_util.keystr(path)
        for path, moved in jax.tree_util.tree_leaves_with_path(
            jax.tree.map(lambda a, b: jnp.abs(a - b).max(), params, later)
        )
        if moved == 0
    ]
    assert not still, f"never moved: {still}"
    assert loss(later) < 0.9 * start


def test_resnet_grows_by_the_block():
    size = lambda blocks: sum(
        math.prod(x.shape) for x in jax.tree.leaves(nets.resnet(board_game(), 8, blocks, key=jax.random.key(0))[1])
    )
    assert size(3) - size(2) == 2 * (3 * 3 * 8 * 8 + 8)


def test_resnet_wants_a_board():
    with pytest.raises(ValueError, match=r"board have \[7\].*write nets.mlp\(game, key=key\)"):
        nets.resnet(board_game((7,), 2), key=jax.random.key(0))


@pytest.mark.parametrize("wrong", [{"channels": 0}, {"blocks": 0}])
def test_resnet_sizes_count_from_one(wrong):
    with pytest.raises(ValueError, match="must be 1 or more"):
        nets.resnet(board_game(), **wrong, key=jax.random.key(0))


def test_windows_are_a_convolution():
    net, params = nets.windows(board_game(), window=3, channels=8, hidden=(16,), key=jax.random.key(0))
    seen = observations(board_game())
    kernel = params["look"]["kernel"].reshape(3, 3, 2, 8)
    numbers = jax.lax.conv_general_dilated(seen, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x, rest = jax.nn.relu(numbers + params["look"]["bias"]).reshape(len(seen), -1), params["rest"]
    x = jax.nn.relu(x @ rest["dense_0"]["kernel"] + rest["dense_0"]["bias"])
    logits, value = net(params, seen)
    np.testing.assert_allclose(logits, x @ rest["policy"]["kernel"] + rest["policy"]["bias"], atol=1e-5)
    np.testing.assert_allclose(value, jnp.tanh(x @ rest["value"]["kernel"] + rest["value"]["bias"])[:, 0], atol=1e-5)


@pytest.mark.parametrize(
    "shape, wrong, said",
    [
        ((6, 7, 2), {"channels": 0}, "must be 1 or more"),
        ((6, 7, 2), {"hidden": ()}, "at least one hidden layer"),
        ((3, 3, 2), {}, r"windows of 4 x 4 .* board have \[3, 3, 2\]: use a smaller window"),
        ((7,), {}, r"board have \[7\]"),
    ],
)
def test_windows_have_to_fit_the_board(shape, wrong, said):
    with pytest.raises(ValueError, match=said):
        nets.windows(board_game(shape), **wrong, key=jax.random.key(0))


def boards_by_parity():
    """Boards of two stones against one, one against one, none against one, and none at all."""
    boards = np.zeros((4, 6, 7, 2), np.float32)
    boards[0, 5, :2, 0] = boards[:2, 4, 0, 1] = boards[1, 5, 0, 0] = boards[2, 5, 3, 1] = 1
    return jnp.asarray(boards), (1.0, 0.0, 1.0, 0.0)


def test_windows_see_the_parity_of_stones_beside_them():
    net, params = nets.windows(board_game(), 3, 8, (16,), stone_parity=True, key=jax.random.key(0))
    plain, _ = nets.windows(board_game(), 3, 8, (16,), key=jax.random.key(0))
    first = params["rest"]["dense_0"]
    for board, parity in zip(*boards_by_parity()):
        moved = {"kernel": first["kernel"][:-1], "bias": first["bias"] + parity * first["kernel"][-1]}
        expected = plain(params | {"rest": params["rest"] | {"dense_0": moved}}, board[None])
        chex.assert_trees_all_close(net(params, board[None]), expected, atol=1e-6)


def test_a_tower_sees_the_parity_of_stones_as_a_plane():
    net, params = nets.resnet(board_game(), 8, 1, stone_parity=True, key=jax.random.key(0))
    plain, _ = nets.resnet(board_game((6, 7, 3)), 8, 1, key=jax.random.key(0))
    for board, parity in zip(*boards_by_parity()):
        told = jnp.concatenate([board, jnp.full((6, 7, 1), parity)], -1)
        chex.assert_trees_all_equal(net(params, board[None]), plain(params, told[None]))


@pytest.mark.parametrize("build", [nets.windows, nets.resnet])
@pytest.mark.parametrize("game", [board_game((6, 7, 1)), board_game(num_players=3)], ids=["one plane", "three players"])
def test_only_stones_of_two_players_have_a_parity(build, game):
    with pytest.raises(ValueError, match="stone_parity=True needs a game of two .* leave it out"):
        build(game, stone_parity=True, key=jax.random.key(0))


@pytest.mark.parametrize(
    "build",
    [
        lambda game, **given: nets.windows(game, 3, 8, (16,), **given),
        lambda game, **given: nets.resnet(game, 8, 1, **given),
        lambda game, **given: nets.mlp(game, (16,), **given),
    ],
    ids=["windows", "resnet", "mlp"],
)
def test_a_network_answers_the_same_where_the_players_have_exchanged_their_roles(build):
    """In canonical form; and the first player's positions are seen as they are."""
    game = games.hex_game(4)
    net, params = build(game, canonical=True, key=jax.random.key(0))
    plain, same = build(game, key=jax.random.key(0))
    chex.assert_trees_all_equal(params, same)
    first = observations(game).at[..., 2].set(0)
    second = jnp.swapaxes(first, 1, 2).at[..., 2].set(1)
    logits, value = plain(params, first)
    chex.assert_trees_all_close(jax.jit(net)(params, first), (logits, value), atol=1e-6)
    squares = [4 * column + row for row in range(4) for column in range(4)]  # where each lies in the mirror
    chex.assert_trees_all_close(jax.jit(net)(params, second), (logits[:, [*squares, 16]], value), atol=1e-6)
    both = jnp.stack([first, second], 1).reshape(-1, *game.observation_shape)  # turn about in one batch
    chex.assert_trees_all_close(net(params, both)[1], jnp.repeat(value, 2), atol=1e-6)


def test_actions_are_carried_back_from_the_canonical_form():
    """By a permutation that is not its own inverse; the module answers what it sees."""
    rolled = games.Symmetry(lambda seen: jnp.roll(seen, 1), (2, 0, 1))  # action 0 of the form is action 2
    form = games.CanonicalForm(lambda seen: seen[0] > 1, rolled)
    seen = jnp.float32([[0, 1, 2], [3, 4, 5]])
    shown = []
    logits, value = as_first_player(form, lambda x: (shown.append(x) or x, x[:, 0]), seen)
    assert shown[0].tolist() == [[0, 1, 2], [5, 3, 4]] and value.tolist() == [0, 5]
    np.testing.assert_array_equal(logits, seen)


def test_a_network_in_canonical_form_can_be_pickled():
    net, params = nets.mlp(games.hex_game(3), (4,), canonical=True, key=jax.random.key(0))
    again, seen = pickle.loads(pickle.dumps(net)), jnp.ones((2, 3, 3, 4))
    chex.assert_trees_all_equal(again(params, seen), net(params, seen))


def test_a_game_without_a_canonical_form_is_refused():
    for build in (nets.mlp, nets.windows, nets.resnet):
        with pytest.raises(ValueError, match=r"names its canonical form .* connect_four names none: leave it out"):
            build(games.from_pgx("connect_four"), canonical=True, key=jax.random.key(0))


def test_mlp_sizes_count_from_one():
    with pytest.raises(ValueError, match=r"hidden=\(8, 0\)"):
        nets.mlp(board_game(), hidden=(8, 0), key=jax.random.key(0))


def test_mlp_takes_observations_that_are_no_board():
    net, params = nets.mlp(board_game((7,), 2), hidden=(), key=jax.random.key(0))
    logits, value = net(params, jnp.ones((4, 7)))
    assert logits.shape == (4, 2) and value.shape == (4,)
