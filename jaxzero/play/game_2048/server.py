"""The requests of the page of 2048, and their answers; `browser.local_server` carries the bytes.

    GET  /                     the page; /page.js, /tiles.js, /page.css
    GET  /about                where hints come from
    POST /games                a new game: every tab has its own
    GET  /games/ID             how it stands
    GET  /games/ID/hint        what each move is worth
    POST /games/ID/COMMAND     move, undo, new

Bodies are JSON objects, and so are all answers but pages; what is refused is answered `{"error": "the reason"}`.
"""

import pathlib
from typing import Any

from jaxzero.games.rules_2048 import NAMES
from jaxzero.play.browser.http_messages import (
    GAME,
    Refused,
    Request,
    Response,
    check_origin,
    expect,
    fields,
    file_response,
    json_response,
    refusal_response,
)
from jaxzero.play.game_2048 import session as games
from jaxzero.play.game_2048 import tabs
from jaxzero.play.game_2048.tabs import Tabs

__all__ = ["answer"]

HERE = pathlib.Path(__file__).parent
FILES = {"/": "page.html", "/page.js": "page.js", "/tiles.js": "tiles.js", "/page.css": "page.css"}
COMMANDS = {  # what the body of each has to say, and what it does
    "move": (("version", "action"), tabs.move),
    "undo": (("version",), lambda found, id, version: tabs.change(found, id, version, games.undo)),
    "new": (("version",), lambda found, id, version: tabs.change(found, id, version, games.new)),
}


def answer(found: Tabs, request: Request) -> Response:
    """The response to a request, well formed or not."""
    try:
        check_origin(request)
        if request.path in FILES:
            expect(request, "GET")
            return file_response(HERE / FILES[request.path])
        return json_response(*_said(found, request))
    except Refused as refused:
        return refusal_response(refused)


def _said(found: Tabs, request: Request) -> tuple[int, Any]:
    """The status and the value of the response."""
    named = GAME.fullmatch(request.path)
    id, command = named.groups() if named else ("", "")
    if request.path == "/about":
        expect(request, "GET")
        return 200, {"about": found.about, "names": NAMES}
    if request.path == "/games":
        expect(request, "POST")
        fields(request, ())
        return 201, tabs.opened(found)
    if id and command in (None, "hint"):
        expect(request, "GET")
        return 200, tabs.hint(found, id) if command else tabs.view(found, id)
    if command in COMMANDS:
        expect(request, "POST")
        names, act = COMMANDS[command]
        return 200, act(found, id, *fields(request, names))
    raise Refused(404, "There is nothing at this address.")
