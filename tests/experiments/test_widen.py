"""Wider networks that answer as the narrow ones do."""

import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets import weights

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "experiments" / "strength"))  # as running a script there does; last: it hides nothing

import widen  # noqa: E402

GAME = games.hex_game(3)
NARROW = {
    "mlp": {"hidden": [6, 5]},
    "windows": {"window": 2, "channels": 4, "hidden": [6, 5]},
    "windows, bfloat16": {"window": 2, "channels": 4, "hidden": [6, 5], "dtype": "bfloat16"},
}


def saved(folder, name):
    kind, given = name.partition(",")[0], NARROW[name] | {}
    dtype = jnp.dtype(given.pop("dtype")) if "dtype" in given else None
    params = getattr(nets, kind)(GAME, **given, key=jax.random.key(3), dtype=dtype)[1]
    about = {"game": GAME.id, "network": {"kind": kind, **NARROW[name]}, "seed": 7, "results": {"random": 1}}
    weights.save(folder / "narrow", params, about, game=GAME)
    return folder / "narrow"


def ran(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["widen.py", "--game", "hex_3x3", *map(str, words)])
    widen.main()


@pytest.mark.parametrize("name", NARROW)
def test_it_says_the_same_and_its_new_units_can_learn(tmp_path, monkeypatch, capsys, name):
    narrow = saved(tmp_path, name)
    ran(monkeypatch, "--weights", narrow, "--hidden", 9, 8, "--out", tmp_path / "new" / "wide")
    (net, params, before), (wide, wider, about) = (
        weights.load(file, GAME) for file in (narrow, tmp_path / "new" / "wide")
    )
    seen = jax.random.bernoulli(jax.random.key(1), 0.4, (8, 3, 3, 4)).astype(jnp.float32)
    for one, other in zip(net(params, seen), wide(wider, seen), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert about["network"] == before["network"] | {"hidden": [9, 8]} and about["seed"] == 7
    assert "results" not in about, "they are those of the narrow one"
    few, many = (sum(x.size for x in jax.tree.leaves(tree)) for tree in (params, wider))
    assert f"{many:,} weights in place of {few:,}: " in capsys.readouterr().out
    slopes = jax.grad(lambda p: sum(jnp.square(x).sum() for x in wide(p, seen)))(wider)
    slopes = slopes if name == "mlp" else slopes["rest"]
    assert (jnp.abs(slopes["policy"]["kernel"][5:]) > 0).any(), "what is 0 in the file learns"


def test_the_file_says_that_positions_are_seen_in_canonical_form(tmp_path, monkeypatch):
    narrow = saved(tmp_path, "windows")
    ran(monkeypatch, "--weights", narrow, "--hidden", 6, 5, "--canonical", "--out", tmp_path / "wide")
    net, params, about = weights.load(tmp_path / "wide", GAME)
    assert about["network"]["canonical"] is True and net.canonical is GAME.canonical
    jax.tree.map(np.testing.assert_array_equal, params, weights.load(narrow, GAME)[1])


@pytest.mark.parametrize("name", ["mlp", "windows", "parity"])
def test_features_and_channels_change_nothing_at_first_and_learn(tmp_path, monkeypatch, name):
    kind = "mlp" if name == "mlp" else "windows"
    game, given = games.from_pgx("tic_tac_toe"), NARROW[kind] | ({"stone_parity": True} if name == "parity" else {})
    params = getattr(nets, kind)(game, **given, key=jax.random.key(3))[1]
    weights.save(tmp_path / "narrow", params, {"game": game.id, "network": {"kind": kind, **given}}, game=game)
    channels = [] if kind == "mlp" else ["--channels", "7"]
    words = ["--weights", tmp_path / "narrow", "--input-features", *channels, "--out", tmp_path / "wide"]
    monkeypatch.setattr(sys, "argv", ["widen.py", "--game", "tic_tac_toe", *map(str, words)])
    widen.main()
    (net, params, _), (wide, wider, about) = (weights.load(tmp_path / file, game) for file in ("narrow", "wide"))
    stones = jax.random.randint(jax.random.key(1), (8, 3, 3), 0, 3)
    seen = jnp.stack([stones == 1, stones == 2], -1).astype(jnp.float32)
    for one, other in zip(net(params, seen), wide(wider, seen), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert about["network"]["input_features"] and about["network"].get("channels", 7) == 7
    slopes = jax.grad(lambda p: sum(jnp.square(x).sum() for x in wide(p, seen)))(wider)
    first = slopes["dense_0"] if kind == "mlp" else slopes["look"]
    seen_new = first["kernel"].reshape(-1, 4, first["kernel"].shape[-1])[:, 2:, :4]
    assert (jnp.abs(seen_new) > 0).any(), "what old units now see"
    if kind == "windows":
        assert (jnp.abs(slopes["rest"]["dense_0"]["kernel"][:28].reshape(4, 7, 6)[:, 4:]) > 0).any(), "new channels"


@pytest.mark.parametrize("words, said", [
    (["--channels", "5"], "--channels 5: this network has no windows"),
    (["--hidden", "5", "5"], r"--hidden 5 5: give at least as many for each of \[6, 5\]"),
    ([], "give --hidden, --channels, --canonical or --input-features"),
    (["--hidden", "9"], r"--hidden 9: give at least as many"),
    (["--weights", "nowhere", "--hidden", "9", "9"], "nowhere"),
    (["--hidden", "6", "5"], "the network has all of that already"),
])  # fmt: skip
def test_what_cannot_be_widened_is_answered(tmp_path, monkeypatch, capsys, words, said):
    given = ["--weights", str(saved(tmp_path, "mlp")), *words, "--out", str(tmp_path / "wide")]
    with pytest.raises(SystemExit):
        ran(monkeypatch, *given)
    err = capsys.readouterr().err
    assert re.search(said, err), err
    assert not (tmp_path / "wide").exists()


def test_towers_and_games_without_the_form_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv", ["widen.py", "--game", "connect_four", "--hidden", "9", "--out", str(tmp_path / "a")]
    )
    with pytest.raises(SystemExit):
        widen.main()
    assert "of the kind resnet: only mlp and windows can be widened" in capsys.readouterr().err
    words = ["widen.py", "--game", "othello", "--hidden", "512", "256", "--canonical", "--out", str(tmp_path / "a")]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        widen.main()
    assert "--canonical: othello names no canonical form" in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", [word.replace("canonical", "input-features") for word in words])
    with pytest.raises(SystemExit):
        widen.main()
    assert "--input-features: othello names no input features" in capsys.readouterr().err


@pytest.mark.parametrize("name, words, said", [
    ("windows", ["--channels", "3"], "--channels 3: give 4 or more"),
    ("none", ["--canonical"], "its network has no hidden layer"),
])  # fmt: skip
def test_networks_that_cannot_be_widened_are_answered(tmp_path, monkeypatch, capsys, name, words, said):
    monkeypatch.setitem(NARROW, "mlp", {"hidden": []})
    narrow = saved(tmp_path, "mlp" if name == "none" else name)
    with pytest.raises(SystemExit):
        ran(monkeypatch, "--weights", narrow, *words, "--out", tmp_path / "wide")
    assert said in capsys.readouterr().err and not (tmp_path / "wide").exists()
