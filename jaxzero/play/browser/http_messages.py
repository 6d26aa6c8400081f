"""Requests to a page on this machine and their responses, as records.

A page is a function from a request to a response, so a conversation can be tested without a network. Pages of other
sites in the same browser cannot use ours. A request must name this machine as its host; a foreign name that is later
bound to this machine (DNS rebinding) fails here. A change must come from our own page and be JSON.
"""

import json
import pathlib
import re
from typing import Any, NamedTuple

__all__ = [
    "GAME",
    "MOST",
    "Refused",
    "Request",
    "Response",
    "check_origin",
    "expect",
    "fields",
    "file_response",
    "json_response",
    "page_response",
    "refusal_response",
]

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
GAME = re.compile(r"/games/([A-Za-z0-9_-]{1,64})(?:/([a-z]{1,16}))?", re.ASCII)
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.ASCII | re.IGNORECASE)
MOST = 4096  # bytes of a body

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Request(NamedTuple):
    """A request.

    Attributes:
        method: as it came.
        path: without what follows a question mark.
        headers: by their names in lower case.
        body: at most as long as it says.
    """

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


class Response(NamedTuple):
    """The answer to a request.

    Attributes:
        status: of HTTP.
        kind: its media type.
        body: what it says.
        headers: others.
    """

    status: int
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Refused(ValueError):
    """The request cannot be fulfilled: an HTTP status, and why."""

    def __init__(self, status: int, reason: str):
        super().__init__(reason)
        self.status = status


def check_origin(request: Request) -> None:
    """Raises Refused if the request was meant for another host, or came from another page."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not LOOPBACK.fullmatch(host):
        raise Refused(403, "This page works only on this machine: open http://127.0.0.1 with the port.")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        raise Refused(403, "This request came from another page. Only this page may play here.")


def expect(request: Request, method: str) -> None:
    """Raises Refused where it came by another method."""
    if request.method != method:
        raise Refused(405, f"Use {method} here.")


def fields(request: Request, names: tuple[str, ...]) -> list[int | None]:
    """The numbers that a body must hold, and nothing else."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "Send JSON with Content-Type: application/json.")
    if len(request.body) > MOST:
        raise Refused(413, f"A body may have at most {MOST} bytes.")
    try:
        given = json.loads(request.body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(400, "The body is not JSON.") from error
    if not isinstance(given, dict) or set(given) != set(names):
        said = ", ".join(names) or "no fields"
        raise Refused(400, f"The body must be an object with {said}.")
    for name in names:
        number, may_be_none = given[name], name == "simulations"  # whose range the sessions know
        least, most = (-(2**53), 2**53) if may_be_none else (0, 2**31)
        if not (type(number) is int and least <= number < most or may_be_none and number is None):
            raise Refused(400, f"{name} must be a whole number{' or null' if may_be_none else ' from 0'}.")
    return [given[name] for name in names]


def page_response(body: bytes, policy: str = PAGE_POLICY, kind: str = "text/html") -> Response:
    """A page, or what belongs to it, under a Content-Security-Policy."""
    return Response(200, f"{kind}; charset=utf-8", body, (("Content-Security-Policy", policy),))


def file_response(file: pathlib.Path) -> Response:
    """A file of ours that is a page or belongs to one."""
    return page_response(file.read_bytes(), kind=KINDS[file.suffix])


def json_response(status: int, value: Any, *headers: tuple[str, str]) -> Response:
    """A value as JSON."""
    body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    return Response(status, "application/json", body, (("Content-Security-Policy", "default-src 'none'"), *headers))


def refusal_response(refused: Refused) -> Response:
    """Why something was not done."""
    allow = (("Allow", "GET, POST"),) if refused.status == 405 else ()
    return json_response(refused.status, {"error": str(refused)}, *allow)
