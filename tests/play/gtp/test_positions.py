"""Moves in and out of turn, passes, captures, ko and undo: against a board in plain Python, and against GNU Go."""

import random

import numpy as np
import pytest

from jaxzero.play.notation import names
from tests.gnugo import gnugo
from tests.gtp_sessions import board_of, random_session
from tests.independent.go_board import Board

COLOURS = {1: "b", 2: "w"}


def vertex(size, point):
    return "pass" if point is None else f"{'ABCDEFGHJKLMNOPQRST'[point[1]]}{size - point[0]}"


def opening(draw, board):
    """Moves that lead to a ko somewhere, at the edge or not; half of the time none. Most of them are out of turn."""
    if draw.random() < 0.5 or board.stones or board.size < 4:
        return []
    row, column = draw.randrange(board.size), draw.randint(1, board.size - 2)
    mine, theirs = draw.choice([(1, 2), (2, 1)])
    walls = [(mine, point) for point in board.beside((row, column)) if point != (row, column + 1)]
    walls += [(theirs, point) for point in board.beside((row, column + 1)) if point != (row, column)]
    draw.shuffle(walls)
    return [*walls, (theirs, (row, column)), (mine, (row, column + 1))]


def drawn(draw, board):
    """A colour and a point, legal or not: kos are sought, and turns are kept in three of four cases."""
    colour = board.turn if draw.random() < 0.75 else 3 - board.turn
    if draw.random() < (0.4 if board.passes else 0.06):
        return colour, None
    if board.ko and draw.random() < 0.6:
        return draw.choice([colour, board.ko[0]]), board.ko[1]
    return colour, (draw.randrange(board.size), draw.randrange(board.size))


def game(draw, board, most):
    """Commands, one after another, None for undo; each is drawn when the one before it was done on the board."""
    yield from opening(draw, board)
    for _ in range(draw.randint(5, most)):
        yield None if board.history and draw.random() < 0.06 else drawn(draw, board)


KINDS = "kos", "captures", "turns", "ends", "wrong"


def both(talk, board, command, seen):
    """Says a command, None for undo, to a session, and does it on a board; answers the line and what was answered."""
    line, legal = "undo", True
    if command is None:
        board.undo()
    else:
        colour, point = command
        turn, ko, before = board.turn, board.ko, sum(board.taken.values())
        line, legal = f"play {COLOURS[colour]} {vertex(board.size, point)}", board.play(colour, point)
        taken = sum(board.taken.values()) > before
        for kind, there in zip(KINDS, (ko == command, taken, legal and colour != turn, board.over, not legal)):
            seen[kind] += there
    answer = talk.answer(line)
    assert answer == ("=\n\n" if legal else "? illegal move\n\n"), line
    assert board_of(talk).tolist() == board.rows(), line
    assert (talk.engine.over(), talk.engine.to_move() + 1) == (board.over, board.turn), line
    return line, answer


def test_positions_are_those_of_a_plain_board():
    draw, talk, seen = random.Random(0), random_session(5), dict.fromkeys(KINDS, 0)
    for _ in range(10):
        board = Board(5)
        talk.answer("clear_board")
        for command in game(draw, board, 30):
            both(talk, board, command, seen)
    assert min(seen.values()) >= 3, seen


def test_a_turn_that_changes_ends_a_ko_and_makes_no_pass():
    talk = random_session()
    for move in "b B1", "b A2", "b B3", "w C1", "w D2", "w C3", "w B2", "b C2":  # black has taken on B2
        assert talk.answer(f"play {move}") == "=\n\n"
    assert talk.answer("play w B2") == "? illegal move\n\n"
    assert talk.answer("play b B2") == "=\n\n" and talk.answer("undo") == "=\n\n", "black may fill it"
    assert talk.answer("play w B2") == "? illegal move\n\n", "undo brings it back"
    assert talk.answer("reg_genmove b")[0] == "=" and talk.answer("play w B2") == "? illegal move\n\n"
    assert talk.answer("komi 0.5") == "=\n\n" and talk.answer("play w B2") == "? illegal move\n\n"
    assert talk.answer("play b E5") == "=\n\n" and talk.answer("play w B2") == "=\n\n", "black has moved twice"
    assert talk.answer("play b C2") == "? illegal move\n\n", "now it is white's ko"
    for move in "b pass", "b pass", "w E4":
        assert talk.answer(f"play {move}") == "=\n\n" and not talk.engine.over()


# ------------------------------------------------------------------------------------------------------------- GNU Go
def begun(draw, talk, program, size):
    """A board that is empty or has handicap stones, in the session, in GNU Go, and plain."""
    board = Board(size)
    program.ask(f"boardsize {size}", "clear_board")
    talk.answer("clear_board")
    kind = draw.randrange(4)
    if kind == 0 and size >= 7:
        line = f"fixed_handicap {draw.randint(2, 4)}"
    elif kind == 1:
        points = draw.sample(names(talk.engine.game)[:-1], draw.randint(2, 6))
        line = f"set_free_handicap {' '.join(points)}"
    elif kind == 2:
        line = f"place_free_handicap {draw.randint(2, 12)}"
    else:
        return board
    answer = talk.answer(line)
    placed = answer.split()[1:] if "fixed" in line or "place" in line else points
    theirs = line if "fixed" in line else f"set_free_handicap {' '.join(placed)}"
    (said,) = program.ask(theirs)
    assert answer[0] == said[0] == "="
    if "fixed" in line:
        assert set(said.split()[1:]) == set(placed)
    names_of = {vertex(size, (row, column)): (row, column) for row in range(size) for column in range(size)}
    board.stones, board.turn = {names_of[name]: 1 for name in placed}, 2
    return board


def facts(talk, program, size):
    """Stones, captures, and which moves either colour may make: ours, and theirs."""
    called = names(talk.engine.game)[:-1]
    asked = ["list_stones black", "list_stones white", "captures black", "captures white"]
    legal = [f"is_legal {colour} {name}" for colour in ("black", "white") for name in called]
    theirs = [answer.removeprefix("=").strip() for answer in program.ask(*asked, *legal)]
    board, engine = board_of(talk), talk.engine
    on_board = [{called[i] for i in np.flatnonzero(board == colour)} for colour in (1, 2)]
    points = [mover for move, mover in zip(engine.moves, engine.movers) if move < size * size]
    captured = [points.count(1 - colour) - len(on_board[1 - colour]) for colour in (0, 1)]  # by black, by white
    free = []
    for colour in (0, 1):
        engine.turn_to(colour)
        free += [str(int(x)) for x in engine.legal()[:-1]]
        engine.turn_back()
    return (*on_board, *map(str, captured), free), (*(set(x.split()) for x in theirs[:2]), *theirs[2:4], theirs[4:])


@pytest.mark.slow
@pytest.mark.parametrize("size, games", [(5, 140), (7, 60)])
def test_gnu_go_has_the_same_board_after_any_moves(size, games):
    draw, talk, seen = random.Random(size), random_session(size), dict.fromkeys(KINDS, 0)
    with gnugo() as program:
        for _ in range(games):
            board = begun(draw, talk, program, size)
            for command in game(draw, board, 40):
                line, ours = both(talk, board, command, seen)
                (theirs,) = program.ask(line)
                assert ours[0] == theirs[0], (line, ours, theirs)
            ours, theirs = facts(talk, program, size)
            assert ours == theirs
    assert all(seen[kind] >= 5 for kind in KINDS), seen
