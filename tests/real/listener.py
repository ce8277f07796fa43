"""A web server that is no manager: remembers what it was sent, and may point its visitors elsewhere."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


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
    visits: list[Visit] = field(default_factory=list)


@contextlib.contextmanager
def listener(redirect_to: str = "") -> Iterator[Listener]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            heard.visits.append(Visit(self.command, self.path, headers, body))
            self.send_response(302 if heard.redirect_to else 200)
            if heard.redirect_to:
                self.send_header("Location", heard.redirect_to + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    heard = Listener(f"http://127.0.0.1:{server.server_address[1]}", redirect_to)
    thread = threading.Thread(target=server.serve_forever, name="listener")
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
