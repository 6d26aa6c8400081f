"""Checkpoints come back bit for bit or not at all, whatever happened to the disk in between."""

import contextlib
import errno
import importlib.metadata
import json
import os
import pathlib
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from packaging.version import Version

from jaxzero.runs import checkpoint, checkpoint_manifest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def tree(seed):
    key = jax.random.key(seed)
    return {
        "params": jax.random.normal(key, (50, 7)),
        "count": jnp.int32(seed),
        "flag": jnp.array([True, False]),
        "keys": jax.random.split(key, 3),
        "pair": (jnp.float32(0.5), None),
        "host": np.arange(3, dtype=np.int16),
    }


def same(a, b):
    raw = lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(raw(x), raw(y), strict=True), a, b)


def names(folder):
    return sorted(p.name for p in (folder / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A run with checkpoints 1 and 2: not to be changed."""
    folder = tmp_path_factory.mktemp("sound")
    for step in (1, 2):
        checkpoint.save(folder, step, tree(step))
    return folder


@pytest.fixture
def run(sound, tmp_path):
    """A run with checkpoints 1 and 2."""
    return shutil.copytree(sound, tmp_path / "run")


def test_the_newest_comes_back_and_the_older_ones_go(tmp_path):
    assert checkpoint.restore(tmp_path, tree(0)) is None
    for step in (1, 5, 20):
        checkpoint.save(tmp_path, step, tree(step))
    step, back = checkpoint.restore(tmp_path, tree(0), pytest.fail)
    assert step == 20
    same(back, tree(20))
    assert jax.dtypes.issubdtype(back["keys"].dtype, jax.dtypes.prng_key)
    assert names(tmp_path) == ["20", "5"]


def test_shapes_and_types_are_enough_to_restore(run):
    like = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree(0))
    step, back = checkpoint.restore(run, like)
    assert step == 2
    same(back, tree(2))


def test_a_sound_checkpoint_is_left_alone(run):
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in run.rglob("*") if p.is_file()}
    checkpoint.save(run, 2, tree(3))
    assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in run.rglob("*") if p.is_file()}


def damages(file):
    """Kinds of damage to one file, each a function that does it."""
    data = file.read_bytes()

    def flipped(bit):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        return lambda: file.write_bytes(changed)

    last = 8 * len(data) - 1
    some = {f"bit {bit} flipped": flipped(bit) for bit in sorted({0, 5, last // 3, last // 2, last})} if data else {}
    some |= {"truncated": lambda: file.write_bytes(data[:-1]), "emptied": lambda: file.write_bytes(b"")} if data else {}
    return some | {"longer": lambda: file.write_bytes(data + b"\0"), "deleted": file.unlink}


def test_all_damage_to_any_file_is_found_and_named(run, monkeypatch):
    """The newest sound step is used, and nothing on the disk changes; what orbax makes of it is the next test's."""
    asked = []
    monkeypatch.setattr(checkpoint.ocp, "load", lambda path, like: asked.append(path.name))
    files = [p for p in (run / "checkpoints").rglob("*") if p.is_file() and p.relative_to(run).parts[1] == "2"]
    tried = 0
    for file in files:
        data = file.read_bytes()
        for what, damage in damages(file).items():
            damage()
            said = []
            step, _ = checkpoint.restore(run, tree(0), said.append)
            assert step == 1 and asked.pop() == "1", f"{file}: {what}"
            assert str(file.relative_to(run / "checkpoints")) in said[0], f"{file}: {what}: {said}"
            assert "Checkpoint 2" in said[0] and "is skipped" in said[0] and "Checkpoint 1 is the newest" in said[1]
            file.write_bytes(data)
            tried += 1
    assert len(files) > 8 and tried > 6 * len(files)
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == 2, "the files are as they were again"


@pytest.mark.parametrize(
    ("file", "damage", "reason"),
    [
        ("2/state/_METADATA", "one bit", "2/state/_METADATA is damaged (its checksum differs)"),
        ("2/state/_METADATA", "truncate", r" bytes instead of "),
        ("2/state/_METADATA", "delete", "2/state/_METADATA is missing"),
        ("2/manifest.json", "one bit", "2/manifest.json is damaged"),
        ("2/manifest.json", "truncate", "2/manifest.json is damaged"),
        ("2/manifest.json", "delete", "2/manifest.json is missing"),
        ("2/manifest.json", "copy", "2/manifest.json is the manifest of checkpoint 1"),
        ("2/state", "delete", "is missing"),
        ("2", "a file", "2/manifest.json is missing"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_and_later_replaced(run, file, damage, reason):
    path = run / "checkpoints" / file
    if damage == "delete":
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif damage == "copy":
        shutil.copy(run / "checkpoints" / "1" / path.name, path)
    elif damage == "a file":
        shutil.rmtree(path)
        path.write_text("a file")
    else:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data[:-1] if damage == "truncate" else data)
    said = []
    step, back = checkpoint.restore(run, tree(0), said.append)
    assert step == 1 and reason in said[0]
    same(back, tree(1))
    checkpoint.save(run, 2, tree(2))
    step, back = checkpoint.restore(run, tree(0), pytest.fail)
    assert step == 2
    same(back, tree(2))
    assert names(run) == ["1", "2"]


def test_what_a_cut_short_save_left_is_ignored_and_then_removed(run):
    """Kill -9 at any moment of a save leaves some of these."""
    root = run / "checkpoints"
    for folder in ("3.partial.orbax-checkpoint-tmp", "3.partial", "4.orbax-checkpoint-tmp-17"):
        shutil.copytree(root / "2", root / folder)
    (root / "6.partial").write_text("a file")
    mine = root / "notes.txt"
    mine.write_text("mine")
    before = names(run)
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == 2, "nothing is said of it"
    assert names(run) == before, "restoring changes nothing"
    checkpoint.save(run, 3, tree(3))
    assert names(run) == ["2", "3", "notes.txt"]


def test_damaged_ones_do_not_count_as_kept(run):
    root = run / "checkpoints"
    (root / "2" / "manifest.json").write_text("{}")
    shutil.copytree(root / "2", root / "9")
    checkpoint.save(run, 3, tree(3))
    assert names(run) == ["1", "3", "9"], "9 stays until its step is reached again"
    checkpoint.save(run, 9, tree(9))
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == 9
    assert names(run) == ["3", "9"]


@pytest.mark.parametrize("file", ["_CHECKPOINT_METADATA", "manifest.json"])
def test_what_cannot_be_read_is_neither_used_nor_removed(run, monkeypatch, file):
    real = pathlib.Path.open

    def opened(path, *args, **options):
        if path.parts[-2:] == ("2", file):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return real(path, *args, **options)

    said = []
    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "open", opened)
        with pytest.raises(checkpoint.CheckpointError, match=f"Checkpoint 2 is in .*, but 2/{file} cannot be read"):
            checkpoint.save(run, 2, tree(2))
        checkpoint.save(run, 3, tree(3))
        assert names(run) == ["1", "2", "3"], "2 does not count as kept"
        assert checkpoint.restore(run, tree(0), said.append)[0] == checkpoint.newest(run) == 3
        shutil.rmtree(run / "checkpoints" / "3")
        assert checkpoint.restore(run, tree(0), said.append)[0] == checkpoint.newest(run) == 1
        shutil.rmtree(run / "checkpoints" / "1")
        with pytest.raises(checkpoint.CheckpointError, match="No sound checkpoint in .*Make unreadable ones readable"):
            checkpoint.restore(run, tree(0), said.append)
    assert f"2/{file} cannot be read (Stale file handle)" in said[0]
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == 2


def test_when_none_is_sound_nothing_begins_anew(run):
    for step in (1, 2):
        (run / "checkpoints" / f"{step}" / "manifest.json").write_text("{}")
    with pytest.raises(checkpoint.CheckpointError, match=r"No sound checkpoint in .*: 2/manif.*; 1/manif.*remove"):
        checkpoint.restore(run, tree(0), lambda text: None)


def test_a_later_format_is_neither_read_nor_removed(run):
    file = run / "checkpoints" / "2" / "manifest.json"
    content = json.loads(file.read_text()) | {"format": 2}
    del content["sha256"]
    file.write_bytes(checkpoint_manifest._rendered(content))
    with pytest.raises(checkpoint.CheckpointError, match="format 2.*reads format 1"):
        checkpoint.restore(run, tree(0), pytest.fail)
    with pytest.raises(checkpoint.CheckpointError, match="format 2.*reads format 1"):
        checkpoint.save(run, 2, tree(2))
    assert checkpoint.newest(run) == 1
    for step in (3, 4):
        checkpoint.save(run, step, tree(step), keep=3)
    assert names(run) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"params": jnp.zeros((50, 8))}, r"params is float32\[50,7\], and float32\[50,8\] is expected\. Give"),
        ({"params": jnp.zeros((50, 7), jnp.bfloat16)}, r"params is float32\[50,7\], and bfloat16\[50,7\] is"),
        ({"keys": jnp.zeros((3, 2), jnp.uint32)}, r"keys is key<fry>\[3\], and uint32\[3,2\] is"),
        (
            {"pair": (jnp.zeros(2), jnp.zeros(3))},
            r"pair\.0 is float32\[\], and float32\[2\] is expected \(and 1 more\)",
        ),
        ({"more": {"layers": jnp.zeros(3)}}, r"more\.layers is not there, and float32\[3\] is"),
        ({"count": {}}, r"count is int32\[\], and nothing of that name is"),
    ],
)
def test_another_shape_is_one_sentence(sound, change, message):
    with pytest.raises(checkpoint.CheckpointError, match="^Checkpoint 2 in .* does not hold what.*: " + message):
        checkpoint.restore(sound, tree(0) | change)


def test_what_orbax_cannot_load_is_one_sentence(sound, monkeypatch):
    def fail(*args):
        raise RuntimeError("NoEntryError in handler 17")

    monkeypatch.setattr(checkpoint.ocp, "load", fail)
    with pytest.raises(checkpoint.CheckpointError, match=r"undamaged, but orbax .* \(RuntimeError\)") as raised:
        checkpoint.restore(sound, tree(0))
    assert "handler" not in str(raised.value)


@pytest.mark.parametrize("leaf", [3, 0.5, "text", np.int64(3)])
def test_only_arrays_are_saved(tmp_path, leaf):
    with pytest.raises(checkpoint.CheckpointError, match=r"^a\.b is of type .* arrays"):
        checkpoint.save(tmp_path, 1, {"a": {"b": leaf}})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("step", "keep"), [(-1, 2), (1, 0)])
def test_counts(tmp_path, step, keep):
    with pytest.raises(checkpoint.CheckpointError, match="give step 0 or more"):
        checkpoint.save(tmp_path, step, tree(0), keep=keep)


CLOSES = Version("0.12.8")  # orbax up to 0.12.6 keeps the idle threads of a save that failed
FULL = r"^Checkpoint 3 cannot be written to .*: {}\. It takes about .* MB, and .* MB are free; {}\. Fix this"


def test_a_full_disk_costs_no_checkpoint(run, capfd):
    """No file may be longer than some bytes: to the writer that is as if the disk were full."""
    big = tree(3) | {"params": jax.random.normal(jax.random.key(3), (300, 300))}
    before, threads = names(run), set(threading.enumerate())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (100_000, 300, 10):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            with pytest.raises(
                checkpoint.CheckpointError, match=FULL.format("File too large", "checkpoint 2 is still intact")
            ):
                checkpoint.save(run, 3, big)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert names(run) == before, limit
        if Version(importlib.metadata.version("orbax-checkpoint")) >= CLOSES:
            assert set(threading.enumerate()) <= threads
    assert "raised an exception" not in capfd.readouterr().err, "what orbax logs of its threads is left out"
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == 2
    checkpoint.save(run, 3, big)
    same(checkpoint.restore(run, big, pytest.fail)[1], big)


@pytest.mark.parametrize("fails", ["write_whole", "flush"])
def test_a_disk_that_fills_up_with_the_manifest(run, monkeypatch, fails):
    def full(*args):
        raise OSError(28, os.strerror(28))

    before = names(run)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_manifest, fails, full)
        with pytest.raises(checkpoint.CheckpointError, match=FULL.format("No space left on device", "checkpoint 2 .*")):
            checkpoint.save(run, 3, tree(3))
    assert names(run) == before


def test_a_checkpoint_of_which_the_last_flush_fails_is_said_to_be_there(run, monkeypatch):
    flush = checkpoint_manifest.flush

    def fails(folder):
        if folder.name == "checkpoints":
            raise OSError(5, os.strerror(5))
        flush(folder)

    monkeypatch.setattr(checkpoint_manifest, "flush", fails)
    with pytest.raises(checkpoint.CheckpointError, match="^Checkpoint 3 in .* is complete, but .*: Input/output error"):
        checkpoint.save(run, 3, tree(3))
    assert checkpoint.newest(run) == 3


def test_a_first_checkpoint_that_cannot_be_written(tmp_path):
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(checkpoint.CheckpointError, match=FULL.format("File exists", "there is no other")):
        checkpoint.save(tmp_path, 3, tree(3))


def test_the_disk_is_asked_every_time(run):
    assert checkpoint.restore(run, tree(0))[0] == checkpoint.newest(run) == 2
    shutil.rmtree(run / "checkpoints" / "2")
    assert checkpoint.restore(run, tree(0), pytest.fail)[0] == checkpoint.newest(run) == 1
    (run / "checkpoints" / "1" / "manifest.json").unlink()
    assert checkpoint.newest(run) is None


class Killed(BaseException):
    """As if the process were gone: nothing catches it."""


def test_killed_anywhere_in_the_first_save(sound, tmp_path, monkeypatch):
    """Before each call that decides what a disk holds, after orbax has done its part; the same command goes on."""
    what_orbax_writes = shutil.ignore_patterns("manifest.json")
    copy = lambda path, tree: shutil.copytree(sound / "checkpoints" / "1", path, ignore=what_orbax_writes)
    monkeypatch.setattr(checkpoint.ocp, "save", copy)
    monkeypatch.setattr(checkpoint.ocp, "load", lambda path, like: path.name)
    real, left, found = os.replace, [0], []

    def dying(work):
        def call(*args):
            if not left[0]:
                raise Killed
            left[0] -= 1
            return work(*args)

        return call

    monkeypatch.setattr(os, "replace", dying(real))
    monkeypatch.setattr(os, "fsync", dying(lambda descriptor: None))
    for calls in range(100):
        run, left[0] = tmp_path / str(calls), calls
        with contextlib.suppress(Killed):
            checkpoint.save(run, 1, tree(1))
        found.append(checkpoint.restore(run, tree(0), pytest.fail))
        ended, left[0] = left[0] > 0, 1000
        checkpoint.save(run, 1, tree(1))
        assert checkpoint.restore(run, tree(0), pytest.fail) == (1, "1")
        if ended:
            break
    assert set(found) == {None, (1, "1")} and len(found) > 10


SHARDED = """
import sys, jax, jax.numpy as jnp, numpy as np
devices, folder = int(sys.argv[1]), sys.argv[2]
jax.config.update("jax_num_cpu_devices", devices)
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxzero.runs import checkpoint
mesh = jax.make_mesh((devices,), ("data",), axis_types=(AxisType.Auto,))
put = lambda x, spec: jax.device_put(x, NamedSharding(mesh, spec))
make = lambda seed: {
    "games": put(jnp.arange(8.0) + seed, P("data")),
    "keys": put(jax.random.split(jax.random.key(seed), 4), P("data")),
    "params": put(jnp.full((3, 2), seed), P()),
}
if len(sys.argv) > 3:
    checkpoint.save(folder, 1, make(5))
for like in (make(0), jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), make(0))):
    step, back = checkpoint.restore(folder, like)
    for name, expected in make(5).items():
        raw = jax.random.key_data if name == "keys" else lambda x: x
        np.testing.assert_array_equal(raw(back[name]), raw(expected))
        if isinstance(like[name], jax.Array):
            assert back[name].sharding.is_equivalent_to(expected.sharding, expected.ndim), (name, back[name].sharding)
"""


def python(*arguments):
    flags = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}
    return subprocess.Popen(
        [sys.executable, "-c", *map(str, arguments)],
        env=os.environ | flags,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


SAVING = """
import sys, jax.numpy as jnp
from jaxzero.runs import checkpoint
found = checkpoint.restore(sys.argv[1], {"x": jnp.zeros(1000)}, lambda text: None)
step = found[0] if found else 0
while True:
    step += 1
    checkpoint.save(sys.argv[1], step, {"x": jnp.full(1000, step, jnp.float32)})
    print(step, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [0, 3, 10, 20, 30, 45])
def test_killed_while_saving(tmp_path, milliseconds):
    """A save takes some 60 ms here. Whatever is there afterwards, no step that was announced is lost."""
    for _ in range(2):  # the second goes on where the first was killed
        ran = python(SAVING, tmp_path)
        last = [int(ran.stdout.readline()) for _ in range(3)][-1]
        time.sleep(milliseconds / 1000)
        ran.kill()
        last = max([last, *map(int, ran.communicate()[0].split())])
        step, back = checkpoint.restore(tmp_path, {"x": jnp.zeros(1000)}, lambda text: None)
        assert last <= step <= last + 1
        assert (back["x"] == step).all()


@pytest.mark.slow
def test_saved_from_four_devices_restored_on_fewer(tmp_path):
    for devices, *save in ((4, "save"), (2,), (1,)):
        ran = python(SHARDED, devices, tmp_path, *save)
        _, errors = ran.communicate(timeout=300)
        assert ran.returncode == 0, f"{devices} devices: {errors}"


TOGETHER = """
import os, pathlib, resource, sys, time, jax, jax.numpy as jnp, numpy as np
port, process, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
jax.config.update("jax_num_cpu_devices", 2)
jax.distributed.initialize(f"localhost:{port}", 2, process)
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxzero.runs import checkpoint
from jaxzero.runs import checkpoint_manifest as manifest
mesh = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Auto,))
value = lambda step: np.arange(8.0, dtype=np.float32) + step
tree = lambda step: {"x": jax.make_array_from_callback((8,), NamedSharding(mesh, P("data")), lambda i: value(step)[i])}
def refused(text, function, *arguments):
    try:
        function(*arguments)
    except ValueError as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"not refused: {text}")

checkpoint.open_run(folder, {"seed": 1})
refused("other settings", checkpoint.open_run, folder, {"seed": 2})
with checkpoint.writing(folder):
    refused(f"process {os.getpid() if process == 0 else ''}", checkpoint.writing(folder).__enter__)
    assert checkpoint.newest(folder) is None
    for step in (1, 2, 3):
        checkpoint.save(folder, step, tree(step))
    assert checkpoint.newest(folder) == 3

    def full(*args):
        raise OSError(28, "No space left on device")

    whole, manifest.write_whole = manifest.write_whole, full  # process 1 never calls it
    refused("checkpoint 3 is still intact", checkpoint.save, folder, 4, tree(4))
    manifest.write_whole = whole
    refused("x is float32[8], and float32[4] is expected", checkpoint.restore, folder, {"x": jnp.zeros(4)})
    checkpoint.PATIENCE = 8
    for failing in (0, 1):  # inside orbax, where the other waits
        began = time.monotonic()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10 if process == failing else soft, hard))
        refused("File too large", checkpoint.save, folder, 4, tree(4))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert time.monotonic() - began < 30
    load, began = checkpoint.ocp.load, time.monotonic()
    if process == 1:
        checkpoint.ocp.load = full
    refused("cannot load it here (No space left on device)", checkpoint.restore, folder, tree(0))
    assert time.monotonic() - began < 30
    checkpoint.ocp.load = load
    if process == 0:
        (folder / "checkpoints" / "3" / "manifest.json").unlink()
    said = []
    step, back = checkpoint.restore(folder, tree(0), said.append)
    assert step == 2 and len(said) == (2 if process == 0 else 0), (step, said)
    for shard in back["x"].addressable_shards:
        np.testing.assert_array_equal(shard.data, value(2)[shard.index])
    assert sorted(p.name for p in (folder / "checkpoints").iterdir()) == ["2", "3"]
"""


@pytest.mark.slow
def test_two_processes_save_and_restore_together(tmp_path):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    both = [python(TOGETHER, port, process, tmp_path / "run") for process in (0, 1)]
    try:
        errors = [ran.communicate(timeout=200)[1] for ran in both]
    finally:
        for ran in both:
            ran.kill()
    assert [ran.returncode for ran in both] == [0, 0], "\n".join(errors)
