"""A web server on the loopback interface only, which carries the bytes of requests and responses."""

import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from jaxzero.play.browser.http_messages import MOST, Request, Response, json_response

__all__ = ["listening", "serve"]

PATIENCE = 60  # seconds that a connection may say nothing


def _handler(respond: Callable[[Request], Response]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Carries bytes between the network and `respond`."""

        protocol_version, server_version, sys_version, timeout = "HTTP/1.1", "jaxzero", "", PATIENCE
        disable_nagle_algorithm = True  # else the body waits until its head is acknowledged: 40 milliseconds

        def handle(self) -> None:
            """Handles requests until either side closes the connection; a browser may do so at any time."""
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
            except Exception as error:  # a bug of ours; the client gets no traceback
                print(f"{asked.method} {asked.path}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
                said = json_response(500, {"error": "The server failed; see the terminal."})
            self._write(said)

        do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_HEAD = do_TRACE = do_CONNECT = do_GET

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """Also answers malformed or overlong requests in JSON, and closes the connection."""
            words = {
                411: "Send the length of the body as Content-Length.",
                413: f"A body may have at most {MOST} bytes.",
            }
            if code == 501:  # a method that nobody knows
                code, words = 405, {405: "Use GET or POST."}
            self.close_connection = True
            reason = words.get(code, "This is not a valid request.")
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
            """Logs nothing: the terminal is for people."""

    return Handler


def listening(port: int | None, respond: Callable[[Request], Response]) -> ThreadingHTTPServer:
    """A server on 127.0.0.1 that answers with `respond` once `serve` runs it.

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
