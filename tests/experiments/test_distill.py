"""A small network that learns the outputs of a large one."""

import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from jaxzero.nets import weights

ROOT = pathlib.Path(__file__).parents[2]
sys.path.append(str(ROOT / "experiments" / "strength"))  # as running a script there does; last: it hides nothing

import distill  # noqa: E402
import stored_positions  # noqa: E402

GAME = games.from_pgx("tic_tac_toe")


@pytest.fixture
def call(monkeypatch, tmp_path):
    monkeypatch.setattr(distill, "PLIES", 8)
    monkeypatch.setattr(stored_positions, "STEPS", 2)

    def run(*words):
        small = ("--folder", str(tmp_path / "small"), "--games", "8", "--batch-size", "16", "--window", "2")
        small += ("--channels", "4", "--hidden", "8")
        monkeypatch.setattr(sys, "argv", ["distill.py", "--game", "tic_tac_toe", *small, *words])
        distill.main()
        return tmp_path / "small"

    return run


@pytest.mark.slow
def test_it_learns_what_the_large_network_says(call, capsys):
    folder = call("--positions", "200", "--minutes", "0")
    rows = [stored_positions.read(file) for file in sorted(folder.glob("*.npz"))]
    assert sum(len(x.value) for x in rows) >= 200 and not list(folder.glob("*.safetensors"))
    net, params, about = weights.load(weights.trained("tic_tac_toe"), GAME)
    for x in rows:
        logits, value = net(params, x.observation)
        legal = jnp.asarray(x.observation.sum(-1).reshape(-1, 9) == 0)
        expected = jax.nn.softmax(jnp.where(legal, logits, -jnp.inf))
        np.testing.assert_allclose(x.policy, expected, atol=1e-5)
        np.testing.assert_allclose(x.value, value, atol=1e-5)
    call("--positions", "1", "--minutes", "0.02")
    _, _, said = weights.load(folder / "weights.safetensors", GAME)
    assert said["network"] == {
        "kind": "windows", "window": 2, "channels": 4, "hidden": [8], "stone_parity": True, "input_features": True,
    }  # fmt: skip
    assert said["distilled"]["minibatches"] > 0 and said["teacher"] == about and said["began_with"] is None
    assert said["command"].startswith("experiments/strength/distill.py --game tic_tac_toe")
    assert said["distilled"]["minutes"] > 0
    assert "results" not in said  # nobody measured this one
    call("--positions", "1", "--minutes", "0.001", "--begin", str(folder / "weights.safetensors"))
    assert weights.read_about(folder / "weights-2.safetensors")["began_with"]["distilled"] == said["distilled"]
    assert "unseen positions: KL from the teacher" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        call("--weights", str(folder / "weights.safetensors"))
    assert "holds a run with other settings" in capsys.readouterr().err


def test_errors_on_unseen_positions_by_hand():
    policy = np.float32([[0.5, 0.5, 0], [0, 0, 1]])
    network = lambda params, x: (jnp.log(jnp.float32([[1, 3, 5], [1, 1, 1]])), jnp.float32([0.5, 0.0]))
    found = distill.unseen_errors(network, None, distill.selfplay.Row(np.zeros((2, 1)), policy, np.float32([1, 0])))
    expected = (0.5 * np.log(0.5 / 0.25) + 0.5 * np.log(0.5 / 0.75)) / 2  # only the legal moves share the mass
    assert np.allclose([found["divergence"], found["value_error"]], [expected, 0.125])


@pytest.mark.slow
def test_a_student_of_hex_sees_the_canonical_form(monkeypatch):
    """Its targets are the teacher's outputs for the player to move, of the second player and after a swap, too."""
    monkeypatch.setattr(distill, "PLIES", 8)
    game = games.hex_game(7)
    net, params, _ = weights.load(weights.trained("hex_7x7"), game)
    rows = next(distill.collect(game, net, params, 16, 0))
    assert {0.0, 1.0} == set(np.unique(rows.observation[..., 2]))
    logits, value = net(params, rows.observation)
    np.testing.assert_allclose(rows.value, value, atol=1e-5)
    legal = rows.policy > 0
    np.testing.assert_allclose(rows.policy, jax.nn.softmax(jnp.where(legal, logits, -jnp.inf)), atol=1e-5)
    given = distill.arguments().parse_args(["--folder", "x", "--game", "hex_7x7", "--hidden", "8", "--channels", "4"])
    described, student, first = distill.new_student(game, given)
    assert described["canonical"] and described["input_features"] and "stone_parity" not in described
    assert student(first, rows.observation)[0].shape == logits.shape


@pytest.mark.parametrize(("words", "said"), [
    (("--positions", "0"), "--positions 0: 1 or more"), (("--learning-rate", "nan"), "--learning-rate nan: above 0"),
    (("--game", "2048"), "--game 2048 has 1 player"), (("--game", "backgammon"), "--game backgammon has chance"),
    (("--hidden", "70000"), "--window, --channels and --hidden describe no network: "),
    (("--weights", "nowhere"), "nowhere"),
    (("--begin", str(weights.trained("tic_tac_toe"))), "its network is another one than the flags describe"),
])  # fmt: skip
def test_what_cannot_be_is_answered_in_a_sentence(call, words, said, capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        call(*words)
    assert ended.value.code == 2 and said in capsys.readouterr().err and not (tmp_path / "small").exists()
