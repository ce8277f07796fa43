"""A store that speaks S3 and means harm: its lists are as a test says, and nobody ever gets a whole object from it."""

import contextlib
import select
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from real.listener import served

List = Callable[[int], bytes]
"""What the n-th request for a page is answered, from 1."""
_DRIP = 0.05  # seconds between two bytes


@dataclass(slots=True)
class HostileStore:
    url: str
    listed: int = 0  # pages
    left: threading.Event = field(default_factory=threading.Event)
    """Set when a visitor who was kept waiting is gone."""


def page(keys: list[str], following: str | None) -> bytes:
    """Without a token there is no next page; an empty one is none."""
    told = "".join(f"<Contents><Key>{key}</Key></Contents>" for key in keys)
    more = "" if not following else f"<NextContinuationToken>{following}</NextContinuationToken>"
    truncated = "false" if following is None else "true"
    return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{told}{more}</ListBucketResult>".encode()


@contextlib.contextmanager
def hostile_store(pages: List = lambda number: page([], None)) -> Iterator[HostileStore]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if "list-type" in parse_qs(urlsplit(self.path).query):
                heard.listed += 1
                body = pages(heard.listed)
                self._begin(len(body))
                self.wfile.write(body)
                return
            self._begin(2**20)
            while not self._is_left(_DRIP):
                self.wfile.write(b"x")

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._is_left(None)

        def _begin(self, length: int) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def _is_left(self, seconds: float | None) -> bool:
            """A visitor who waits says nothing: only the end of the connection is there to be read."""
            if not select.select([self.connection], [], [], seconds)[0]:
                return False
            self.close_connection = True
            heard.left.set()
            return True

        def log_message(self, format: str, *args: object) -> None:
            pass

    with served(Answering) as url:
        heard = HostileStore(url)
        yield heard
