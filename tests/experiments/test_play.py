"""Playing in the terminal, and through the protocol, as a process."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "experiments"))  # as running a script there does; last, so that it hides nothing

import play  # noqa: E402
import play_config  # noqa: E402

SETTINGS = play_config.parse(None, ["--game", "tic_tac_toe", "--simulations", "30"]).player


@pytest.fixture(scope="module")
def thinker():
    return play.engine(SETTINGS, 0, 0.0)[0]


def typed(thinker, *words, second=False):
    """A session at the terminal; the person says `quit` when nothing is left."""
    left, asked = list(words), []

    def ask(question):
        asked.append(question)
        return left.pop(0) if left else "quit" if "move" in question else "n"

    thinker.clear()
    play.terminal(thinker, SETTINGS, second, ask)
    return asked


def test_a_game_is_played_and_what_is_no_move_is_told(thinker, capsys):
    asked = typed(thinker, "b2", "b2", "hello", "")
    out = capsys.readouterr().out
    assert "Your move (X)" in asked[0] and len(asked) == 5 and out.count("I play") == 1
    assert "'b2' is no legal move" in out and "'hello' is no legal move. There are:" in out
    assert "to win with" in out and "line:" in out and " . X ." not in out.split("I play")[0].splitlines()[-1]


def test_undo_swap_and_hint(thinker, capsys):
    typed(thinker, "b2", "undo", "undo", "hint")
    out = capsys.readouterr().out
    assert "There is no move to take back." in out and out.count("I play") == 1 and "to win with" in out
    typed(thinker, "swap", "quit")
    assert len(thinker.moves) == 1 and "I play" in capsys.readouterr().out
    typed(thinker, "quit", second=True)
    assert len(thinker.moves) == 1


def test_a_game_ends_and_another_begins(thinker, capsys):
    moves = [f"{column}{row}" for row in "123" for column in "abc"]
    asked = typed(thinker, *moves * 3)
    out = capsys.readouterr().out
    assert any("Another one?" in question for question in asked)
    assert "has won" in out or "is a draw" in out


@pytest.mark.slow
def test_the_protocol_as_a_process():
    command = [sys.executable, str(ROOT / "experiments" / "play.py"), "--gtp", "--game", "tic_tac_toe"]
    lines = "name\nboardsize 3\ngenmove b\nplay w z9\nshowboard\nquit\n"
    done = subprocess.run(
        [*command, "--simulations", "20"], input=lines, capture_output=True, text=True, timeout=200, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("\n\n")
    assert (
        answers[0] == "= jaxzero" and answers[1] == "=" and answers[2].startswith("= ") and answers[3].startswith("?")
    )
    assert "Ready." in done.stderr and "X" in answers[4] and "Traceback" not in done.stderr


@pytest.mark.parametrize("flags, says", [
    (["--weights", "nowhere"], "no such file"), (["--simulations", "0"], "--simulations 0"),
    (["--komi", "0.3"], "--komi 0.3"), (["--seconds", "nan"], "--seconds nan"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, says):
    with pytest.raises(SystemExit) as caught:
        play_config.parse(None, flags)
    assert says in str(caught.value)


def test_what_only_the_game_knows_is_answered_in_a_sentence(tmp_path):
    wrong = play_config.parse(None, ["--game", "conect_four"])
    with pytest.raises(SystemExit, match=r"play.py: .*connect_four"):
        play.main(wrong)
    weights = ROOT / "jaxzero" / "nets" / "trained" / "tic_tac_toe.safetensors"
    other = play_config.parse(None, ["--game", "connect_four", "--weights", str(weights)])
    with pytest.raises(SystemExit, match=r"play.py: .*tic_tac_toe"):
        play.main(other)
