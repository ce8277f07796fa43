"""What does a tenant's process answer? Read as it comes, so that no answer costs the manager more than its size.

The process may say anything: thousands of words that announce the answer, of headers, of chunks of a byte. All of it is
cut by a parser that is quick with each, and pieces that came together go on as one. Nothing here waits or sends.
"""

from collections.abc import Sequence

import httptools

from hansa.entrypoints.http.protocol import LARGEST_HEAD

MOST_EARLY = 8  # answers before the answer, as `103 Early Hints`
MOST_LINES = 256  # headers, of all of them together


class NoAnswer(Exception):
    """What came is no answer, or nothing came; in words."""


class Answer:
    """One answer, as far as it has come."""

    def __init__(self, method: str) -> None:
        self.status = 0  # until the head is here
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False
        self.is_last = False  # the connection carries no other after it
        self._to_head = method == "HEAD"
        self._parser = httptools.HttpResponseParser(self)
        # small programs end their lines as the system does; headers are written anew for the visitor anyway
        self._parser.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._parts: list[bytes] = []
        self._early = self._lines = 0
        self._beside = 0  # bytes that were no body, since there was one
        self._wrong = ""

    def feed(self, data: bytes | memoryview) -> int:
        """Reads on; in how many pieces the body in it came."""
        before = len(self._parts)
        self._beside += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                raise NoAnswer(self._wrong or f"it does not speak HTTP: {error}") from None
            self.is_last = True
        if self._beside > LARGEST_HEAD and not self.is_complete:
            raise NoAnswer(f"it says more than {LARGEST_HEAD} bytes beside its answer")
        return len(self._parts) - before

    def end(self) -> None:
        """The process has closed its side."""
        if not self.status:
            raise NoAnswer("it closed the connection")
        if _has_length(self.headers):
            raise NoAnswer("it closed the connection in the middle of its answer")
        self.is_complete = self.is_last = True

    def take(self) -> bytes:
        """The body that came since the last time."""
        part = b"".join(self._parts)
        self._parts.clear()
        return part

    # what the parser calls

    def on_message_begin(self) -> None:
        if self.is_complete:
            self._refuse("it says more than its answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        if self._lines > MOST_LINES:
            self._refuse(f"it has more than {MOST_LINES} headers")
        if not self.status:  # or it is of the trailer
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            self._early += 1
            if self._early > MOST_EARLY:
                self._refuse(f"it announced its answer more than {MOST_EARLY} times")
            self.headers.clear()
        elif not 200 <= status <= 599:
            self._refuse(f"{status} is no status")
        else:
            self.status = status
            self.is_complete = self._to_head
            self.is_last = self._to_head or not self._parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        if not self.is_complete:
            self._beside = 0
            self._parts.append(body)

    def on_message_complete(self) -> None:
        self.is_complete = bool(self.status)

    def _refuse(self, why: str) -> None:
        self._wrong = why
        raise NoAnswer(why)  # the parser stops at it


def _has_length(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether it says itself where its body ends; the others end with the connection."""
    told = {name.lower(): value.lower().strip() for name, value in headers}
    return b"content-length" in told or told.get(b"transfer-encoding", b"").endswith(b"chunked")
