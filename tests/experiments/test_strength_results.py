"""What the strength experiments save, and that it survives their interruption."""

import contextlib
import inspect
import json
import pathlib
import sys
import types

import jax
import numpy as np
import pytest

from jaxzero import games, nets
from jaxzero.nets import weights
from jaxzero.play import outcome_mistakes
from jaxzero.search.qvalues import completed_by_mix_value

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(
    str(ROOT / "experiments" / "strength")
)  # as running a script there does; last, so that it hides nothing

import mistakes  # noqa: E402
import perfect_play  # noqa: E402
import ppo  # noqa: E402
import trained_networks  # noqa: E402


@pytest.fixture
def ppo_run(monkeypatch, tmp_path):
    """A call of ppo.py whose learning and matches are short or left out."""
    weights_of = weights.trained("tic_tac_toe")
    out = tmp_path / "new" / "folder"
    words = (
        f"--weights {weights_of} --games 2 --simulations 2 --seed 3 --json {out / 'found.json'} --folder {out / 'w'}"
    )
    monkeypatch.setattr(sys, "argv", ["ppo.py", *words.split()])
    stop = []
    learned = lambda game, net, params, minutes, *rest: ppo.Learned(params, 64, minutes / 2, stop[0] if stop else None)
    monkeypatch.setattr(ppo, "train", learned)
    return out, stop


def test_ppo_saves_each_match_as_it_ends(ppo_run, monkeypatch):
    out, _ = ppo_run
    played = []

    def match(*given):
        if played:
            raise KeyboardInterrupt
        played.append(given)
        return types.SimpleNamespace(points=np.array([[0.5, 1.0]]), score=np.array([[0, 1], [1, 0], [0, 0]]))

    monkeypatch.setattr(ppo.match_programs, "between", lambda *given: match)
    with pytest.raises(KeyboardInterrupt):
        ppo.main()
    assert (out / "w" / "weights.safetensors").exists()
    found = json.loads((out / "found.json").read_text())
    assert found["raw"]["share"] == 0.75 and found["seed"] == 3 and "2 simulations" not in found


def test_ppo_ends_early_after_an_iteration(monkeypatch):
    for name, size in {"GAMES": 2, "PLIES": 4, "EPOCHS": 1, "MINIBATCHES": 1}.items():
        monkeypatch.setattr(ppo, name, size)
    signals = iter([None, "Ctrl-C", "Ctrl-C"])
    interruptible = lambda: contextlib.nullcontext(lambda: next(signals))
    monkeypatch.setattr(ppo.progress_display, "interruptible", interruptible)
    game = games.from_pgx("tic_tac_toe")
    net, params = nets.mlp(game, (4,), key=jax.random.key(0))
    found = ppo.train(game, net, params, 10.0, 0, 0.95)
    assert found.positions == 8 and found.interrupted == "Ctrl-C" and 0 < found.minutes < 10
    moved = jax.tree.map(lambda new, old: bool((new != old).any()), found.params, params)
    assert any(jax.tree.leaves(moved))


def test_ppo_that_is_interrupted_keeps_its_weights(ppo_run):
    out, stop = ppo_run
    stop.append("Ctrl-C")
    with pytest.raises(SystemExit) as ended:
        ppo.main()
    assert ended.value.code == 130 and (out / "w" / "weights.safetensors").exists()
    assert not (out / "found.json").exists()


def test_matches_that_are_interrupted_at_once_leave_no_file(monkeypatch, tmp_path):
    def unlucky(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(trained_networks, "RESULTS", tmp_path)
    monkeypatch.setattr(trained_networks, "match", unlucky)
    words = "--game tic_tac_toe --games 4 --pairings raw:trained,random --save"
    monkeypatch.setattr(sys, "argv", ["trained_networks.py", *words.split()])
    with pytest.raises(KeyboardInterrupt):
        trained_networks.main()
    assert not list(tmp_path.iterdir())


def test_mistakes_are_saved_with_what_they_depend_on(monkeypatch, tmp_path):
    def wrong(policy, params, positions, show):
        if asked:
            raise KeyboardInterrupt
        asked.append(policy)
        return np.zeros(len(positions.phase), bool)

    asked, file = [], tmp_path / "new" / "found.json"
    monkeypatch.setattr(mistakes, "wrong", wrong)
    monkeypatch.setattr(sys, "argv", ["mistakes.py", "--json", str(file), "--simulations", "2"])
    with pytest.raises(KeyboardInterrupt):
        mistakes.main()
    found = json.loads(file.read_text())
    assert found["raw"]["all"][0] == 0 and "2" not in found
    assert found["positions"] == {"file": outcome_mistakes.CONNECT_FOUR.name, "count": 1144}
    assert found["network"]["game"] == "connect_four" and {"date", "hardware", "versions", "searches"} <= set(found)


def test_games_against_a_perfect_player_are_saved_after_each_colour(monkeypatch, tmp_path):
    def played(game, think, solver, board_of, count, ours, seed):
        if ours:
            raise KeyboardInterrupt
        return ["1213141"] * count

    board_of = lambda moves: types.SimpleNamespace(has_win=lambda: True)
    monkeypatch.setattr(perfect_play, "RESULTS", tmp_path)
    monkeypatch.setattr(perfect_play, "played", played)
    monkeypatch.setattr(perfect_play.exact_positions, "solver_and_board", lambda: (None, board_of))
    monkeypatch.setattr(sys, "argv", ["perfect_play.py", "--save", "--games", "2", "--seed", "5"])
    with pytest.raises(KeyboardInterrupt):
        perfect_play.main()
    (file,) = tmp_path.iterdir()
    found = json.loads(file.read_text())
    assert found["first"]["won"] == 2 and "second" not in found and found["seed"] == 5
    usual = {name: x.default for name, x in inspect.signature(completed_by_mix_value).parameters.items()}
    assert found["searches"] == {name: usual[name] for name in ("value_scale", "rescale_values")}
