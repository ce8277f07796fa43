"""A web server that keeps services in the manner of OSCAR's own manager: it knows nothing of Hansa, fills in defaults
of its own, drops what it does not know and shows the rest. It runs nothing.
"""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SERVICES = "/system/services"


@dataclass(slots=True)
class OscarLike:
    url: str = ""
    services: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)  # "PUT gray", in order
    reads: int = 0
    status: dict[str, Any] | None = None  # what it says of its nodes, if anything

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        if path == "/health":
            return 200, b"Ok"
        if path == "/system/status" and self.status is not None:
            return 200, json.dumps(self.status).encode()
        if not path.startswith(_SERVICES):
            return 404, b"404 page not found"
        name = path.removeprefix(_SERVICES).strip("/")
        if method == "GET":
            self.reads += 1
            return (200, json.dumps(self.services[name]).encode()) if name in self.services else (404, b"")
        given = json.loads(body) if method in ("POST", "PUT") else {}
        name = name or given["name"]
        self.writes.append(f"{method} {name}")
        known = name in self.services
        if method == "POST":
            self.services[name] = _kept(given)
            return 201, b""
        if not known:
            return 404, b"not found"
        if method == "PUT":
            self.services[name] = _kept(given)
        else:
            del self.services[name]
        return 204, b""


def _kept(given: dict[str, Any]) -> dict[str, Any]:
    kept = {
        **given,
        "log_level": "WARNING",
        "expose": {**given["expose"], "max_scale": 10, "cpu_threshold": 80, "health_path": "/"},
        "total_memory": given["memory"],
        "annotations": {**given["annotations"], "kueue.example.org/queue": "oscar-queue"},
        "labels": {"uid": "somebody"},
        "namespace": "oscar-svc",
        "owner": "cluster_admin",
        "allowed_users": None,
        "deployment": {"state": "ready"},
    }
    kept["input"] = [{**one, "storage_provider": "minio", "suffix": []} for one in given["input"]]
    environment = given["environment"]
    kept["environment"] = {**environment, "secrets": dict.fromkeys(environment.get("secrets") or {}, "")}
    del kept["isolation_level"]
    return kept


@contextlib.contextmanager
def oscar_like() -> Iterator[OscarLike]:
    made = OscarLike()

    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            status, text = made.answer(self.command, self.path, body)
            self.send_response(status)
            if text.startswith(b"{"):
                self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "0" if status == 204 else str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, name="oscar-like")
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
