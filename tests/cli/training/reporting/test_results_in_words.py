"""Verdicts and tables of results, by hand."""

from jaxzero import games
from jaxzero.cli.training.reporting.results_in_words import tables, verdict
from jaxzero.cli.training.settings import Evaluate

GAME = games.from_pgx("tic_tac_toe")
SETTINGS = Evaluate(games=20, simulations=32, rollouts=1000, position_simulations=(64, 600))


def played(share, low, high, *score, **more):
    return {"share": share, "interval": [low, high], "score": list(score)} | more


BEFORE = {"random": played(0.5, 0.3, 0.7, 9, 2, 9, 0)}
AFTER = {"random": played(0.975, 0.83, 1.0, 19, 1, 0, 0), "uct": played(0.25, 0.11, 0.47, 4, 2, 14, 0)}


def test_a_verdict_tells_points_with_intervals_and_what_was_before():
    assert verdict(GAME, AFTER, SETTINGS, BEFORE) == (
        "It makes 98% (83%-100%, before 50%) of the points against a random player and 25% (11%-47%) of the points "
        "against UCT, 1,000 rollouts per move (draws count half). The games began with two random moves, and some of "
        "these openings are lost already."
    )


def test_a_verdict_of_several_players_tells_the_seats():
    three = GAME._replace(num_players=3)
    seats = [played(share, 0, 1, 1, 0, 1, 0) for share in (0.5, 0.6, 0.7)]
    said = verdict(three, {"random": played(0.6, 0.4, 0.8, 12, 0, 8, 0, seats=seats)}, SETTINGS)
    assert "(draws count as shares); 33% would be even, and by seat" in said and "it is 50%, 60%, 70%." in said


def test_a_verdict_tells_mistakes_with_the_fewest_simulations():
    results = {"raw": {"all": 0.1}, "64": {"all": 0.034}, "600": {"all": 0.02}}
    assert verdict(GAME, results, SETTINGS) == "It makes 3.4% outcome mistakes with 64 simulations."
    shipped = verdict(games.from_pgx("connect_four"), results, SETTINGS)
    assert "(the network that comes with jaxzero, values mapped: 1.3%)" in shipped


def test_nothing_measured_says_nothing():
    assert verdict(GAME, {}, SETTINGS) == "" and tables({}, {}, SETTINGS) == []


def test_tables_show_what_was_measured_before_and_after():
    mistakes = {"raw": {"all": 0.25, "held_out": 0.5}}
    (caption, head, rows), (_, columns, lines) = tables(BEFORE | mistakes, AFTER | mistakes, SETTINGS)
    assert "32 simulations" in caption and head == ["against", "before", "after"]
    assert rows == [["a random player", "50.0% (30%-70%)  +9 =2 -9", "97.5% (83%-100%)  +19 =1 -0"]]
    assert columns == ["", "", "all", "held out"]
    assert lines == [["raw network", when, "25.0%", "50.0%"] for when in ("before", "after")]
