"""Stones in colour: on a terminal that has colours, and nowhere else."""

import re

import pytest

from jaxzero import games
from jaxzero.cli.playing import board_colours, terminal_ui
from jaxzero.play.engine import Engine

BLUE, YELLOW, REVERSE, PLAIN = "\033[1;34m", "\033[1;33m", "\033[7m", "\033[0m"


def after(name, *actions):
    engine = Engine(games.go(int(name)) if name.isdigit() else games.from_pgx(name), lambda n, stop: None)
    for action in actions:
        engine.play(action)
    return engine


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr(board_colours.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    return monkeypatch


def test_stones_are_coloured_and_the_winning_ones_are_in_reverse(terminal):
    lines = terminal_ui.position(after("tic_tac_toe", 0, 3, 1, 4, 2))
    assert f"{BLUE}{REVERSE}X{PLAIN}" in lines[1] and lines[1].count(REVERSE) == 3
    assert lines[2].count(f"{YELLOW}O{PLAIN}") == 2 and REVERSE not in "".join(lines[2:])
    plain = [re.sub(r"\033\[[\d;]*m", "", line) for line in lines]
    terminal.setenv("NO_COLOR", "1")
    assert terminal_ui.position(after("tic_tac_toe", 0, 3, 1, 4, 2)) == plain


def test_names_of_columns_are_no_stones(terminal):
    lines = terminal_ui.position(after("16", 0))
    assert "O" in lines[0] and "\033" not in lines[0] and f"{BLUE}X{PLAIN}" in lines[1]
    lines = terminal_ui.position(after("connect_four", 3, 3))
    assert f"{BLUE}X{PLAIN}" in lines[5] and f"{YELLOW}O{PLAIN}" in lines[4] and "\033" not in lines[6]
    lines = terminal_ui.position(after("connect_four", 3, 0, 3, 0, 3, 0, 3))
    assert [line.count(f"{BLUE}{REVERSE}X{PLAIN}") for line in lines] == [0, 0, 1, 1, 1, 1, 0]


def test_no_colours_where_there_is_no_terminal_or_a_dumb_one(terminal):
    engine = after("tic_tac_toe", 0)
    assert "\033" in "".join(terminal_ui.position(engine))
    terminal.setenv("TERM", "dumb")
    assert "\033" not in "".join(terminal_ui.position(engine))
    terminal.setenv("TERM", "xterm")
    terminal.setattr(board_colours.sys.stdout, "isatty", lambda: False)
    assert "\033" not in "".join(terminal_ui.position(engine))
