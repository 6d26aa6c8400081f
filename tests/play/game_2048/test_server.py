"""Requests of the page of 2048 and their answers, nonsense among them."""

import json
import re

import numpy as np
import pytest

from jaxzero.play.browser.http_messages import Request
from jaxzero.play.game_2048 import tabs as all_tabs
from jaxzero.play.game_2048.server import FILES, answer
from jaxzero.play.game_2048.session import Hint
from jaxzero.play.game_2048.tabs import MOST, tabs

OURS = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000", "content-type": "application/json"}


def look(turn):
    """The first legal move is best, the others are worth less."""
    values = tuple(100.0 - action if action in turn.legal else -np.inf for action in range(4))
    return Hint(values, (0,) * 4, turn.legal[0])


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """What all tests need."""
    made = tabs(np.uint32([0, 3]), look)
    view = all_tabs.opened(made)
    all_tabs.move(made, view["id"], 0, view["legal"][0])


@pytest.fixture
def found():
    return tabs(np.uint32([0, 3]), look, "Hints by a test.")


def asked(found, method, path, body=None, **headers):
    """Status, and what was said."""
    body = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    said = answer(found, Request(method, path, OURS | given, body))
    if said.kind != "application/json":
        return said.status, said.body.decode(), dict(said.headers)
    told = json.loads(said.body)
    assert said.status < 400 or (list(told) == ["error"] and told["error"].endswith("."))
    return said.status, told, dict(said.headers)


def test_the_page_is_whole_and_asks_for_nothing_elsewhere(found):
    status, page, headers = asked(found, "GET", "/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"] and " style=" not in page and "<style" not in page
    for address in re.findall(r"""(?:href|src)="([^"]*)""", page):
        assert address.startswith("data:image/svg+xml,") or asked(found, "GET", address)[0] == 200, address
    for file in FILES:
        assert set(re.findall(r"\w+://[^\s'\"`)]+", asked(found, "GET", file)[1])) <= {"http://www.w3.org/2000/svg"}


def test_a_conversation(found):
    assert asked(found, "GET", "/about")[1]["about"] == "Hints by a test."
    status, view, _ = asked(found, "POST", "/games")
    assert status == 201 and view["version"] == view["score"] == view["moves"] == 0 and not view["canUndo"]
    place = f"/games/{view['id']}"
    hint = asked(found, "GET", f"{place}/hint")[1]
    assert hint["version"] == 0 and hint["best"] == view["legal"][0] and hint["why"] == ""
    assert [action for action, value in enumerate(hint["values"]) if value is not None] == view["legal"]
    status, after, _ = asked(found, "POST", f"{place}/move", {"version": 0, "action": hint["best"]})
    assert status == 200 and after["version"] == after["moves"] == 1 and after["action"] == hint["best"]
    assert asked(found, "GET", place)[1] == after
    back = asked(found, "POST", f"{place}/undo", {"version": 1})[1]
    assert back["cells"] == view["cells"] and back["version"] == 2 and back["moves"] == 0
    again = asked(found, "POST", f"{place}/move", {"version": 2, "action": hint["best"]})[1]
    assert again["cells"] == after["cells"], "the same move brings the same tile"
    anew = asked(found, "POST", f"{place}/new", {"version": 3})[1]
    assert anew["moves"] == 0 and anew["id"] == view["id"]
    assert asked(found, "POST", f"{place}/undo", {"version": 4})[1]["cells"] == after["cells"]


def test_tabs_have_games_of_their_own_and_the_one_unused_for_longest_is_closed(found):
    views = [asked(found, "POST", "/games")[1] for _ in range(MOST)]
    assert len({view["id"] for view in views}) == MOST and len({str(view["cells"]) for view in views}) > 1
    first, second = (f"/games/{view['id']}" for view in views[:2])
    assert asked(found, "GET", first)[0] == 200
    asked(found, "POST", "/games")
    assert asked(found, "GET", first)[0] == 200 and asked(found, "GET", second)[0] == 404


def test_what_is_not_legal_or_not_of_this_version_changes_nothing(found):
    view = asked(found, "POST", "/games")[1]
    place = f"/games/{view['id']}"
    for command, body, said in (
        ("move", {"version": 1, "action": 0}, "has changed meanwhile"),
        ("move", {"version": 0, "action": 9}, "9 is not a move"),
        ("undo", {"version": 0}, "no move to take back"),
        ("new", {"version": 7}, "has changed meanwhile"),
    ):
        status, told, _ = asked(found, "POST", f"{place}/{command}", body)
        assert status == 409 and said in told["error"]
    closed = {action for action in range(4) if action not in view["legal"]}
    for action in closed:
        assert "changes nothing" in asked(found, "POST", f"{place}/move", {"version": 0, "action": action})[1]["error"]
    assert asked(found, "GET", place)[1] == view


def test_a_game_that_is_over_says_so_and_has_no_hint(found):
    view = asked(found, "POST", "/games")[1]
    place, kept = f"/games/{view['id']}", found.kept[view["id"]]
    over = kept.session._replace(now=kept.session.now._replace(legal=()), before=(kept.session.now,))
    found.kept[view["id"]] = kept._replace(session=over)
    assert "0 points after 0 moves" in asked(found, "GET", place)[1]["result"]
    assert asked(found, "GET", f"{place}/hint")[0] == 409
    assert asked(found, "POST", f"{place}/undo", {"version": 0})[1]["result"] == ""


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/nothing", 404), ("GET", "/games/x/what", 404), ("GET", "/../server.py", 404), ("GET", "/page.html", 404),
    ("GET", "/games/" + "x" * 22, 404), ("GET", "/games/" + "x" * 22 + "/hint", 404), ("POST", "/", 405),
    ("POST", "/about", 405), ("GET", "/games", 405), ("DELETE", "/games", 405), ("GET", "/games/x/move", 405),
    ("POST", "/games/x/hint", 405), ("POST", "/games/x", 405), ("", "", 404), ("GET", "/games/x/", 404),
])  # fmt: skip
def test_what_is_not_there(found, method, path, status):
    got, _, headers = asked(found, method, path)
    assert got == status and (status != 405 or headers["Allow"] == "GET, POST")


@pytest.mark.parametrize("headers, status", [
    ({"host": "evil.example"}, 403), ({"host": ""}, 403), ({"origin": "http://evil.example"}, 403),
    ({"origin": "null"}, 403), ({"content_type": "text/plain"}, 415), ({}, 201),
])  # fmt: skip
def test_other_pages_and_other_hosts_are_kept_out(found, headers, status):
    assert asked(found, "POST", "/games", **headers)[0] == status


@pytest.mark.parametrize("body", [
    b"{", b"[]", b"null", b"\xff", b"{}", b'{"version":0}', b'{"version":0,"action":"1"}', b"[" * 4000,
    b'{"version":0,"action":1.0}', b'{"version":0,"action":-1}', b'{"version":true,"action":1}',
    b'{"version":0,"action":1,"more":1}', b'{"version":0,"action":NaN}',
])  # fmt: skip
def test_bad_bodies(found, body):
    view = asked(found, "POST", "/games")[1]
    assert asked(found, "POST", f"/games/{view['id']}/move", body)[0] == 400
    assert asked(found, "GET", f"/games/{view['id']}")[1] == view


def test_no_lock_is_held_while_moves_are_looked_at(found):
    def slow(turn):
        assert found.lock.acquire(timeout=1), "a move of another tab would have to wait"
        found.lock.release()
        return look(turn)

    view = asked(found, "POST", "/games")[1]
    assert all_tabs.hint(found._replace(look=slow), view["id"])["best"] == view["legal"][0]
