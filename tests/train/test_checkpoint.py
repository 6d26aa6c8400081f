"""Checkpoints come back bit for bit or not at all, and a run folder is never overwritten."""

import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero.train import checkpoint


def tree(seed):
    key = jax.random.key(seed)
    return {
        "params": jax.random.normal(key, (50, 7)),
        "count": jnp.int32(seed),
        "flag": jnp.array([True, False]),
        "keys": jax.random.split(key, 3),
        "pair": (jnp.float32(0.5), None),
    }


def same(a, b):
    raw = lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    jax.tree.map(lambda x, y: np.testing.assert_array_equal(raw(x), raw(y)), a, b)


def test_the_newest_comes_back_and_the_older_ones_go(tmp_path):
    assert checkpoint.restore(tmp_path, tree(0)) is None
    for step in (1, 5, 20):
        checkpoint.save(tmp_path, step, tree(step))
    step, back = checkpoint.restore(tmp_path, tree(0))
    assert step == 20
    same(back, tree(20))
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["20", "20.json", "5", "5.json"]


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "no checksums"])
def test_a_damaged_checkpoint_is_passed_over(tmp_path, damage):
    checkpoint.save(tmp_path, 1, tree(1))
    checkpoint.save(tmp_path, 2, tree(2))
    newest = tmp_path / "checkpoints" / "2"
    file = max((p for p in newest.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    elif damage == "truncate":
        file.write_bytes(data[:-1])
    elif damage == "delete":
        file.unlink()
    else:
        (tmp_path / "checkpoints" / "2.json").unlink()
    said = []
    step, back = checkpoint.restore(tmp_path, tree(0), said.append)
    assert step == 1 and "damaged" in said[0]
    same(back, tree(1))
    checkpoint.save(tmp_path, 2, tree(2))  # and the damaged one is written anew
    same(checkpoint.restore(tmp_path, tree(0))[1], tree(2))


def test_when_none_is_sound_nothing_begins_anew(tmp_path):
    checkpoint.save(tmp_path, 1, tree(1))
    (tmp_path / "checkpoints" / "1.json").write_text("{}")
    with pytest.raises(ValueError, match="No sound checkpoint"):
        checkpoint.restore(tmp_path, tree(0), lambda text: None)


def test_another_shape_is_one_sentence(tmp_path):
    checkpoint.save(tmp_path, 1, tree(1))
    other = tree(0) | {"params": jnp.zeros((50, 8))}
    with pytest.raises(ValueError, match="does not hold what is expected here"):
        checkpoint.restore(tmp_path, other)


def test_run_folders(tmp_path):
    config = {"seed": 1, "net": {"width": 8, "hidden": (1, 2)}, "budget": {"minutes": 3}}
    folder = tmp_path / "run"
    assert checkpoint.open_run(folder, config) is False
    assert checkpoint.open_run(folder, config) is True
    assert checkpoint.open_run(folder, config | {"budget": {"minutes": 9}}, free=("budget",)) is True
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match=r"net.width: 8 there, 16 now\n.*--folder"):
        checkpoint.open_run(folder, config | {"net": {"width": 16, "hidden": (1, 2)}})
    assert before == {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert json.loads((folder / "config.json").read_text())["net"]["hidden"] == [1, 2]
    (tmp_path / "full").mkdir()
    pathlib.Path(tmp_path / "full" / "thesis.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds no run"):
        checkpoint.open_run(tmp_path / "full", config)
