"""Files of networks whose model is learned: what comes back is what was saved, or one sentence."""

import inspect
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets import weights
from jaxzero.nets.files import learned_weights, params_file
from jaxzero.nets.files.learned_weights import build_action_head, build_learned, load_learned, save_learned
from jaxzero.nets.files.safetensors_file import WeightsError
from jaxzero.nets.muzero import scalar_heads

BOTH = {"width": 5, "projection": 2, "normalisation": "min_max", "squash": True}
MLP = {
    "kind": "muzero_mlp",
    "value": {"kind": "hl_gauss", "bins": 7, "limit": 2, "sigma": 0.5, "transform": "sqrt"},
    "reward": {"kind": "two_hot", "bins": 5, "limit": 1.5},
    **BOTH,
    "embedding": 4,
    "depth": 2,
}
PLANES = {"kind": "muzero_planes", "value": {"kind": "win_draw_loss"}, "reward": {"kind": "bounded"}, **BOTH}
PLANES |= {"channels": 3, "blocks": 1, "normalisation": "layer", "squash": False, "projection": 0}
TASKS = {"muzero_mlp": (MLP, (2, 3), 3), "muzero_planes": (PLANES, (3, 4, 2), 5)}


def told(network=MLP, shape=(2, 3), num_actions=3):
    environment = {"id": "somewhere", "observation_shape": shape, "num_actions": num_actions}
    return {"environment": environment, "network": network, "seed": 0}


@pytest.fixture(scope="module")
def built():
    return {
        name: build_learned(network, shape, num_actions, jax.random.key(0))
        for name, (network, shape, num_actions) in TASKS.items()
    }


@pytest.mark.parametrize("name", TASKS)
def test_what_is_loaded_is_what_was_built(name, built, tmp_path):
    (network, params), (_, shape, _) = built[name], TASKS[name]
    params = jax.tree.map(lambda x: x + 0.25, params)
    save_learned(tmp_path / "file", params, told(*TASKS[name]))
    loaded, again, about = load_learned(tmp_path / "file")
    assert about == json.loads(json.dumps(told(*TASKS[name]))) == params_file.read_about(tmp_path / "file")
    jax.tree.map(np.testing.assert_array_equal, again, params)
    observation = np.random.default_rng(0).normal(size=(2, *shape), scale=4).astype(np.float32)

    def said(network):
        state = network.represent(params, observation)
        new, reward = network.dynamics(params, state, jnp.array([0, 2]))
        return new, network.reward.decode(reward), network.value.decode(network.predict(params, new)[1])

    jax.tree.map(np.testing.assert_array_equal, said(loaded), said(network))


def test_heads_and_arguments_are_those_described(built):
    network, params = built["muzero_mlp"]
    value, reward = nets.hl_gauss(7, 2.0, 0.5, nets.sqrt_transform), nets.two_hot(5, 1.5)
    output, target = jnp.linspace(-1.0, 2.0, 7), jnp.float32(1.7)
    assert network.value.loss(output, target) == value.loss(output, target)
    assert network.reward.loss(output[:5], target) == reward.loss(output[:5], target)
    arguments = dict(BOTH, embedding=4, depth=2, value=value, reward=reward, key=jax.random.key(0))
    ours, expected = nets.muzero_mlp((2, 3), 3, **arguments)
    jax.tree.map(np.testing.assert_array_equal, params, expected)
    observation = jnp.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_array_equal(network.represent(params, observation), ours.represent(params, observation))


@pytest.mark.parametrize("kinds", [learned_weights.KINDS, learned_weights.HEADS])
def test_a_description_says_all_arguments(kinds):
    """So that a default that changes changes no file."""
    for name, kind in kinds.items():
        build = getattr(nets, name)
        arguments = set(inspect.signature(build).parameters) - {"observation_shape", "num_actions", "key"}
        assert build is kind.build and set(kind.required) | set(kind.optional) == arguments


def test_what_may_be_left_out_stays_as_it_is():
    """Files rely on it: these defaults are never to change, and an argument with another default is required."""
    defaults = lambda build: {name: p.default for name, p in inspect.signature(build).parameters.items()}
    assert defaults(nets.hl_gauss)["sigma"] == 0.75 and defaults(nets.hl_gauss)["transform"] is scalar_heads.symlog
    assert defaults(nets.two_hot)["transform"] is scalar_heads.sqrt_transform
    for build in (nets.muzero_mlp, nets.muzero_planes):
        assert defaults(build)["squash"] is False
    for build in (nets.muzero_planes, nets.stochastic_planes):
        assert defaults(build)["tower"] == "convolutions"
    assert defaults(nets.muzero_mlp)["window"] == 0 and defaults(nets.muzero_mlp)["channels"] == 64
    assert defaults(nets.muzero_mlp)["policy"] is None
    optional = {name: set(kind.optional) for name, kind in learned_weights.KINDS.items()}
    assert optional == {
        "muzero_mlp": {"squash", "window", "channels", "policy"}, "muzero_planes": {"squash", "tower"},
        "stochastic_mlp": set(), "stochastic_planes": {"tower"},
    }  # fmt: skip


def test_rounded_weights_come_back_in_float32(built, tmp_path):
    params = jax.tree.map(lambda x: x.astype(jnp.bfloat16), built["muzero_planes"][1])
    save_learned(tmp_path / "file", params, told(*TASKS["muzero_planes"]))
    _, again, _ = load_learned(tmp_path / "file")
    assert {leaf.dtype for leaf in jax.tree.leaves(again)} == {jnp.dtype(jnp.float32)}
    jax.tree.map(np.testing.assert_array_equal, again, params)


BAD_ARGUMENTS = {
    "width": (0, 65_537, 1.0, True, None, "1", [1], 10**400),
    "depth": (0, 33),
    "embedding": (0, 65_537),
    "projection": (-1, 65_537, False),
    "squash": (0, 1, None, "true"),
    "normalisation": ("batch", None, ["layer"], 0),
    "value": (
        *(None, "bounded", [], {}, {"kind": "normal"}, {"kind": ["bounded"]}, {"kind": "bounded", "bins": 3}),
        *({"kind": "two_hot", "bins": 1, "limit": 1}, {"kind": "two_hot", "bins": 4097, "limit": 1}),
        *({"kind": "two_hot", "bins": 5, "limit": limit} for limit in (0, -1.0, 10**400, 2e6, True, "1")),
        {"kind": "two_hot", "bins": 5, "limit": 1, "sigma": 1.0},
        {"kind": "hl_gauss", "bins": 5, "limit": 1, "sigma": 0},
        {"kind": "hl_gauss", "bins": 5, "limit": 1, "transform": "log"},
        {"kind": "hl_gauss", "bins": 5},
    ),
}


@pytest.mark.parametrize("name", BAD_ARGUMENTS)
def test_arguments_out_of_bounds(name, built, tmp_path):
    for value in BAD_ARGUMENTS[name]:
        with pytest.raises(WeightsError, match=f"cannot be written: its network has {name}=.*: use "):
            save_learned(tmp_path / "file", built["muzero_mlp"][1], told(MLP | {name: value}))
        with pytest.raises(ValueError, match=f"^build_learned: its network has {name}="):
            build_learned(MLP | {name: value}, (2, 3), 3, jax.random.key(0))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "does not say which environment and network"),
        ({"environment": told()["environment"]}, "does not say which environment and network"),
        ({"network": MLP}, "does not say which environment and network"),
        ({"game": "tic_tac_toe", "network": MLP}, "does not say which environment and network"),
        (told(shape=[0]), "environment is .*: give id, observation_shape"),
        (told(shape="2"), "environment is .*: give id, observation_shape"),
        (told(shape=[1] * 9), "up to 8, each 1 to 65536"),
        (told(num_actions=0), "num_actions, 1 to 65536"),
        *(
            (
                told() | {"environment": told()["environment"] | {"discount": discount}},
                "its discount is .*: use a number",
            )
            for discount in (None, "1", 0, 7, True)
        ),
        (told() | {"environment": {"id": 3, "observation_shape": [2, 3], "num_actions": 3}}, "give id"),
        (told(MLP | {"kind": "mlp"}), "of the kind 'mlp': use one of muzero_mlp, muzero_planes"),
        (told({name: x for name, x in MLP.items() if name != "depth"}), "besides kind, give .*depth"),
        (told(MLP | {"dtype": "float32"}), "besides kind, give value, reward"),
        (told(MLP | {"depth": 32}), "too few"),
        (told(MLP | {"width": 6}), r"'dynamics.dense_0.bias' is of shape \[5\]"),
        (told(MLP | {"projection": 0}), "has no such array"),
        (told(shape=[7]), r"representation.dense_0.kernel' is of shape \[6, 5\].* has \[7, 5\]"),
        (told(num_actions=4), "is of shape"),
        (told(PLANES), "it has 28 arrays only|cannot be built for observations of shape"),
        (told(MLP | {"width": 65_536}), "cannot be built .* parameters: use smaller layers"),
    ],
)
def test_a_description_of_another_network(about, message, built, tmp_path):
    with pytest.raises(WeightsError, match=message):
        save_learned(tmp_path / "file", built["muzero_mlp"][1], about)
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_and_one_that_is_there(built, tmp_path):
    file, params = tmp_path / "file", built["muzero_mlp"][1]
    save_learned(file, params, told())
    save_learned(file, params, told())  # the same content
    with pytest.raises(WeightsError, match="overwrite=True"):
        save_learned(file, params, told() | {"seed": 1})
    save_learned(file, params, told() | {"seed": 1}, overwrite=True)
    assert load_learned(file)[2]["seed"] == 1
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(WeightsError, match="cannot be read"):
        load_learned(file)


def test_a_file_of_the_other_sort(built, tmp_path):
    """Neither loader takes the other's files."""
    save_learned(tmp_path / "learned", built["muzero_mlp"][1], told())
    with pytest.raises(WeightsError, match="is for an environment: use nets.load_learned, and models.learned"):
        weights.load(tmp_path / "learned", games.from_pgx("tic_tac_toe"))
    with pytest.raises(WeightsError, match="does not say which environment and network"):
        load_learned(weights.trained("tic_tac_toe"))


@pytest.mark.parametrize("network", [
    MLP | {"width": 1024, "embedding": 1024, "depth": 32}, PLANES | {"channels": 128, "blocks": 40}
])  # fmt: skip
def test_large_networks_are_refused_soon(network):
    """Arrays that a hostile file does have, in number; nothing is computed to find that their shapes are others."""
    there = {f"a{i}": (1,) for i in range(1000)}
    began = time.thread_time()
    with pytest.raises(WeightsError, match="not there"):
        learned_weights._fitting(told(network, [3, 4, 2]), there)
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("low", [[10**400], [1e39], [float("nan")], [True], []])
def test_bounds_of_actions_are_numbers(low):
    head = {"kind": "gaussian", "low": low, "high": [1.0]}
    with pytest.raises(ValueError, match="its network has low=.*: use a list of up to 64 numbers"):
        build_action_head(head)


def test_what_is_no_description_is_named():
    with pytest.raises(ValueError, match="build_learned: the network is 'muzero_mlp': give a dictionary"):
        build_learned("muzero_mlp", (4,), 2, jax.random.key(0))
