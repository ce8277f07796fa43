"""A small real HTTP server that answers what a test tells it to, and keeps what it was asked."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "ab" * 32


@dataclass(frozen=True)
class Seen:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Answer:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class SmallServer:
    """Answers what a test told it to; several answers to one route are given in turn, the last for ever."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
                headers = {key.lower(): value for key, value in self.headers.items()}
                outer.seen.append(Seen(self.command, unquote(parts.path), query, headers, body))
                answer = outer._next(self.command, unquote(parts.path))
                self.send_response(answer.status)
                for key, value in answer.headers.items():
                    self.send_header(key, value)
                if "Content-Length" not in answer.headers:
                    self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> "SmallServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)

    def on(self, route: str, body: Any = b"", status: int = 200, **headers: str) -> "SmallServer":
        method, _, path = route.partition(" ")
        content = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self._answers.setdefault((method, path), []).append(Answer(status, content, named))
        return self

    def _next(self, method: str, path: str) -> Answer:
        listed = self._answers.get((method, path))
        if not listed:
            return Answer(404, b"404 page not found")
        return listed.pop(0) if len(listed) > 1 else listed[0]

    def calls(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Hansa = Callable[..., Ran]
