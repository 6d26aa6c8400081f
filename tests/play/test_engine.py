"""The engine: what it keeps from move to move, what it answers, and that it compiles nothing twice."""

import functools

import jax
import numpy as np
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.play.engine import Engine

GAME = games.from_pgx("tic_tac_toe")


@functools.cache
def made():
    model = models.rollout(GAME, 4)
    return Engine(GAME, lambda n, stop: jz.uct(model, n, rule=jz.avoid_proven(jz.ucb1()), stop=stop, capacity=500))


@pytest.fixture
def engine():
    made().clear()
    return made()


def test_it_finds_the_move_that_wins_and_the_one_that_does_not_lose(engine):
    for action in (0, 3, 1, 4):
        engine.play(action)
    assert engine.think(60) == 2
    report = engine.report()
    assert report.candidates[0].action == 2 and report.candidates[0].value == 1 and report.value == 1
    engine.undo()
    assert engine.think(60) == 2 and engine.report().visits == 60, "what was known of another position is forgotten"


def test_the_tree_goes_on_with_the_game(engine):
    engine.think(100)
    best = engine.report().candidates[0]
    assert sum(c.visits for c in engine.report().candidates) == engine.report().visits == 100
    assert (
        best.line[0] == best.action
        and len(best.line) > 1
        and best.visits == max(c.visits for c in engine.report().candidates)
    )
    engine.play(best.action)
    assert engine.report().visits == best.visits - 1
    engine.think(50)
    assert engine.report().visits == best.visits - 1 + 50


def test_thinking_is_deterministic_and_a_search_in_parts_is_the_same_search(engine):
    engine.think(40)
    engine.think(40)
    parts = engine.report()
    engine.clear()
    engine._speed = 10_000.0  # chunks of other sizes
    engine.think(80)
    assert engine.report() == parts


def test_a_game_to_its_end(engine):
    while not engine.over():
        assert engine.legal().any() and engine.to_move() == len(engine.moves) % 2
        engine.play(engine.think(150))
    assert engine.result() == 0 and not engine.legal().any()
    with pytest.raises(ValueError, match="the game is over"):
        engine.think(10)
    with pytest.raises(ValueError, match="not legal"):
        engine.play(0)
    for _ in range(9):
        engine.undo()
    with pytest.raises(ValueError, match="no move to take back"):
        engine.undo()


def test_the_first_mover_is_the_same_whoever_pgx_draws():
    results = set()
    for seed in range(6):
        engine = Engine(GAME, lambda n, stop: None, seed=seed)
        for action in (0, 3, 1, 4, 2):
            assert engine.to_move() == len(engine.moves) % 2
            engine.play(action)
        results.add((engine.first, engine.result()))
    assert {result for _, result in results} == {1.0} and {first for first, _ in results} == {0, 1}


def test_nothing_is_compiled_twice(engine):
    engine.think(5)
    engine.play(4)
    engine.think(5)
    programs = engine._empty, engine._more, engine._advance, engine._forgotten, engine._lines
    counts = [program._cache_size() for program in programs]
    for action in (0, 1, 7):
        engine.play(action)
        engine.think(7, seconds=5)
        engine.report()
    engine.undo()
    engine.think(3)
    assert counts == [program._cache_size() for program in programs]
    assert counts[:2] == [1, 1]  # the others are shared with engines of other games


def test_what_cannot_be_is_refused(engine):
    with pytest.raises(ValueError, match="simulations, seconds or both"):
        engine.think()
    with pytest.raises(ValueError, match="has 1 player"):
        Engine(games.from_pgx("2048"), lambda n, stop: None)
    for action in (-1, 9):
        with pytest.raises(ValueError, match="not legal"):
            engine.play(action)


def test_positions_are_those_of_the_game(engine):
    state = GAME.init(jax.random.key(0))
    for action in (4, 0, 8):
        engine.play(action)
        state = GAME.step(state, action, jax.random.key(0))
    np.testing.assert_array_equal(engine.legal(), GAME.legal(state))
    assert engine.moves == [4, 0, 8]
