"""Do visitors who send or read slowly leave an exposed service to the others?"""

import contextlib
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from hansa.entrypoints.http.exposed.bodies import PATIENCE, TAKEN_IN
from hansa.entrypoints.http.exposed.limits import CONNECTIONS, Limits
from journeys.conftest import Person
from journeys.exposing import at, definition, ready, script
from journeys.waiting import eventually
from real.manager import Manager

SLOW = 120
ANSWERS = 20.0  # seconds; less than any limit that would free a connection by itself


@pytest.fixture(scope="module")
def page(person: Person) -> Iterator[str]:
    alice, name = person("alice"), "slow-page"
    body = {"name": name, "image": "debian", "script": script(8080), **definition()}
    assert alice.post("/system/services", json=body).status_code == 201
    ready(alice, name)
    yield name
    assert alice.delete(f"/system/services/{name}").status_code == 204


@contextlib.contextmanager
def lingering(
    manager: Manager, request: bytes, count: int, address: str = "127.0.0.1"
) -> Iterator[list[socket.socket]]:
    """So many connections that said this much and then nothing more."""
    with contextlib.ExitStack() as open_ones:
        made = []
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", manager.port), timeout=60, source_address=(address, 0))
            open_ones.enter_context(client)
            client.sendall(request)
            made.append(client)
        yield made


def answered(manager: Manager, name: str, address: str, **how: bytes) -> float:
    """Seconds an honest visitor waits for a GET and a POST."""
    began = time.monotonic()
    with httpx.Client(base_url=manager.url, transport=httpx.HTTPTransport(local_address=address), timeout=60) as client:
        for _ in range(3):
            assert client.get(at(name, "/x")).status_code == 200
            told = client.post(at(name, "/x"), content=how.get("body", b"hello"))
            assert (told.status_code, len(told.json()["body"])) == (200, len(how.get("body", b"hello")))
    return time.monotonic() - began


def head(name: str, *lines: str) -> bytes:
    return "\r\n".join([f"POST {at(name, '/x')} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9"])
@pytest.mark.parametrize("lines", [("Content-Length: 1000",), ("Transfer-Encoding: chunked",)], ids=lambda one: one[0])
def test_slow_bodies_do_not_hold_up_others(page: str, manager: Manager, lines: tuple[str], address: str) -> None:
    begun = b"x" if "Length" in lines[0] else b"1\r\nx\r\n"
    with lingering(manager, head(page, *lines) + begun, SLOW):
        assert answered(manager, page, address) < ANSWERS


def test_large_bodies_that_stop_do_not_either(page: str, manager: Manager) -> None:
    """More than is taken in before the service is dialled; an honest upload from elsewhere goes through."""
    request = head(page, f"Content-Length: {100 * TAKEN_IN}") + b"x" * (2 * TAKEN_IN)
    with lingering(manager, request, SLOW):
        assert answered(manager, page, "127.0.0.9", body=b"y" * (4 * TAKEN_IN)) < ANSWERS


def test_answers_nobody_reads_do_not_either(page: str, manager: Manager) -> None:
    request = f"GET {at(page, '/large')} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with lingering(manager, request, SLOW):
        assert answered(manager, page, "127.0.0.9") < ANSWERS


def test_who_left_holds_nothing_any_more(page: str, manager: Manager) -> None:
    request = f"GET {at(page, '/large')} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with lingering(manager, request, SLOW):
        pass
    eventually(lambda: httpx.get(manager.url + at(page, "/x"), timeout=60, trust_env=False).status_code == 200, 5)


def test_who_is_too_slow_is_told_and_let_go(page: str, manager: Manager) -> None:
    with lingering(manager, head(page, "Content-Length: 1000") + b"x", 1) as [client]:
        client.settimeout(PATIENCE + 20)
        began = time.monotonic()
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert PATIENCE - 2 < time.monotonic() - began < PATIENCE + 15


def test_a_slow_but_steady_upload_arrives(page: str, manager: Manager) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"z" * 8192
            time.sleep(0.05)

    told = httpx.post(manager.url + at(page, "/x"), content=pieces(), timeout=60, trust_env=False)
    assert told.status_code == 200, told.text
    assert told.json()["body"] == "z" * 8192 * 20


def test_the_limits_leave_room() -> None:
    limits = Limits()
    assert limits.uploads.per_service < CONNECTIONS
    assert limits.calls.per_address < CONNECTIONS
