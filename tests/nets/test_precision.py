"""bfloat16: weights are rounded once and not in every simulation, answers stay close, and layers lie as they should."""

import collections
import re

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models, nets
from jaxzero.nets import weights
from jaxzero.play import outcome_mistakes

POSITIONS = outcome_mistakes.CONNECT_FOUR
BUILDERS = {
    "mlp": lambda game, dtype: nets.mlp(game, hidden=(24, 20), key=jax.random.key(0), dtype=dtype),
    "windows": lambda game, dtype: nets.windows(game, 2, 24, (20,), key=jax.random.key(0), dtype=dtype),
    "resnet": lambda game, dtype: nets.resnet(game, channels=24, blocks=2, key=jax.random.key(0), dtype=dtype),
    "parity": lambda game, dtype: nets.windows(
        game, 2, 24, (20,), stone_parity=True, key=jax.random.key(0), dtype=dtype
    ),
}
HALF = {
    "mlp": {"dense_0", "dense_1"},
    "windows": {"look", "rest.dense_0"},
    "parity": {"look", "rest.dense_0"},
    "resnet": {"stem", "block_0.first", "block_0.second", "block_1.first", "block_1.second"}
    | {"policy_planes", "value_planes"},
}


def built(kind, dtype=jnp.bfloat16):
    """A network for tic-tac-toe of weights that are not zero anywhere."""
    game = games.from_pgx("tic_tac_toe")
    net, params = BUILDERS[kind](game, dtype)
    leaves, structure = jax.tree.flatten(params)
    random = np.random.default_rng(1)
    moved = [jnp.asarray(np.asarray(x) + 0.1 * random.normal(size=x.shape).astype(np.float32)) for x in leaves]
    return game, net, jax.tree.unflatten(structure, moved)


def observations(batch=32):
    return jax.random.bernoulli(jax.random.key(2), 0.4, (batch, 3, 3, 2)).astype(jnp.float32)


# --- rounding once ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BUILDERS)
def test_what_is_rounded_is_what_is_read_in_bfloat16(kind):
    _, net, params = built(kind)
    rounded = nets.to_bfloat16(net, params)
    chex.assert_trees_all_equal_structs(rounded, params)
    chex.assert_trees_all_equal_shapes(rounded, params)
    found = collections.defaultdict(set)
    for path, x in jax.tree_util.tree_leaves_with_path(rounded):
        found[str(x.dtype)].add(jax.tree_util.keystr(path[:-1], simple=True, separator="."))
    assert found["bfloat16"] == HALF[kind] and not found["bfloat16"] & found["float32"]
    chex.assert_trees_all_equal(nets.to_bfloat16(net, rounded), rounded)
    chex.assert_trees_all_equal(jax.jit(lambda p: nets.to_bfloat16(net, p))(params), rounded)


@pytest.mark.parametrize("kind", BUILDERS)
def test_the_answers_are_the_same_bits(kind):
    _, net, params = built(kind)
    rounded, seen, jitted = nets.to_bfloat16(net, params), observations(), jax.jit(net)
    chex.assert_trees_all_equal(net(rounded, seen), net(params, seen))
    chex.assert_trees_all_equal(jitted(rounded, seen), jitted(params, seen))
    chex.assert_type(jitted(rounded, seen), jnp.float32)
    plain = BUILDERS[kind](games.from_pgx("tic_tac_toe"), None)[0]
    assert not np.array_equal(plain(params, seen)[0], net(params, seen)[0]), "it does compute in bfloat16"
    np.testing.assert_allclose(plain(params, seen)[0], net(params, seen)[0], atol=0.1)


@pytest.mark.parametrize("kind", BUILDERS)
@pytest.mark.parametrize("dtype", [None, jnp.float32])
def test_of_a_float32_network_nothing_is_rounded(kind, dtype):
    _, net, params = built(kind, dtype)
    chex.assert_trees_all_equal(nets.to_bfloat16(net, params), params)
    chex.assert_type(jax.tree.leaves(nets.to_bfloat16(net, params)), jnp.float32)


@pytest.mark.parametrize("wrong", [
    lambda params: None, lambda params: params["stem"], lambda params: params | {"more": jnp.zeros(2)},
    lambda params: {name: params[name] for name in params if name != "policy"},
    lambda params: jax.tree.map(lambda x: 0.5, params), lambda params: jax.tree.leaves(params),
])  # fmt: skip
def test_other_parameters_are_refused(wrong):
    _, net, params = built("resnet")
    with pytest.raises(ValueError, match="not a dictionary of this network's arrays, block_0, .*give those that came"):
        nets.to_bfloat16(net, wrong(params))


def test_another_function_is_refused():
    with pytest.raises(ValueError, match="the network is a function: give one that jaxzero.nets has built"):
        nets.to_bfloat16(lambda params, seen: seen, {})


# --- a trained network -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained():
    """The small network that comes with jaxzero, as it was trained and in bfloat16, with its weights for each."""
    game, file = games.from_pgx("connect_four"), weights.trained("connect_four_small")
    net, params, _ = weights.load(file, game)
    half, same, _ = weights.load(file, game, dtype=jnp.bfloat16)
    chex.assert_trees_all_equal(same, params)
    return game, outcome_mistakes.load(game, POSITIONS).state, (net, params), (half, nets.to_bfloat16(half, params))


def test_a_trained_network_answers_nearly_the_same_in_bfloat16(trained):
    game, state, (net, params), (half, rounded) = trained
    seen, legal = jax.vmap(game.observe)(state), jax.vmap(game.legal)(state)
    (logits, value), (near, close) = jax.jit(net)(params, seen), jax.jit(half)(rounded, seen)
    first = lambda logits: jnp.where(legal, logits, -jnp.inf).argmax(1)
    other, distance = float((first(logits) != first(near)).mean()), float(jnp.abs(value - close).mean())
    print(f"\n{len(seen)} positions: another move first in {other:.2%}, values {distance:.4f} apart")
    assert len(seen) == 1144 and other <= 0.01 and 0 < distance <= 0.01  # 0.17 % and 0.0033


@pytest.mark.slow
@pytest.mark.optimised
def test_and_after_a_search(trained):
    game, state, (net, params), (half, rounded) = trained
    keys = jax.random.split(jax.random.key(0), 1144)
    search = lambda net: jax.jit(jz.gumbel(models.perfect(game, net), 32, gumbel_scale=0.0))
    whole, near = search(net)(params, keys, state), search(half)(rounded, keys, state)
    other = float((whole.action != near.action).mean())
    distance = float(jnp.abs(whole.value - near.value).mean())
    print(f"\n32 simulations: another move in {other:.2%}, values {distance:.4f} apart")
    assert 0 < other <= 0.03 and distance <= 0.01  # 0.79 % and 0.0043


# --- the program -----------------------------------------------------------------------------------------------------


def sized(shape):
    return "x".join(map(str, shape))


def roundings(text):
    """How often an array of each shape is converted from float32 to bfloat16."""
    same = r"stablehlo\.convert %\S+ : \(tensor<([\dx]+)xf32>\) -> tensor<\1xbf16>"
    return collections.Counter(re.findall(same, text))


@pytest.mark.parametrize("build", [jz.gumbel, pytest.param(jz.alphazero, marks=pytest.mark.slow)])
def test_a_search_rounds_no_weights(build):
    """Before XLA has changed it: for CPUs, which have no such arithmetic, it puts conversions in by itself."""
    game, net, params = built("resnet")
    rounded, keys = nets.to_bfloat16(net, params), jax.random.split(jax.random.key(0), 5)
    policy, state = jax.jit(build(models.perfect(game, net), 4)), jax.vmap(game.init)(keys)
    text = lambda params: policy.lower(params, keys, state).as_text()
    halves = [x for x in jax.tree.leaves(rounded) if x.dtype == jnp.bfloat16]
    once = collections.Counter(sized(x.shape) for x in halves)
    seen = {sized((5, *game.observation_shape)): 2}  # at the root, and in the loop
    assert roundings(text(params)) == once + once + collections.Counter(seen), "the checker finds what it looks for"
    assert roundings(text(rounded)) == seen


@pytest.mark.parametrize("dtype", [None, jnp.bfloat16])
def test_the_tower_is_one_convolution_per_layer_channels_last(dtype):
    game, net, params = built("resnet", dtype)
    text = jax.jit(net).lower(nets.to_bfloat16(net, params), observations()).as_text()
    assert text.count("stablehlo.convolution(") == 1 + 2 * 2
    assert text.count("dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]") == 1 + 2 * 2
    assert "stablehlo.transpose" not in text
    turned = jax.jit(lambda x: jnp.moveaxis(x, 3, 1)).lower(observations()).as_text()
    assert "stablehlo.transpose" in turned, "it would be found"
