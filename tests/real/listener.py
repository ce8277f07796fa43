"""A web server that is no manager: remembers what it was sent, and may point its visitors elsewhere."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Visit:
    method: str
    path: str
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass(slots=True)
class Listener:
    url: str
    redirect_to: str = ""  # where every visitor is sent; "" answers 200
    says: dict[str, Any] = field(default_factory=dict)  # JSON, by path; other paths are answered with nothing
    statuses: dict[str, int] = field(default_factory=dict)  # by path; others are answered 200
    visits: list[Visit] = field(default_factory=list)


@contextlib.contextmanager
def served(handler: type[BaseHTTPRequestHandler], host: str = "127.0.0.1") -> Iterator[str]:
    """The address of a small web server with this way to answer, stopped afterwards."""
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="small web server")
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


@contextlib.contextmanager
def listener(redirect_to: str = "", host: str = "127.0.0.1") -> Iterator[Listener]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard.visits.append(Visit(self.command, self.path, headers, body))
            self.send_response(302 if heard.redirect_to else heard.statuses.get(self.path, 200))
            if heard.redirect_to:
                self.send_header("Location", heard.redirect_to + self.path)
            said = heard.says.get(self.path)
            written = b"" if said is None else json.dumps(said).encode()
            if written:
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(written)))
            self.end_headers()
            self.wfile.write(written)

        do_GET = do_POST = do_PUT = do_DELETE = do_MKCOL = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    with served(Answering, host) as url:
        heard = Listener(url, redirect_to)
        yield heard
