"""How the experiments in experiments/muzero/ save: what was published stays, and mistakes come before the training."""

import json
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments" / "muzero"))  # as running a script there does; last, so that it hides nothing

import cartpole_seeds  # noqa: E402
import codes_of_chance  # noqa: E402
import peers_on_cartpole  # noqa: E402
import saved_rows  # noqa: E402
import towers_on_2048  # noqa: E402
import training_seeds  # noqa: E402


def called(script, words, monkeypatch):
    """Runs the script's main with these arguments."""
    monkeypatch.setattr(sys, "argv", [script.__name__ + ".py", *words.split()])
    script.main()


@pytest.fixture
def seeds(monkeypatch, tmp_path):
    """training_seeds.py without training; gives the folder of its results, and the seeds that it ran."""
    ran = []

    def one_seed(given, seed, folder, flags):
        ran.append(seed)
        if seed == 9:
            raise RuntimeError("interrupted")
        return {"seed": seed, "curve": [], "after": {}}

    monkeypatch.setattr(training_seeds, "RESULTS", tmp_path)
    monkeypatch.setattr(training_seeds, "one_seed", one_seed)
    monkeypatch.chdir(tmp_path)
    return tmp_path, ran


def test_each_seed_is_saved_as_it_ends_with_its_own_circumstances(seeds, monkeypatch):
    folder, ran = seeds
    file, old = folder / "muzero_tic_tac_toe.json", {"date": "2000", "hardware": {}, "versions": {}}
    file.write_text(json.dumps(old | {"flags": [], "seeds": [{"seed": 1, "curve": [], "after": {}}]}))
    with pytest.raises(RuntimeError):
        called(training_seeds, "--first 0 --seeds 10 --save", monkeypatch)
    found = json.loads(file.read_text())
    assert ran == [0, *range(2, 10)], "seed 1 was there"
    assert [row["seed"] for row in found["seeds"]] == list(range(9))
    assert found["seeds"][1]["date"] == "2000" != found["seeds"][0]["date"]
    assert (found["game"], found["model"], found["flags"]) == ("tic_tac_toe", "learned", [])


@pytest.mark.parametrize("words, said", [
    ("--game cartpole --save", "muzero_cartpole.json has other results"),
    ("--save --minutes 1", r"its flags: \[\]; given: \['--budget.minutes', '1.0'\]"),
    ("--save --name tic_tac_toe", "its game: not recorded; given: tic_tac_toe"),
    ("--save --name new --game pendulum", "its game: tic_tac_toe; given: pendulum"),
    ("--save --name new --model stochastic", "its model: learned; given: stochastic"),
])  # fmt: skip
def test_results_of_another_kind_are_refused_before_the_training(words, said, seeds, monkeypatch, capsys):
    folder, ran = seeds
    (folder / "muzero_cartpole.json").write_text(json.dumps({"time": {"flags": []}}))
    (folder / "muzero_tic_tac_toe.json").write_text(json.dumps({"flags": [], "seeds": []}))
    new = {"game": "tic_tac_toe", "model": "learned", "flags": [], "seeds": []}
    (folder / "muzero_new.json").write_text(json.dumps(new))
    before = {file: file.read_text() for file in folder.glob("*.json")}
    with pytest.raises(SystemExit):
        called(training_seeds, words, monkeypatch)
    said_by_it = capsys.readouterr().err
    assert re.search(said, said_by_it) and "--name" in said_by_it
    assert not ran and before == {file: file.read_text() for file in folder.glob("*.json")}


def test_rows_are_added_and_never_replaced(tmp_path):
    file = tmp_path / "rows.json"
    assert [saved_rows.add(file, name, {"n": n}) for n, name in enumerate(["time", "other", "time", "time"])] == [
        "time", "other", "time-2", "time-3",
    ]  # fmt: skip
    assert json.loads(file.read_text()) == {"time": {"n": 0}, "other": {"n": 1}, "time-2": {"n": 2}, "time-3": {"n": 3}}


def test_a_second_measurement_of_cartpole_is_a_row_of_its_own(monkeypatch, tmp_path):
    row = {"seconds": 1.0, "environment_steps": 2, "fresh_mean": 3.0}
    monkeypatch.setattr(cartpole_seeds, "RESULTS", tmp_path)
    monkeypatch.setattr(cartpole_seeds, "one_seed", lambda seed, goal, flags: row | {"seed": seed})
    for _ in range(2):
        called(cartpole_seeds, "--save --seeds 1", monkeypatch)
    assert list(json.loads((tmp_path / "muzero_cartpole.json").read_text())) == ["time", "time-2"]


@pytest.mark.parametrize("script, words, rows", [
    (codes_of_chance, "--save --seeds 1 --steps 1", {"learned": lambda *given: (0.5, 0.1)}),
    (towers_on_2048, "--save", {"ROWS": (), "boards": lambda games, moves: towers_on_2048.np.zeros((4096, 16), "u1")}),
])  # fmt: skip
def test_figures_go_to_a_new_file(script, words, rows, monkeypatch, tmp_path):
    (file := tmp_path / "found.json").write_text("published")
    for name, value in (rows | {"RESULTS": file}).items():
        monkeypatch.setattr(script, name, value)
    called(script, words, monkeypatch)
    assert file.read_text() == "published" and "rows" in json.loads((tmp_path / "found-2.json").read_text())


def listing(**versions):
    """What `pip list` of the other environment prints."""
    return json.dumps([{"name": name, "version": version} for name, version in versions.items()])


def test_an_environment_without_the_peers_is_answered_before_anything_runs(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        called(peers_on_cartpole, "--python nowhere/python", monkeypatch)
    assert "--python: nowhere/python -m pip list: " in capsys.readouterr().err
    monkeypatch.setattr(peers_on_cartpole.subprocess, "check_output", lambda *given, **how: listing(mujax="1"))
    with pytest.raises(SystemExit):
        called(peers_on_cartpole, "--python python", monkeypatch)
    assert "muax is not installed" in capsys.readouterr().err


def test_seeds_of_the_peers_are_saved_with_the_peers_versions(monkeypatch, tmp_path):
    def one_seed(python, name, seed, limit):
        if name == "muax":
            sys.exit("muax failed")
        return {"seed": seed}

    monkeypatch.setattr(peers_on_cartpole, "RESULTS", tmp_path / "found.json")
    monkeypatch.setattr(peers_on_cartpole, "one_seed", one_seed)
    versions = listing(mujax="1", muax="2", jax="0.0.1", pip="3")
    monkeypatch.setattr(peers_on_cartpole.subprocess, "check_output", lambda *given, **how: versions)
    with pytest.raises(SystemExit, match="muax failed"):
        called(peers_on_cartpole, "--python python --save --seeds 2", monkeypatch)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["mujax"] == {"version": "1", "seeds": [{"seed": 0}, {"seed": 1}]}
    assert found["versions"]["jax"] == "0.0.1" and "flax" not in found["versions"]
