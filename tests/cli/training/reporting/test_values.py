"""Where wins pay more or less, a value is shown as it is, not as a share of the points: on boards and in reports."""

import xml.etree.ElementTree as ET

import jax
import pytest

from jaxzero import games, viz
from jaxzero.cli.training.reporting import report
from jaxzero.play.analysis import Candidate, Report
from jaxzero.viz import report as pages

GAME = games.from_pgx("tic_tac_toe")
PAID = GAME._replace(outcomes=object())  # some wins may pay more than others, as in backgammon
FOUND = Report(100, 1 / 3, (Candidate(4, 90, 1 / 3, 0.25, (4, 8)), Candidate(0, 10, -1.0, 0.25, (0,))))


def test_a_board_shows_values():
    state = GAME.init(jax.random.key(0))
    said = ["".join(x.itertext()) for x in ET.fromstring(viz.board(PAID, state, report=FOUND).svg).iter() if x.text]
    for words in ("X to move: value 0.33, 100 visits", "0.3", "−1.0"):
        assert words in said
    assert said[-1] == "Disc: share of the visits · number: value · ring: best move"
    assert "67" in viz.board(GAME, state, report=FOUND).svg and "67" not in said


def test_a_moment_of_a_report_shows_values():
    state = GAME.init(jax.random.key(0))
    ply = report.moment(PAID, state, int(GAME.to_play(state)), FOUND, -1, 4, False)
    assert " ".join(ply.words.split()) == (
        "X to move: +0.33 expected, 100 visits. X plays b2. move visits value prior "
        "b2 90 +0.33 25 % a1 10 -1.00 25 % Expected play: b2 c3"
    )


@pytest.mark.parametrize("game, points", [(GAME, True), (PAID, False)])
def test_a_report_says_what_its_numbers_are(monkeypatch, game, points):
    square = viz.Picture('<svg xmlns="http://www.w3.org/2000/svg"/>')
    records = [pages.Record("Game 1", (pages.Ply(square, "words"),))]
    monkeypatch.setattr(report, "play", lambda *given: (records, None, 0))
    monkeypatch.setattr(report.viz, "tree", lambda tree, **given: viz.Page("<p>", 100))
    shown, tree = report.thoughts(game, None, (), 0)
    assert (report.POINTS_SHOWN in shown.body, report.VALUES_SHOWN in shown.body) == (points, not points)
    assert "Q is the mean return for the player who moves" in tree.body
    assert ("+1 (win)" in tree.body, "expected points" in tree.body) == (points, points)
