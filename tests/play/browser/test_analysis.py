"""Sessions as analysis boards: steps, variations, who plays, games that are watched, and the search for mistakes."""

import threading
import time

import pytest

from jaxzero.play.analysis import spread
from jaxzero.play.browser.sessions import MOST_SIMULATIONS, Sessions
from tests.engines import three_in_a_row
from tests.play.browser.test_sessions import consistent, refused, settled

BOTH, NOBODY = 3, 0  # sides of the engine


@pytest.fixture(scope="module")
def sessions():
    """With no pause between the moves of a game that is watched."""
    made = Sessions(three_in_a_row(), simulations=20, pace=0.0)
    settled(made, made.open()["id"], lambda view: made._thinker.ready)  # compiled
    yield made
    assert made.close(20)


def analysis(sessions, *actions):
    """A game in which a person has made these moves for both."""
    view = sessions.open()
    view = sessions.players(view["id"], 0, NOBODY)
    for action in actions:
        view = sessions.play(view["id"], view["version"], action)
    return view


def go(sessions, view, node):
    return sessions.go(view["id"], view["version"], node)


def test_steps_show_what_was_said_and_lose_nothing(sessions):
    view = analysis(sessions, 4)
    view = settled(sessions, sessions.hint(view["id"], view["version"])["id"])
    said = view["search"]
    view = sessions.play(view["id"], view["version"], 0)
    assert said["visits"] == 20 and len(said["candidates"]) == 8, "all that is legal"
    back = go(sessions, view, 1)
    consistent(back)
    assert (back["moves"], back["search"], back["line"], back["now"], back["game"]) == (["b2"], said, [0, 1, 2], 1, 2)
    assert refused(409, sessions.undo, view["id"], back["version"]).startswith("An earlier position is shown")
    beginning = go(sessions, back, 0)
    assert beginning["moves"] == [] and beginning["said"] is None and beginning["onGame"]
    again = go(sessions, beginning, 2)
    assert again["moves"] == view["moves"] and again["said"] == view["said"] and again["said"]["search"] == said
    assert "no position 3" in refused(409, sessions.go, view["id"], again["version"], 3)


def test_a_hint_tells_of_all_legal_moves_though_one_wins(sessions):
    view = analysis(sessions, 0, 3, 1, 4)
    view = settled(sessions, sessions.hint(view["id"], view["version"])["id"])
    told = view["search"]["candidates"]
    assert {one["action"] for one in told} == set(view["legal"]) and told[0]["action"] == 2 == view["hint"]
    assert all(one["visits"] >= 1 for one in told) and view["search"]["share"] == 1.0


def test_a_variation_begins_where_another_move_is_made(sessions):
    view = go(sessions, analysis(sessions, 4, 0, 8), 1)
    view = sessions.play(view["id"], view["version"], 2)
    consistent(view)
    assert view["moves"] == ["b2", "c1"] and not view["onGame"] and view["line"] == [0, 1, 4] and view["game"] == 3
    assert [ply["parent"] for ply in view["plies"]] == [-1, 0, 1, 2, 1] and view["plies"][4]["name"] == "c1"
    assert go(sessions, view, 3)["moves"] == ["b2", "a1", "c3"]
    view = go(sessions, sessions.view(view["id"]), 4)
    view = sessions.undo(view["id"], view["version"])
    assert view["moves"] == ["b2"] and len(view["plies"]) == 4 and view["onGame"]


def test_the_engine_answers_at_the_end_of_the_game_only(sessions):
    view = sessions.open()
    id = view["id"]
    view = settled(sessions, sessions.play(id, 0, 4)["id"])
    view = settled(sessions, go(sessions, view, 1)["id"])
    assert view["toMove"] == 1 and not view["engineMoves"] and view["thinking"] is None
    reply = next(action for action in view["legal"] if view["plies"][2]["name"] != sessions.layout["names"][action])
    view = settled(sessions, sessions.play(id, view["version"], reply)["id"])
    view = settled(sessions, sessions.play(id, view["version"], view["legal"][0])["id"])
    assert len(view["moves"]) == 3 and not view["onGame"], "a person moves for both in a variation"
    view = settled(sessions, sessions.adopt(id, view["version"])["id"])
    assert view["onGame"] and len(view["moves"]) == 4 and view["game"] == view["now"] and view["you"] == 0
    consistent(view)
    assert len(view["plies"]) == 6, "what was the game is a variation"


def test_the_engine_thinks_on_when_somebody_comes_back(sessions):
    view = sessions.open()
    id = view["id"]
    sessions.limit(id, MOST_SIMULATIONS)
    view = sessions.play(id, 0, 4)
    view = go(sessions, view, 0)
    assert view["thinking"] is None and not view["engineMoves"]
    sessions.limit(id, 5)
    view = settled(sessions, go(sessions, view, 1)["id"])
    assert len(view["moves"]) == 2, "it was its turn"


def test_analysis_is_for_one_who_moves_for_all(sessions):
    view = analysis(sessions, 4, 0)
    assert view["you"] is None and view["engineSides"] == [] and view["thinking"] is None and view["canUndo"]
    view = sessions.undo(view["id"], view["version"])
    assert view["moves"] == ["b2"], "a move of either side"
    view = settled(sessions, sessions.players(view["id"], view["version"], 2)["id"])
    assert view["you"] == 0 and len(view["moves"]) == 2, "now it plays the second"
    assert "from 0 to 3" in refused(400, sessions.players, view["id"], view["version"], 4)


def test_a_game_is_watched_and_pauses(sessions):
    view = sessions.open()
    id = view["id"]
    sessions.limit(id, MOST_SIMULATIONS)
    view = sessions.players(id, 0, BOTH)
    assert view["engineMoves"] and refused(409, sessions.play, id, view["version"], 0) == "It is not your turn."
    settled(sessions, id, lambda view: view["search"] is not None)
    view = sessions.pause(id, view["version"])
    assert view["paused"] and view["thinking"] is None and view["moves"] == []
    sessions.limit(id, 10)
    view = settled(sessions, sessions.resume(id, view["version"])["id"], lambda view: view["over"])
    consistent(view)
    assert view["you"] is None and view["line"] == list(range(len(view["moves"]) + 1))
    assert all(ply["first"] is not None for ply in view["plies"])


def test_a_game_that_is_watched_takes_its_time():
    sessions = Sessions(three_in_a_row(), simulations=5, pace=0.25)
    try:
        view = sessions.open()
        view = settled(sessions, sessions.players(view["id"], 0, NOBODY)["id"])
        while sessions.view(view["id"])["thinking"]:
            time.sleep(0.01)
        began = time.monotonic()
        sessions.players(view["id"], 1, BOTH)
        other = sessions.open()["id"]
        sessions.play(other, 0, 4)
        view = settled(sessions, view["id"], lambda view: len(view["moves"]) >= 2)
        assert time.monotonic() - began >= 0.5
        assert len(sessions.view(other)["moves"]) == 2, "others do not wait for that"
    finally:
        assert sessions.close(20)


def reviewed(sessions, *actions):
    """The game after a review, and how many positions it had searched, whenever somebody looked."""
    view = analysis(sessions, *actions)
    sessions.limit(view["id"], 200)
    view = sessions.review(view["id"], view["version"])
    assert view["thinking"]["kind"] == "review" and view["thinking"]["of"] == len(actions), "all but the end"
    seen = {view["thinking"]["done"]}
    while view["thinking"] is not None:
        seen.add(view["thinking"]["done"])
        view = sessions.view(view["id"])
    assert view["over"] and view["outcome"] == "X has won."
    return view, seen


def test_the_graph_is_filled(sessions):
    view, seen = reviewed(sessions, 4, 1, 0, 8, 3, 2, 5)  # O at the edge beside the centre: lost
    assert view["winning"] == [[1, 0], [1, 1], [1, 2]]
    assert len(seen) > 2, "how far it is is told"
    assert all(ply["first"] is not None for ply in view["plies"])
    losses = [ply["loss"] for ply in view["plies"]]
    assert losses[0] is None and all(loss is not None and 0 <= loss <= 100 for loss in losses[1:])
    assert view["plies"][6]["mark"] is None, "O could do nothing any more"
    assert view["said"]["loss"] == 0 and view["now"] == 7


def test_mistakes_are_found(sessions):
    view, _ = reviewed(sessions, 4, 0, 1, 8, 7)  # O might have drawn, and lets X complete a line
    assert [ply["mark"] for ply in view["plies"]][4:] == ["blunder", None]
    assert view["plies"][4]["loss"] == 50 and view["said"]["loss"] == 0


def test_a_review_goes_on_while_somebody_steps_and_ends_when_it_is_enough(sessions):
    view = analysis(sessions, 4, 0, 8, 1)
    id = view["id"]
    sessions.limit(id, MOST_SIMULATIONS)
    view = sessions.review(id, view["version"])
    view = go(sessions, view, 2)
    assert view["thinking"]["kind"] == "review" and view["moves"] == ["b2", "a1"]
    sessions.enough(id)
    view = settled(sessions, id)
    assert view["now"] == 2 and {ply["loss"] for ply in view["plies"]} == {None}
    view = sessions.review(id, view["version"])
    view = sessions.play(id, view["version"], 6)
    assert view["thinking"] is None, "a change ends it"
    sessions.limit(id, 10)
    view = settled(sessions, sessions.review(id, view["version"])["id"])
    assert view["moves"] == ["b2", "a1", "a3"] and view["plies"][5]["loss"] is not None
    assert view["plies"][4]["loss"] is None, "the line on the board, and no other"


def test_a_review_that_fails_while_a_step_waits_leaves_the_game_open(sessions, monkeypatch):
    view = analysis(sessions, 4, 0)
    id, searching = view["id"], threading.Event()
    scout = sessions._found(id).scout

    def think(simulations, seconds, look, least):
        searching.set()
        while not look(scout):  # until the step has claimed its version
            time.sleep(0.01)
        raise RuntimeError("while a step waits")

    monkeypatch.setattr(scout, "think", think)
    view = sessions.review(id, view["version"])
    assert searching.wait(20)
    view = go(sessions, view, 1)
    assert view["moves"] == ["b2"] and settled(sessions, id)["problem"] is None
    assert go(sessions, view, 2)["moves"] == ["b2", "a1"], "the game can go on"


def test_a_review_needs_moves_and_waits_for_the_engine(sessions):
    view = sessions.open()
    assert "No move was made" in refused(409, sessions.review, view["id"], 0)
    sessions.limit(view["id"], MOST_SIMULATIONS)
    view = sessions.play(view["id"], 0, 4)
    assert "about to move" in refused(409, sessions.review, view["id"], view["version"])
    sessions.new(view["id"], view["version"])


def test_a_hint_has_room_for_all_legal_moves():
    for simulations, legal in ((1, 1), (10, 7), (400, 82), (50, 121), (5000, 7)):
        total, least = spread(simulations, legal)
        assert total >= max(simulations, legal * least) and least >= 1 and (total == simulations or least == 1)
