"""The protocol: a transcript for every command, nonsense of every kind, clocks, pondering."""

import io
import re
import threading
import time

import jax
import pytest

from jaxzero import games
from jaxzero.play import gtp
from jaxzero.play.gtp import clock, sgf
from tests.gtp_sessions import ANSWER, built, other, random_session, said, session, talked

# --- transcripts -----------------------------------------------------------------------------------------------------


def test_what_it_is():
    talk = session()
    assert said(talk, "protocol_version", "name", "version") == ["= 2", "= jaxzero", "= 1"]
    (commands,) = said(talk, "list_commands")
    assert len(commands.split("\n")) == 24 and commands.startswith("= analyze\nboardsize\n")
    for name in commands.removeprefix("= ").split("\n"):
        assert said(talk, f"known_command {name}") == ["= true"]
    assert said(talk, "known_command undoo", "known_command") == ["= false", "= false"]


def test_ids_comments_and_control_characters():
    talk = session()
    assert said(talk, "7 name", "  12\tname # what?", "na\x01me", "003 nothing", "5", "# x", "   ", "\r") == [
        "=7 jaxzero", "=12 jaxzero", "= jaxzero", "?003 unknown command",
        "?5 syntax error: an id without a command", "", "", "",
    ]  # fmt: skip


def test_moves_are_made_shown_and_taken_back():
    talk = session()
    answers = said(talk, "play b C3", "play WHITE a5", "play black pass", "showboard", "undo", "undo", "undo", "undo")
    assert answers[:3] == ["=", "=", "="] and answers[4:] == ["=", "=", "=", "? cannot undo"]
    board = answers[3].split("\n")
    assert board[2:4] == [" 5 O . . . .", " 4 . . . . ."] and board[-1] == "white (O) to move" and len(board) == 8


def test_moves_that_cannot_be():
    talk = session()
    assert said(talk, "play b C3", "play w C3") == ["=", "? illegal move"]
    wrong = said(talk, "play", "play red A1", "play b", "play b I5", "play b Z9", "play b A0", "play b resign")
    assert wrong[:2] == ["? syntax error: give a colour, black or white"] * 2
    no_move, no_point = "? syntax error: give a move like A5", "? illegal move"
    assert wrong[2:] == [no_move, no_move, no_point, no_move, no_move]


def test_a_colour_may_move_out_of_turn_and_nobody_passes():
    talk = session()
    lines = (
        "play b D4",
        "play b E5",
        "play b pass",
        "showboard",
        "play w pass",
        "showboard",
        "undo",
        "undo",
        "showboard",
    )
    answers = said(talk, *lines)
    assert [answer for line, answer in zip(lines, answers) if line != "showboard"] == ["="] * 6
    turns = [answer.split("\n")[-1] for line, answer in zip(lines, answers) if line == "showboard"]
    assert turns == ["white (O) to move", "the game is over", "white (O) to move"]
    assert talk.engine.moves == [8, 4] and talk.engine.movers == [0, 0]
    board = answers[-1].split("\n")
    assert board[2:4] == [" 5 . . . .(X)", " 4 . . . X ."], board
    said(talk, "play w A1", "undo")
    assert talk.engine.moves == [] and talk.engine.to_move() == 0, "undo takes back what a command did"
    assert said(talk, "play b pass", "play b pass", "play w A1")[2] == "=", "one colour's passes end no game"


def test_it_moves_out_of_turn_when_it_is_told_to():
    talk = session()
    assert all(answer[0] == "=" for answer in said(talk, "genmove b", "genmove b", "genmove b"))
    assert talk.engine.movers == [0, 0, 0] and len(talk.engine.moves) == 3
    answers = said(talk, "reg_genmove w", "showboard", "genmove w", "showboard")
    assert answers[1].endswith("black (X) to move") and answers[3].endswith("black (X) to move")
    assert talk.engine.movers == [1]


def test_after_two_passes_the_game_goes_on():
    talk = session()
    passed = "play b C3", "play w pass", "play b pass"
    assert said(talk, *passed, "showboard", "play w A1", "showboard", "final_score")[3:] == [
        said(talk, *passed, "showboard")[3], "=", said(talk, "play b C3", "play w A1", "showboard")[2], "= W+2.5",
    ]  # fmt: skip
    assert said(talk, *passed, "genmove w")[3].startswith("= ") and len(talk.engine.moves) == 4
    assert said(talk, *passed, "genmove b")[3].startswith("= ") and talk.engine.movers == [0, 1, 0, 0]
    said(talk, *passed, "play w A1", "undo")
    assert talk.engine.over(), "what ended the game is undone no further"


def test_komi_and_what_fails_leave_moves_out_of_turn_as_they_were():
    talk = session()
    said(talk, "play b C3", "play b D4", "komi 2.5", "play w C3", "play b C3", "loadsgf none.sgf")
    assert talk.engine.moves == [12, 8] and talk.engine.movers == [0, 0] and talk.engine.to_move() == 1


def test_moves_out_of_turn_are_part_of_a_record(tmp_path):
    talk, file = session(), tmp_path / "game.sgf"
    said(talk, "play b C3", "play b D4", "play w pass", "play w A1")
    moves, movers = talk.engine.moves, talk.engine.movers
    text = sgf.written(talk.engine.game, moves, komi=2.5, movers=movers)
    assert text.endswith(";B[cc];B[db];W[];W[ae])\n")
    file.write_text(text)
    assert said(talk, f"loadsgf {file}") == ["="] and (talk.engine.moves, talk.engine.movers) == (moves, movers)


@pytest.mark.slow
def test_it_moves_for_both_and_reg_genmove_makes_no_move():
    talk = session()
    first, second = said(talk, "reg_genmove b", "genmove b")
    assert len(talk.engine.moves) == 1
    assert re.fullmatch(r"= ([A-E][1-5]|pass)", first) and re.fullmatch(r"= ([A-E][1-5]|pass)", second)
    (third,) = [talk.answer("genmove b")]  # out of turn
    assert ANSWER.fullmatch(third) and len(talk.engine.moves) == 2


def test_a_game_to_its_end():
    talk = session(simulations=60)
    talk.answer("clear_board")
    for ply in range(60):
        answer = talk.answer(f"genmove {'bw'[ply % 2]}")
        assert answer.startswith("= "), answer
        if talk.engine.over():
            break
    assert talk.engine.over()
    score = talk.answer("final_score")
    assert re.fullmatch(r"= [BW]\+[0-9]+\.5\n\n", score)
    assert (score[2] == "B") == (talk.engine.result() > 0), "the rules and the scorer agree"


def test_nothing_is_compiled_after_the_first_moves():
    talk, events = session(simulations=5), []
    moves = ["clear_board", "genmove b", "genmove w", "showboard", "undo", "reg_genmove w", "final_score"]
    said(talk, *moves)
    jax.monitoring.register_event_duration_secs_listener(lambda name, *_, **__: events.append(name))
    try:
        said(talk, *moves, *["genmove w", "genmove b"] * 5, *moves)
    finally:
        jax.monitoring.clear_event_listeners()
    assert not [name for name in events if "backend_compile" in name]


def test_size_and_komi():
    talk = session(make=lambda size, komi: built(games.go(5, 2.5)))
    lines = "boardsize 5", "boardsize 19", "boardsize x", "boardsize", "komi 2.5", "komi nan", "komi 0.3"
    assert said(talk, *lines) == [
        "=", "? unacceptable size", "? syntax error: give a size, a whole number",
        "? syntax error: give a size, a whole number", "=", "? syntax error: give a number of points",
        "=",
    ]  # fmt: skip
    asked = []
    talk = gtp.Session(lambda *at: asked.append(at) or built(games.go(5, 2.5)), size=5, komi=2.5, sizes=(5, 9))
    for line in ("boardsize 5", "play b A1", "komi 0.5", "boardsize 9"):
        talk.answer(line)
    assert asked == [(5, 2.5), (5, 0.5), (9, 0.5)]


def test_one_of_the_last_three_engines_is_taken_again():
    """It has compiled what it thinks with; a controller may go to and fro between two sizes."""
    asked, prepared = [], []
    make = lambda size, komi: asked.append(size) or built(games.go(5, 2.5)).another()
    talk = gtp.Session(make, size=5, sizes=(5, 7, 9, 11), prepare=prepared.append, simulations=2)
    for size in (5, 9, 5, 9):
        assert said(talk, f"boardsize {size}", "genmove b")[0] == "=" and len(talk.engine.moves) == 1
    assert asked == [5, 9] and len(prepared) == 2
    assert all(engine._tree is None for engine in talk._engines.values() if engine is not talk.engine)
    said(talk, "boardsize 7", "boardsize 11", "boardsize 9", "boardsize 5")  # which was used least recently of four
    assert asked == [5, 9, 7, 11, 5]


def test_commands_that_fail_change_nothing_of_what_is_kept(tmp_path):
    asked, file = [], tmp_path / "game.sgf"
    make = lambda size, komi: asked.append(komi) or built(games.go(5, 2.5)).another()
    talk = gtp.Session(make, size=5, komi=0.5, sizes=(5,))
    said(talk, "komi 1", "play b C3", "genmove w")
    engine, moves = talk.engine, list(talk.engine.moves)
    for komi in (3, 4, 5, 6):
        file.write_text(f"(;SZ[5]KM[{komi}];B[aa];W[aa])")
        assert talk.answer(f"loadsgf {file}").startswith("? cannot load file: move 2")
    assert talk.engine is engine and engine.moves == moves
    asked.clear()
    assert [talk.answer(line) for line in ("komi 2", "komi 1")] == ["=\n\n"] * 2
    assert asked == [2] and talk.engine is engine and engine.moves == moves


def test_the_score_as_the_board_stands():
    talk = session()
    assert said(talk, "final_score", "play b C3", "final_score", "play w A1", "final_score") == [
        "= W+2.5", "=", "= B+22.5", "=", "= W+2.5",
    ]  # fmt: skip
    assert said(other("connect_four"), "final_score") == ["? cannot score: the game is not over"]
    columns = said(other("connect_four"), *(f"play {'bw'[i % 2]} {'12'[i % 2]}" for i in range(7)), "final_score")
    assert columns == ["="] * 7 + ["= B+"]
    wrong = said(other("connect_four"), "play w 1", "play b 1", "play b 1", "genmove b", "lz-analyze b")
    assert wrong == ["? illegal move: it is the other's turn", "=", "? illegal move: it is the other's turn",
                     "? it is the other's turn", "? it is the other's turn"]  # fmt: skip


@pytest.mark.slow
def test_other_games_and_their_moves():
    assert said(other("hex"), "play b f6", "play w swap-pieces", "genmove b")[:2] == ["=", "="]
    talk = other("othello")
    assert said(talk, "play b a1", "play b d3", "play b c5", "genmove w")[:3] == [
        "? illegal move", "=", "? illegal move: it is the other's turn",
    ]  # fmt: skip
    assert said(talk, "loadsgf x.sgf") == ["? unknown command"]


def test_records_are_loaded(tmp_path):
    file = tmp_path / "game.sgf"
    file.write_text("(;GM[1]FF[4]SZ[5]KM[2.5]C[a \\] b];B[cc];W[aa](;B[tt];W[bb])(;B[dd]))")
    talk = session()
    talk.answer(f"loadsgf {file}")
    assert talk.engine.moves == [12, 0, 25, 6]
    assert said(talk, f"loadsgf {file} 3") == ["="] and talk.engine.moves == [12, 0]
    file.write_text("(;SZ[5]KM[2.5]AB[aa][bb];W[cc])")
    assert said(talk, f"loadsgf {file}") == ["="] and talk.engine.moves == [0, 6, 12]
    assert talk.engine.movers == [0, 0, 1], "handicap stones are black's, one after another"
    for text, words in (
        ("", "no game"), ("(;GM[2])", "record of another game"), ("(;SZ[9])", "unacceptable"),
        ("(;SZ[5]KM[x])", "not a number"),
        ("(;SZ[5]KM[2.5];B[zz])", "not a point"), ("(;SZ[5]KM[2.5];B[aa];W[aa])", "move 2, A5: illegal"),
        ("(;SZ[5]AW[aa])", "AW"), ("(;SZ[5]!", "not part of SGF"), ("(;SZ[-5])", "not a board size"),
        ("(;SZ[5]KM[nan])", "not a number"), ("(;SZ[5]KM[2.5];B[cc];AB[aa])", "after a move"),
    ):  # fmt: skip
        file.write_text(text)
        (answer,) = said(talk, f"loadsgf {file}")
        assert answer.startswith("? cannot load file") and words in answer, answer
    assert "No such file" in said(talk, f"loadsgf {tmp_path}/none.sgf")[0] and said(talk, "loadsgf")[0][0] == "?"


def test_a_record_is_loaded_whole_or_not_at_all(tmp_path):
    file, engines = tmp_path / "game.sgf", {}
    make = lambda size, komi: engines.setdefault(size, built(games.go(size, 2.5)).another())
    talk = session(make=make, sizes=(3, 5))
    said(talk, "play b C3", "play b D4")  # one after another
    for text in ("(;SZ[3]KM[2.5];B[aa];W[bb];B[aa])", "(;SZ[5]KM[2.5];B[cc];W[aa];B[aa])", "(;SZ[3]KM[0];B[cc];W[cc])"):
        file.write_text(text)
        assert talk.answer(f"loadsgf {file}").startswith("? cannot load file: move ")
        assert (talk.size, talk.komi, talk.engine) == (5, 2.5, engines[5]) and talk.engine.moves == [12, 8]
    assert talk.answer("undo") == "=\n\n" and talk.engine.moves == [12]


def test_a_device_that_fails_is_answered_and_changes_nothing(monkeypatch):
    def make(size, komi):
        if size == 25:
            raise RuntimeError("RESOURCE_EXHAUSTED:\nOut of memory")
        return built(games.go(5, 2.5))

    talk = session(make=make, sizes=(5, 25))
    said(talk, "play b C3")
    assert talk.answer("7 boardsize 25") == "?7 failed: RESOURCE_EXHAUSTED: Out of memory\n\n"
    assert talk.size == 5 and talk.engine.moves == [12] and talk.answer("name") == "= jaxzero\n\n"

    def fails(*given):
        raise jax.errors.JaxRuntimeError("INTERNAL: no more")

    programs = talk.engine.programs
    for part, lines in (("step", ("play w A1", "genmove b")), ("more", ("genmove w", "genmove b", "reg_genmove b"))):
        monkeypatch.setattr(talk.engine, "programs", programs._replace(**{part: fails}))
        for line in lines:
            assert talk.answer(line) == "? failed: INTERNAL: no more\n\n", line
            assert talk.engine.moves == [12], line
        monkeypatch.setattr(talk.engine, "programs", programs)
        assert talk.answer("play w A1") == "=\n\n" and talk.answer("undo") == "=\n\n"


def test_what_is_written_is_read():
    game = games.go(5)
    record = sgf.read(sgf.written(game, [12, 25, 0], "B+R", ("a]b", "c\\"), 2.5))
    assert record == sgf.Record(5, 2.5, (), (("b", (2, 2)), ("w", None), ("b", (0, 0))))
    assert "B[d3]" in sgf.written(games.from_pgx("othello"), [19])


def test_it_gives_up_where_there_is_little_hope():
    talk = session(simulations=300, resign=0.9)
    assert said(talk, "genmove b") == ["= resign"] and talk.engine.moves == []
    assert said(session(simulations=300, resign=0.0), "genmove b") != ["= resign"]


# --- time ------------------------------------------------------------------------------------------------------------


def test_time_settings_and_what_is_left():
    talk = session(simulations=None)
    assert said(talk, "time_settings 10 5 1", "time_left b 4 0", "time_left w 3 1") == ["=", "=", "="]
    assert talk.clocks == [clock.Clock(10, 5, 1, 0, 4), clock.Clock(10, 5, 1, 1, 3)]
    assert [
        x[0] for x in said(talk, "time_settings", "time_settings 1 2", "time_settings -1 0 0", "time_left b")
    ] == list("????")
    assert [x[0] for x in said(talk, "time_settings inf 0 0", "time_left b 1 -1", "time_settings 1 1 0.5")] == list(
        "???"
    )


def test_a_whole_game_within_its_time():
    talk = session(simulations=None)
    talk.answer("clear_board")
    talk.engine.warm_up()
    talk.answer("time_settings 3 0 0")
    used = [0.0, 0.0]
    for ply in range(50):
        began = time.monotonic()
        assert talk.answer(f"genmove {'bw'[ply % 2]}").startswith("= ")
        used[ply % 2] += time.monotonic() - began
        talk.answer(f"time_left {'bw'[ply % 2]} {3 - used[ply % 2]:.2f} 0")
        if talk.engine.over():
            break
    assert max(used) < 3, used


def test_a_move_takes_the_time_of_who_makes_it():
    talk = session()
    talk.answer("clear_board")
    talk.answer("time_settings 100 0 0")
    talk.answer("genmove b")
    black, white = talk.clocks
    assert black.left < 100 == white.left
    talk.answer("genmove w")
    assert talk.clocks[0] == black and talk.clocks[1].left < 100


def test_a_new_game_has_the_whole_time_again():
    talk = random_session()
    talk.answer("time_settings 100 10 1")
    whole = clock.started(100, 10, 1)
    for line in ("clear_board", "boardsize 5"):
        talk.answer("genmove b")
        talk.answer("time_left w 3 1")
        used = talk.clocks[:]
        assert used[0].left < 100 and used[1].left == 3
        talk.answer("komi 3.5")
        assert talk.answer("boardsize 6") == "? unacceptable size\n\n" and talk.clocks == used, "of the same game"
        assert talk.answer(line) == "=\n\n" and talk.clocks == [whole, whole], line


def test_a_record_that_cannot_be_loaded_leaves_the_clocks(tmp_path):
    talk, file = random_session(), tmp_path / "game.sgf"
    file.write_text("(;SZ[5];B[cc];W[cc])")
    talk.answer("time_settings 100 0 0")
    talk.answer("time_left b 30 0")
    used = talk.clocks[:]
    assert talk.answer(f"loadsgf {file}").startswith("? cannot load file") and talk.clocks == used
    file.write_text("(;SZ[5];B[cc])")
    assert talk.answer(f"loadsgf {file}") == "=\n\n" and talk.clocks == [clock.started(100, 0, 0)] * 2


def test_nothing_left_is_answered_at_once():
    talk = session(simulations=None)
    talk.answer("clear_board")
    talk.engine.warm_up()
    talk.answer("time_settings 0 0 0")
    began = time.monotonic()
    assert talk.answer("genmove b").startswith("= ") and time.monotonic() - began < 1


# --- in the background -----------------------------------------------------------------------------------------------


def test_pondering_goes_on_until_somebody_speaks():
    talk = session(ponder=True, simulations=10)
    talk.answer("clear_board")
    talk.answer("genmove b")
    before = talk.engine.report().visits
    talk.idle()
    time.sleep(0.5)
    took = []
    for _ in range(5):
        began = time.monotonic()
        assert talk.answer("name") == "= jaxzero\n\n"
        took.append(time.monotonic() - began)
        talk.ponder()
        talk.idle()
        time.sleep(0.1)
    talk.answer("name")
    assert talk.engine.report().visits > before + 50
    assert min(took) < 0.05, took  # the others may have waited for the machine
    grown = talk.engine.report().visits
    time.sleep(0.2)
    assert talk.engine.report().visits == grown, "it rests"


def ponders(talk):
    """Whether it thinks when nobody has anything to say."""
    talk.idle()
    return any(thread.name == "pondering" for thread in threading.enumerate())


def test_pondering_goes_on_after_what_changes_no_position():
    talk = session(ponder=True)
    said(talk, "genmove b")
    for line in ("time_left b 100 0", "name", "showboard", "", "known_command play", "final_score"):
        talk.answer(line)
        assert "pondering" not in {thread.name for thread in threading.enumerate()}, "it is quiet while it answers"
        assert ponders(talk), line
    for line in ("play w A1", "undo", "clear_board", "reg_genmove b", "nonsense"):
        talk.answer("genmove b")
        talk.answer(line)
        assert ponders(talk) == (line == "nonsense"), line
    talk.answer("quit")
    assert not ponders(talk)
    assert not ponders(session())


class Interrupted(io.BytesIO):
    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            raise KeyboardInterrupt
        return line


def test_no_thread_outlives_an_interrupted_conversation():
    with pytest.raises(KeyboardInterrupt):
        gtp.serve(session(ponder=True), Interrupted(b"clear_board\ngenmove b\n"), io.BytesIO())
    assert "pondering" not in {thread.name for thread in threading.enumerate()}


def test_an_analysis_comes_line_by_line_until_the_next_command():
    lines = []
    talk = session(write=lines.append)
    talk.answer("clear_board")
    assert talk.answer("3 lz-analyze b 5") == "=3\n"
    assert "pondering" not in {thread.name for thread in threading.enumerate()}, "the answer is to be written first"
    talk.idle()
    until = time.monotonic() + 20
    while len(lines) < 3 and time.monotonic() < until:
        time.sleep(0.02)
    assert talk.answer("name") == "\n= jaxzero\n\n"
    assert len(lines) >= 3
    for line in lines:
        moves = line.rstrip("\n").split("info move ")[1:]
        assert moves and all(
            re.fullmatch(
                r"([A-E][1-5]|pass) visits \d+ winrate \d+ prior \d+ order \d+ pv( ([A-E][1-5]|pass))+ ?", move
            )
            for move in moves
        ), line
    assert talk.answer("lz-analyze w") == "=\n" and talk.engine.to_move() == 1, "of moves out of turn, too"
    assert talk.answer("name") == "\n= jaxzero\n\n" and talk.engine.to_move() == 0
    said(talk, "play b pass", "play w pass")
    assert talk.answer("lz-analyze b") == "? the game is over\n\n"


class Slow(io.BytesIO):
    """A stream that writes of an analysis go to as well, and that takes its time."""

    def write(self, data):
        time.sleep(0.1)
        return super().write(data)


class Patient(io.BytesIO):
    def readline(self, size=-1):
        line = super().readline(size)
        if line.startswith(b"quit"):
            time.sleep(0.5)
        return line


def test_nothing_is_told_of_an_analysis_before_its_answer():
    out = Slow()
    talk = session(write=lambda text: io.BytesIO.write(out, text.encode()))
    talk.answer("clear_board")
    talk.engine.warm_up()
    gtp.serve(talk, Patient(b"5 lz-analyze b 1\nquit\n"), out)
    assert re.fullmatch(rb"=5\n(info move [^\n]+\n)+\n=\n\n", out.getvalue()), out.getvalue()[:200]


# --- lines by way of streams -----------------------------------------------------------------------------------------


def test_long_lines_ends_and_quit():
    talk = session()
    answers = talked([b"play b " + b"A" * 1_000_000, b"name\r", b"quit", b"name"], talk)
    assert answers[0].startswith("? syntax error") and answers[1:] == ["= jaxzero\n\n", "=\n\n"]
    assert talked([b"name"], session()) == ["= jaxzero\n\n"]  # the input ends
    out = io.BytesIO()
    gtp.serve(session(), io.BytesIO(b"name"), out)  # without an end of line
    assert out.getvalue() == b"= jaxzero\n\n"
