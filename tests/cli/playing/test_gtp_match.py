"""A match against another program, which may behave or not."""

import json
import os
import pathlib
import queue
import re
import shlex
import signal
import subprocess
import sys
import threading
import types

import pytest

from jaxzero import games
from jaxzero.cli.playing import play, play_settings, tournament
from jaxzero.cli.playing.gtp_match import match as gtp_match
from jaxzero.cli.playing.gtp_match import program as gtp_program
from jaxzero.cli.playing.gtp_match import results as gtp_match_results
from jaxzero.cli.playing.gtp_match import settings as gtp_match_settings

ROOT = pathlib.Path(__file__).resolve().parents[3]

SIMPLE = [sys.executable, str(ROOT / "tests" / "play" / "simple_gtp.py")]


def config(folder, *flags, manner=""):
    opponent = shlex.join([*SIMPLE, manner] if manner else SIMPLE)
    given = ["--opponent", opponent, "--game", "tic_tac_toe", "--simulations", "40", "--folder", str(folder)]
    return gtp_match_settings.parse([*given, "--games", "4", *flags])


@pytest.fixture(scope="module")
def engine():
    """One engine for all matches: its programs are compiled once."""
    settings = config(pathlib.Path("nowhere"))
    return play.engine(settings.player, 0, 0.0)


@pytest.fixture(autouse=True)
def prepared(engine, monkeypatch):
    monkeypatch.setattr(gtp_match, "engine", lambda *_: engine)


def test_a_match_is_played_saved_and_counted(tmp_path, capsys):
    gtp_match.main(config(tmp_path / "match", "--opening-plies", "2"))
    out = capsys.readouterr().out
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert results["opponent"] == "first free square 1" and len(results["games"]) == 4
    score = results["score"]
    assert score["losses"] == 0 and score["wins"] + score["draws"] == 4 and "4/4" in out
    assert [game["ours"] for game in results["games"]] == [0, 1, 0, 1]
    openings = [tuple(game["moves"][:2]) for game in results["games"]]
    assert openings[0] == openings[1] and openings[2] == openings[3] and len(set(openings)) == 2
    records = sorted((tmp_path / "match").glob("*.sgf"))
    assert len(records) == 4 and "PB[jaxzero]" in records[0].read_text() and "PW[jaxzero]" in records[1].read_text()
    for game in results["games"]:
        assert game["how"] == "both agree" and (game["result"][0] == "BW"[game["ours"]] or game["result"] == "0")


@pytest.mark.parametrize(
    "manner, result, how", [("resigns", "+R", "the other resigned"), ("cheats", "+F", "the other made an illegal move")]
)
def test_a_game_that_ends_early(tmp_path, manner, result, how):
    gtp_match.main(config(tmp_path / "match", "--opening-plies", "0", manner=manner))
    games = json.loads((tmp_path / "match" / "result.json").read_text())["games"]
    early = [game for game in games if game["how"] == how]
    assert early and all(game["result"] == "BW"[game["ours"]] + result for game in early)


def test_who_gives_up_has_lost(tmp_path):
    gtp_match.main(config(tmp_path / "match", "--simulations", "120", "--resign", "0.99"))
    games = json.loads((tmp_path / "match" / "result.json").read_text())["games"]
    given_up = [game for game in games if game["how"] == "we resigned"]
    assert given_up and all(game["result"] == "WB"[game["ours"]] + "+R" for game in given_up)


@pytest.mark.parametrize("flags", [[], ["--ponder"]])
def test_it_ponders_while_the_other_thinks_where_it_shall(tmp_path, engine, monkeypatch, flags):
    turns = []
    monkeypatch.setattr(engine[0], "ponder", lambda: turns.append(engine[0].to_move()))
    gtp_match.main(config(tmp_path / "match", "--games", "2", *flags))
    assert set(turns) == ({0, 1} if flags else set()), "in one game the other is white, in one black"


def test_a_record_has_the_komi_of_the_rules(tmp_path):
    for name, komi in (("go", "KM[6.5]"), ("go_9x9", "KM[7.5]"), ("othello", "")):
        settings = gtp_match_settings.Config("x", play_settings.Player(name, size=5, komi=6.5), folder=tmp_path)
        thinker = types.SimpleNamespace(game=play.rules(settings.player, 5, 6.5))
        gtp_match.save(settings, thinker, gtp_match.Game(0, [], "B+R", ""), 0, "other")
        text = (tmp_path / "001.sgf").read_text()
        assert komi in text and text.count("KM[") == len(komi) // 7


def test_a_score_that_says_nothing_is_no_draw(tmp_path):
    gtp_match.main(config(tmp_path / "match", manner="mumbles"))
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert {game["how"] for game in results["games"]} == {"scored by us"}
    won = [game["result"] == "BW"[game["ours"]] + "+" for game in results["games"]]
    assert results["score"]["wins"] == sum(won) > 0 and {game["result"] for game in results["games"]} <= {
        "B+",
        "W+",
        "0",
    }


def test_the_others_score_counts_and_where_it_differs_is_said(tmp_path):
    gtp_match.main(config(tmp_path / "match", manner="disagrees"))
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert {game["result"] for game in results["games"]} == {"W+99"}
    assert results["score"]["wins"] == results["score"]["losses"] == 2
    assert any(game["how"] == "we score it B+" for game in results["games"])


@pytest.mark.parametrize("ours, result, points", [
    (0, "B+3.5", 1.0), (1, "B+3.5", 0.0), (0, "W+R", 0.0), (1, "W+F", 1.0), (0, "0", 0.5), (1, "JIGO", 0.5),
    (0, "Void", None),
])  # fmt: skip
def test_points_are_ours(ours, result, points):
    assert gtp_match.points(gtp_match.Game(ours, [], result, "")) == points


@pytest.mark.parametrize("name, size, said", [
    ("go", 5, ["boardsize 5", "clear_board", "komi 6.5"]), ("go_9x9", 9, ["boardsize 9", "clear_board", "komi 7.5"]),
    ("othello", 8, ["clear_board"]), ("hex_7x7", 7, ["boardsize 7", "clear_board"]),
    ("hex", 11, ["boardsize 11", "clear_board"]), ("tic_tac_toe", 3, ["clear_board"]),
])  # fmt: skip
def test_the_other_is_told_the_board_and_the_komi_of_the_rules(name, size, said):
    asked, settings = [], play_settings.Player(name, size=5, komi=6.5)
    thinker = types.SimpleNamespace(game=types.SimpleNamespace(id=name, observation_shape=(size, size, 2)))
    told = types.SimpleNamespace(ask=asked.append)
    gtp_match.start(thinker, told, gtp_match_settings.Config("x", settings))
    assert asked == said


def test_no_thread_outlives_a_match(tmp_path):
    gtp_match.main(config(tmp_path / "match", "--opening-plies", "0", "--ponder", manner="resigns"))
    assert "pondering" not in {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("manner, says", [("dies", "has ended"), ("sleeps", "no answer in 2 s")])
def test_a_program_that_fails_ends_the_match_in_a_sentence(tmp_path, manner, says):
    with pytest.raises(SystemExit, match=rf"the match ended after . of 4 games: .*{says}"):
        gtp_match.main(config(tmp_path / "match", "--patience", "2", "--opening-plies", "2", manner=manner))
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert 0 < len(results["games"]) < 4, "what was played is kept"


@pytest.mark.parametrize("manner, says", [
    ("foreign", r"of 4 games: it answered q16, which is no move in tic_tac_toe here \(.*: it may play another game.$"),
    ("rejects", r"after 0 of 4 games: play black ..: \? illegal move: it may play another game, or on another board.$"),
    ("chatters", "after 0 of 4 games: name: . welcome: it may need a flag to speak the protocol"),
])  # fmt: skip
def test_another_program_than_was_meant_ends_the_match_and_counts_for_nothing(tmp_path, monkeypatch, manner, says):
    if manner == "chatters":  # which is known before anything is compiled
        monkeypatch.setattr(gtp_match.Engine, "warm_up", lambda self: pytest.fail("compiled"))
    with pytest.raises(SystemExit, match=says):
        gtp_match.main(config(tmp_path / "match", "--patience", "2", "--opening-plies", "0", manner=manner))
    assert not (tmp_path / "match" / "result.json").exists()
    assert (tmp_path / "match").exists() == (manner != "chatters")


def test_a_folder_that_is_taken_is_answered_by_one_that_is_free(tmp_path):
    for name in ("match", "match-2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "001.sgf").touch()
    with pytest.raises(SystemExit, match="is not empty, and nothing is overwritten. Name another: --folder .*match-3$"):
        config(tmp_path / "match")


def test_a_match_that_is_stopped_says_how_it_stands(tmp_path, monkeypatch, capsys):
    games, folder = [], tmp_path / "match"

    def play_two(*given):
        games.append(gtp_match.Game(len(games) % 2, [0], "B+1", "both agree"))
        if len(games) == 3:
            assert len(json.loads((folder / "result.json").read_text())["games"]) == 2, "it is there already"
            raise KeyboardInterrupt
        return games[-1]

    monkeypatch.setattr(gtp_match, "play", play_two)
    with pytest.raises(SystemExit) as ended:
        gtp_match.main(config(folder))
    assert ended.value.code == 130
    results = json.loads((folder / "result.json").read_text())
    assert results["score"] == {"wins": 1, "draws": 0, "losses": 1, "unfinished": 0}
    assert results["settings"]["opening_plies"] == 1, "what it was, where nothing was said"
    said = capsys.readouterr()
    assert "50.0% (" in said.out and "the match ended after 2 of 4 games: it was stopped." in said.err


@pytest.mark.parametrize("command", [gtp_match, tournament])
def test_what_is_stopped_before_it_begins_ends_as_shells_want_it(monkeypatch, command):
    def stopped(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "main", stopped)
    with pytest.raises(SystemExit) as ended:
        command.run(None)
    assert ended.value.code == 130


def test_a_move_that_the_other_refuses_ends_its_game_alone(tmp_path, capsys):
    gtp_match.main(config(tmp_path / "match", "--opening-plies", "2", manner="refuses"))
    results = json.loads((tmp_path / "match" / "result.json").read_text())
    assert results["score"] == {"wins": 0, "draws": 0, "losses": 0, "unfinished": 4}, "neither side has lost"
    for game in results["games"]:
        assert game["result"] == "Void" and len(game["moves"]) == 2 + game["ours"], "the refused move is not made"
        assert re.fullmatch(
            r"the other refused a move that is legal here \(play (black|white) ..: \? illegal move\)", game["how"]
        )
    assert "4/4" in capsys.readouterr().out


DRAWN, WON = [0, 1, 2, 4, 3, 5, 7, 6, 8], [0, 3, 1, 4, 2]  # a1, b1 and so on


def after(engine, moves):
    engine[0].clear(number=0)
    for action in moves:
        engine[0].play(action)
    return engine[0]


@pytest.mark.parametrize("moves, said, ending", [
    (DRAWN, "0", ("0", "both agree")), (DRAWN, "Draw", ("0", "both agree")), (DRAWN, "JIGO", ("0", "both agree")),
    (DRAWN, "B+1", ("B+1", "we score it 0")), (WON, "draw", ("0", "we score it B+")),
    (WON, "B+Resign", ("B+R", "both agree")), (WON, "b+3.5 (upper bound: 4, lower: 3)", ("B+3.5", "both agree")),
    (WON, "no idea", ("B+", "scored by us")), (WON, None, ("B+", "scored by us")),
])  # fmt: skip
def test_results_are_those_of_a_record(engine, tmp_path, moves, said, ending):
    def ask(command):
        if said is None:
            raise gtp_program.Refused(f"{command}: ? unknown command")
        return said

    assert gtp_match.judged(after(engine, moves), types.SimpleNamespace(ask=ask), config(tmp_path)) == ending


@pytest.mark.parametrize("own", ["B+", "W+7.5"])
def test_a_game_that_its_rules_end_by_repetition_is_not_scored_by_the_other(tmp_path, monkeypatch, own):
    """Whether or not who is ahead on the board has won."""
    monkeypatch.setattr(gtp_match.scoring, "final_score", lambda *given: own)
    asked, rules = [], games.go(3)
    other = types.SimpleNamespace(ask=lambda command: asked.append(command) or "B+0.5")
    for moves, found in (([9, 0, 1], (own, "ended by the rules, by a repetition or at the limit of moves")),
                         ([0, 9, 9], ("B+0.5", "both agree" if own == "B+" else f"we score it {own}"))):  # fmt: skip
        thinker = types.SimpleNamespace(game=rules, over=lambda: True, position=lambda: None, first=0, moves=moves)
        assert gtp_match.judged(thinker, other, config(tmp_path)) == found
    assert asked == ["final_score"]


def test_stones_with_a_picture_of_their_own_are_played(tmp_path):
    game = games.from_pgx("tic_tac_toe")._replace(draw=lambda state: "<svg/>")
    gtp_match.check_fits(game)


def test_a_swap_that_the_other_does_not_know_ends_its_game_alone():
    def ask(command):
        raise gtp_program.Refused(f"{command}: ? illegal move")

    game = games.hex_game(3)
    thinker = types.SimpleNamespace(game=game, to_move=lambda: 1, moves=[4])
    result, how = gtp_match.make(thinker, types.SimpleNamespace(ask=ask), 9)
    assert result == "Void" and "swap-pieces" in how
    with pytest.raises(gtp_program.Failed, match="another game, or on another board"):
        gtp_match.make(thinker, types.SimpleNamespace(ask=ask), 0)


def test_a_score_that_does_not_come_ends_the_match(tmp_path):
    with pytest.raises(SystemExit, match="after 0 of 4 games: final_score: no answer in 2 s.$"):
        gtp_match.main(config(tmp_path / "match", "--patience", "2", manner="dawdles"))


def test_an_answer_that_does_not_come_is_no_refusal(engine, tmp_path):
    """It may still come, and would be taken for that to the next command."""

    def ask(command):
        raise gtp_program.Failed(f"{command}: no answer in 2 s")

    silent, thinker = types.SimpleNamespace(ask=ask), after(engine, DRAWN)
    with pytest.raises(gtp_program.Failed, match="final_score: no answer"):
        gtp_match.judged(thinker, silent, config(tmp_path))
    passing = games.from_pgx("tic_tac_toe")._replace(action_names=("pass",) * 9)
    thinker = types.SimpleNamespace(game=passing, to_move=lambda: 0, moves=[0, 1], play=lambda action: None)
    with pytest.raises(gtp_program.Failed, match="play black pass: no answer"):
        gtp_match.make(thinker, silent, 0)

    def refuse(command):
        raise gtp_program.Refused(f"{command}: ? unknown move")

    assert gtp_match.make(thinker, types.SimpleNamespace(ask=refuse), 0) is None, "some have no word for a pass"
    thinker.game = passing._replace(id="go_3x3")
    assert gtp_match.make(thinker, types.SimpleNamespace(ask=refuse), 0)[0] == "Void"


@pytest.mark.parametrize("game, says", [
    (games.backgammon(), "--game backgammon: it draws at random, and the protocol cannot tell"),
    (games.from_pgx("tic_tac_toe")._replace(id="three", num_players=3), "--game three: it has 3 players, and the"),
    (games.from_pgx("chess"), "--game chess: it is not a game of stones on a board"),
])  # fmt: skip
def test_a_game_that_the_protocol_does_not_know_is_refused_before_anything_begins(tmp_path, monkeypatch, game, says):
    monkeypatch.setattr(gtp_match, "engine", lambda *_: (types.SimpleNamespace(game=game), "nothing"))
    monkeypatch.setattr(gtp_match, "Program", lambda *_: pytest.fail("started"))
    with pytest.raises(SystemExit, match=f"^match: {says}"):
        gtp_match.main(config(tmp_path / "match"))


def test_games_of_a_match_have_their_own_random_keys(tmp_path, engine, monkeypatch):
    numbers, clear = [], engine[0].clear
    monkeypatch.setattr(engine[0], "clear", lambda number: numbers.append(number) or clear(number=number))
    gtp_match.main(config(tmp_path / "match"))
    assert numbers[1::2] == [0, 1, 2, 3], "between them are the openings"


def test_a_program_that_cannot_be_started_is_answered_in_a_sentence(tmp_path):
    script = tmp_path / "engine"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    with pytest.raises(
        SystemExit, match=r"^match: --opponent '.*' cannot be started: Exec format error. A script needs"
    ):
        gtp_match.main(config(tmp_path / "match", "--opponent", str(script)))


def test_a_folder_that_cannot_be_made_ends_the_match_before_anything_is_compiled(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(gtp_match.Engine, "warm_up", lambda self: pytest.fail("compiled"))
    with pytest.raises(SystemExit, match="after 0 of 4 games: --folder .*file/match: Not a directory.$"):
        gtp_match.main(config(tmp_path / "file" / "match"))


def test_a_full_disk_ends_the_match_in_a_sentence(tmp_path, monkeypatch, capsys):
    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gtp_match_results, "write_whole", full)
    with pytest.raises(SystemExit, match="after 1 of 4 games: --folder .*match: No space left on device.$"):
        gtp_match.main(config(tmp_path / "match"))
    assert "0 unfinished. Records:" in capsys.readouterr().out, "how it stands is said"


@pytest.mark.skipif(os.name != "posix", reason="other systems have no groups of processes")
def test_what_the_other_has_started_ends_with_it():
    """A script may have started the program, which then holds the script's output open."""
    other = gtp_match.Program(shlex.join(["sh", "-c", "sleep 600 & echo '= 1'; echo; wait"]), patience=30)
    assert other.ask("name") == "1"
    other._patience = 0.2
    other.close()
    assert other._process.returncode == -signal.SIGKILL
    assert other._lines.get(timeout=20) is None, "nobody can write any more"


def test_a_program_that_thinks_is_not_waited_for_at_the_end(monkeypatch):
    other = gtp_match.Program(shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]), patience=300)
    waited = []

    def get(timeout):
        waited.append(timeout)
        raise queue.Empty

    monkeypatch.setattr(other._lines, "get", get)
    other.close()
    assert waited == [5] and other._process.wait(10) != 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_match_in_a_sentence(tmp_path, number):
    flags = ["--opponent", shlex.join(SIMPLE), "--game", "tic_tac_toe", "--games", "1000", "--simulations", "40"]
    running = subprocess.Popen(
        [sys.executable, str(ROOT / "experiments" / "gtp_match.py"), *flags, "--folder", str(tmp_path / "match")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background may have it ignored
    )  # fmt: skip
    while "/1000  we are" not in running.stdout.readline():
        assert running.poll() is None
    running.send_signal(number)
    out, err = running.communicate(timeout=60)
    played = len(json.loads((tmp_path / "match" / "result.json").read_text())["games"])
    assert (tmp_path / "match" / f"{played:03}.sgf").exists() and " unfinished. Records: " in out
    assert running.returncode == 130 and err.strip() == (
        f"match: the match ended after {played} of 1000 games: it was stopped."
    )


@pytest.mark.parametrize("flags, says", [
    (["--games", "3"], "give an even number"), (["--opponent", "no-such-program --gtp"], "there is no program"),
    (["--opponent", ""], "there is no program"), (["--patience", "0"], "--patience above 0"),
    (["--max-moves", "1"], "--max-moves above it"), (["--seconds", "-1"], "--seconds -1"),
    (["--weights", "nowhere"], "no such file"), (["--resign", "2"], "--resign 2"), (["--size", "99"], "--size 99"),
    (["--opponent", "gnugo '--mode gtp"], "No closing quotation. Close each quotation"),
    (["--seconds", "inf"], "--seconds inf"),
    (["--patience", "inf"], "up to 1,000,000 seconds"), (["--patience", "1e10"], "up to 1,000,000 seconds"),
    (["--patience", "nan"], "--patience above 0"),
])  # fmt: skip
def test_a_mistake_is_answered_by_what_to_write(tmp_path, flags, says):
    with pytest.raises(SystemExit) as caught:
        config(tmp_path, *flags)
    assert says in str(caught.value)


def test_a_folder_with_records_stays(tmp_path):
    (tmp_path / "001.sgf").write_text("mine")
    with pytest.raises(SystemExit, match="not empty"):
        config(tmp_path)


def test_a_file_is_no_folder_for_records(tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(SystemExit, match="is a file: name a new folder"):
        config(tmp_path, "--folder", str(taken))
    assert taken.read_text() == "mine"
