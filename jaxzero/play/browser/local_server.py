"""A web server for the pages of one machine: requests and responses as records, and what carries their bytes.

What a page answers is a function from a request to a response, so that a conversation is a test. Pages are on the
loopback interface and nowhere else, and so that no page of somebody else's reaches them by way of the browser, requests
have to name this machine as their host (against names that are bound to it later on), and changes have to come from our
own page and be JSON.
"""

import json
import pathlib
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from jaxzero.play.browser.refusals import Refused

__all__ = [
    "GAME",
    "MOST",
    "Request",
    "Response",
    "check_origin",
    "expect",
    "fields",
    "file_response",
    "json_response",
    "listening",
    "page_response",
    "refusal_response",
    "serve",
]

KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
GAME = re.compile(r"/games/([A-Za-z0-9_-]{1,64})(?:/([a-z]{1,16}))?", re.ASCII)
LOOPBACK = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?", re.ASCII | re.IGNORECASE)
MOST = 4096  # bytes of a body
PATIENCE = 60  # seconds that a connection may say nothing

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
    """What is answered.

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


def check_origin(request: Request) -> None:
    """Raises Refused where the request was meant for another host, or another page has sent it."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    if not LOOPBACK.fullmatch(host):
        raise Refused(403, "This page is for this machine only: open http://127.0.0.1 and the port.")
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        raise Refused(403, "Another page sent this. Only this page may play here.")


def expect(request: Request, method: str) -> None:
    """Raises Refused where it came by another method."""
    if request.method != method:
        raise Refused(405, f"Use {method} here.")


def fields(request: Request, names: tuple[str, ...]) -> list[int | None]:
    """The numbers that a body has to hold, and nothing beside them."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "Send JSON, and say so: Content-Type: application/json.")
    if len(request.body) > MOST:
        raise Refused(413, f"A body has at most {MOST} bytes.")
    try:
        given = json.loads(request.body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Refused(400, "The body is no JSON.") from error
    if not isinstance(given, dict) or set(given) != set(names):
        said = ", ".join(names) or "nothing in it"
        raise Refused(400, f"The body has to be an object with {said}.")
    for name in names:
        number, may_be_none = given[name], name == "simulations"  # whose range the sessions know
        least, most = (-(2**53), 2**53) if may_be_none else (0, 2**31)
        if not (type(number) is int and least <= number < most or may_be_none and number is None):
            raise Refused(400, f"{name} has to be a whole number{' or null' if may_be_none else ' from 0'}.")
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


# --------------------------------------------------------------------------------------------------------- the network
def _handler(respond: Callable[[Request], Response]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Carries bytes between the network and `respond`."""

        protocol_version, server_version, sys_version, timeout = "HTTP/1.1", "jaxzero", "", PATIENCE
        disable_nagle_algorithm = True  # else the body waits until its head is acknowledged: 40 milliseconds

        def handle(self) -> None:
            """Requests until either side has had enough; a browser may leave at any time."""
            try:
                super().handle()
            except ConnectionError:
                pass

        def do_GET(self) -> None:
            """Any method: `respond` knows which are allowed."""
            length = self.headers.get("Content-Length", "0")
            if "Transfer-Encoding" in self.headers or not re.fullmatch(r"[0-9]{1,9}", length, re.ASCII):
                return self.send_error(411)
            if int(length) > MOST:
                return self.send_error(413)
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Request(self.command, self.path.partition("?")[0], headers, self.rfile.read(int(length)))
            try:
                said = respond(asked)
            except Exception as error:  # a mistake of ours; who asks gets no trace of it
                print(f"{asked.method} {asked.path}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                said = json_response(500, {"error": "Something went wrong here; the terminal says what."})
            self._write(said)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_TRACE = do_CONNECT = do_GET

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """What is no request of HTTP, or too long, is answered in JSON, too, and the connection closed."""
            words = {411: "Say by Content-Length how long the body is.", 413: f"A body has at most {MOST} bytes."}
            if code == 501:  # a method that nobody knows
                code, words = 405, {405: "Use GET or POST."}
            self.close_connection = True
            reason = words.get(code, "This is no request that can be understood.")
            more = (("Allow", "GET, POST"),) if code == 405 else ()
            self._write(json_response(code if code < 500 else 400, {"error": reason}, ("Connection", "close"), *more))

        def _write(self, said: Response) -> None:
            self.send_response(said.status)
            common = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))
            common += (("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"))
            for name, value in (("Content-Type", said.kind), *common, *said.headers):
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body)))
            try:
                self.end_headers()
                self.wfile.write(said.body if self.command != "HEAD" else b"")
            except ConnectionError:  # whoever asked has gone
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            """The terminal is for people."""

    return Handler


def listening(port: int | None, respond: Callable[[Request], Response]) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that answers with `respond`; it does so once `serve` runs it.

    Args:
        port: 0 is any free one; None is 8000, or any free one if that is taken.
        respond: what it answers; may be asked from several threads at once.

    Raises:
        OSError: the port is taken, or not allowed.
    """
    handler = _handler(respond)
    try:
        return ThreadingHTTPServer(("127.0.0.1", 8000 if port is None else port), handler)
    except OSError:
        if port is not None:
            raise
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


def serve(server: ThreadingHTTPServer, stop: threading.Event) -> None:
    """Answers until `stop` is set; connections are closed then."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True, name="serving")
    thread.start()
    try:
        while not stop.wait(0.2):  # a wait without end would not let signals through everywhere
            pass
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
