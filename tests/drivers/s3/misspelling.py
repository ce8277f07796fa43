"""A store that wants buckets to be empty before they go, and that writes another character for some in a name where it
lists versions, as SeaweedFS does."""

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree


class Misspelling:
    def __init__(self, *keys: str, lists: bool = True) -> None:
        self.keys = set(keys)
        self.asked = 0
        self._spell = quote if lists else _wrong  # in the listing of objects

    @contextlib.contextmanager
    def running(self) -> Iterator[str]:
        server = ThreadingHTTPServer(("127.0.0.1", 0), lambda *given: _Talk(self, *given))
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def answer(self, method: str, key: str, query: dict[str, list[str]], body: bytes) -> tuple[int, str]:
        self.asked += 1
        if method == "DELETE" and key:
            self.keys.discard(key)
            return 204, ""
        if method == "DELETE":
            return (409, "<Error><Code>BucketNotEmpty</Code></Error>") if self.keys else (204, "")
        if method == "POST":
            self.keys -= {one.text or "" for one in ElementTree.fromstring(body).iter() if one.tag.endswith("Key")}
            return 200, "<DeleteResult/>"
        if "uploads" in query:
            return 200, "<ListMultipartUploadsResult/>"
        if "versions" in query:
            told = "".join(
                f"<Version><Key>{_wrong(key)}</Key><VersionId>null</VersionId></Version>" for key in self.keys
            )
            return 200, f"<ListVersionsResult><EncodingType>url</EncodingType>{told}</ListVersionsResult>"
        told = "".join(f"<Contents><Key>{self._spell(key)}</Key></Contents>" for key in self.keys)
        return 200, f"<ListBucketResult><EncodingType>url</EncodingType>{told}</ListBucketResult>"


def _wrong(key: str) -> str:
    return quote(key.replace("\x01", "\ufffd"))


class _Talk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, store: Misspelling, *given: Any) -> None:
        self._store = store
        super().__init__(*given)

    def _talk(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        where = urlsplit(self.path)
        _, _, key = where.path.lstrip("/").partition("/")
        query = parse_qs(where.query, keep_blank_values=True)
        status, text = self._store.answer(self.command, unquote(key), query, body)
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = do_DELETE = _talk

    def log_message(self, format: str, *args: object) -> None:
        pass
