"""Does one rude client leave the others alone? Connections that are slow, endless, early, half-closed or not HTTP."""

import contextlib
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from hansa.entrypoints.http.protocol import HEAD_SECONDS, LARGEST_HEAD
from journeys.bad_input import stumble
from real.manager import Manager

PATIENCE = 10.0


@contextlib.contextmanager
def connected(manager: Manager) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE) as client:
        yield client


def heard(client: socket.socket) -> bytes:
    """Everything until the other side closes."""
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := client.recv(65536):
            said += chunk
    return said


def says(manager: Manager, request: bytes) -> bytes:
    """The answer to raw bytes, after which the other side closes."""
    with connected(manager) as client:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            client.sendall(request)
        return heard(client)


@pytest.fixture(autouse=True)
def well(manager: Manager) -> Iterator[None]:
    """Whatever happens here, the manager writes no traceback and goes on answering."""
    before = len(manager.log)
    yield
    assert manager.anonymous.get("/health").status_code == 200
    assert not stumble(manager.log[before:])


def test_slow_clients_do_not_hold_up_others(manager: Manager, admin: httpx.Client) -> None:
    with contextlib.ExitStack() as slow:
        clients = [slow.enter_context(connected(manager)) for _ in range(200)]
        for number, client in enumerate(clients):
            in_head, in_body = b"GET /health HTTP/1.1\r\nX-A", b"POST /job/x HTTP/1.1\r\nContent-Length: 9\r\n\r\n{"
            client.sendall(in_head if number % 2 else in_body)
        started = time.monotonic()
        for _ in range(20):
            assert admin.get("/system/info").status_code == 200
        assert time.monotonic() - started < PATIENCE


def test_a_head_that_does_not_come_is_not_waited_for(manager: Manager) -> None:
    with connected(manager) as silent, connected(manager) as slow, connected(manager) as blank:
        slow.sendall(b"GET /health HTTP/1.1\r\nX-Slow: ")
        blank.sendall(b"\r\n")
        for client in (silent, slow, blank):
            client.settimeout(HEAD_SECONDS + PATIENCE)
        assert heard(silent) == b""
        assert heard(slow).startswith(b"HTTP/1.1 408 ")
        heard(blank)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * (4 * LARGEST_HEAD),
        b"GET /health HTTP/1.1\r\nX-Long: " + b"x" * (8 * LARGEST_HEAD),
        b"GET /health HTTP/1.1\r\n" + b"X-Many: x\r\n" * LARGEST_HEAD,
    ],
    ids=["address", "header", "headers"],
)
def test_a_head_without_end_is_cut_off(manager: Manager, head: bytes) -> None:
    answer = says(manager, head)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 ")  # still sending, one may not hear the answer


def test_a_long_address_and_many_headers_within_limits_are_fine(manager: Manager) -> None:
    path = b"/system/services/" + b"x" * 5000 + b"?include=" + b"y" * 20_000
    answer = says(manager, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 401 ")
    many = b"".join(b"X-H-%d: x\r\n" % number for number in range(1000))
    answer = says(manager, b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + many + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # somebody speaks TLS
        b"GET /health HTTP/9.9\r\n\r\n",
        b"GET /h\xc3\xa4lth HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"EAT /health HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Bad: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
        b"POST /system/services HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /system/services HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /system/services HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"POST /system/services HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=lambda request: repr(request[:40]),
)
def test_what_is_not_http_is_a_400_and_the_end(manager: Manager, request_: bytes) -> None:
    answer = says(manager, request_)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 401 ")), answer[:200]


def test_requests_in_one_go_are_answered_in_order(manager: Manager) -> None:
    paths = [b"/health", b"/nothing", b"/system/info", b"/v1/noop", b"/health"]
    requests = [b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" for path in paths]
    requests[-1] = requests[-1].replace(b"Host", b"Connection: close\r\nHost")
    answers = says(manager, b"".join(requests)).split(b"HTTP/1.1 ")[1:]
    assert [int(answer[:3]) for answer in answers] == [200, 404, 401, 204, 200]


def test_a_client_that_only_listens_any_more_is_answered(manager: Manager) -> None:
    with connected(manager) as client:
        client.sendall(b"GET /ready HTTP/1.1\r\nHost: x\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert heard(client).startswith(b"HTTP/1.1 200 ")
    with connected(manager) as client:
        client.sendall(b"POST /system/services HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        client.shutdown(socket.SHUT_WR)
        assert not heard(client).startswith(b"HTTP/1.1 2")


def test_a_client_that_leaves_in_the_middle_of_a_body(manager: Manager, admin: httpx.Client) -> None:
    for _ in range(5):
        with connected(manager) as client:
            token = httpx.BasicAuth("admin", manager.password)._auth_header
            client.sendall(f"POST /system/services HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n".encode())
            client.sendall(b"Content-Length: 100\r\n\r\n{")
    assert admin.get("/system/info").status_code == 200


def test_a_large_body_in_pieces_is_refused_before_its_end(manager: Manager, admin: httpx.Client) -> None:
    sent = 0

    def pieces() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(1000):
            sent += 2**20
            yield b"x" * 2**20

    try:
        answer = admin.post("/system/services", content=pieces())
        assert answer.status_code == 413
    except (httpx.WriteError, httpx.RemoteProtocolError):
        pass  # it was still sending when the manager had enough
    assert sent < 200 * 2**20
    assert admin.get("/system/info").status_code == 200


@pytest.mark.parametrize("path", ["/health", "/system/info", "/system/services", "/metrics", "/openapi.json"])
def test_head_is_get_without_a_body(admin: httpx.Client, path: str) -> None:
    head, whole = admin.head(path), admin.get(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]


def test_options_and_other_methods_are_404_or_on_v1_405(admin: httpx.Client) -> None:
    for method in ("OPTIONS", "TRACE", "PATCH"):
        assert admin.request(method, "/system/services").status_code == 404
        assert admin.request(method, "/v1/node").status_code == 405


@pytest.mark.parametrize("path", ["/health", "/system/services", "/nothing"])
def test_a_websocket_where_there_is_none(manager: Manager, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    assert says(manager, (head + key).encode()).startswith(b"HTTP/1.1 403 ")


def test_an_upgrade_to_something_else_is_ignored(manager: Manager) -> None:
    request = b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: h2c\r\n\r\n"
    assert says(manager, request).startswith(b"HTTP/1.1 200 ")
