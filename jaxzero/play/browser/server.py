"""The requests of the page for playing in the browser, and their answers.

`answer` is a function from a request to a response, over the games in `Sessions`, so that tests need no network.
`http_messages` keeps other sites out, and `local_server` carries the bytes.

    GET  /                     the page, and its parts: `FILES`
    GET  /about                what is the same in all games
    POST /games                a new game
    GET  /games/ID             how it stands, and what is being thought
    GET  /games/ID/tree        its search tree, a page
    POST /games/ID/COMMAND     what can be done with it: `COMMANDS`

Bodies are JSON objects, and so are all answers but pages; what is refused is answered `{"error": "the reason"}`.
"""

import pathlib
from collections.abc import Callable
from typing import Any

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
    page_response,
    refusal_response,
)
from jaxzero.play.browser.mistakes import CLASSES
from jaxzero.play.browser.sessions import MOST_SIMULATIONS, Sessions
from jaxzero.search.tree import Tree

__all__ = ["answer"]

PAGE = pathlib.Path(__file__).parent / "page"
PARTS = (
    *("page.css", "board.css", "page.js", "server.js", "words.js", "board.js", "ground.js", "overlay.js"),
    *("search.js", "moves.js", "graph.js", "tree.js"),
)
FILES = {"/": "page.html"} | {f"/{name}": name for name in PARTS}

# The tree is a page that works by itself, in a frame that can reach nothing.
TREE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"
)
COMMANDS = {  # what the body of each has to say
    "play": ("version", "action"),
    "undo": ("version",),
    "new": ("version",),
    "go": ("version", "node"),
    "adopt": ("version",),
    "swap": ("version",),
    "players": ("version", "engine"),
    "pause": ("version",),
    "resume": ("version",),
    "hint": ("version",),
    "review": ("version",),
    "enough": (),
    "limit": ("simulations",),
}
NO_TREE = "<!doctype html><html lang='en'><meta charset='utf-8'><title>Search tree</title><p>{}</p></html>"


def answer(
    sessions: Sessions, request: Request, about: str = "", tree_page: Callable[[Tree], str] | None = None
) -> Response:
    """The response to a request.

    Args:
        sessions: the games.
        request: any request, well formed or not.
        about: who plays, in words, for the page.
        tree_page: a search tree, a batch of one, as a whole HTML document; None: no trees are shown.
    """
    try:
        check_origin(request)
        return _routed(sessions, request, about, tree_page)
    except Refused as refused:
        return refusal_response(refused)


def _routed(sessions: Sessions, request: Request, about: str, tree_page: Any) -> Response:
    path, found = request.path, GAME.fullmatch(request.path)
    id, command = found.groups() if found else (None, None)
    if path in FILES:
        expect(request, "GET")
        return file_response(PAGE / FILES[path])
    if path == "/about":
        expect(request, "GET")
        more = {"about": about, "trees": tree_page is not None, "most": MOST_SIMULATIONS, "classes": CLASSES}
        return json_response(200, sessions.layout | more)
    if path == "/games":
        expect(request, "POST")
        fields(request, ())
        return json_response(201, sessions.open())
    if id is not None and command is None:
        expect(request, "GET")
        return json_response(200, sessions.view(id))
    if command == "tree" and tree_page is not None:
        expect(request, "GET")
        return _tree(sessions.tree(id), tree_page)
    if command in COMMANDS:
        expect(request, "POST")
        return json_response(200, getattr(sessions, command)(id, *fields(request, COMMANDS[command])))
    raise Refused(404, "There is nothing at this address.")


def _tree(tree: Tree | None, tree_page: Callable[[Tree], str]) -> Response:
    if tree is None:
        text = NO_TREE.format("There is no search tree of this position yet.")
    else:
        text = tree_page(tree)
    return page_response(text.encode(), TREE_POLICY)
