"""GTP sessions that several tests share: with an engine that searches, and with one that moves at random."""

import functools
import io
import random
import re
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play import gtp
from jaxzero.play.engine import Engine
from jaxzero.play.engine_programs import programs
from jaxzero.play.notation import stones

ANSWER = re.compile(r"[=?]\d* ?[^\n]*(\n[^\n]+)*\n\n", re.ASCII)


def built(game):
    """The engine of a game, at the start of the game. All tests share it, so its programs are compiled once."""
    engine = _built(game)
    engine.clear(number=0)
    return engine


@functools.cache
def _built(game):
    model = models.rollout(game)
    return Engine(game, lambda n, stop: jz.uct(model, n, rule=jz.avoid_proven(jz.ucb1(0.5)), stop=stop, capacity=400))


def made(size, komi):
    assert (size, komi) == (5, 2.5)
    return built(games.go(5, 2.5))


def session(make=made, **options):
    return gtp.Session(make, **(dict(size=5, komi=2.5, simulations=20, version="1") | options))


def other(name, **options):
    make = lambda size, komi: built(games.from_pgx(name))
    return gtp.Session(make, **(dict(size=0, go=False, simulations=20) | options))


def said(talk, *lines):
    """The answers to lines, without their empty last lines."""
    talk.answer("clear_board")
    answers = [talk.answer(line) for line in lines]
    assert all(answer == "" or ANSWER.fullmatch(answer) for answer in answers), answers
    return [answer[:-2] for answer in answers]


def talked(lines, talk):
    """The answers to lines as bytes, through streams."""
    out = io.BytesIO()
    gtp.serve(talk, io.BytesIO(b"\n".join(lines) + b"\n"), out)
    text = out.getvalue().decode("ascii")
    answers = [x + "\n\n" for x in text.split("\n\n")[:-1]]
    assert not text or text.endswith("\n\n")
    assert all(ANSWER.fullmatch(answer) for answer in answers)
    return answers


# --------------------------------------------------------------------------------------------- engines without a search
class Blank(NamedTuple):
    """An empty tree."""

    size: np.ndarray


def at_random(size):
    """An engine of Go that makes any legal move, at the start of a game: the real rules, no search to compile."""
    engine = _at_random(size)
    engine.clear(number=0)
    return engine


@functools.cache
def _at_random(size):
    draw, nothing = random.Random(0), Blank(np.zeros(1, int))
    made = programs(games.go(size, 2.5, move_limit=30_000), lambda n, stop: None)

    def more(params, keys, state, tree, most, least):
        legal = np.flatnonzero(made.game.legal(made.one(state)))
        return SimpleNamespace(action=[int(draw.choice(legal))], tree=nothing)

    made = made._replace(
        empty=lambda *given: nothing, more=more, forgotten=lambda tree: tree, advance=lambda tree, action: tree
    )
    return Engine(made.game, made)


def random_session(size=5, sizes=(), **options):
    """A session with engines that move at random; all tests share one per board size, whatever the komi."""
    options = dict(komi=2.5, simulations=1) | options
    return gtp.Session(lambda size, komi: at_random(size), size=size, sizes=sizes, **options)


def board_of(talk):
    """The stones of the board, rows from the top: 0 none, 1 black, 2 white."""
    engine = talk.engine
    return stones(engine.game, engine.position(), engine.first)
