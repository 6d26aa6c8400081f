"""Playing in the terminal; through the protocol and in the browser, as processes."""

import dataclasses
import io
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

import jax
import pytest
import rich.console
import rich.status

from jaxzero import games, models, nets
from jaxzero.cli.playing import play, play_settings, protocol, terminal_ui
from jaxzero.cli.training import command_line, train
from tests import processes
from tests.games import dice_race

ROOT = pathlib.Path(__file__).resolve().parents[3]

SETTINGS = play_settings.parse(["--game", "tic_tac_toe", "--simulations", "30"]).player


@pytest.fixture(scope="module")
def thinker():
    return play.engine(SETTINGS, 0, 0.0)[0]


def typed(thinker, *words, second=False):
    """A session at the terminal; the person says `quit` when nothing is left."""
    left, asked = list(words), []

    def ask(question):
        asked.append(question)
        return left.pop(0) if left else "quit" if "move" in question else "n"

    thinker.clear(number=0)
    terminal_ui.play(thinker, SETTINGS, play.limits(SETTINGS), second, ask)
    return asked


def test_a_game_is_played_and_what_is_no_move_is_told(thinker, capsys):
    asked = typed(thinker, "b2", "b2", "hello")
    out = capsys.readouterr().out
    assert "Your move (X)" in asked[0] and len(asked) == 4 and out.count("I play") == 1
    assert "'b2' is no legal move" in out and "'hello' is no legal move. There are:" in out
    said = " ".join(out.split())
    assert "of the points for me, after 30 simulations" in said and re.search(r"Expected line: [abc][123]", said)


def test_undo_swap_and_hint(thinker, capsys):
    typed(thinker, "b2", "undo", "undo", "hint")
    out = capsys.readouterr().out
    assert "There is no move of yours to take back." in out and out.count("I play") == 1
    assert "I would play" in out and "of the points for you" in out and thinker.moves == []
    typed(thinker, "swap", "undo", "quit")
    out = capsys.readouterr().out
    assert len(thinker.moves) == 1 and "You are O now." in out and "I play" in out and "no move of yours" in out
    typed(thinker, "quit", second=True)
    assert len(thinker.moves) == 1


@pytest.mark.slow
def test_the_pie_rule_of_hex_is_told(capsys):
    settings = play_settings.parse(["--game", "hex_3x3", "--simulations", "4", "--weights", "none"]).player
    thinker = play.engine(settings, 9, 0.0)[0]
    asked, words = [], iter(["swap", "quit"])

    def ask(question):
        asked.append(question)
        return next(words)

    thought = thinker.think

    def think(**limit):
        """It searches, and then begins in the centre, or takes over."""
        thought(**limit)
        return thinker.game.num_actions - 1 if thinker.moves else 4

    thinker.think = think
    terminal_ui.play(thinker, settings, play.limits(settings), False, ask)
    assert asked[0].startswith("Your move (X), hint")  # there is no stone to take over yet
    out = " ".join(capsys.readouterr().out.split())
    assert asked[1].startswith("Your move (O), swap-pieces to take over the first stone, hint")
    assert "I play b2." in out

    thinker.clear(number=0)
    words = iter(["b2", "quit"])
    terminal_ui.play(thinker, settings, play.limits(settings), False, ask)
    out = " ".join(capsys.readouterr().out.split())
    assert "I play swap-pieces." in out and "Your stone is mine now, on its mirror image. You are still X." in out


def test_help_lists_the_commands_and_enter_alone_asks_again(thinker, capsys):
    asked = typed(thinker, "help", "?", "", "   ")
    out = capsys.readouterr().out
    for word in ("hint", "undo", "swap", "quit", "help, ?"):
        assert len(re.findall(rf"^  {re.escape(word)} ", out, re.MULTILINE)) == 2, word
    assert len(asked) == 5 and "no legal move" not in out and out.count("   a b c") == 1


def test_what_the_search_thinks_of_your_moves_is_told_when_it_is_asked_for(thinker, capsys):
    typed(thinker, "hint", "b2", "hint")
    out = capsys.readouterr().out
    before, after = out.split("I would play", 1)
    assert "visits" not in before
    tables = re.findall(r"  move   points   visits\n((?: +[abc][123] +\d+ % +\d+ %\n)+)", after)
    assert len(tables) == 2, "after each hint, and not before the second move"
    best = thinker.report().candidates
    rows = [line.split() for line in tables[-1].splitlines()]
    assert len(rows) >= 5
    called = terminal_ui.names(thinker.game)
    assert [row[0] for row in rows] == [called[one.action] for one in best[:7]]
    assert [int(row[1]) for row in rows] == [round(50 * (one.value + 1)) for one in best[:7]]
    for said in ("a draw is half a point", "Visits: the share of the search"):
        assert " ".join(out.split()).count(said) == 1, "said once"


def test_nothing_is_told_of_moves_before_the_first_one(thinker, monkeypatch):
    known, numbers = [], []

    def begin(engine, *_):
        known.append(terminal_ui.table(engine))
        numbers.append(engine.number)

    monkeypatch.setattr(play, "engine", lambda *_: (thinker, "nothing"))
    monkeypatch.setattr(terminal_ui, "play", begin)
    play.main(play_settings.Play(SETTINGS))
    assert known == [[]] and numbers == [0], "compiling is no game"


def test_lines_fit_a_terminal_and_the_board_is_shown_when_it_has_changed(thinker, capsys):
    typed(thinker, "b2", "x" * 500, "hint", "undo")
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 80
    assert sum(line.startswith("   a b c") for line in lines) == 4  # at first, after each move, after undo


def test_progress_is_shown_where_thinking_takes_long(thinker, monkeypatch):
    shown = []
    console = rich.console.Console(force_terminal=True, file=io.StringIO())
    monkeypatch.setattr(terminal_ui.progress_display, "console", console)
    monkeypatch.setattr(rich.status.Status, "update", lambda self, text: shown.append(text))
    thinker.clear(number=0)
    with terminal_ui.thinking(("a1",) * 9) as look:
        thinker.think(seconds=0.3, look=look)
    assert shown == []
    with terminal_ui.thinking(("a1",) * 9) as look:
        thinker.think(seconds=1.8, look=look)
    assert 1 <= len(shown) <= 5 and all(re.match(r"Thinking, [12] s: a1 \(", text) for text in shown)


def test_a_game_ends_and_another_begins(thinker, capsys):
    moves = [f"{column}{row}" for row in "123" for column in "abc"]
    asked = typed(thinker, *moves * 3)
    out = capsys.readouterr().out
    assert any("Another game?" in question for question in asked)
    assert "has won" in out or "is a draw" in out


def test_another_game_has_another_number(thinker):
    numbers, answers = [], iter("yn")

    def ask(question):
        numbers.append(thinker.number)
        if "Another game?" in question:
            return next(answers)
        return thinker_names[int(thinker.legal().argmax())]

    thinker_names = terminal_ui.names(thinker.game)
    thinker.clear(number=0)
    terminal_ui.play(thinker, SETTINGS, play.limits(SETTINGS), False, ask)
    assert sorted(set(numbers)) == [0, 1]


def test_a_tree_is_kept_only_where_no_dice_are_rolled():
    """The move was searched with a roll that the search drew; the position has another."""
    for game, kept in ((games.from_pgx("tic_tac_toe"), True), (dice_race.game._replace(outcomes=None), False)):
        build = play.spreading(play.jz.uct, play.jz.ucb1(0.5), capacity=60)
        engine = play.Engine(game, play.searches(game, models.rollout(game), build))
        engine.play(engine.think(40))
        assert (engine.report().visits > 0) == kept, game.id


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


def test_komi_is_that_of_the_rules(monkeypatch):
    built = []
    idle = lambda *given: play.Engine(play.rules(*given), lambda n, stop: None)
    monkeypatch.setattr(play, "engine", lambda *given: built.append(given) or (idle(*given), "nothing"))
    talk = protocol.session(play_settings.Player("go_9x9", komi=5.5))
    assert talk.komi == 7.5 and talk.answer("final_score") == "= W+7.5\n\n"
    assert talk.answer("komi 5.5") == "? komi 5.5: the rules of go_9x9 have 7.5\n\n"
    assert talk.answer("komi 7.5") == "=\n\n" and talk.komi == 7.5 and len(built) == 1


def test_a_game_without_komi_lets_anything_be_said_of_it():
    talk = protocol.session(play_settings.Player("tic_tac_toe"))
    engine = talk.engine
    assert talk.answer("komi 6.5") == "=\n\n" and talk.engine is engine
    assert talk.answer("boardsize 3") == "=\n\n" and talk.answer("boardsize 9") == "? unacceptable size\n\n"


def test_a_network_knows_one_size_and_playouts_know_all(monkeypatch):
    built = []
    idle = lambda *given: play.Engine(play.rules(*given), lambda n, stop: None)
    monkeypatch.setattr(play, "engine", lambda *given: built.append(given[1:]) or (idle(*given), "nothing"))
    monkeypatch.setattr(play, "resolved", lambda player: dataclasses.replace(player, game="go", size=5, komi=0.5))
    talk = protocol.session(play_settings.Player(weights="some.safetensors"))
    assert built == [(5, 0.5)], "what is wrong with the weights is told at once"
    assert talk.answer("boardsize 9") == "? unacceptable size\n\n" and talk.answer("boardsize 5") == "=\n\n"
    talk = protocol.session(play_settings.Player(size=4))
    assert len(built) == 1, "nobody has asked for a board yet"
    sizes = [size for size in range(40) if talk.answer(f"boardsize {size}") == "=\n\n"]
    assert sizes == list(range(2, 26))


NAME_FIRST = """
import io, sys
lines = b"name,version,protocol_version,list_commands,known_command play,quit,".replace(b",", bytes([10]))
sys.stdin = io.TextIOWrapper(io.BytesIO(lines))
from jaxzero.cli.main import main
main({arguments})
assert "jax" not in sys.modules, "it takes seconds to import"
"""


@pytest.mark.parametrize("arguments", [["gtp"], ["play", "--gtp", "--size", "19"]])
def test_the_name_waits_for_nothing(arguments):
    done = processes.python(NAME_FIRST.format(arguments=arguments))
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("\n\n")
    assert answers[0] == "= jaxzero" and answers[2] == "= 2" and answers[4] == "= true" and done.stderr == ""


@pytest.mark.parametrize("flags, says", [
    (["--game", "hex", "--size", "7"], "not for hex. Hex of another size is --game hex_7x7"),
    (["--game", "go_9x9", "--komi", "6.5"], "--komi 6.5 is for --game go only"),
    (["--weights", "nowhere"], "no such file"), (["--exploration", "-1"], "--exploration -1: give 0 or more"),
    (["--exploration", "nan"], "--exploration nan"), (["--simulations", "0"], "--simulations 0"),
    (["--komi", "0.3"], "--komi 0.3"), (["--komi", "nan"], "--komi nan"), (["--komi", "-inf"], "--komi -inf"),
    (["--seconds", "nan"], "--seconds nan"), (["--seconds", "inf"], "--seconds inf: give a finite time"),
    (["--browser", "--gtp"], "one of them"), (["--browser", "--ponder"], "leave --ponder out"),
    (["--port", "8000"], "--port 8000: it is the port of the page, so give --browser, too."),
    (["--browser", "--port", "70000"], "--port 70000: give a port from 1 to 65535."),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(flags, says):
    with pytest.raises(SystemExit) as caught:
        play_settings.parse(flags)
    assert says in str(caught.value)


def test_a_folder_that_is_not_there_is_answered_by_the_nearest(tmp_path):
    (tmp_path / "othello").mkdir()
    with pytest.raises(SystemExit, match=r"there is no such file or folder\. Did you mean .*/othello\?"):
        play_settings.parse(["--weights", str(tmp_path / "othelo")])


def test_the_network_that_comes_along_can_be_asked_for():
    player = play_settings.parse(["--game", "tic_tac_toe", "--weights", "trained"]).player
    assert "that comes with jaxzero" in play.engine(play.resolved(player), 9, 7.0)[1]
    with pytest.raises(ValueError, match="no network comes with jaxzero for --game hex_3x3 with these rules. Leave"):
        play.engine(play_settings.Player(game="hex_3x3", weights="trained"), 9, 7.0)


@pytest.mark.parametrize("flags, rule, constants", [
    ([], "puct", [()]), (["--exploration", "0.5"], "puct", [(0.5,)]),
    (["--weights", "none"], "ucb1", [(0.5,)]), (["--weights", "none", "--exploration", "0.2"], "ucb1", [(0.2,)]),
])  # fmt: skip
def test_the_search_explores_as_the_settings_say(monkeypatch, flags, rule, constants):
    asked, whole = [], getattr(play.jz, rule)
    monkeypatch.setattr(play.jz, rule, lambda *given: (asked.append(given), whole(*given))[1])
    play.engine(play_settings.parse(["--game", "tic_tac_toe", *flags]).player, 0, 0.0)
    assert asked == constants


@pytest.mark.parametrize("name, says", [
    ("conect_four", "Did you mean 'connect_four'?"), ("go19", "Did you mean 'go_19x19'?"), ("Othelo", "Did you mean"),
    ("no_such_module:game", "there is no module no_such_module"),
    ("nothing", "Also go (--size 7), hex_7x7 and other sizes"),
])  # fmt: skip
def test_a_game_that_there_is_not_is_answered_by_the_nearest(name, says):
    with pytest.raises(SystemExit) as caught:
        play.main(play_settings.parse(["--game", name]))
    assert says in str(caught.value) and "play: " in str(caught.value)


def test_the_game_is_taken_from_the_weights(tmp_path):
    file = str(ROOT / "jaxzero" / "nets" / "trained" / "tic_tac_toe.safetensors")
    resolved = lambda **given: play.resolved(play_settings.Player(**given))  # noqa: E731
    assert resolved().game == "go" and resolved(game="hex", weights=file).game == "hex"
    assert resolved(weights=file).game == "tic_tac_toe"
    (tmp_path / "config.json").write_text('{"game": "go", "size": 5, "komi": 0.5}')
    found = resolved(weights=str(tmp_path))
    assert (found.game, found.size, found.komi) == ("go", 5, 0.5)
    found = resolved(weights=str(tmp_path), size=7, komi=1.5)  # what is asked for stays
    assert (found.game, found.size, found.komi) == ("go", 7, 1.5)
    assert (resolved().size, resolved().komi) == (9, 7.0)


@pytest.mark.parametrize("kept, says", [
    ('{"game": "runs.evil:game"}', "If you trust it, add --game runs.evil:game"),
    ('{"game": "runs/evil.py:game"}', "If you trust it"), ('{"game": "a:evil.py:game"}', "If you trust it"),
    ('{"game": 5}', "does not name its game"), ('{"game": "cartpole"}', "of cartpole, which has no opponent"),
    ("{", "cannot be read: JSONDecodeError"), ("{}", "cannot be read: KeyError"), ("[]", "cannot be read: KeyError"),
    ('{"game": "go", "size": "9"}', "does not name its game"),
])  # fmt: skip
def test_a_folder_from_anywhere_makes_us_import_nothing(tmp_path, kept, says):
    (tmp_path / "config.json").write_text(kept)
    with pytest.raises(ValueError, match=re.escape(says)):
        play.resolved(play_settings.Player(weights=str(tmp_path)))


@pytest.mark.parametrize("game, says", [
    ("cartpole", "a run's report.html shows what was learned"), ("2048", "jaxzero play --game 2048 plays it"),
    ("minatar-breakout", "has no opponent to play against"),
])  # fmt: skip
def test_what_has_no_opponent_is_not_played(game, says):
    with pytest.raises(SystemExit, match=f"gtp: --game {game} .*{says}"):
        play.main(play_settings.parse(["--gtp", "--game", game]))


def test_nothing_but_the_protocol_is_written_where_the_protocol_is_spoken(capsys):
    """What a game warns of is on stderr then."""
    games.from_pgx.cache_clear()  # a game warns once in a process
    with pytest.warns(UserWarning, match="hidden cards"):
        play.engine(play_settings.Player(game="kuhn_poker"), 9, 7.0)
    assert capsys.readouterr().out == ""


def test_what_only_the_game_knows_is_answered_in_a_sentence(tmp_path):
    weights = ROOT / "jaxzero" / "nets" / "trained" / "tic_tac_toe.safetensors"
    for given, says in ((weights, "tic_tac_toe"), (tmp_path, "no weights.safetensors in this folder")):
        for flags in ([], ["--browser"], ["--gtp"]):
            wrong = play_settings.parse(["--game", "connect_four", "--weights", str(given), *flags])
            with pytest.raises(SystemExit, match=rf"(play|gtp): .*{says}") as caught:
                play.main(wrong)
            assert "\n" not in str(caught.value)


# --- the browser, as a process ---------------------------------------------------------------------------------------


class Served:
    """`play.py --browser`, and what it says."""

    def __init__(self, *flags):
        command = [sys.executable, str(ROOT / "experiments" / "play.py"), "--browser", "--simulations", "20", *flags]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True
        )
        self.lines = [self.process.stdout.readline(), self.process.stdout.readline()]
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.lines[1])
        self.port = int(found[1]) if found else None

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=20) as said:
            return said.read().decode()

    def ended(self, number):
        """Exit status and what was written, after a signal."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, "".join(self.lines) + out, err


@pytest.mark.slow
def test_the_page_as_a_process_and_its_end():
    one = Served("--game", "tic_tac_toe")
    assert "Tic-tac-toe: against the network" in one.lines[0] and "Ctrl-C ends it" in one.lines[1]
    assert "page.js" in one.get("/")
    other = Served("--game", "tic_tac_toe")  # while both compile
    assert other.port != one.port and json.loads(other.get("/about"))["trees"]
    third = subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "play.py"), "--browser", "--port", str(one.port)],
        capture_output=True, text=True, timeout=200, cwd=ROOT,
    )  # fmt: skip
    assert third.returncode == 1 and f"play: --port {one.port}: Address already in use" in third.stderr
    assert one.process.stdout.readline().startswith("Ready: the search was compiled in")
    for served, number in ((one, signal.SIGINT), (other, signal.SIGTERM)):
        code, out, err = served.ended(number)
        assert code == 0 and out.endswith("Ended.\n") and err == ""


@pytest.mark.slow
def test_the_page_ends_at_once_while_it_compiles():
    served = Served("--game", "connect_four", "--capacity", "777")  # a shape that no cache has
    began = time.monotonic()
    code, out, err = served.ended(signal.SIGINT)
    assert code == 0 and err == "" and time.monotonic() - began < 15


def test_weights_of_go_say_the_komi_that_they_learned_with(tmp_path):
    config = command_line.parse("--game go --size 3 --komi 5.5 --network.kind mlp --network.hidden 4".split())
    game = games.go(3, 5.5)
    train.export(config, tmp_path, game, nets.mlp(game, hidden=(4,), key=jax.random.key(0))[1], 7)
    player = play.resolved(play_settings.Player(weights=str(tmp_path / "weights.safetensors")))
    assert (player.game, player.size, player.komi) == ("go", 3, 5.5)
    assert "komi" not in play.engine(player, player.size, player.komi)[1]
    asked = play.resolved(dataclasses.replace(player, komi=7.0))
    assert "(step 7), trained with komi 5.5" in play.engine(asked, asked.size, asked.komi)[1]
