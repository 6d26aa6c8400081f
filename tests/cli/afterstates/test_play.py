"""`jaxzero play --game 2048`: its settings, its hints, and a game in the terminal."""

import io
import json
import re
import sys
import types

import jax
import numpy as np
import pytest
import rich.console

from jaxzero.cli import main as command
from jaxzero.cli.afterstates import play, play_settings, terminal
from jaxzero.cli.afterstates.hints import looking
from jaxzero.cli.afterstates.play_settings import parse
from jaxzero.cli.training.variant import plays_2048
from jaxzero.models.chance_2048 import move_values
from jaxzero.nets.files.ntuple_weights import save_ntuples
from jaxzero.nets.ntuples import ntuples
from jaxzero.play.game_2048 import session as games

TUPLES = ((0, 1), (0, 4))
NETWORK = ntuples(TUPLES)
WEIGHTS = jax.numpy.asarray(np.random.default_rng(0).uniform(0, 50, NETWORK.size), "float32")
KEY = np.uint32([0, 5])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run, as far as it is looked at."""
    folder = tmp_path_factory.mktemp("run")
    about = {"game": "2048", "tuples": [list(cells) for cells in TUPLES], "step": 12}
    save_ntuples(folder / "weights.safetensors", WEIGHTS, about)
    (folder / "config.json").write_text(json.dumps({"game": "2048", "model": "rules"}))
    return folder


@pytest.fixture(scope="module")
def look():
    found = looking(NETWORK.value, WEIGHTS, 0)
    found(positions(1)[-1])  # compiles, for all tests
    return found


def typed(look, *lines):
    """A session at the terminal; the end of the input is its end."""
    left, asked = list(lines), []

    def ask(question):
        asked.append(question)
        if not left:
            raise EOFError
        return left.pop(0)

    terminal.play(games.begin(KEY), look, ask)
    return asked


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags, said", [
    (("--simulations", "-1"), "--simulations -1: give 0, for no search, or more"),
    (("--seed", "-1"), "--seed -1: give a number from 0"), (("--browser", "--watch"), "leave --watch out"),
    (("--port", "8000"), "so give --browser, too"), (("--browser", "--port", "0"), "give a port from 1 to 65535"),
    (("--delay", "1"), "so give --watch, too"), (("--watch", "--delay", "-1"), "--delay -1: give seconds"),
    (("--watch", "--delay", "nan"), "--delay nan: give seconds"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(run, flags, said):
    with pytest.raises(SystemExit, match=f"play: .*{re.escape(said)}"):
        parse(["--weights", str(run), *flags])


def test_weights_that_are_missing_are_answered_by_how_to_train_some(run, tmp_path, monkeypatch):
    monkeypatch.setattr(play_settings, "TRAINED", tmp_path / "2048.safetensors")
    train = "jaxzero train --game 2048 --model rules --learn.tuples five_fours --budget.minutes 10"
    for flags, said in (([], "has no weights for 2048"), (["--weights", str(tmp_path / "none")], "no such file")):
        with pytest.raises(SystemExit, match=f"play: .*{said}") as caught:
            parse(flags)
        assert train in str(caught.value)
    with pytest.raises(SystemExit, match="no weights.safetensors in this folder"):
        parse(["--weights", str(tmp_path)])
    (tmp_path / "2048.safetensors").write_bytes((run / "weights.safetensors").read_bytes())
    assert play_settings.weights_file(parse([])) == tmp_path / "2048.safetensors"
    assert play_settings.weights_file(parse(["--weights", str(run)])) == run / "weights.safetensors"


def test_weights_of_another_kind_are_answered_by_how_to_train_some(tmp_path):
    file = tmp_path / "weights.safetensors"
    file.write_bytes(b"no weights")
    with pytest.raises(SystemExit, match="(?s)play: .*cannot be read.*n-tuple networks.*--learn.tuples five_fours"):
        play.looker(play_settings.Play(weights=str(file)))


def test_the_command_tells_2048_from_other_games(run, tmp_path, monkeypatch):
    words = ["--weights", str(run)]
    assert plays_2048(words) and plays_2048(["--weights", str(run / "weights.safetensors")])
    assert plays_2048(["--game=2048"]) and not plays_2048([*words, "--game", "go"]) and not plays_2048(["--weights"])
    for kept in ("{", "[]", '{"game": "go"}'):
        (tmp_path / "config.json").write_text(kept)
        assert not plays_2048(["--weights", str(tmp_path)])
    for module in ("playing", "afterstates"):
        fake = types.SimpleNamespace(parse=lambda given, module=module: (module, given), run=lambda config: config)
        for name in ("play_settings", "play", "protocol"):
            monkeypatch.setitem(sys.modules, f"jaxzero.cli.{module}.{name}", fake)
    assert command.main(["play", *words]) == ("afterstates", words)
    assert command.main(["play", "--game", "go"]) == ("playing", ["--game", "go"])
    assert command.main(["gtp", "--game", "2048"])[0] == "playing"


def test_help_lists_the_flags_and_that_of_other_games_mentions_2048(capsys):
    for words, said in (
        (["play", "--game", "2048", "--help"], ("--simulations", "--watch", "--delay", "--browser", "auto 10")),
        (["play", "--help"], ("jaxzero play --game 2048",)),
    ):
        with pytest.raises(SystemExit) as caught:
            command.main(words)
        out = capsys.readouterr().out
        assert caught.value.code == 0 and all(part in out for part in said)


# --- hints -----------------------------------------------------------------------------------------------------------


def positions(count):
    session = games.begin(KEY)
    while session.now.moves < count:
        session = games.play(session, session.now.legal[-(session.now.moves % 2)])
    return [*session.before, session.now]


def test_hints_without_a_search_are_the_values_of_moves(look):
    values = jax.jit(move_values, static_argnums=0)
    for turn in positions(20):
        hint = look(turn)
        np.testing.assert_array_equal(np.float32(hint.values), values(NETWORK.value, WEIGHTS, turn.cells))
        assert tuple(np.flatnonzero(np.isfinite(hint.values))) == turn.legal
        assert hint.best == np.argmax(hint.values) and hint.visits == (0, 0, 0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("simulations", [2, 8])
def test_hints_of_a_search_are_finite_for_legal_moves_only_and_count_what_a_move_pays(simulations):
    look = looking(NETWORK.value, WEIGHTS, simulations)
    without = looking(NETWORK.value, WEIGHTS, 0)
    for turn in positions(30):
        hint, said = look(turn), without(turn)
        assert tuple(np.flatnonzero(np.isfinite(hint.values))) == turn.legal and hint.best in turn.legal
        assert sum(hint.visits) == simulations and look(turn) == hint, "the same position has the same hint"
        for action in turn.legal:  # moves that were not searched have the network's word
            assert hint.visits[action] > 0 or hint.values[action] == said.values[action]
    # A merge of two 512 pays 1024, and these weights know nothing of it.
    big = turn._replace(cells=np.uint8([9, 9] + [0] * 14), legal=(0, 2, 3))
    hint = look(big)
    assert max(hint.values[0], hint.values[2]) > 1024 and hint.best in (0, 2)


# --- the terminal ----------------------------------------------------------------------------------------------------


def test_a_game_is_played_and_what_cannot_be_done_is_told(look, capsys):
    asked = typed(look, "s", "LEFT ", "", "hello", "undo", "undo", "undo", "hint", "auto 2", "auto", "auto x", "quit")
    out = " ".join(capsys.readouterr().out.split())
    assert len(asked) == 12 and "Move (a w d s), hint, undo, auto N, new, help or quit: " == asked[0]
    assert "'hello' is no command. Type a move: left, up, right, down, or a, w, d, s; or help." in out
    assert "There is no move to take back." in out and "auto x: give a number of moves, from 1 to 100,000" in out
    assert out.count("more are expected") == 3 and re.search(r"\d points after 3 moves; the largest tile is \d", out)
    assert out.count("the best") == 1 and out.count("the expected future score") == 1


def test_a_move_that_changes_nothing_says_why(look, capsys):
    typed(look, *["s"] * 9)
    assert "changes nothing: no tile moves or merges that way. You can go" in " ".join(capsys.readouterr().out.split())


def test_help_and_first_letters_are_enough(look, capsys):
    typed(look, "?", "h", "n", "u", "q")
    out = capsys.readouterr().out
    assert out.count("takes back the last move") == 1 and "the best" in out and out.count("moves 0\n") == 3


@pytest.mark.parametrize("stop", [EOFError, KeyboardInterrupt])
def test_the_end_of_the_input_and_ctrl_c_end_it_in_a_sentence(look, stop, capsys):
    def ask(question):
        raise stop

    terminal.play(games.begin(KEY), look, ask)
    assert capsys.readouterr().out.endswith("\n0 points after 0 moves; the largest tile is 4.\n")


def test_a_game_ends_and_another_begins(look, capsys):
    asked = typed(look, "auto 100000", "auto", "hint", "s", "new", "undo", "undo", "quit")
    out = capsys.readouterr().out
    assert [question.startswith("new, undo or quit") for question in asked].count(True) == 5
    assert out.count("The game is over: no move would change anything.") == 3
    assert re.search(r"The game is over: [\d,]+ points after [\d,]+ moves;", out)


def test_ctrl_c_stops_watching_and_not_the_game(look, capsys):
    def tired(turn):
        if turn.moves == 3:
            raise KeyboardInterrupt
        return look(turn)

    session = terminal.watch(games.begin(KEY), tired, 100, 0.0)
    assert session.now.moves == 3 and "Stopped." in capsys.readouterr().out


def test_tiles_have_colours_on_a_terminal_and_numbers_elsewhere(monkeypatch):
    turn = games.begin(KEY).now._replace(cells=np.arange(16, dtype=np.uint8))
    plain = terminal.board(turn).plain.splitlines()
    assert len(plain) == 4 and plain[0].split() == [".", "2", "4", "8"] and plain[3].split()[-1] == "32768"
    console = rich.console.Console(force_terminal=True, color_system="truecolor", file=io.StringIO(), width=80)
    monkeypatch.setattr(terminal.progress_display, "console", console)
    assert len(terminal.board(turn).plain.splitlines()) == 12
    terminal.show(turn)
    assert "\x1b[" in console.file.getvalue() and "32768" in console.file.getvalue()


def test_the_whole_command(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("s\nhint\nquit\n"))
    words = ["--weights", str(run), "--simulations", "0", "--seed", "3"]
    command.main(["play", *words])
    out = capsys.readouterr().out
    assert f"with hints by the weights of {run} (step 12)" in " ".join(out.split()).replace("- ", "-")
    assert "the best" in out and "points after 1 move;" in out
    command.main(["play", *words, "--watch", "--delay", "0"])
    first = capsys.readouterr().out
    assert "The game is over:" in first and "more are expected" in first
