"""Policies and values learned anew from the values that searches give the moves."""

import itertools
import json
import pathlib
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models, nets
from jaxzero.nets import weights

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "experiments" / "strength"))  # as running a script there does; last: it hides nothing

import honest_policy  # noqa: E402
import stored_positions  # noqa: E402


def test_targets_are_the_softmax_of_values():
    game = games.from_pgx("tic_tac_toe")
    net, params, _ = weights.load(weights.trained("tic_tac_toe"), game)
    search = jz.gumbel(models.perfect(game, net), 5, gumbel_scale=0.0)  # of nine moves five are tried
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(game.init)(keys)
    states = jax.vmap(game.step)(states, jnp.array([0, 4, 8]), keys)
    out, plain = (jax.jit(f)(params, keys, states) for f in (honest_policy.by_values(search), search))
    found, legal = plain.info.summary, np.asarray(jax.vmap(game.legal)(states))
    for i in range(3):
        q = [
            found.qvalues[i, a] if found.visits[i, a] else found.value[i] for a in range(game.num_actions)
        ]  # what was not tried is worth what the root is
        expected = np.where(legal[i], np.exp(8 * np.array(q, float)), 0)
        np.testing.assert_allclose(out.action_weights[i], expected / expected.sum(), rtol=1e-4)
        assert legal[i, out.action[i]]
    assert 0 < (found.visits > 0).sum() < legal.sum()


def test_the_value_is_that_of_the_best_among_the_most_visited_moves():
    game = games.from_pgx("tic_tac_toe")
    net, params, _ = weights.load(weights.trained("tic_tac_toe"), game)
    keys = jax.random.split(jax.random.key(0), 9)
    states = jax.vmap(game.step)(jax.vmap(game.init)(keys), jnp.arange(9), keys)
    out = jax.jit(honest_policy.labelling(game, net, 24))(params, keys, states)
    q, visits = np.asarray(out.info.summary.qvalues), np.asarray(out.info.summary.visits)
    most = visits >= visits.max(1, keepdims=True) - 1
    np.testing.assert_allclose(out.value, np.where(most, q, -np.inf).max(1))
    assert (np.where(visits > 0, q, -np.inf).max(1) > np.asarray(out.value) + 0.01).any(), "others may look better"


def test_the_rate_rises_and_falls():
    peaks = [
        stored_positions.rate(2.0, step, done) for step, done in ((0, 0), (99, 0), (199, 0), (999, 0.5), (9999, 1.0))
    ]
    np.testing.assert_allclose(peaks, [0.01, 1.0, 2.0, 1.0, 0.0], atol=1e-9)


@pytest.mark.slow
def test_values_are_those_of_the_best_moves(monkeypatch):
    """Where a move wins at once, the value is 1, which a mean over all simulations would miss."""
    monkeypatch.setattr(honest_policy, "PLIES", 8)
    game = games.from_pgx("tic_tac_toe")
    net, params, _ = weights.load(weights.trained("tic_tac_toe"), game)
    given = types.SimpleNamespace(simulations=32, games=32)
    rows = list(itertools.islice(honest_policy.collect(game, net, params, given, 0), 2))
    seen = np.concatenate([x.observation for x in rows]).reshape(-1, 9, 2)
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    wins = np.array([
        any(board[list(line), 0].sum() == 2 and not board[list(line), 1].any() for line in lines) for board in seen
    ])  # fmt: skip
    value = np.concatenate([x.value for x in rows])
    assert 10 < wins.sum() < len(wins)
    np.testing.assert_allclose(value[wins], 1.0)
    positions, which = np.unique(seen.reshape(-1, 18), axis=0, return_inverse=True)
    same = [value[which.ravel() == i] for i in range(len(positions))]
    assert sum(len(x) > 1 for x in same) > 20
    assert max(np.ptp(x) for x in same) < 1e-4  # of the search, however each game ended


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setattr(honest_policy, "PLIES", 8)
    monkeypatch.setattr(stored_positions, "STEPS", 2)

    def run(*words):
        small = ("--folder", str(tmp_path / "honest"), "--games", "8", "--batch-size", "16")
        monkeypatch.setattr(sys, "argv", ["honest_policy.py", "--game", "tic_tac_toe", *small, *words])
        honest_policy.main()
        return tmp_path / "honest"

    return run


@pytest.mark.slow
def test_positions_are_kept_and_what_is_learned_is_written(call, capsys):
    folder = call("--positions", "100", "--minutes", "0", "--simulations", "4")
    files = sorted(folder.glob("*.npz"))
    rows = [stored_positions.read(file) for file in files]
    had = sum(len(x.value) for x in rows)
    assert had >= 100 and not list(folder.glob("*.safetensors"))
    for x in rows:
        np.testing.assert_allclose(x.policy.sum(1), 1, rtol=1e-5)
    game = games.from_pgx("tic_tac_toe")
    _, params, about = weights.load(weights.trained("tic_tac_toe"), game)
    kept = [file.read_bytes() for file in files]
    call("--positions", str(had + 1), "--minutes", "0.02", "--simulations", "4", "--learning-rate", "0.01")
    assert [file.read_bytes() for file in files] == kept and len(list(folder.glob("*.npz"))) == len(files) + 1
    new = stored_positions.read(next(file for file in folder.glob("*.npz") if file not in files))
    assert not np.array_equal(new.observation[:8], rows[0].observation[:8])  # other games
    _, learned, said = weights.load(folder / "weights.safetensors", game)
    assert any(not np.array_equal(*pair) for pair in zip(jax.tree.leaves(params), jax.tree.leaves(learned)))
    how = said["learned_anew"]
    assert how["positions"] == had + len(new.value) and how["minibatches"] > 0 and said["network"] == about["network"]
    assert "results" not in said and "step" not in said and said["searched_by"] == about  # nobody measured this one
    call("--positions", "1", "--minutes", "0.001", "--simulations", "4", "--begin", str(folder / "weights.safetensors"))
    assert (folder / "weights-2.safetensors").exists() and "Written to" in capsys.readouterr().out
    _, _, said = weights.load(folder / "weights-2.safetensors", game)
    assert said["began_with"]["learned_anew"] == how
    with pytest.raises(SystemExit):
        call("--positions", "1", "--simulations", "5")
    assert "simulations: 4 there, 5 now" in capsys.readouterr().err


@pytest.mark.slow
def test_the_mean_of_old_and_new_weights_is_written(call, monkeypatch):
    """Of a network of another size than the one that searches; what is learned here is 1 more for every weight."""
    game = games.from_pgx("tic_tac_toe")
    _, _, about = weights.load(weights.trained("tic_tac_toe"), game)
    folder = call("--positions", "1", "--minutes", "0", "--simulations", "4")
    small, begin = nets.mlp(game, hidden=(8,), key=jax.random.key(0)), folder.parent / "small.safetensors"
    described = {"kind": "mlp", "hidden": [8]}
    weights.save(begin, small[1], {"game": about["game"], "network": described, "rules": "of another"})
    monkeypatch.setattr(honest_policy, "learn", lambda game, net, params, rows, **_: (jax.tree.map(add_one, params), 7))
    call("--positions", "1", "--simulations", "4", "--begin", str(begin), "--share", "0.25")
    _, mixed, said = weights.load(folder / "weights.safetensors", game)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y + 0.25, rtol=1e-6), mixed, small[1])
    assert said["network"] == described and said["learned_anew"]["share"] == 0.25
    assert said["searched_by"] == about and said.get("rules") == about.get("rules")  # of the positions


def add_one(x):
    return x + 1


@pytest.mark.slow
def test_positions_with_other_values_are_refused(call, capsys):
    folder = call("--positions", "1", "--minutes", "0", "--simulations", "4")
    config = json.loads((folder / "config.json").read_text())
    del config["values"]  # as it was before values were those of the best moves
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(SystemExit):
        call("--positions", "1", "--simulations", "4")
    assert "values: None there" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "said"), [
    (("--positions", "0"), "--positions 0: 1 or more"),
    (("--beta", "0"), "--beta 0.0: above 0"), (("--share", "1.5"), "--share 1.5: at most 1"),
    (("--game", "2048"), "--game 2048 has 1 player"), (("--minutes", "nan"), "--minutes nan: 0 or more"),
    (("--game", "backgammon"), "--game backgammon has chance"),
    (("--weights", "nowhere"), "nowhere"),
])  # fmt: skip
def test_what_cannot_be_is_answered_in_a_sentence(call, words, said, capsys):
    with pytest.raises(SystemExit) as ended:
        call(*words)
    assert ended.value.code == 2 and said in capsys.readouterr().err
