"""How does a stager ask a web server? One kept connection, over a socket that somebody else dialled; bounded in time.

No redirect is followed, no proxy of the environment is used, and the name that is asked for stays the one of the plan.
"""

import encodings.idna  # noqa: F401 - http.client asks for it by name, behind walls where nothing can be loaded any more
import http.client
import os
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from .errors import Refused, Trouble

Dial = Callable[[], socket.socket]
CHUNK = 256 * 1024
_SECONDS = 60.0  # without a byte from the other side
_LARGEST_ANSWER = 8 * 2**20  # of an answer that is kept in memory
_LENGTH = re.compile(r"-1|[0-9]{1,18}")
_FOREIGN = (OSError, http.client.HTTPException)

_contexts: dict[bool, ssl.SSLContext] = {}


def tls(*, verify: bool) -> ssl.SSLContext:
    """Made before the walls stand, for it reads the machine's certificates."""
    if verify not in _contexts:
        context = ssl.create_default_context()
        if not verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        _contexts[verify] = context
    return _contexts[verify]


@dataclass(frozen=True, slots=True)
class Server:
    """The parts of an address `http(s)://host[:port][/path]`."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def name(self) -> str:
        """As in the header `Host`."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == (443 if self.secure else 80) else f"{shown}:{self.port}"

    @classmethod
    def at(cls, endpoint: str) -> "Server":
        try:
            parts = urlsplit(endpoint)
            port = parts.port
        except ValueError:
            raise Refused("the address of the store is not valid") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise Refused("the address of the store is not valid: write http(s)://host[:port]")
        secure = parts.scheme == "https"
        return cls(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))


class Body:
    """A part of an open file, to be sent as often as it takes."""

    def __init__(self, fd: int, start: int, size: int) -> None:
        self._fd, self._start, self.size = fd, start, size

    def __iter__(self) -> Iterator[bytes]:
        at, end = self._start, self._start + self.size
        while at < end:
            chunk = os.pread(self._fd, min(CHUNK, end - at), at)
            if not chunk:
                raise Refused("a file became shorter while it was read")
            at += len(chunk)
            yield chunk


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class Web:
    """A connection to one server, made when it is needed and kept between requests."""

    def __init__(self, server: Server, dial: Dial, *, verify: bool) -> None:
        self.server = server
        self._dial = dial
        self._verify = verify
        self._connection: http.client.HTTPConnection | None = None

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: Body | bytes = b"") -> Answer:
        """The whole answer, if it is not too large."""
        answer = self._asked(method, target, headers, body)
        content = b""
        while chunk := self._next(answer):
            content += chunk
            if len(content) > _LARGEST_ANSWER:
                self.close()
                raise Refused("the answer of the store is too large")
        return Answer(answer.status, answer.headers, content)

    def fetch(self, target: str, headers: Mapping[str, str], into: int, room: Callable[[int], None]) -> Answer:
        """What is there goes into the open file; the body of the answer is kept only if it is none of success. `room`
        hears how long it will be, or is by now, and raises if that is too much."""
        answer = self._asked("GET", target, headers, b"")
        if answer.status != http.client.OK:
            content = self._next(answer)  # a refusal is short; the rest of a long one is not waited for
            self.close()
            return Answer(answer.status, answer.headers, content)
        try:
            left, written = _length(answer), 0
            room(left)
            while chunk := self._next(answer):
                left -= len(chunk)
                written += len(chunk)
                room(written)
                _write_all(into, chunk)
        except (Refused, OSError):
            self.close()  # the rest of it is not wanted
            raise
        if left > 0:  # without a length the end of the connection is the end of the object
            self.close()
            raise Trouble("the store's answer was cut off")
        return Answer(answer.status, answer.headers, b"")

    def _next(self, answer: http.client.HTTPResponse) -> bytes:
        try:
            return answer.read(CHUNK)
        except _FOREIGN as error:
            self.close()
            raise Trouble(_in_words(error)) from error

    def _asked(
        self, method: str, target: str, headers: Mapping[str, str], body: Body | bytes
    ) -> http.client.HTTPResponse:
        kept = self._connection is not None
        try:
            return self._once(method, target, headers, body)
        except _FOREIGN as error:
            self.close()
            if not kept:
                raise Trouble(_in_words(error)) from error
        try:  # a kept connection may have been closed by the other side meanwhile
            return self._once(method, target, headers, body)
        except _FOREIGN as error:
            self.close()
            raise Trouble(_in_words(error)) from error

    def _once(
        self, method: str, target: str, headers: Mapping[str, str], body: Body | bytes
    ) -> http.client.HTTPResponse:
        connection = self._connected()
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("host", self.server.name)
        for name, value in headers.items():
            if name != "host":
                connection.putheader(name, value)
        size = len(body) if isinstance(body, bytes) else body.size
        if size or method in ("PUT", "POST"):
            connection.putheader("content-length", str(size))
        connection.endheaders()
        for chunk in [body] if isinstance(body, bytes) and body else body if isinstance(body, Body) else []:
            connection.send(chunk)
        return connection.getresponse()

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            made = http.client.HTTPConnection(self.server.host, self.server.port)
            sock = self._dial()
            try:
                sock.settimeout(_SECONDS)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.server.secure:
                    sock = tls(verify=self._verify).wrap_socket(sock, server_hostname=self.server.host)
            except BaseException:
                sock.close()
                raise
            made.sock = sock
            self._connection = made
        return self._connection


def _length(answer: http.client.HTTPResponse) -> int:
    """What the store says; -1 if it says nothing."""
    said = answer.headers.get("Content-Length", "-1")
    if not _LENGTH.fullmatch(said):
        raise Refused("the store tells a length that is no number")
    return int(said)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _in_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its certificate is not trusted"
    return f"it does not answer ({type(error).__name__})"
