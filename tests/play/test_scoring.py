"""Scores: by points, and as the rules say where these end a game otherwise."""

import types

import numpy as np
import pytest

from jaxzero import games
from jaxzero.play import scoring
from jaxzero.play.browser import board_json
from jaxzero.play.engine import Engine
from jaxzero.play.gtp import judging


def test_regions_are_those_of_a_plain_search():
    draw = np.random.default_rng(0)
    for _ in range(30):
        board = draw.integers(0, 3, (4, 5))
        together = {point: {point} for point in np.ndindex(board.shape)}
        for row, column in np.ndindex(board.shape):
            for other in ((row + 1, column), (row, column + 1)):
                if other in together and board[other] == board[row, column]:
                    joined = together[row, column] | together[other]
                    together.update(dict.fromkeys(joined, joined))
        found = list(scoring.regions(board))
        assert {frozenset(region) for region, _ in found} == {frozenset(region) for region in together.values()}
        assert sum(len(region) for region, _ in found) == board.size
        for region, borders in found:
            beside = {(r + i, c + j) for r, c in region for i, j in ((0, 1), (1, 0), (0, -1), (-1, 0))} - set(region)
            assert borders == {board[point] for point in beside if point in together}


SENDING_TWO = [9, 11, 10, 3, 80, 1, 70]  # black encloses the white stone of b9
RETURNING_ONE = [0, 2, 1]  # white adds one, black takes two, white takes one: the position is there again


@pytest.mark.slow
def test_a_game_that_ends_by_repetition_has_the_result_of_its_rules():
    engine = Engine(games.from_pgx("go_9x9"), lambda n, stop: None)
    for action in SENDING_TWO:
        engine.play(action)
    before = scoring.final_score(engine.game, engine.position(), engine.first, 7.5)
    for action in RETURNING_ONE:
        assert not engine.over()
        engine.play(action)
    assert engine.over() and engine.result() == 1, "who repeats a position loses"
    assert before == "W+7.5", "by area"
    assert scoring.final_score(engine.game, engine.position(), engine.first, 7.5) == "B+"
    assert judging.COMMANDS["final_score"](types.SimpleNamespace(engine=engine, komi=7.5), []) == "B+"
    assert board_json.outcome(engine, ("Black", "White"), 7.5) == "Black has won."
