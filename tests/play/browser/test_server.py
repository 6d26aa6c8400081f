"""The server: each request and its answer, nonsense of every kind, and the same over a socket."""

import http.client
import json
import random
import re
import socket
import struct
import threading
import time

import pytest

from jaxzero.play.browser.http_messages import MOST, Request
from jaxzero.play.browser.local_server import listening, serve
from jaxzero.play.browser.server import COMMANDS, FILES, PAGE, answer
from jaxzero.play.browser.sessions import Sessions
from tests.engines import three_in_a_row

OURS = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000", "content-type": "application/json"}
ADDRESS = re.compile(r"""(?:href|src)="([^"]*)""")


@pytest.fixture(scope="module")
def sessions():
    made = Sessions(three_in_a_row(), simulations=5)
    yield made
    assert made.close(20)


def asked(sessions, method, path, body=b"{}", tree_page=lambda tree: f"<p>{tree.size[0]}", **headers):
    """Status, what was said, and the headers."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    said = answer(sessions, Request(method, path, OURS | given, body), "Against a test.", tree_page)
    assert 200 <= said.status < 500
    if said.kind == "application/json":
        told = json.loads(said.body)
        assert said.status < 400 or (list(told) == ["error"] and told["error"].endswith("."))
        return said.status, told, dict(said.headers)
    return said.status, said.body.decode(), dict(said.headers)


def opened(sessions):
    status, view, _ = asked(sessions, "POST", "/games")
    assert status == 201 and view["version"] == 0
    return view


def settled(sessions, view):
    until = time.monotonic() + 60
    while (view := asked(sessions, "GET", f"/games/{view['id']}")[1])["thinking"]:
        assert time.monotonic() < until
        time.sleep(0.01)
    return view


def test_the_page_is_whole_and_asks_for_nothing_elsewhere(sessions):
    status, page, headers = asked(sessions, "GET", "/")
    assert status == 200 and "unsafe" not in headers["Content-Security-Policy"]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    for address in ADDRESS.findall(page):
        assert address.startswith("data:image/svg+xml,") or asked(sessions, "GET", address)[0] == 200, address
    assert " style=" not in page and "<style" not in page, "the policy forbids styles in the page"
    for file in FILES:
        text = asked(sessions, "GET", file)[1]
        urls = set(re.findall(r"\w+://[^\s'\"`)]+", text))
        assert urls <= {"http://www.w3.org/2000/svg"}, urls
        imported = re.findall(r"""from "\.(/[^"]+)";""", text)
        assert set(imported) <= set(FILES), file
    assert {f.name for f in PAGE.iterdir() if f.suffix in (".js", ".css", ".html")} == set(FILES.values())


def test_a_conversation(sessions):
    status, about, _ = asked(sessions, "GET", "/about")
    assert status == 200 and about["title"] == "Tic-tac-toe" and about["about"] == "Against a test." and about["trees"]
    view = opened(sessions)
    place = f"/games/{view['id']}"
    status, view, _ = asked(sessions, "POST", f"{place}/play", {"version": 0, "action": 4})
    assert status == 200 and view["moves"] == ["b2"] and view["stones"][4] == 1
    view = settled(sessions, view)
    assert len(view["moves"]) == 2 and view["said"]["by"] == 1
    assert asked(sessions, "POST", f"{place}/hint", {"version": view["version"]})[1]["thinking"]["kind"] == "hint"
    view = settled(sessions, view)
    assert view["hint"] in view["legal"]
    view = asked(sessions, "POST", f"{place}/undo", {"version": view["version"]})[1]
    assert view["moves"] == []
    assert asked(sessions, "POST", f"{place}/limit", {"simulations": 7})[1]["simulations"] == 7
    view = asked(sessions, "POST", f"{place}/swap", {"version": view["version"]})[1]
    assert view["you"] == 1
    view = settled(sessions, view)
    view = settled(sessions, asked(sessions, "POST", f"{place}/new", {"version": view["version"]})[1])
    assert view["you"] == 1 and len(view["moves"]) == 1
    assert asked(sessions, "POST", f"{place}/enough", {})[1]["id"] == view["id"]


def test_the_tree_is_a_page_in_a_frame_that_reaches_nothing(sessions):
    view = opened(sessions)
    place = f"/games/{view['id']}"
    status, page, headers = asked(sessions, "GET", f"{place}/tree")
    assert status == 200 and "There is no search tree of this position yet." in page
    asked(sessions, "POST", f"{place}/hint", {"version": 0})
    settled(sessions, view)
    status, page, headers = asked(sessions, "GET", f"{place}/tree")
    assert (status, page) == (200, "<p>10"), "a hint takes as many simulations as there are legal moves"
    policy = headers["Content-Security-Policy"]
    assert "sandbox allow-scripts" in policy and "default-src 'none'" in policy and "connect-src" not in policy
    assert asked(sessions, "GET", f"{place}/tree", tree_page=None)[0] == 404
    assert not asked(sessions, "GET", "/about", tree_page=None)[1]["trees"]


@pytest.mark.parametrize("method, path, status", [
    ("GET", "/nothing", 404), ("GET", "/games/short/what", 404), ("GET", "/../server.py", 404), ("GET", "//", 404),
    ("GET", "/page.html", 404), ("GET", "/games/" + "x" * 22, 404), ("GET", "/games/" + "x" * 65, 404),
    ("POST", "/games/" + "x" * 22 + "/enough", 404), ("POST", "/games/" + "x" * 22 + "/view", 404),
    ("POST", "/", 405), ("POST", "/about", 405), ("GET", "/games", 405), ("HEAD", "/", 405), ("DELETE", "/games", 405),
    ("GET", "/games/" + "x" * 22 + "/play", 405), ("POST", "/games/" + "x" * 22, 405), ("", "", 404),
    ("POST", "/games/" + "x" * 22 + "/tree", 405), ("GET", "/games/é", 404), ("GET", "/games/x/", 404),
])  # fmt: skip
def test_what_is_not_there(sessions, method, path, status):
    found, _, headers = asked(sessions, method, path)
    assert found == status and (status != 405 or headers["Allow"] == "GET, POST")


@pytest.mark.parametrize("headers, status", [
    ({"host": "evil.example"}, 403), ({"host": "127.0.0.1.evil.example:8000"}, 403), ({"host": ""}, 403),
    ({"host": "127.0.0.1:8000@evil.example"}, 403), ({"host": "[::1]:8000"}, 403),
    ({"origin": "http://evil.example"}, 403), ({"origin": "null"}, 403), ({"origin": "http://127.0.0.1:8001"}, 403),
    ({"origin": "https://127.0.0.1:8000"}, 403), ({"origin": "http://localhost:8000"}, 403),
    ({"content_type": "text/plain"}, 415), ({"content_type": "application/x-www-form-urlencoded"}, 415),
    ({"host": "localhost:9"}, 201), ({"content_type": "Application/JSON; a=b"}, 201),
])  # fmt: skip
def test_other_pages_and_other_hosts_are_kept_out(sessions, headers, status):
    if "host" in headers:  # a page under a name that was bound to this machine has that name as its origin, too
        headers = {"origin": f"http://{headers['host']}", **headers}
    assert asked(sessions, "POST", "/games", **headers)[0] == status
    if "host" in headers and status == 403:
        assert asked(sessions, "GET", "/", **headers)[0] == 403


@pytest.mark.parametrize("body", [
    b"", b"{", b"[]", b"null", b"4", b'"x"', b"\xff\xfe", b"{}", b'{"version":0}', b'{"version":0,"action":4,"more":1}',
    b'{"version":0,"action":"4"}', b'{"version":0,"action":4.0}', b'{"version":true,"action":4}', b"[" * 4000,
    b'{"version":0,"action":-1}', b'{"version":0,"action":null}', b'{"version":0,"action":NaN}', b'{"a":' * 600,
    b'{"version":0,"action":%d}' % 2**31, b'{"version":0,"action":1e400}',
    b'{"version":0,"action":' + b"9" * 3000 + b"}",
])  # fmt: skip
def test_bad_bodies(sessions, body):
    view = opened(sessions)
    assert asked(sessions, "POST", f"/games/{view['id']}/play", body)[0] == 400
    assert asked(sessions, "GET", f"/games/{view['id']}")[1]["version"] == 0


def test_bodies_that_are_too_long(sessions):
    assert asked(sessions, "POST", "/games", b" " * (MOST + 1))[0] == 413


def test_moves_that_are_none(sessions):
    view = opened(sessions)
    place = f"/games/{view['id']}"
    assert asked(sessions, "POST", f"{place}/play", {"version": 0, "action": 9})[0] == 409
    assert asked(sessions, "POST", f"{place}/play", {"version": 1, "action": 0})[0] == 409
    assert asked(sessions, "POST", f"{place}/undo", {"version": 0})[0] == 409
    for simulations in (0, 10**9, None):
        assert asked(sessions, "POST", f"{place}/limit", {"simulations": simulations})[0] == 400


def nonsense(draw: random.Random, ids: list[str]) -> Request:
    """A request, near to a good one or far from it."""
    methods = ["GET", "POST", "POST", "POST", "PUT", "HEAD", "", "get", "\0"]
    ends = [*COMMANDS, *COMMANDS, "", "tree", "close", "_change", "__class__", "play/play", "\u2028", "%2e%2e"]
    letters = "".join(chr(draw.randrange(1, 400)) for _ in range(draw.randrange(30)))
    games = [f"/games/{draw.choice(ids)}/{draw.choice(ends)}", f"/games/{draw.choice(ids)}", "/games"]
    path = draw.choice([*games, "/", "/about", "/page.js", f"/{letters}", "/games/" + "/" * draw.randrange(9)])
    values = [0, 1, 2, 3, 4, 8, 9, -1, 2**31, 10**30, None, True, "4", [], {}, 1.5]
    fields = [name for name in ("version", "action", "simulations", "x") if draw.random() < 0.5]
    body = json.dumps({name: draw.choice(values) for name in fields}).encode()
    if draw.random() < 0.3:
        good = {name: draw.randrange(9) for name in ("version", "action", "simulations", "node", "engine")}
        command = draw.choice([*COMMANDS])
        method, path = "POST", f"/games/{draw.choice(ids)}/{command}"
        return Request(method, path, OURS, json.dumps({name: good[name] for name in COMMANDS[command]}).encode())
    if draw.random() < 0.2:
        body = bytes(draw.randrange(256) for _ in range(draw.randrange(40)))
    headers = dict(OURS)
    for name in OURS:
        if draw.random() < 0.1:
            headers[name] = draw.choice(
                ["", "evil.example", "localhost", "127.0.0.1:8000", "\udcff", "http://localhost"]
            )
    return Request(draw.choice(methods), path, headers, body)


def test_three_thousand_requests_of_nonsense(sessions):
    draw, ids, statuses = random.Random(5), ["x" * 22, "", ".."], []
    ids += [opened(sessions)["id"] for _ in range(3)]
    for i in range(3000):
        request = nonsense(draw, ids)
        said = answer(sessions, request, "", lambda tree: "<p>")
        statuses.append(said.status)
        assert said.status in (200, 201, 400, 403, 404, 405, 409, 410, 413, 415), request
        if said.status >= 400:
            assert list(json.loads(said.body)) == ["error"], request
        if i % 500 == 499:  # what was closed meanwhile makes room for others
            ids += [opened(sessions)["id"] for _ in range(3)]
    assert {200, 201, 400, 403, 404, 405, 409, 410, 415} <= set(statuses)
    view = opened(sessions)
    view = settled(sessions, asked(sessions, "POST", f"/games/{view['id']}/play", {"version": 0, "action": 4})[1])
    assert len(view["moves"]) == 2, "after all that it plays"


# --- over a socket ---------------------------------------------------------------------------------------------------


@pytest.fixture
def port(sessions):
    """Of a server that runs."""
    listener, stop = (listening(0, lambda request: answer(sessions, request, "Against a test.")), threading.Event())
    thread = threading.Thread(target=serve, args=(listener, stop))
    thread.start()
    yield listener.server_port
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def raw(port, data, half=False):
    """What comes back for some bytes, the whole body when its length is told."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        if half:
            connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(65536):
            found += part
            head, _, body = found.partition(b"\r\n\r\n")
            length = re.search(rb"Content-Length: (\d+)", head)
            if length and len(body) >= int(length[1]) and not half and b"Connection: close" not in head:
                break
        return found


def test_over_a_socket_connections_are_kept(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", "/games", "{}", headers)
    first = connection.getresponse()
    view = json.loads(first.read())
    assert first.status == 201 and first.headers["Cache-Control"] == "no-store"
    assert first.headers["Server"].strip() == "jaxzero" and first.headers["X-Content-Type-Options"] == "nosniff"
    for path in (f"/games/{view['id']}?now", "/nothing", "/"):
        connection.request("GET", path)
        said = connection.getresponse()
        assert (said.status, len(said.read())) == (
            200 if path != "/nothing" else 404,
            int(said.headers["Content-Length"]),
        )
    connection.close()


@pytest.mark.parametrize("data, status", [
    (b"garbage\r\n\r\n", 400), (b"GET / HTTP/9.9\r\n\r\n", 400), (b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", 414), (b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403),
    (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431), (b"GET / HTTP/1.1\r\n\r\n", 403),
    (b"POST /games HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n", 413),
    (b"POST /games HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 411),
    (b"POST /games HTTP/1.1\r\nHost: localhost\r\nContent-Length: two\r\n\r\n", 411),
    (b"POST /games HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 411),
    (b"OPTIONS /games HTTP/1.1\r\nHost: localhost\r\n\r\n", 405), (b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
    (b"DELETE /games HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
])  # fmt: skip
def test_what_is_no_request_is_answered_in_a_sentence(port, data, status, capfd):
    found = raw(port, data, half=True)
    head, _, body = found.partition(b"\r\n\r\n")
    assert b"Traceback" not in found and b"http.server" not in found
    if head.startswith(b"HTTP/"):
        assert int(head.split()[1]) == status
        assert data.startswith(b"HEAD") or list(json.loads(body)) == ["error"]
    else:  # a request of HTTP 0.9 is answered without a head
        assert list(json.loads(head)) == ["error"]
    assert capfd.readouterr().err == ""


def test_a_mistake_of_ours_is_no_traceback_for_others(capfd):
    listener, stop = listening(0, lambda request: 1 / 0), threading.Event()
    thread = threading.Thread(target=serve, args=(listener, stop))
    thread.start()
    found = raw(listener.server_port, b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert b" 500 " in found and b"division" not in found and b"see the terminal" in found
    stop.set()
    thread.join(10)
    said = capfd.readouterr().err
    assert "GET /a: ZeroDivisionError: division by zero" in said and "Traceback" not in said


def test_who_leaves_in_the_middle_disturbs_nobody(port, capfd):
    for data in (b"", b"GET", b"POST /games HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(data)
    at_once = struct.pack("ii", 1, 0)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:  # a browser that is closed
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
    assert b" 200 " in raw(port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    time.sleep(0.2)
    assert capfd.readouterr().err == ""


def test_it_is_reached_from_this_machine_only_and_finds_a_port(port):
    with pytest.raises(OSError):
        listening(port, lambda request: None)
    listener = listening(None, lambda request: None)
    other = listening(None, lambda request: None)  # 8000 is taken now, whoever has it
    assert listener.server_address[0] == other.server_address[0] == "127.0.0.1"
    assert listener.server_port != other.server_port != 0
    listener.server_close(), other.server_close()
