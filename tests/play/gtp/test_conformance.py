"""The specification of GTP version 2 (draft 2), a row per rule: its section, what is said, and what is answered.

The lines of a row are a conversation of their own, on an empty 5 x 5 board with a komi of 2.5; `SIZES` can be played
(handicap on other boards: `test_handicap.py`). An answer is compared whole, without the empty line at its end; `...`
stands for any text within a line. The engine makes legal moves at random.
"""

import re

import pytest

from tests import documents
from tests.gtp_sessions import ANSWER, board_of, random_session

SIZES = 5, 7

ROWS = [
    # 2: characters, lines and answers
    ("2.2", ["na\x01me\x7f"], ["= jaxzero"], "control characters are discarded"),
    ("2.3", ["  \tname\t "], ["= jaxzero"], "tabs are spaces"),
    ("2.4", ["name\r\n", "name\n"], ["= jaxzero", "= jaxzero"], "a carriage return is discarded"),
    ("2.5", ["7 play b C3", "0 play w D4"], ["=7", "=0"], "an id comes back"),
    ("2.5", ["12name", "12"], ["? unknown command", "?12 syntax error..."], "an id stands apart, before a command"),
    ("2.6", ["9 undo", "undo"], ["?9 cannot undo", "? cannot undo"], "failure is a question mark, with the id"),
    ("2.6", ["NAME", "x"], ["? unknown command", "? unknown command"], "names of commands are in lower case"),
    ("2.9", ["name # the name", "# name", "3 name#"], ["= jaxzero", "", "=3 jaxzero"], "comments are left out"),
    ("2.11", ["play b e5", "play w I1", "play w J1"], ["=", "? syntax error...", "? illegal move"], "no column is I"),
    # 3: parsing
    ("3.1", ["", "   ", "\t", "\r", "#"], [""] * 5, "an empty line has no answer"),
    ("3.1", ["na#me", "\x02# \x03"], ["? unknown command", ""], "control characters, then comments"),
    ("3.2", ["play B c3", "play White C4", "play BLACK PASS"], ["="] * 3, "colours and vertices in either case"),
    ("3.2", ["play red C3", "play C3", "play"], ["? syntax error..."] * 3, "a colour is black or white"),
    ("3.2", ["play b", "play b C", "play b 33", "play b C0"], ["? syntax error..."] * 4, "a vertex has two parts"),
    ("3.2", ["boardsize five", "boardsize 5.5", "boardsize"], ["? syntax error..."] * 3, "an int is a whole number"),
    ("3.2", ["komi 6", "komi 6.5", "komi -.5", "komi +2.", "komi x", "komi", "komi 1_0", "komi \u0663", "komi 1e999"],
     ["="] * 4 + ["? syntax error..."] * 5, "a float"),
    # 4.1: handicap
    ("4.1.1", ["fixed_handicap 2"], ["? invalid number of stones"], "no fixed places below 7 x 7"),
    ("4.1.1", ["boardsize 7", "fixed_handicap 5", "fixed_handicap 4"],
     ["=", "? invalid number of stones", "= C3 E5 C5 E3"], "four on 7 x 7"),
    ("4.1.1", ["boardsize 7", "fixed_handicap 1", "fixed_handicap 0", "fixed_handicap -2"],
     ["="] + ["? invalid number of stones"] * 3, "at least two"),
    ("4.1.2", ["place_free_handicap 1", "place_free_handicap 25", "place_free_handicap 2"],
     ["? invalid number of stones", "? invalid number of stones", "= C3 B2"], "free: 2 to all points but one"),
    ("4.1.2", ["set_free_handicap A1 B1 E5", "play w A1", "play w A2"], ["=", "? illegal move", "="], "given points"),
    # 4.2: time
    ("4.2", ["time_settings 0 0 0", "time_settings 60 30 5", "time_left b 30 5"], ["="] * 3, "any time is accepted"),
    ("4.2", ["time_settings 0 1 0", "genmove b"], ["=", "= ..."], "overtime without stones is no limit"),
    # 4.3: the score
    ("4.3", ["play b C3", "final_score", "komi 25", "final_score", "komi 30.5", "final_score"],
     ["=", "= B+22.5", "=", "= 0", "=", "= W+5.5"], "who has won, and by how much"),
    ("4.3", ["play b C3", "play w A1", "play b C2", "final_status_list alive", "final_status_list dead",
             "final_status_list seki"], ["=", "=", "=", "= C3 C2\nA1", "=", "="], "a chain per line; nothing is dead"),
    # 6.3.1: administration
    ("6.3.1", ["protocol_version", "name", "version"], ["= 2", "= jaxzero", "= 1.2.3"], "who is speaking"),
    ("6.3.1", ["known_command play", "known_command nothing", "known_command"], ["= true", "= false", "= false"],
     "what is known"),
    ("6.3.1", ["quit"], ["="], "the answer comes before the end"),
    # 6.3.2: setup
    ("6.3.2", ["boardsize 6", "boardsize 0", "boardsize -9", "boardsize 1000"], ["? unacceptable size"] * 4, "sizes"),
    ("6.3.2", ["play b E5", "boardsize 7", "clear_board", "play w G7"], ["="] * 4, "a size, and an empty board"),
    ("6.3.2", ["play b C3", "clear_board", "undo", "play w C3"], ["=", "=", "? cannot undo", "="], "nothing is left"),
    ("6.3.2", ["play b C3", "komi 1e6", "play w C3", "final_score"], ["=", "=", "? illegal move", "= W+999975"],
     "any komi is accepted, and the board stays"),
    ("6.3.2", ["play b C3", "set_free_handicap A1 B1", "place_free_handicap 2"], ["="] + ["? board not empty"] * 2,
     "handicap stones go on an empty board"),
    ("6.3.2", ["play w C3", "place_free_handicap 2", "undo", "place_free_handicap 2"],
     ["=", "? board not empty", "=", "= C3 B2"], "which may be empty again"),
    ("6.3.2", ["fixed_handicap", "place_free_handicap x", "set_free_handicap A1 B1 x"], ["? syntax error..."] * 3,
     "numbers and vertices"),
    ("6.3.2", ["set_free_handicap A1", "set_free_handicap", "set_free_handicap A1 A1", "set_free_handicap A1 pass",
               "set_free_handicap A1 F6"], ["? bad vertex list"] * 5, "two or more, none twice, no pass, on the board"),
    ("6.3.2", ["set_free_handicap A1 B1", "undo", "play w C3", "undo", "undo"],
     ["=", "? cannot undo", "=", "=", "? cannot undo"], "handicap stones are no moves"),
    # 6.3.3: play
    ("6.3.3", ["play b C3", "play w C3", "play b F6"], ["=", "? illegal move", "? illegal move"], "illegal moves"),
    ("6.3.3", ["play w A2", "play w B1", "play b A1"], ["=", "=", "? illegal move"], "suicide is none of our moves"),
    ("6.3.3", ["play b A1", "play b A2", "play w C3", "play w C4", "play b A3"], ["="] * 5, "a colour moves again"),
    ("6.3.3", ["play b B1", "play b A2", "play b B3", "play w C1", "play w D2", "play w C3", "play w B2", "play b C2",
               "play w B2", "play w E5", "play b E4", "play w B2"], ["="] * 8 + ["? illegal move"] + ["="] * 3,
     "a ko is not taken back at once"),
    ("6.3.3", ["play b pass", "play w pass", "play b C3", "play w pass"], ["="] * 4, "after two passes play goes on"),
    ("6.3.3", ["genmove b", "genmove b", "genmove b"], ["= ..."] * 3, "of either colour, whoever moved last"),
    ("6.3.3", ["play b pass", "play w pass", "genmove w", "genmove w"], ["=", "=", "= ...", "= ..."], "or at an end"),
    ("6.3.3", ["genmove", "genmove x"], ["? syntax error..."] * 2, "a colour has to be given"),
    ("6.3.3", ["play b C3", "play b D3", "undo", "undo", "undo"], ["=", "=", "=", "=", "? cannot undo"], "one by one"),
    ("6.3.3", ["play b A1", "play w A2", "play w B1", "undo", "play b B1"], ["="] * 5, "captures are taken back"),
    # 6.3.4: tournaments
    ("6.3.4", ["time_settings 1 2", "time_settings", "time_left b", "time_left x 1 1"],
     ["? syntax error..."] * 4, "all numbers are needed"),
    ("6.3.4", ["final_score", "final_status_list", "final_status_list lost"], ["= W+2.5"] + ["? syntax error..."] * 2,
     "score and status"),
    # 6.3.5: regression
    ("6.3.5", ["loadsgf", "loadsgf none.sgf"], ["? syntax error...", "? cannot load file..."], "a file"),
    ("6.3.5", ["reg_genmove w", "undo", "reg_genmove"], ["= ...", "? cannot undo", "? syntax error..."], "no move"),
    # 6.3.6: debugging
    ("6.3.6", ["play b E1", "showboard"],
     ["=", "=\n   A B C D E\n 5 . . . . .\n 4 . . . . .\n 3 . . . . .\n 2 . . . . .\n 1 . . . .(X)\nwhite (O) to move"],
     "coordinates as in 2.11"),
]  # fmt: skip


def row(section, lines, answers, rule):
    larger = any(answer == "=" and line.startswith("boardsize") for line, answer in zip(lines, answers))
    marks = [pytest.mark.slow] if larger else []  # its rules have to be compiled
    return pytest.param(section, lines, answers, rule, marks=marks, id=f"{section} {rule}")


@pytest.mark.parametrize("section, lines, answers, rule", [row(*given) for given in ROWS])
def test_the_specification(section, lines, answers, rule):
    talk = random_session(sizes=SIZES, version="1.2.3")
    found = [talk.answer(line) for line in lines]
    assert all(answer == "" or ANSWER.fullmatch(answer) for answer in found), found
    for line, answer, wanted in zip(lines, found, answers, strict=True):
        pattern = re.escape(wanted).replace(re.escape("..."), "[^\n]*")
        plain = "\n".join(part.rstrip() for part in answer.removesuffix("\n\n").split("\n"))
        assert re.fullmatch(pattern, plain), (line, answer, wanted)


REQUIRED = "protocol_version name version known_command list_commands quit boardsize clear_board komi play genmove"
SUBSETS = "fixed_handicap place_free_handicap set_free_handicap loadsgf reg_genmove"
OTHERS = "undo time_settings time_left final_score final_status_list showboard"


def test_all_commands_of_the_specification_are_there():
    """Sections 6.1 (those that are required), 6.2 (tournaments and regression) and 6.3 (all)."""
    talk = random_session()
    listed = talk.answer("list_commands").removeprefix("= ").split()
    assert listed == sorted(listed) and set(f"{REQUIRED} {SUBSETS} {OTHERS}".split()) <= set(listed)
    assert all(talk.answer(f"known_command {name}") == "= true\n\n" for name in listed)
    assert set(listed) - set(f"{REQUIRED} {SUBSETS} {OTHERS}".split()) == {"analyze", "lz-analyze"}


def test_three_moves_of_one_colour_are_three_stones_of_it():
    talk = random_session()
    answers = [talk.answer("genmove b") for _ in range(3)]
    moves = [answer for answer in answers if answer != "= pass\n\n"]
    board = board_of(talk)
    assert (board == 1).sum() == len(moves) > 0 and (board == 2).sum() == 0 and talk.engine.movers == [0, 0, 0]


def test_a_page_tells_of_all_commands():
    """`notebooks/gtp.md` names what there is, and nothing else."""
    rows = re.findall(r"^\| ([^|]+) \|", documents.text("notebooks/gtp.md"), flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z_-]+)[^`]*`", row)}
    assert named == set(random_session().commands)
