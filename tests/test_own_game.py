"""A game of one's own, from the command line: what the page says is done as it says, and mistakes are answered."""

import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxzero import games
from tests import documents

PAGE = "notebooks/train_your_own_game.md"
SAME = games.Symmetry(lambda seen: seen, tuple(range(30)))
TINY = """
    --preset laptop --network.kind mlp --network.hidden 16 --selfplay.games 8 --selfplay.plies 4
    --selfplay.simulations 4 --selfplay.max-considered 4 --selfplay.window 32
    --learn.start 40 --learn.batch-size 16 --learn.capacity 1000
    --evaluate.games 6 --evaluate.simulations 4 --evaluate.rollouts 4 --evaluate.every 3 --budget.steps 6
""".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("own")
    for block in re.findall(r"```python\n(.*?)```", documents.text(PAGE), re.DOTALL):
        name = re.match(r"# (\w+\.py)\n", block)
        assert name, "each block of the page says which file it is"
        (folder / name[1]).write_text(block)
    return folder


def jaxzero(folder, *words, typed="", timeout=300):
    command = [sys.executable, "-m", "jaxzero", *words]
    given = dict(input=typed, capture_output=True, text=True, timeout=timeout, cwd=folder)
    return subprocess.run(command, env=os.environ | {"COLUMNS": "150"}, **given)


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return folder


@pytest.mark.parametrize("name", ["domineering", "three_in_a_row"])
def test_a_game_is_found_by_module_and_by_file(here, name):
    game = games.by_name(f"{name}:game")
    assert game.id == name and games.by_name(f"{here / name}.py:game").num_actions == game.num_actions


@pytest.mark.parametrize("name, plies", [("domineering", 15), ("three_in_a_row", 25), ("pig", 200)])
def test_random_games_keep_the_contract(here, name, plies):
    game = games.by_name(f"{name}:game")

    def ply(carry, key):
        state, paid = carry
        action = jax.random.categorical(key, jnp.where(game.legal(state), 0.0, -1e9))
        after = game.step(state, action, key)
        return (after, paid + game.rewards(after)), (game.terminal(state), jnp.any(game.legal(state)))

    def play(key):
        state = game.init(key)
        return jax.lax.scan(ply, (state, jnp.zeros(game.num_players)), jax.random.split(key, plies))

    (state, paid), (over, can) = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 32))
    assert bool(jax.vmap(game.terminal)(state).all()) and bool((over != can).all()), "legal moves until it is over"
    np.testing.assert_allclose(paid.sum(1), 0)
    assert set(np.unique(paid).tolist()) <= {-1.0, -0.5, 0.0, 1.0} and float(jnp.abs(paid).max()) == 1


def test_the_dice_of_pig_are_those_that_it_lists(here):
    game = games.by_name("pig:game")
    games.check_outcomes(game)
    state = game.init(jax.random.key(0))
    for face in (3, 5):
        state = game.outcomes.step(state, 0, face, None)
    assert game.text(state) == "Points: 0 and 0, and 10 in this turn of player 1"
    after = game.step(state, 1, jax.random.key(1))
    assert after.points.tolist() == [10, 0] and int(after.mover) == 1


def test_dominoes_lie_where_they_fit(here):
    game = games.by_name("domineering:game")
    start = game.init(jax.random.key(0))
    assert int(game.legal(start).sum()) == 4 * 6
    after = game.step(start, jnp.int32(0), jax.random.key(0))
    assert after.covered[:2, 0].all() and int(after.covered.sum()) == 2 and int(game.to_play(after)) == 1
    flat = np.flatnonzero(game.legal(after))
    assert len(flat) == 5 * 5 - 2 and 0 not in flat and 6 not in flat


@pytest.mark.parametrize("name, said", [
    ("dominering:game", "no module dominering.*Modules in this folder: domineering, pig, three"),
    ("dominering.py:game", "no file dominering.py"),
    ("domineering:play", "has no 'play'.*Games there: domineering:game"),
    ("domineering:step", "calling it without arguments fails: TypeError"),
    ("domineering:ROWS", "ROWS is of type int, not jaxzero.games.Game"),
    ("json:decoder", "decoder is of type module"),
])  # fmt: skip
def test_a_name_that_means_no_game_is_answered_by_what_there_is(here, name, said):
    with pytest.raises(ValueError, match=f"(?s)game {name}.*({said})"):
        games.by_name(name)


def test_a_module_that_fails_is_named(here):
    (here / "broken_one.py").write_text("1 / 0")
    (here / "needs_more.py").write_text("import no_such_package")
    with pytest.raises(ValueError, match="importing broken_one failed: ZeroDivisionError"):
        games.by_name("broken_one:game")
    with pytest.raises(ValueError, match="imports no_such_package, which is not installed"):
        games.by_name("needs_more:game")
    for name in ("broken_one", "needs_more"):
        pathlib.Path(f"{name}.py").unlink()


@pytest.mark.parametrize("change, said", [
    (lambda game: dict(num_actions=29), r"legal\(state\) returns bool\[30\]; it must be bool\[29\]"),
    (lambda game: dict(num_players=3), r"rewards\(state\) returns float32\[2\]; it must be float32\[3\]"),
    (lambda game: dict(observation_shape=(5, 6)), r"observe\(state\) returns float32\[5,6,4\]"),
    (lambda game: dict(to_play=lambda board: jnp.zeros(2, int)), r"to_play\(state\) returns int32\[2\]"),
    (lambda game: dict(terminal=lambda board: board.mover), r"terminal\(state\) returns int32\[\]"),
    (lambda game: dict(action_names=("a",)), "1 action_names for 30 actions"),
    (lambda game: dict(step=lambda s, a, k: game.step(s, a, k)._replace(mover=jnp.float32(0))), "step changes .*mover"),
    (lambda game: dict(step=lambda s, a, k: tuple(game.step(s, a, k))), "another structure than init"),
    (lambda game: dict(observe=lambda board: board.nothing),
     r"observe\(state\) fails \(test_own_game.py, line \d+\): AttributeError"),
    (lambda game: dict(legal=lambda board: game.legal(board) if board.mover else 0), r"legal\(state\) fails"),
    (lambda game: dict(num_players=0), "num_players is 0"),
    (lambda game: dict(num_players=True), "num_players is True"),
    (lambda game: dict(observation_shape=5), "observation_shape is 5"),
    (lambda game: dict(action_names=5), "action_names must be a tuple of words"),
    (lambda game: dict(action_names=("a b",) * 30), "action_names must be a tuple of words"),
    (lambda game: dict(action_names=("undo", *game.action_names[1:])), "undo are commands of"),
    (lambda game: dict(action_names=("B1", *game.action_names[1:])), "two actions have the same name"),
    (lambda game: dict(draw="<svg>"), "draw is a str"),
    (lambda game: dict(observation_shape=[5, 6, 4]), "give a tuple of whole numbers"),
    (lambda game: dict(legal=lambda board: game.legal(board if board.over else 0)), "jnp.where in place"),
    (lambda game: dict(legal=lambda board: np.asarray(game.legal(board))), "jnp in place of np"),
    (lambda game: dict(legal=lambda board: (game.legal(board),)[board.mover]), "jnp.asarray.table..i"),
    (lambda game: dict(legal=lambda board: game.legal(board)[game.legal(board)]), "jnp.where.mask, x, 0."),
    (lambda game: dict(step=lambda s, a, k: s._replace(mover=jnp.int32(int(a)))), r"no int\(\)"),
    (lambda game: dict(symmetries=(range(30),)), r"symmetries\[0\] is a range"),
    (lambda game: dict(symmetries=(games.Symmetry(lambda x: x, tuple(range(29))),)), r"each of 0 ... 29 once"),
    (lambda game: dict(symmetries=(games.Symmetry(lambda x: x.swapaxes(0, 1), tuple(range(30))),)),
     "the shape must stay the same"),
    (lambda game: dict(canonical=SAME), r"canonical is a Symmetry: give games.CanonicalForm\("),
    (lambda game: dict(canonical=games.CanonicalForm(jnp.any, range(30))), r"canonical.symmetry is a range"),
    (lambda game: dict(canonical=games.CanonicalForm(jnp.sum, SAME)), r"canonical.of_second.* returns float32\[\]"),
    (lambda game: dict(canonical=games.CanonicalForm(lambda x: x[..., 2] > 0, SAME)),
     r"returns bool\[5,6\]: return one bool"),
    (lambda game: dict(input_features=jnp.sum), r"returns float32\[\] for float32.*return float32\[2,5,6,any n"),
    (lambda game: dict(input_features=lambda x: x.swapaxes(1, 2)), r"return float32\[2,5,6,any number\]"),
    (lambda game: dict(input_features=3), "input_features is a int: give a function of a batch of observations"),
    (lambda game: dict(input_features=lambda x: x > 0), r"input_features\(observations\) returns bool"),
])  # fmt: skip
def test_functions_that_do_not_fit_the_record_are_named(here, change, said):
    game = games.by_name("domineering:game")
    games.check_rules(game)
    with pytest.raises(ValueError, match=f"game domineering: .*{said}"):
        games.check_rules(game._replace(**change(game)))


def test_three_players_have_no_canonical_form(here):
    game = games.by_name("three_in_a_row:game")
    form = games.CanonicalForm(jnp.any, games.Symmetry(lambda seen: seen, tuple(range(game.num_actions))))
    with pytest.raises(ValueError, match="canonical is for two players, and num_players is 3: set it to None"):
        games.check_rules(game._replace(canonical=form))


def test_a_board_that_is_not_square_has_no_board_symmetries():
    with pytest.raises(ValueError, match=r"num_actions=30\): the actions have to be the squares of a square board"):
        games.game.board_symmetries(30)
    assert len(games.game.board_symmetries(27, [(0, False), (0, True)])) == 2, "pass and swap stay"


@pytest.mark.parametrize("id", ["", "a/b", None, "two words"])
def test_an_id_that_is_no_word_is_refused(here, id):
    with pytest.raises(ValueError, match="its id must be a word"):
        games.check_rules(games.by_name("domineering:game")._replace(id=id))


def test_a_file_hides_no_module_of_its_name(here):
    import json

    (here / "json.py").write_text((here / "domineering.py").read_text())
    assert games.by_name("./json.py:game").id == "domineering" and sys.modules["json"] is json
    (here / "json.py").unlink()


@pytest.mark.slow
@pytest.mark.parametrize("name, seats", [
    pytest.param("domineering", 2, marks=pytest.mark.exhaustive), ("three_in_a_row", 3),
])  # fmt: skip
def test_it_is_trained_played_and_rated(folder, name, seats):
    done = jaxzero(folder, "train", "--game", f"{name}:game", *TINY)
    assert done.returncode == 0, done.stderr
    assert "Compiling self-play" in done.stdout and "It makes" in done.stdout
    assert ("would be even" in done.stdout) == (seats > 2)
    report = (folder / "runs" / name / "report.html").read_text()
    assert 'class="verdict"' in report and "<details>" in report and report.count("rect x=") > 100, "drawn by its draw"
    assert "Rating" in report

    played = jaxzero(folder, "play", "--weights", f"runs/{name}", "--simulations", "8", typed="hint\nquit\n")
    assert played.returncode == 0, played.stderr
    assert "Moves so far: none." in played.stdout and "I would play" in played.stdout

    words = "tournament", "--games", "12", "--players", "random", f"runs/{name}:4"  # the game is the run's
    rated = jaxzero(folder, *words)
    assert rated.returncode == 0, rated.stderr
    told = " ".join(rated.stdout.split())  # titles are as wide as their tables
    assert "Points in 12 games each, after 4 random moves" in told and "Elo" in told

    other = {"domineering": "three_in_a_row", "three_in_a_row": "domineering"}[name]
    wrong = jaxzero(folder, "play", "--game", f"{other}:game", "--weights", f"runs/{name}")
    assert wrong.returncode != 0 and f"it is for the game '{name}'" in wrong.stderr.replace('"', "'")
    named = jaxzero(folder, "play", "--weights", f"runs/{name}/weights.safetensors")
    assert named.returncode != 0 and f"--game {name}:game" in named.stderr

    file = folder / f"{name}.py"
    kept = file.read_text()
    file.write_text(f"{kept}\ngame = game._replace(rewards=lambda state, paid=game.rewards: paid(state) / 2)\n")
    changed = jaxzero(folder, "train", "--game", f"{name}:game", *TINY)
    file.write_text(kept)
    assert changed.returncode != 0 and f"games differ from those when the run in runs/{name} began" in changed.stderr
