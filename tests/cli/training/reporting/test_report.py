"""The games of a run's report: who drew which move, and how they ended."""

import json
import pathlib
import re

import jax
import jax.numpy as jnp
import pytest

import jaxzero as jz
from jaxzero import games, models
from jaxzero.cli.training.reporting import report, report_parts
from jaxzero.play.analysis import Candidate, Report
from jaxzero.play.notation import names

ROOT = pathlib.Path(__file__).resolve().parents[4]

GAME = games.from_pgx("tic_tac_toe")


def search():
    """Acts by its halving, which is not always the first of the principal variation."""
    network = lambda params, observation: (jnp.zeros((len(observation), 9)), jnp.zeros(len(observation)))
    return jz.gumbel(models.perfect(GAME, network), 4, gumbel_scale=0.0)


def won_by(record):
    """Who has won by the rules, after the moves that a record tells of."""
    key, called, step = jax.random.key(0), names(GAME), jax.jit(GAME.step)
    state = GAME.init(key)
    first = int(GAME.to_play(state))
    for ply in record.plies[:-1]:
        state = step(state, called.index(re.search(r"plays (\w+)", ply.words)[1]), key)
    assert bool(GAME.terminal(state)) and f"{len(record.plies) - 1} moves." in record.title
    return {1: "X has won", -1: "O has won", 0: "a draw"}[int(GAME.rewards(state)[first])]


@pytest.mark.slow
def test_only_the_opening_is_called_random_and_games_follow_from_the_seed():
    said = {}
    for seed in (0, 1):
        records, _, _ = report.play(GAME, search(), (), seed)
        said[seed] = [[ply.words for ply in record.plies] for record in records]
        assert len(records) == report.GAMES
        for record in records:
            assert won_by(record) in record.title and won_by(record) in record.plies[-1].words
            drawn = ["drawn at random" in ply.words for ply in record.plies]
            assert drawn == [number < report.OPENING for number in range(len(drawn))]
    assert said[0] != said[1]


def test_another_report_is_made_of_the_same_parts(tmp_path):
    lines = [{"step": step, "minutes": float(step), "acting/length": 10.0 * step} for step in range(1, 5)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows, table = report_parts.rows_of(tmp_path), (("Length of episodes", "steps", {"steps": "acting/length"}),)
    assert report_parts.how_it_went(rows, report.CURVES) == [], "none of these metrics is there"
    parts = [
        *report_parts.what_was_learned([("Returns", ["", "mean"], [["after", "500"]])], "A return is a sum."),
        *report_parts.how_it_went(rows, table),
        *report_parts.settings_and_next({"learn": {"unroll": 5}}, ["make train"]),
    ]
    text = report_parts.page(tmp_path, "It learned", rows, parts, "It stands.").read_text()
    headings = re.findall(r"<h2[^>]*>([^<]*)<", text)
    assert headings == ["What was learned", "How it went", "Settings", "Made with", "What next"]
    for words in ("It stands.", "A return is a sum.", "learn.unroll", "make train", "4 iterations in 4.0 minutes"):
        assert words in text
    assert report_parts.what_was_learned([], "A return is a sum.") == []


def test_a_moment_is_told_in_the_words_of_the_board():
    state = GAME.init(jax.random.key(0))
    mover = int(GAME.to_play(state))
    candidates = tuple(Candidate(a, n, v, 0.25, (a, 8)) for a, n, v in ((4, 1_000, 0.06), (0, 234, -1.0)))
    found = Report(1_234, 0.0, candidates)
    ply = report.moment(GAME, state, mover, found, -1, 4, False)
    assert "X to move: 50 % of the points expected, 1,234 visits" in ply.picture.svg
    assert " ".join(ply.words.split()) == (
        "X to move: 50 % of the points expected, 1,234 visits. X plays b2. move visits points prior "
        "b2 1,000 53 % 25 % a1 234 0 % 25 % Expected play: b2 c3"
    )
    other = report.moment(GAME, state, 1 - mover, found, -1, 4, True)
    assert ">53<" in ply.picture.svg and "O to move" in other.words and "O plays b2, drawn at random." in other.words


@pytest.mark.slow
def test_a_game_that_does_not_end_is_called_so(monkeypatch):
    monkeypatch.setattr(report, "LONGEST", 3)
    records, _, _ = report.play(GAME, search(), (), 0)
    assert [record.title for record in records] == [
        f"Game {i + 1}: Not over after 3 moves." for i in range(report.GAMES)
    ]
    assert all(len(record.plies) == 3 for record in records)
