"""Several games and one thread that thinks: turns, versions, the queue, and what is told meanwhile."""

import contextlib
import threading
import time

import numpy as np
import pytest

from jaxzero.play.browser.http_messages import Refused
from jaxzero.play.browser.sessions import MOST_SIMULATIONS, Sessions
from jaxzero.play.engine import Engine
from jaxzero.play.notation import stones
from tests.engines import GAME, three_in_a_row


@pytest.fixture
def opened():
    """Makes sessions, and ends them after the test."""
    made = []

    def make(**options):
        made.append(Sessions(options.pop("engine", three_in_a_row()), **({"simulations": 20} | options)))
        return made[-1]

    yield make
    assert all(sessions.close(20) for sessions in made)


def settled(sessions, id, enough=lambda view: view["thinking"] is None, patience=60):
    """What is shown when nothing is thought any more."""
    until = time.monotonic() + patience
    while not enough(view := sessions.view(id)):
        assert time.monotonic() < until, view
        time.sleep(0.01)
    return view


def refused(status, act, *given):
    with pytest.raises(Refused) as caught:
        act(*given)
    assert caught.value.status == status and str(caught.value).endswith(".")
    return str(caught.value)


def consistent(view):
    """Replays the moves by the rules: the position is theirs."""
    import jax

    key, names = jax.random.key(0), {f"{c}{r}": 3 * (r - 1) + i for r in (1, 2, 3) for i, c in enumerate("abc")}
    state = GAME.init(key)
    first = int(GAME.to_play(state))
    for move in view["moves"]:
        state = GAME.step(state, names[move], key)
    assert view["stones"] == stones(GAME, state, first).ravel().tolist()
    assert view["legal"] == np.flatnonzero(GAME.legal(state)).tolist() and view["over"] == bool(GAME.terminal(state))


def test_a_game_to_its_end(opened):
    sessions = opened()
    view = sessions.open()
    assert view["legal"] == list(range(9)) and view["you"] == 0 and view["search"] is None and not view["canUndo"]
    while not view["over"]:
        view = sessions.play(view["id"], view["version"], view["legal"][0])
        view = settled(sessions, view["id"])
        assert view["over"] or (view["toMove"] == view["you"] and len(view["moves"]) % 2 == 0)
    consistent(view)
    assert view["outcome"] in ("X has won.", "O has won.", "The game is a draw.") and view["legal"] == []
    assert view["said"]["by"] == 1 and view["said"]["search"]["visits"] >= 20
    assert refused(409, sessions.play, view["id"], view["version"], 0) == "The game is over."
    assert refused(409, sessions.hint, view["id"], view["version"]) == "The game is over."


def test_what_is_thought_is_shown_while_it_grows_and_can_be_ended(opened):
    sessions = opened(simulations=MOST_SIMULATIONS)
    view = sessions.open()
    view = sessions.play(view["id"], 0, 4)
    grown = [0]
    while len(grown) < 4:
        view = sessions.view(view["id"])
        assert view["thinking"]["kind"] == "move" and view["toMove"] == 1 and view["version"] == 1
        visits = view["search"]["visits"] if view["search"] else 0
        assert visits >= grown[-1]
        grown += [visits] * (visits > grown[-1])
        time.sleep(0.02)
    sessions.enough(view["id"])
    view = settled(sessions, view["id"])
    assert len(view["moves"]) == 2 and grown[-1] <= view["said"]["search"]["visits"] < MOST_SIMULATIONS
    consistent(view)


def test_hint_undo_swap_new_and_limit(opened):
    sessions = opened()
    view = sessions.open()
    id = view["id"]
    assert refused(409, sessions.undo, id, 0) == "There is no move of yours to take back."
    view = settled(sessions, sessions.hint(id, 0)["id"])
    assert view["hint"] in view["legal"] and view["search"]["visits"] == 20 and view["moves"] == []
    assert sum(c["visits"] for c in view["search"]["candidates"]) == 20 and view["search"]["kept"] == 0
    again = settled(sessions, sessions.hint(id, view["version"])["id"])
    assert (again["search"]["visits"], again["search"]["kept"]) == (40, 20), (
        "of a hint it is said what was there before"
    )
    view = sessions.limit(id, 30)
    view = settled(sessions, sessions.play(id, view["version"], 4)["id"])
    assert view["said"]["search"]["visits"] >= 30 and view["hint"] is None and view["canUndo"]
    view = sessions.undo(id, view["version"])
    assert view["moves"] == [] and view["toMove"] == 0 and view["said"] is None and not view["canUndo"]
    view = settled(sessions, sessions.swap(id, view["version"])["id"])
    assert view["you"] == 1 and len(view["moves"]) == 1
    assert refused(409, sessions.undo, id, view["version"]) == "There is no move of yours to take back."
    view = settled(sessions, sessions.play(id, view["version"], view["legal"][0])["id"])
    assert len(view["moves"]) == 3
    view = sessions.undo(id, view["version"])
    assert len(view["moves"]) == 1 and view["toMove"] == 1 and view["thinking"] is None
    consistent(view)
    view = settled(sessions, sessions.new(id, view["version"])["id"])
    assert view["you"] == 1 and len(view["moves"]) == 1, "sides stay, and the engine begins"
    for wrong in (0, -1, MOST_SIMULATIONS + 1, None):
        refused(400, sessions.limit, id, wrong)


def test_a_limit_in_seconds(opened):
    sessions = opened(simulations=None, seconds=0.15)
    view = sessions.open()
    assert view["seconds"] == 0.15 and view["simulations"] is None
    settled(sessions, view["id"])
    began = time.monotonic()
    view = settled(sessions, sessions.hint(view["id"], 0)["id"])
    assert time.monotonic() - began < 10 and view["search"]["visits"] > 1
    assert sessions.limit(view["id"], None)["simulations"] is None
    with pytest.raises(ValueError, match="simulations, seconds or both"):
        Sessions(three_in_a_row(), simulations=None)


def test_of_two_changes_at_once_one_is_done(opened):
    sessions = opened(simulations=5)
    for _ in range(4):
        view, done, refusals = sessions.open(), [], []
        barrier = threading.Barrier(4)

        def play(action, view=view, done=done, refusals=refusals, barrier=barrier):
            barrier.wait()
            try:
                done.append(sessions.play(view["id"], 0, action))
            except Refused as error:
                refusals.append(error.status)

        threads = [threading.Thread(target=play, args=(action,)) for action in (0, 2, 4, 6)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        assert len(done) == 1 and refusals == [409] * 3
        view = settled(sessions, view["id"])
        assert len(view["moves"]) == 2
        consistent(view)


def test_a_change_that_comes_while_a_hint_is_shown_is_not_shown_before_it_is_made(opened, monkeypatch):
    sessions = opened(simulations=5)
    view = sessions.open()
    id, seen, show = view["id"], [], sessions._show
    play = threading.Thread(target=lambda: sessions.play(id, 1, 4))

    def slow(session, version, *kept):
        if threading.current_thread().name == "thinking" and not play.ident:
            play.start()
            while session.version != 2:  # the move is claimed, and waits for the lock
                time.sleep(0.01)
            show(session, version, *kept)
            seen.append((session.seen["version"], session.seen["stones"][4]))
        else:
            show(session, version, *kept)

    monkeypatch.setattr(sessions, "_show", slow)
    sessions.hint(id, 0)
    settled(sessions, id, lambda view: len(view["moves"]) == 2)
    play.join(20)
    assert seen == [(1, 0)], "the old position has the old version, so nothing else is done to it"


@pytest.mark.slow
def test_changes_while_it_thinks(opened):
    sessions = opened(simulations=MOST_SIMULATIONS)
    view = sessions.open()
    id = view["id"]
    view = sessions.play(id, 0, 4)
    assert refused(409, sessions.play, id, view["version"], 0) == "It is not your turn."
    view = sessions.undo(id, view["version"])
    assert view["moves"] == [] and view["thinking"] is None and view["toMove"] == 0
    sessions.limit(id, 10)
    view = settled(sessions, sessions.play(id, view["version"], 0)["id"])
    assert len(view["moves"]) == 2, "the thought that was given up made no move"
    assert "has changed meanwhile" in refused(409, sessions.play, id, view["version"] - 1, view["legal"][0])
    taken = next(a for a in range(9) if a not in view["legal"])
    assert "is no legal move here" in refused(409, sessions.play, id, view["version"], taken)
    for wrong in (-1, 9, 10**9):
        refused(409, sessions.play, id, view["version"], wrong)
    assert sessions.view(id)["version"] == view["version"], "what is refused changes nothing"


def test_one_thinks_and_the_others_wait_their_turn(opened):
    sessions = opened(simulations=MOST_SIMULATIONS)
    ids = [sessions.open()["id"] for _ in range(3)]
    for id in ids:
        sessions.play(id, 0, 4)
        settled(sessions, ids[0], lambda view: view["search"] is not None)  # the first one is at it
    assert [sessions.view(id)["thinking"]["ahead"] for id in ids] == [0, 1, 2]
    sessions.new(ids[1], 1)  # gives its place up
    assert [sessions.view(id)["thinking"]["ahead"] for id in (ids[0], ids[2])] == [0, 1]
    sessions.enough(ids[0])
    view = settled(sessions, ids[2], lambda view: view["search"] is not None)
    assert view["thinking"]["ahead"] == 0 and len(sessions.view(ids[0])["moves"]) == 2


def test_the_longest_unused_game_is_closed_and_told_so(opened):
    sessions = opened(most=3)
    ids = [sessions.open()["id"] for _ in range(3)]
    sessions.view(ids[0])
    sessions.play(ids[1], 0, 4)  # thinks, perhaps, when it is closed
    sessions.view(ids[0]), sessions.view(ids[2])
    more = sessions.open()["id"]
    assert "was closed, as 3 others" in refused(410, sessions.view, ids[1])
    assert "was closed" in refused(410, sessions.play, ids[1], 1, 0)
    for id in (ids[0], ids[2], more):
        assert sessions.view(id)["moves"] == []
    assert "There is no such game" in refused(404, sessions.view, "x" * 22)
    assert len({*ids, more}) == 4 and all(len(id) >= 22 for id in ids)


def test_a_game_that_was_closed_is_thought_about_no_longer(opened):
    sessions = opened(simulations=MOST_SIMULATIONS, most=1)
    closed = sessions.open()["id"]
    sessions.play(closed, 0, 4)
    settled(sessions, closed, lambda view: view["search"] is not None)
    id = sessions.open()["id"]
    sessions.play(id, 0, 4)
    settled(sessions, id, lambda view: view["search"] is not None, patience=10)


def test_a_watched_game_that_is_closed_while_it_moves_ends(opened, monkeypatch):
    sessions = opened(simulations=5, most=1, pace=0.0)
    id, more = sessions.open()["id"], []
    session, show = sessions._found(id), sessions._show

    def slow(shown, version):
        if threading.current_thread().name == "thinking" and shown is session and not more:
            more.append(sessions.open()["id"])  # which closes the game that is watched
        show(shown, version)

    monkeypatch.setattr(sessions, "_show", slow)
    with contextlib.suppress(Refused):  # it may be closed before it is shown
        sessions.players(id, 0, 3)
    while not more:
        time.sleep(0.01)
    settled(sessions, sessions.play(more[0], 0, 4)["id"])  # thought about after what the closed game asked for
    assert len(session.record.nodes) == 2 and session.job is None


def test_thinking_that_fails_is_told_and_others_go_on(opened):
    told = []
    broken = three_in_a_row().another()
    sessions = opened(tell=told.append)
    view = sessions.open()
    session = sessions._found(view["id"])
    session.engine.programs = broken.programs._replace(more=lambda *given: 1 / 0)
    view = settled(sessions, sessions.play(view["id"], 0, 4)["id"])
    assert "Thinking failed" in view["problem"] and view["version"] == 2 and len(view["moves"]) == 1
    assert any("ZeroDivisionError" in text for text in told) and "Zero" not in view["problem"]
    session.engine.programs = broken.programs
    view = sessions.undo(view["id"], 2)
    assert view["problem"] is None and view["moves"] == []
    other = sessions.open()
    assert len(settled(sessions, sessions.play(other["id"], 0, 0)["id"])["moves"]) == 2


def test_thinking_that_fails_after_it_was_given_up_leaves_the_game_as_it_is(opened, monkeypatch):
    sessions = opened(simulations=MOST_SIMULATIONS)
    id, failing = sessions.open()["id"], threading.Event()
    session = sessions._found(id)

    def think(simulations, seconds, look, least):
        failing.set()
        while not look(session.engine):
            time.sleep(0.01)
        raise RuntimeError("too late")

    monkeypatch.setattr(session.engine, "think", think)
    sessions.play(id, 0, 4)
    assert failing.wait(20)
    view = sessions.undo(id, 1)
    assert (view["version"], view["moves"], view["problem"]) == (2, [], None)
    monkeypatch.undo()
    sessions.limit(id, 5)
    assert len(settled(sessions, sessions.play(id, 2, 0)["id"])["moves"]) == 2, "the game can go on"


def test_a_move_that_fails_locks_no_game(opened):
    sessions = opened(simulations=5)
    id = sessions.open()["id"]
    settled(sessions, id)
    session = sessions._found(id)
    programs, session.engine.programs = session.engine.programs, session.engine.programs._replace(step=lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        sessions.play(id, 0, 4)
    view = sessions.view(id)
    assert "This failed" in view["problem"] and view["version"] == 1
    session.engine.programs = programs
    view = sessions.new(id, 1)
    assert view["problem"] is None and view["moves"] == []
    assert len(settled(sessions, sessions.play(id, 2, 4)["id"])["moves"]) == 2


def test_each_game_of_each_tab_has_dice_of_its_own_and_its_review_has_the_same(opened):
    sessions, seen = opened(), []
    tabs = [sessions._found(sessions.open()["id"]) for _ in range(2)]
    seen += [tab.engine.number for tab in tabs]
    for tab in tabs:
        sessions.new(tab.id, tab.version)
        seen.append(tab.engine.number)
        assert tab.scout.number == tab.engine.number
    assert seen == [0, 1, 2, 3], "the first one has the dice of the seed"


def test_what_does_not_compile_is_told(opened):
    told = []
    engine = Engine(GAME, lambda n, stop: 1 / 0)
    sessions = opened(engine=engine, tell=told.append)
    view = settled(sessions, sessions.play(sessions.open()["id"], 0, 4)["id"])
    assert view["problem"] and len(told) == 2 and all("ZeroDivisionError" in text for text in told)


def test_the_end_comes_soon(opened):
    sessions = opened(simulations=MOST_SIMULATIONS)
    view = sessions.open()
    sessions.play(view["id"], 0, 4)
    settled(sessions, view["id"], lambda view: view["search"] is not None)
    began = time.monotonic()
    assert sessions.close(10) and time.monotonic() - began < 5
