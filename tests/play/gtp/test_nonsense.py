"""Lines that a careless or a wicked program might send: every one is answered as it should be, and the engine lives on.

Of three kinds: random bytes, commands with a mistake in them, and commands in any order. The engine makes legal moves
at random; afterwards its board is that of its moves by a board in plain Python.
"""

import random
import re

import pytest

from tests.gtp_sessions import ANSWER, board_of, random_session, talked
from tests.independent.go_board import Board

COMMANDS = (
    "play {colour} {vertex}", "play {colour} {vertex}", "play {colour} {vertex}", "play {colour} pass",
    "genmove {colour}", "reg_genmove {colour}", "undo", "showboard", "final_score",
    "final_status_list {status}", "time_settings {size} {number} {size}", "time_left {colour} {number} {size}",
    "name", "version", "protocol_version", "list_commands", "known_command {status}", "loadsgf {vertex} {size}",
)  # fmt: skip
SETTING_UP = (
    "clear_board", "boardsize {size}", "komi {number}", "fixed_handicap {size}", "place_free_handicap {size}",
    "set_free_handicap {vertex} {vertex} {vertex}",
)  # fmt: skip
WORDS = dict(
    colour=("b", "w", "black", "WHITE"),
    vertex=tuple(f"{column}{row}" for column in "ABCDEFGHJ" for row in range(1, 10)),
    size=("2", "3", "4", "5", "6", "7", "8", "9"),
    number=("0", "2.5", "-7", "1e6", "30"),
    status=("alive", "dead", "seki", "play"),
)
STRANGE = tuple("nan 1e400 ² \0 # = ? é \u2028 /etc/passwd -1 pass \t I5".split(" ")) + ("9" * 30, "")


def valid(draw):
    line = draw.choice(COMMANDS if draw.random() < 0.95 else SETTING_UP)
    return re.sub(r"\{(\w+)\}", lambda found: draw.choice(WORDS[found[1]]), line)


def mistaken(draw):
    """A command of which a word or a character is left out, doubled, moved or replaced by another."""
    line = valid(draw)
    parts = list(line) if draw.random() < 0.5 else re.split("( )", line)
    for _ in range(draw.randint(1, 2)):
        at = draw.randrange(len(parts) + 1)
        new = draw.choice([*STRANGE, chr(draw.randrange(1, 0x300)), *parts])
        parts[at : at + draw.randint(0, 2)] = [new] * draw.randint(0, 2)
    return "".join(parts)


def nonsense(draw):
    """A line, without an id and the end of the line."""
    kind = draw.randrange(4)
    if kind == 0:
        return bytes(draw.randrange(256) for _ in range(draw.randrange(40))).replace(b"\n", b" ")
    line = mistaken(draw) if kind == 1 else valid(draw)
    return line.encode().replace(b"\n", b" ")


def known(talk):
    """What a command that fails must not change."""
    engine = talk.engine
    turn = int(engine.state.moves[0]), bool(engine.state.over[0])
    return talk.size, talk.komi, talk.settled, talk.clocks[:], list(zip(engine.moves, engine.movers)), turn


def conversation(draw, sizes, count):
    talk = random_session(size=sizes[-1], sizes=sizes)
    answered = {"=": 0, "?": 0}
    for _ in range(count):
        line, mark = nonsense(draw), draw.choice([b"", b"", b"17 ", b"0 ", b"99999999999 "])
        said = (mark + line + draw.choice([b"", b"\r"])).decode("utf-8", errors="replace")
        before = known(talk)
        answer = talk.answer(said)
        readable = re.sub(r"[\x00-\x08\x0a-\x1f\x7f]", "", said).split("#")[0].strip()
        assert (answer == "") == (readable == ""), (said, answer)
        if answer:
            assert ANSWER.fullmatch(answer) and not re.search("Traceback|failed", answer), (said, answer)
            if mark and line.strip():
                assert re.match(rf"[=?]{mark.decode().strip()}[ \n]", answer), (said, answer)
            answered[answer[0]] += 1
            assert answer[0] == "=" or known(talk) == before, said
        talk.idle()
    assert talk.answer("42 name") == "=42 jaxzero\n\n" and min(answered.values()) > count // 20, answered
    assert "failed" not in talk.answer("showboard")
    assert board_of(talk).tolist() == replayed(talk).rows()
    assert talk.size in sizes and board_of(talk).shape == (talk.size, talk.size)
    assert 0 <= talk.settled <= len(talk.engine.moves)
    return len(talk.engine.moves)


def replayed(talk):
    """The moves of a session on a plain board."""
    board, size = Board(talk.size), talk.size
    for action, mover in zip(talk.engine.moves, talk.engine.movers, strict=True):
        assert board.play(mover + 1, divmod(action, size) if action < size * size else None)
    return board


def test_whatever_is_said_gets_an_answer():
    draw = random.Random(0)
    assert sum(conversation(draw, (5,), 50) for _ in range(20)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("thousands", [10, pytest.param(50, marks=pytest.mark.exhaustive)])
def test_thousands_of_lines_of_nonsense(thousands):
    draw = random.Random(thousands)
    assert sum(conversation(draw, tuple(range(2, 10)), 200) for _ in range(5 * thousands)) > 25 * thousands


def test_nonsense_by_way_of_streams():
    draw = random.Random(1)
    lines = [nonsense(draw) for _ in range(300)]
    answers = talked([*lines, b"42 name", b"quit", b"name"], random_session())
    assert answers[-2:] == ["=42 jaxzero\n\n", "=\n\n"] and len(answers) > 200
