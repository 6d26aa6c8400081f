"""Files of weights: to the bit what was saved, or one sentence; and that whatever is in the file."""

import hashlib
import json
import math
import os
import pickle
import random
import re
import resource
import struct
import time
import tracemalloc
import zipfile

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets import weights
from jaxzero.nets.files import params_file
from jaxzero.nets.weights import WeightsError


def board_game(name="board", shape=(3, 3, 2), num_actions=5, num_players=2):
    """A network asks a game for its sizes only."""
    nothing = [None] * (len(games.Game._fields) - 4)
    return games.Game(name, num_actions, num_players, shape, *nothing)


GAME = board_game()
MLP = {"kind": "mlp", "hidden": [4, 3]}
ABOUT = {
    "game": "board",
    "network": MLP,
    "minutes": 1.5,
    "command": "train 'ü' \u2713",
    "results": [1, None, {"a": True}],
}


def mlp(dtype=jnp.float32, seed=0):
    _, params = nets.mlp(GAME, (4, 3), key=jax.random.key(seed))
    return jax.tree.map(lambda x: x.astype(dtype), params)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """The bytes of a file, and its weights."""
    file, params = tmp_path_factory.mktemp("good") / "weights.safetensors", mlp()
    weights.save(file, params, ABOUT)
    return file.read_bytes(), params


def split(data):
    """Metadata, entries and arrays of a file."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    return header.pop("__metadata__"), header, data[8 + length :]


def joined(header, data):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def signed(metadata, entries, data):
    """A file by somebody who knows the format, checksums included."""
    metadata = {name: text for name, text in metadata.items() if name != "sha256"}
    metadata |= {"data": hashlib.sha256(data).hexdigest()}
    text = json.dumps([metadata, entries], sort_keys=True, separators=(",", ":"))
    return joined({"__metadata__": metadata | {"sha256": hashlib.sha256(text.encode()).hexdigest()}} | entries, data)


def signed_about(data, about):
    metadata, entries, arrays = split(data)
    return signed(metadata | {"about": about if isinstance(about, str) else json.dumps(about)}, entries, arrays)


def refused(file, message, game=GAME):
    """`load` raises one sentence that begins with the file's name."""
    with pytest.raises(WeightsError, match=message or ".") as raised:
        weights.load(file, game)
    text = str(raised.value)
    assert text.startswith(f"{file} cannot be read: ") and len(text) < 500 + len(str(file))
    assert text.isprintable() and text.isascii(), "it can be shown on any terminal"


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_a_round_trip_is_exact(tmp_path, dtype):
    file, params = tmp_path / "weights.safetensors", mlp(dtype)
    params["value"]["bias"] = jnp.array([-0.0], dtype)
    params["dense_1"] = mlp(jnp.bfloat16)["dense_1"]  # a mixture stands in another order in the file
    weights.save(file, params, ABOUT)
    net, back, about = weights.load(file, GAME)
    chex.assert_trees_all_equal_structs(back, params)
    chex.assert_trees_all_equal_dtypes(back, params)
    assert [np.asarray(x).tobytes() for x in jax.tree.leaves(back)] == [
        np.asarray(x).tobytes() for x in jax.tree.leaves(params)
    ]
    assert about == ABOUT == weights.read_about(file)
    assert os.listdir(tmp_path) == ["weights.safetensors"]


@pytest.mark.parametrize(
    ("network", "build"),
    [
        (MLP, lambda game, key: nets.mlp(game, hidden=(4, 3), key=key)),
        ({"kind": "mlp", "hidden": []}, lambda game, key: nets.mlp(game, hidden=(), key=key)),
        ({"kind": "resnet", "channels": 4, "blocks": 2}, lambda game, key: nets.resnet(game, 4, 2, key=key)),
        (
            {"kind": "windows", "window": 2, "channels": 4, "hidden": [5]},
            lambda game, key: nets.windows(game, 2, 4, (5,), key=key),
        ),
        (
            {"kind": "windows", "window": 2, "channels": 4, "hidden": [5], "stone_parity": True},
            lambda game, key: nets.windows(game, 2, 4, (5,), stone_parity=True, key=key),
        ),
        (
            {"kind": "resnet", "channels": 4, "blocks": 1, "stone_parity": True},
            lambda game, key: nets.resnet(game, 4, 1, stone_parity=True, key=key),
        ),
        (
            {"kind": "resnet", "channels": 4, "blocks": 1, "dtype": "bfloat16"},
            lambda game, key: nets.resnet(game, 4, 1, key=key, dtype=jnp.bfloat16),
        ),
    ],
    ids=["mlp", "linear", "resnet", "windows", "windows, parity", "resnet, parity", "resnet in bfloat16"],
)
def test_the_network_is_the_one_that_was_saved(tmp_path, network, build):
    file, (net, params) = tmp_path / "weights", build(GAME, jax.random.key(3))
    weights.save(file, params, {"game": "board", "network": network})
    again, back, _ = weights.load(file, GAME)
    chex.assert_trees_all_equal(back, params)
    seen = jax.random.normal(jax.random.key(1), (2, 3, 3, 2))
    chex.assert_trees_all_equal(jax.jit(again)(back, seen), jax.jit(net)(params, seen))


@pytest.mark.parametrize("kind", ["mlp", "windows", "resnet"])
def test_a_file_says_whether_positions_are_seen_in_canonical_form(tmp_path, kind):
    game = games.hex_game(3)
    sizes = {
        "mlp": {"hidden": [4]},
        "windows": {"window": 2, "channels": 4, "hidden": [4]},
        "resnet": {"channels": 4, "blocks": 1},
    }[kind]
    net, params = getattr(nets, kind)(game, **sizes, canonical=True, key=jax.random.key(3))
    about = {"game": game.id, "network": {"kind": kind, **sizes, "canonical": True}}
    weights.save(tmp_path / "weights", params, about, game=game)
    again, back, _ = weights.load(tmp_path / "weights", game)
    seen = jax.random.bernoulli(jax.random.key(1), 0.4, (6, *game.observation_shape)).astype(jnp.float32)
    chex.assert_trees_all_equal(jax.jit(again)(back, seen), jax.jit(net)(params, seen))
    other = games.from_pgx("tic_tac_toe")._replace(id="hex_3x3", observation_shape=(3, 3, 4), num_actions=10)
    with pytest.raises(weights.WeightsError, match="names none: leave it out"):
        weights.load(tmp_path / "weights", other)


@pytest.mark.parametrize("saved, asked, computes", [
    ("float32", jnp.bfloat16, "bfloat16"), ("bfloat16", jnp.float32, "float32"),
    ("bfloat16", None, "bfloat16"), (None, None, "float32"), (None, jnp.bfloat16, "bfloat16"),
])  # fmt: skip
def test_it_computes_in_the_type_that_is_asked_for(tmp_path, saved, asked, computes):
    file, params = tmp_path / "weights", mlp()
    weights.save(file, params, ABOUT | {"network": MLP | ({} if saved is None else {"dtype": saved})})
    net, back, about = weights.load(file, GAME, dtype=asked)
    chex.assert_trees_all_equal(back, params)
    assert about["network"].get("dtype") == saved, "what the file says is what it says"
    expected, _ = nets.mlp(GAME, (4, 3), key=jax.random.key(0), dtype=jnp.dtype(computes))
    seen = jax.random.normal(jax.random.key(1), (2, 3, 3, 2))
    chex.assert_trees_all_equal(net(params, seen), expected(params, seen))
    rounded = nets.to_bfloat16(net, back)["dense_0"]["kernel"].dtype
    assert rounded == computes


@pytest.mark.parametrize("dtype", ["bfloat16", jnp.float16, jnp.int8, 16])
def test_no_network_computes_in_another_type(tmp_path, dtype):
    with pytest.raises(ValueError, match="use jnp.float32, jnp.bfloat16, or None for the saved type"):
        weights.load(tmp_path / "weights", GAME, dtype=dtype)


@pytest.mark.slow
def test_loading_compiles_nothing(good, tmp_path):
    data, _ = good
    (tmp_path / "file").write_bytes(data)
    events = []
    jax.clear_caches()
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    try:
        weights.load(tmp_path / "file", GAME)
        loading = list(events)
        jax.jit(lambda x: x + 1)(1.0)
    finally:
        jax.monitoring.clear_event_listeners()
    compiles = lambda names: [name for name in names if "backend_compile" in name]
    assert compiles(events) and not compiles(loading)


def test_safetensors_reads_the_same(good, tmp_path):
    """The format's own package agrees on every array and on the metadata."""
    safetensors = pytest.importorskip("safetensors")
    data, params = good
    (tmp_path / "file").write_bytes(data)
    with safetensors.safe_open(tmp_path / "file", framework="np") as file:
        theirs = {name: file.get_tensor(name) for name in file.keys()}
        assert json.loads(file.metadata()["about"]) == ABOUT
    ours = {f"{layer}.{name}": array for layer, part in params.items() for name, array in part.items()}
    assert theirs.keys() == ours.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(theirs[name], array, strict=True)
    half = tmp_path / "half"
    weights.save(half, mlp(jnp.bfloat16), ABOUT)
    described = {name: (entry["dtype"], entry["shape"]) for name, entry in safetensors.deserialize(half.read_bytes())}
    assert described == {name: ("BF16", list(array.shape)) for name, array in ours.items()}


def test_what_safetensors_wrote_is_not_taken_for_ours(good, tmp_path):
    from_numpy = pytest.importorskip("safetensors.numpy")
    from_numpy.save_file({"a": np.zeros(3, np.float32)}, tmp_path / "file", {"about": "{}"})
    refused(tmp_path / "file", "not of the kind 'jaxzero weights 1'")


def test_the_same_content_makes_the_same_file_and_another_is_not_overwritten(good, tmp_path):
    data, params = good
    file = tmp_path / "weights"
    weights.save(file, params, ABOUT)
    assert file.read_bytes() == data
    before = file.stat().st_mtime_ns
    weights.save(file, params, ABOUT)
    assert file.stat().st_mtime_ns == before, "left alone"
    with pytest.raises(WeightsError, match=rf"{file} cannot be written: .*other content: .*overwrite=True"):
        weights.save(file, mlp(seed=1), ABOUT)
    with pytest.raises(WeightsError, match="other content"):
        weights.save(file, params, ABOUT | {"minutes": 2})
    assert file.read_bytes() == data
    weights.save(file, mlp(seed=1), ABOUT, overwrite=True)
    assert file.read_bytes() != data
    file.write_bytes(data[:-1])
    with pytest.raises(WeightsError, match="other content"):
        weights.save(file, params, ABOUT)


@pytest.mark.parametrize(
    ("params", "about", "message"),
    [
        ({"a": jnp.ones(2, jnp.int32)}, ABOUT, "'a' is of type int32: use one of float32, bfloat16, float16"),
        ({"a": np.ones(2)}, ABOUT, "'a' is of type float64"),
        ({"a": np.ones(2, ">f4")}, ABOUT, "'a' is of type >f4"),
        ({"a": 1.0}, ABOUT, "'a' is of type float"),
        ({"a": jax.random.key(0)}, ABOUT, "'a' is of type key<fry>"),
        ({"a": {"b": jnp.array([1.0, jnp.nan])}}, ABOUT, r"'a\.b' has numbers that are not finite"),
        ({"a": jnp.array(-jnp.inf, jnp.bfloat16)}, ABOUT, "'a' has numbers that are not finite"),
        ({"a.b": jnp.ones(1), "a": {"b": jnp.ones(1)}}, ABOUT, "different names"),
        ({"__metadata__": jnp.ones(1)}, ABOUT, "different names"),
        (jnp.ones(1), ABOUT, "different names"),
        (mlp(), [ABOUT], "of type list: give a dictionary"),
        (mlp(), ABOUT | {"x": np.ones(1)}, "is not JSON .*use text, numbers"),
        (mlp(), ABOUT | {"x": math.nan}, "is not JSON"),
        (mlp(), ABOUT | {1: 1, "1": 2}, "is not JSON"),
        (mlp(), {"network": MLP}, "does not say which game"),
        (mlp(), {"game": "board"}, "does not say which game and network"),
        (mlp(), {"game": "board", "network": {"kind": "transformer"}}, "kind 'transformer': use one of mlp, resnet"),
        (mlp(), {"game": "board", "network": {"kind": "mlp"}}, "besides kind, give hidden"),
        (mlp(), ABOUT | {"x": "x" * 10**6}, "it would have 1,00.,... .* bytes, more than"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_not_saved(tmp_path, params, about, message):
    with pytest.raises(WeightsError, match=message):
        weights.save(tmp_path / "weights", params, about)
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    ("about", "game", "message"),
    [
        (ABOUT | {"network": {"kind": "mlp", "hidden": [4, 5]}}, GAME, r"written: 'dense_1.bias' is of shape \[3\]"),
        (ABOUT, board_game(num_actions=6), r"written: 'policy.bias' is of shape \[5\], but .* has \[6\]"),
        (ABOUT, board_game("chess"), "written: it is for the game 'board', not for 'chess'"),
        (ABOUT, "board", r"weights\.save: the game is a str"),
    ],
)
def test_what_the_game_cannot_load_is_not_saved(tmp_path, about, game, message):
    with pytest.raises(ValueError, match=message):
        weights.save(tmp_path / "weights", mlp(), about, game=game)
    assert not os.listdir(tmp_path)
    weights.save(tmp_path / "weights", mlp(), ABOUT, game=GAME)
    assert weights.load(tmp_path / "weights", GAME)[2] == ABOUT


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, monkeypatch):
    with pytest.raises(WeightsError, match="cannot be written: No such file or directory"):
        weights.save(tmp_path / "no" / "weights", mlp(), ABOUT)
    (tmp_path / "folder").mkdir()
    for overwrite in (False, True):
        with pytest.raises(WeightsError, match="cannot be written: Is a directory"):
            weights.save(tmp_path / "folder", mlp(), ABOUT, overwrite)

    def full(*args):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(params_file.os, "fsync", full)
    (tmp_path / "weights").write_text("old")
    with pytest.raises(WeightsError, match="cannot be written: No space left on device"):
        weights.save(tmp_path / "weights", mlp(), ABOUT, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["folder", "weights"]
    assert (tmp_path / "weights").read_text() == "old"


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (board_game("chess"), "for the game 'board', not for 'chess'"),
        (board_game(num_actions=6), r"'policy.bias' is of shape \[5\], but the described network has \[6\]"),
        (board_game(shape=(3, 3, 3)), r"'dense_0.kernel' is of shape \[18, 4\], but .* has \[27, 4\]"),
        (board_game(num_players=3), r"'value.bias' is of shape \[1\], but .* has \[3\]"),
    ],
)
def test_another_game(good, tmp_path, game, message):
    (tmp_path / "file").write_bytes(good[0])
    refused(tmp_path / "file", message, game)


def test_weights_that_do_not_fit_are_not_read(good, tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(good[0])
    monkeypatch.setattr(params_file, "read_arrays", None)
    refused(tmp_path / "file", r"'policy.bias' is of shape \[5\]", board_game(num_actions=6))


def test_the_game_is_a_game(good, tmp_path):
    (tmp_path / "file").write_bytes(good[0])
    with pytest.raises(ValueError, match=r"weights\.load: the game is a str"):
        weights.load(tmp_path / "file", "board")


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ({"kind": "mlp", "hidden": [4, 5]}, r"'dense_1.bias' is of shape \[3\], but .* has \[5\]"),
        ({"kind": "mlp", "hidden": [4]}, r"'policy.kernel' is of shape \[3, 5\], but .* has \[4, 5\]"),
        ({"kind": "mlp", "hidden": [4, 3, 3]}, "'dense_2.bias' is not there"),
        ({"kind": "resnet", "channels": 4, "blocks": 1}, "is not there, but the described network has"),
        ({"kind": "mlp", "hidden": [4] * 5}, "has 8 arrays only: too few"),
        ({"kind": "resnet", "channels": 4, "blocks": 3}, "has 8 arrays only: too few"),
        ({"kind": "windows", "window": 2, "channels": 4, "hidden": [4] * 5}, "has 8 arrays only: too few"),
        ({"kind": "mlp", "hidden": [4] * 33}, "hidden=.*: use a list of up to 32, each 1 to 65536"),
        ({"kind": "windows", "window": 2, "channels": 4, "hidden": [4] * 33}, "use a list of up to 32"),
        ({"kind": "resnet", "channels": 4, "blocks": 41}, "blocks=41: use 1 to 40"),
        ({"kind": "mlp", "hidden": [10**9]}, "use a list of"),
        ({"kind": "mlp", "hidden": [0]}, "use a list of"),
        ({"kind": "mlp", "hidden": [True]}, "use a list of"),
        ({"kind": "mlp", "hidden": [4.0]}, "use a list of"),
        ({"kind": "mlp", "hidden": "44"}, "use a list of"),
        ({"kind": "mlp", "hidden": [4, 3], "key": 1}, "besides kind, give hidden"),
        ({"kind": "mlp", "hidden": [4, 3], "game": 1}, "besides kind, give hidden"),
        ({"kind": "resnet", "channels": 10**9, "blocks": 1}, "channels=1000000000: use 1 to 4096"),
        ({"kind": "resnet", "channels": 4, "blocks": 10**9}, "blocks=1000000000: use 1 to 40"),
        ({"kind": "resnet", "channels": 4, "blocks": -1}, "blocks=-1: use 1 to 40"),
        ({"kind": "resnet", "channels": 4, "blocks": 1, "dtype": "int8"}, "dtype='int8': use float32 or bfloat16"),
        ({"kind": "resnet", "channels": 4, "blocks": 1, "dtype": None}, "use float32 or bfloat16"),
        ({"kind": ["mlp"], "hidden": [4, 3]}, "use one of mlp, resnet"),
        ({"kind": "__class__"}, "use one of mlp, resnet"),
        ("mlp", "does not say which game and network"),
    ],
)
def test_another_network_than_it_says(good, tmp_path, network, message):
    (tmp_path / "file").write_bytes(signed_about(good[0], ABOUT | {"network": network}))
    refused(tmp_path / "file", message)


def test_a_resnet_for_a_game_without_a_board(good, tmp_path):
    about = ABOUT | {"network": {"kind": "resnet", "channels": 4, "blocks": 1}}
    (tmp_path / "file").write_bytes(signed_about(good[0], about))
    refused(tmp_path / "file", "cannot be built for board: resnet needs observations", board_game(shape=(18,)))


def changed(good, change):
    """The file of somebody who changes entries or arrays and knows the checksums."""
    metadata, entries, data = split(good[0])
    data = bytearray(data)
    change(entries, data)
    return signed(metadata, entries, bytes(data))


def appended(name):
    def change(entries, data):
        entries[name] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
        data += b"\0\0\0\0"

    return change


def entry(**values):
    return lambda entries, data: entries["policy.bias"].update(values)


def not_finite(bits):
    return lambda entries, data: data.__setitem__(slice(0, 4), struct.pack("<I", bits))


def missing(entries, data):
    last = max(entries, key=lambda name: entries[name]["data_offsets"])
    del data[entries.pop(last)["data_offsets"][0] :]


def half_the_type(entries, data):
    entries["policy.bias"]["dtype"] = "F16"
    entries["policy.bias"]["shape"] = [10]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (missing, "'value.kernel' is not there, but the described network has"),
        (appended("more.bias"), "'more.bias' is of shape .*has no such array"),
        (appended("x" * 1000), "'x+\\.\\.\\. is of shape .*has no such array"),
        (appended("\ud800\x1b[2J"), r"'\\ud800\\x1b\[2J' is of shape"),
        (not_finite(0x7FC00000), "'dense_0.bias' has numbers that are not finite"),
        (not_finite(0xFF800000), "'dense_0.bias' has numbers that are not finite"),
        (half_the_type, "'policy.bias' is of shape .10., but"),
        (entry(dtype="I32"), "'policy.bias' is of type 'I32': use one of F32, BF16, F16"),
        (entry(dtype=["F32"]), "is of type .'F32'."),
        (entry(shape=[6]), "for the shape .6."),
        (entry(shape=[-5]), "no array can have these"),
        (entry(shape=[5.0]), "no array can have these"),
        (entry(shape=[True]), "no array can have these"),
        (entry(shape=[10**9] * 8), "for the shape"),
        (entry(shape=[1] * 9), "no array can have these"),
        (entry(shape=5), "no array can have these"),
        (entry(shape=[[5]]), "no array can have these"),
        (entry(data_offsets=[-20, 0]), "no array can have these"),
        (entry(data_offsets=[0, 20]), "begins at byte"),
        (entry(data_offsets=[10**9, 10**9 + 20]), "no array can have these"),
        (entry(data_offsets=[20, 0]), "for the shape"),
        (entry(data_offsets=[20]), "no array can have these"),
        (entry(data_offsets="ab"), "no array can have these"),
        (entry(more=1), "which is not an array"),
        (lambda entries, data: entries.update({"policy.bias": None}), "'policy.bias' is described by None"),
        (lambda entries, data: data.extend(b"tail"), "bytes instead of"),
        (lambda entries, data: data.clear(), "bytes instead of"),
    ],
)  # fmt: skip
def test_other_arrays_than_it_says(good, tmp_path, change, message):
    (tmp_path / "file").write_bytes(changed(good, change))
    refused(tmp_path / "file", message)


def headers(good):
    """Files that begin wrongly, and what is said of them."""
    metadata, entries, data = split(good[0])
    whole = {"__metadata__": metadata} | entries
    text = json.dumps(whole)
    twice = text[:-1] + ', "policy.bias": ' + json.dumps(entries["policy.bias"]) + "}"
    yield joined(twice.encode(), data), "its header is not JSON"
    yield joined(text.replace('"shape": [5]', '"shape": [5], "shape": [5]').encode(), data), "its header is not JSON"
    yield joined(text.replace("[5]", "[NaN]").encode(), data), "its header is not JSON"
    yield joined(text.replace("[5]", "[1e999]").encode(), data), "its header is not JSON"
    yield joined(text.replace("[5]", f"[{'9' * 5000}]").encode(), data), "its header is not JSON"
    yield joined(b"[" * 100_000, data), "its header is not JSON"
    yield joined(b'{"a":' * 100_000, data), "its header is not JSON"
    yield joined(text.encode("utf-16"), data), "its header is not JSON"
    yield joined(b"\xef\xbb\xbf" + text.encode(), data), "its header is not JSON"
    yield joined(text[:-1].encode(), data), "its header is not JSON"
    yield joined(b"[]", data), "its header is not a JSON object"
    yield joined(b"{}", data), "not of the kind"
    yield joined({"__metadata__": [1]} | entries, data), "not of the kind"
    yield joined({"__metadata__": metadata | {"format": "jaxzero weights 2"}} | entries, data), "not of the kind"
    yield joined({"__metadata__": metadata | {"more": "x"}} | entries, data), "checksum differs"
    yield joined({"__metadata__": metadata | {"sha256": None}} | entries, data), "checksum differs"
    yield joined({"__metadata__": {"format": metadata["format"]}} | entries, data), "checksum differs"
    yield signed(metadata | {"about": [1]}, entries, data), "its metadata are not all text"
    for about in ("[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 1}', "", "{", '{"a": -Infinity}'):
        yield signed_about(good[0], about), "its description is not JSON"
    yield signed_about(good[0], "[]"), "its description is not a JSON object"
    yield signed_about(good[0], {}), "does not say which game and network"
    yield struct.pack("<Q", 2**63) + good[0][8:], "header of 9,223,372,036,854,775,808 bytes"
    yield struct.pack("<Q", len(good[0])) + good[0][8:], "not a safetensors file, or it was cut short"
    yield struct.pack("<Q", 0) + good[0][8:], "not a safetensors file, or it was cut short"
    yield joined(b" " * (10**6 + 1), data), "not a safetensors file, or it was cut short"
    yield b"", "it has 0 bytes, and files of weights have 10 to"
    yield b"{" * 9, "it has 9 bytes"
    yield pickle.dumps({"weights": np.zeros(100)}), "not a safetensors file"
    yield bytes(1000), "not a safetensors file"


def test_headers_that_are_wrong(good, tmp_path):
    for data, message in headers(good):
        (tmp_path / "file").write_bytes(data)
        refused(tmp_path / "file", message)


def test_what_is_no_file_of_weights(good, tmp_path):
    refused(tmp_path / "nowhere", "No such file or directory")
    refused(tmp_path, "it is a folder")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", "it is a folder without weights.safetensors, or a device")
    (tmp_path / "weights.safetensors").write_bytes(good[0])  # as in the folder of a run
    assert weights.load(tmp_path, GAME)[2] == weights.read_about(tmp_path / "weights.safetensors")
    assert weights.read_about(tmp_path)["game"] == GAME.id
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("weights.npy", bytes(1000))
    refused(tmp_path / "zip", "not a safetensors file")
    with open(tmp_path / "huge", "wb") as huge:
        huge.truncate(10**9 + 1)  # takes no room
    refused(tmp_path / "huge", "it has 1,000,000,001 bytes")


def test_a_pickle_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "it ran"),)

    (tmp_path / "file").write_bytes(pickle.dumps(Evil()))
    refused(tmp_path / "file", "not a safetensors file")
    assert not (tmp_path / "it ran").exists()


def test_every_flipped_bit_is_found(good, tmp_path):
    """One bit of every byte of the length, the header (description, checksums, blanks) and of some of the weights."""
    data, _ = good
    file, start = tmp_path / "file", 8 + struct.unpack("<Q", data[:8])[0]
    assert start > 1000 and data[start - 1] == ord(" ")
    for place in [*range(start), *range(start, len(data), 7), len(data) - 1]:
        broken = bytearray(data)
        broken[place] ^= 1 << place % 8
        file.write_bytes(broken)
        refused(file, "" if place < start else "its weights are damaged")
        if place >= start:
            assert weights.read_about(file) == ABOUT, "which does not look at the weights"
        elif place % 8 == 0:
            with pytest.raises(WeightsError):
                weights.read_about(file)


def test_every_cut_is_found(good, tmp_path):
    data, _ = good
    for length in [*range(0, len(data), 7), len(data) - 1]:
        (tmp_path / "file").write_bytes(data[:length])
        refused(tmp_path / "file", "")
        with pytest.raises(WeightsError):
            weights.read_about(tmp_path / "file")


def claims(good, network):
    """A file with many empty arrays, which says that it is of this network."""
    metadata, _, _ = split(good[0])
    empty = {f"a{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(400)}
    return signed(metadata | {"about": json.dumps(ABOUT | {"network": network})}, empty, b"")


def test_claims_allocate_nothing(good, tmp_path):
    """A few hundred bytes that speak of petabytes."""
    (tmp_path / "wide").write_bytes(claims(good, {"kind": "mlp", "hidden": [65_536] * 16}))
    (tmp_path / "deep").write_bytes(claims(good, {"kind": "resnet", "channels": 4096, "blocks": 4}))
    (tmp_path / "long").write_bytes(changed(good, entry(shape=[10**9] * 8)))
    (tmp_path / "header").write_bytes(struct.pack("<Q", 2**40) + good[0][8:])
    for name in ("wide", "deep", "long", "header"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
        refused(tmp_path / name, "not there|for the shape|cut short")
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**20
        tracemalloc.start()
        refused(tmp_path / name, "")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 30e6, f"{name}: {peak:,} bytes"


@pytest.mark.parametrize("network", [
    {"kind": "mlp", "hidden": [65_536 - i for i in range(32)]},
    {"kind": "resnet", "channels": 4096, "blocks": 40},
    {"kind": "resnet", "channels": 4096, "blocks": 40, "dtype": "bfloat16"},
])  # fmt: skip
def test_the_largest_networks_are_built_soon(good, tmp_path, network):
    (tmp_path / "file").write_bytes(claims(good, network))
    began = time.thread_time()
    refused(tmp_path / "file", "not there")
    assert time.thread_time() - began < 5


# Values that were ever a surprise to a parser of JSON or of safetensors.
ODD = (
    *(0, 1, -1, 2**31, 2**63, -(2**64), 10**400, 1.5, -0.0, 1e308, True, False, None, "", "F32", "F64", "I8", "mlp"),
    *("\0", "\ud800", "resnet", "kind", "../../etc/passwd", "x" * 5000, {}, {"a": {"b": []}}),
    *([], [[]], [0], [-1], [1, 2, 3], [2**40] * 3, [None]),
)


def odd(rng, depth=0):
    """A random value."""
    if depth < 3 and rng.random() < 0.3:
        many = range(rng.randrange(4))
        names = ("dtype", "shape", "data_offsets", "__metadata__", "about", "network", "kind", "hidden", "a")
        return rng.choice([[odd(rng, depth + 1) for _ in many], {rng.choice(names): odd(rng, depth + 1) for _ in many}])
    return rng.choice(ODD)


def altered(rng, tree):
    """A copy of a JSON value with one thing in it changed, taken away or doubled."""
    tree = json.loads(json.dumps(tree))
    at = tree
    while isinstance(at, dict | list) and at:
        key = rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))
        if rng.random() < 0.4 or not isinstance(at[key], dict | list) or not at[key]:
            change = rng.randrange(4)
            if change == 0:
                del at[key]
            elif change == 1 and isinstance(at, dict):
                at[rng.choice(["a", "dtype", "kind", "blocks", "policy.bias", "\ud800"])] = at[key]
            else:
                at[key] = odd(rng)
            return tree
        at = at[key]
    return odd(rng)


def fuzzed(rng, data):
    """The bytes of a file, and the description that it has if it can be loaded; its weights are the good ones then."""
    metadata, entries, arrays = split(data)
    about = ABOUT
    kind = rng.randrange(9)
    if kind == 0:
        made = rng.randbytes(rng.randrange(300))
        made = joined(made, rng.randbytes(rng.randrange(50))) if rng.random() < 0.5 else made
    elif kind == 1:  # some bytes differ
        made = bytearray(data)
        for _ in range(rng.randrange(1, 9)):
            made[rng.randrange(len(made))] = rng.randrange(256)
    elif kind == 2:  # a piece is missing, or comes again
        a, b, c = sorted(rng.choices(range(len(data) + 1), k=3))
        made = rng.choice([data[:a] + data[b:], data[:b] + data[a:], data[:a] + data[b:c] + data[a:b] + data[c:]])
    elif kind == 3:  # pieces of the header's text differ
        text = json.dumps({"__metadata__": metadata} | entries)
        tokens = re.findall(r'"[^"]*"|[\[\]{}:,]|[-\w.]+', text)
        for _ in range(rng.randrange(1, 4)):
            extra = ("NaN", "-Infinity", "1e999", "-1", "[" * 3000, "{", "}", '"dtype":', "9" * 5000, "null", "\ufeff")
            tokens[rng.randrange(len(tokens))] = rng.choice(tokens) if rng.random() < 0.5 else rng.choice(extra)
        made = joined("".join(tokens).encode(), arrays)
    elif kind == 4:  # any JSON
        made = joined(json.dumps(odd(rng)).encode(), rng.randbytes(rng.randrange(100)))
    elif kind == 5:  # another header, with the old checksums
        made = joined(altered(rng, {"__metadata__": metadata} | entries), arrays)
    elif kind == 6:  # other entries, with the right checksums
        other = altered(rng, entries)
        made = signed(metadata, other if isinstance(other, dict) else {}, arrays)
    elif kind == 7:  # another description, with the right checksums
        about = altered(rng, ABOUT)
        made = signed_about(data, about)
    else:  # another network, with the right checksums
        about = ABOUT | {"network": altered(rng, rng.choice([MLP, {"kind": "resnet", "channels": 4, "blocks": 1}]))}
        made = signed_about(data, about)
    return bytes(made), about


def fuzz(good, file, seeds):
    data, params = good
    loaded, kinds = 0, set()
    for seed in seeds:
        made, about = fuzzed(random.Random(seed), data)
        file.write_bytes(made)
        began = time.thread_time()
        try:
            _, back, said = weights.load(file, GAME)
        except WeightsError as error:
            kinds.add(re.sub(r"[^a-z ]", "", str(error).split(": ", 1)[1])[:20])
            assert str(error).isprintable() and str(error).isascii() and len(str(error)) < 700, seed
        else:
            loaded += 1
            assert said == about, seed
            chex.assert_trees_all_equal(back, params)
        assert time.thread_time() - began < 5, seed  # a pass of the garbage collector fits in
    return loaded, len(kinds)


def test_300_fuzzed_files(good, tmp_path):
    loaded, kinds = fuzz(good, tmp_path / "file", range(300))
    assert loaded > 3 and kinds > 12, "the files get as far as they can"


@pytest.mark.slow
def test_10_000_fuzzed_files(good, tmp_path):
    loaded, kinds = fuzz(good, tmp_path / "file", range(1000, 11_000))
    assert loaded > 100 and kinds > 20


def test_a_path_with_a_nul_character_is_told(tmp_path):
    game = games.from_pgx("tic_tac_toe")
    for use in (lambda file: weights.load(file, game), weights.read_about, lambda file: weights.save(file, {}, {})):
        with pytest.raises(weights.WeightsError, match="NUL character"):
            use(f"{tmp_path}/a\0b.safetensors")


def test_weights_of_one_go_are_refused_for_the_other(tmp_path):
    own, other = games.go(9), games.from_pgx("go_9x9")
    assert own.id == other.id, "else there is nothing to tell apart"
    for there, here in ((own, other), (other, own)):
        file = tmp_path / f"{there.observation_shape}.safetensors"
        params = nets.mlp(there, hidden=(2,), key=jax.random.key(0))[1]
        weights.save(file, params, {"game": there.id, "network": {"kind": "mlp", "hidden": [2]}}, game=there)
        shape = re.escape(str(list(here.observation_shape)))
        named = "another game of this name: the go_9x9 .* has observations of shape"
        says = rf"{named} {shape} and 82 actions; the Go of games.go"
        with pytest.raises(WeightsError, match=says):
            weights.load(file, here)
        weights.load(file, there)
