"""What a run will take is known from shapes; nothing here is allocated."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.runs import memory
from jaxzero.runs.memory import Lower
from jaxzero.train import replay, selfplay

GIB = 2**30


def device(limit):
    """Something that says of itself what an accelerator says."""
    return types.SimpleNamespace(
        platform="gpu", id=3, device_kind="Card", memory_stats=lambda: None if limit is None else {"bytes_limit": limit}
    )


def buffer(capacity):
    """A replay of Connect Four, abstract."""
    shape = lambda *dims: jax.ShapeDtypeStruct(dims, jnp.float32)
    row = selfplay.Row(shape(6, 7, 2), shape(7), shape())
    return jax.eval_shape(lambda: replay.new_buffer(row, capacity))


def test_a_replay_of_ten_million_rows():
    assert memory.size(buffer(10_000_000)) == 10_000_000 * (84 + 7 + 1) * 4 + 8


def test_all_kinds_of_leaves_are_counted():
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), 5))
    assert memory.size(keys) == jax.random.key_data(jax.random.split(jax.random.key(0), 5)).nbytes == 40
    rbg = jax.eval_shape(lambda: jax.random.split(jax.random.key(0, impl="rbg"), 5))
    assert memory.size(rbg) == 5 * 4 * 4
    assert memory.size((np.zeros((3, 2), np.int8), jnp.zeros(4, jnp.bfloat16), None, True)) == 6 + 8 + 1


@pytest.mark.slow
def test_an_abstract_tree_counts_what_a_search_returns():
    game = games.from_pgx("tic_tac_toe")
    network = lambda params, observation: (observation.reshape(len(observation), -1)[:, :9], observation[:, 0, 0, 0])
    policy = jz.alphazero(models.perfect(game, network), 4)
    keys = jax.random.split(jax.random.key(0), 3)
    state = jax.vmap(game.init)(keys)
    abstract = memory.search_tree(policy, (), *jax.eval_shape(lambda: (keys, state)))
    real = jax.jit(policy)((), keys, state).tree
    assert all(isinstance(x, jax.ShapeDtypeStruct) for x in jax.tree.leaves(abstract))
    assert memory.size(abstract) == sum(x.nbytes for x in jax.tree.leaves(real)) > 3 * 5 * 9 * 4


def test_the_plan_is_by_size_and_shares_out():
    floats = lambda n: jax.ShapeDtypeStruct((n,), jnp.float32)
    parts = {"small": floats(10), "games": floats(103), "large": floats(100)}
    assert memory.plan(parts) == [("games", 412), ("large", 400), ("small", 40)]
    shared = memory.plan(parts, shared=["games"], devices=8)
    assert shared == [("large", 400), ("games", 52), ("small", 40)], "each device holds a whole number of bytes"
    with pytest.raises(ValueError, match=r"\['game'\] are no parts.*'games'"):
        memory.plan(parts, shared=["game"])


PARTS = {"replay": buffer(10_000_000), "games": jax.ShapeDtypeStruct((GIB,), jnp.int8)}  # 3.4 and 1 GiB
HINTS = {"replay": Lower("--learn.capacity", 10_000_000), "games": Lower("--selfplay.games", 1024)}


def refused(*args, **options):
    with pytest.raises(ValueError) as error:
        memory.check(*args, **options)
    return str(error.value)


def test_too_much_is_refused_with_the_parts_and_the_largest_value_that_fits():
    text = refused(PARTS, HINTS, device(4 * GIB))
    assert text == (
        "The run needs 4.4 GiB of memory (replay 3.4 GiB, games 1.0 GiB), and may use 3.6 GiB: 90% of "
        "the 4.0 GiB of device 3 (Card). Lower --learn.capacity from 10000000 to 7500000."
    )
    memory.check(PARTS | {"replay": buffer(7_500_000)}, HINTS, device(4 * GIB))
    refused(PARTS | {"replay": buffer(7_600_000)}, HINTS, device(4 * GIB))


def test_what_fits_or_nobody_knows_is_not_refused():
    memory.check(PARTS, HINTS, device(5 * GIB))
    memory.check(PARTS, HINTS, device(None))
    memory.check(PARTS, HINTS, device(3 * GIB), shared=["replay"], devices=4)
    refused(PARTS, HINTS, device(5 * GIB), share=0.8)
    assert "4.4 GiB of memory on each of 4 devices" in refused(PARTS, HINTS, device(3 * GIB), devices=4)


@pytest.mark.parametrize("hints, words", [
    (HINTS, "No value of --learn.capacity is small enough: lower --selfplay.games, too, or use a device with more"),
    ({"replay": HINTS["replay"]}, "No value of --learn.capacity is small enough: lower the network, too"),
    ({"games": HINTS["games"]}, "No value of --selfplay.games is small enough"),
    ({"games": Lower("--network.channels")}, "Lower --network.channels."),
    ({}, "Use a smaller network, fewer games, or a device with more memory."),
])  # fmt: skip
def test_the_remedy_is_what_is_known(hints, words):
    assert words in refused(PARTS, hints, device(GIB))


def test_the_largest_part_that_has_a_hint_is_lowered():
    parts = {"replay": buffer(10_000), "games": jax.ShapeDtypeStruct((3000, 1000), jnp.int8)}
    assert "Lower --selfplay.games from 3000 to 2900." in refused(
        parts, {"games": Lower("--selfplay.games", 3000)}, device(6_600_000), 1.0
    )


def test_a_hint_for_nothing_is_a_mistake():
    assert "['reply'], which are no parts" in refused(PARTS, {"reply": Lower("--learn.capacity")}, device(GIB))


def test_what_a_cpu_may_have_is_no_more_than_there_is():
    cpu = jax.devices("cpu")[0]
    limit, physical = memory.available(cpu), memory._physical()
    assert limit is not None and physical is not None
    assert GIB // 8 < limit <= physical // len(jax.local_devices(backend="cpu"))


@pytest.mark.parametrize("groups, limits, expected", [
    ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "700", "memory.max": "900"}, 700),  # version 2
    ("0::/a/b\n", {"a/b/memory.max": "600", "a/memory.max": "700"}, 600),
    ("0::/host/path\n", {"memory.max": "500"}, 500),  # a container: its group is the mount
    ("0::/../../other\n", {"memory.max": "500"}, 500),
    ("5:cpu,memory:/a\n0::/\n", {"memory/a/memory.limit_in_bytes": "400", "memory/memory.limit_in_bytes": "800"}, 400),
    ("5:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "400"}, None),
    ("0::/\n", {"memory.max": "max"}, None),
    (None, {"memory.max": "500"}, None),  # no such system
])  # fmt: skip
def test_control_groups(tmp_path, groups, limits, expected):
    write = lambda path, text: (path.parent.mkdir(parents=True, exist_ok=True), path.write_text(text))
    if groups is not None:
        write(tmp_path / "proc/self/cgroup", groups)
    for path, limit in limits.items():
        write(tmp_path / "sys/fs/cgroup" / path, limit + "\n")
    assert memory._granted(tmp_path) == expected
