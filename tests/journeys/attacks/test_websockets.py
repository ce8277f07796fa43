"""WebSockets to exposed services: whatever a visitor sends there, others are answered, and memory stays as it was."""

import os
import socket
import struct
import time
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from journeys.attacks.bystander import Bystander, memory_within
from journeys.conftest import Person, signing_in
from journeys.exposing import at, definition, ready, script
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

IDLE = 3.0
NOTHING = b"\0\0\0\0"  # a mask that changes nothing
PATIENCE = 30.0
VISITORS, POURED = 16, 5.0


@pytest.fixture(scope="module")
def own(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    with running_manager({**trusting(sign_in_provider), "exposed.socket_idle": IDLE}) as running:
        yield running


@pytest.fixture(scope="module")
def person(own: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(own, sign_in_provider)


@pytest.fixture(scope="module")
def page(person: Person) -> Iterator[str]:
    alice, name = person("alice"), "sockets"
    body = {"name": name, "image": "debian", "script": script(8080), **definition()}
    assert alice.post("/system/services", json=body).status_code == 201
    ready(alice, name)
    yield name
    assert alice.delete(f"/system/services/{name}").status_code == 204


def opened(manager: Manager, page: str) -> socket.socket:
    """A WebSocket, after its handshake; what is sent on it is for the test to choose."""
    client = socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE)
    head = [
        f"GET {at(page, '/ws')} HTTP/1.1",
        "Host: x",
        "Connection: Upgrade",
        "Upgrade: websocket",
        f"Sec-WebSocket-Key: {b64encode(os.urandom(16)).decode()}",
        "Sec-WebSocket-Version: 13",
    ]
    client.sendall("\r\n".join([*head, "", ""]).encode())
    assert client.recv(65536).startswith(b"HTTP/1.1 101 ")
    return client


def poured(client: socket.socket, data: bytes, seconds: float) -> int:
    """How many bytes went in until nobody took more, or the time was over."""
    sent, end = 0, time.monotonic() + seconds
    client.settimeout(2.0)
    try:
        while time.monotonic() < end:
            sent += client.send(data)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize(
    "frame",
    [b"\x00\x81" + NOTHING + b"x", b"\x89\x80" + NOTHING, b"\x82\x80" + NOTHING],
    ids=["pieces of a message", "pings", "messages"],
)
def test_tiny_frames_stop_nobody(own: Manager, page: str, person: Person, frame: bytes) -> None:
    """Bob asks all the time: a manager that reads each frame answers once or twice meanwhile."""
    with ExitStack() as held, Bystander(person("bob")) as bob, memory_within(own, 100 * 2**20):
        clients = [held.enter_context(opened(own, page)) for _ in range(VISITORS)]
        many = held.enter_context(ThreadPoolExecutor(VISITORS))
        asked = bob.answered
        assert all(many.map(lambda client: poured(client, frame * 20_000, POURED), clients))
        assert bob.answered - asked >= 10


def test_a_message_that_never_ends_takes_no_memory(own: Manager, page: str, person: Person) -> None:
    size = 15 * 2**20
    begun = b"\x82\xff" + struct.pack("!Q", size + 1) + NOTHING
    with ExitStack() as held, Bystander(person("bob")), memory_within(own, 60 * 2**20):
        for _ in range(VISITORS):
            client = held.enter_context(opened(own, page))
            client.sendall(begun)
            with suppress(OSError):  # the process may not want it
                client.sendall(b"x" * size)


def test_a_silent_one_is_closed_and_one_that_talks_is_not(own: Manager, page: str) -> None:
    address = f"ws://127.0.0.1:{own.port}{at(page, '/ws')}"
    with connect(address, ping_interval=None) as silent, connect(address, ping_interval=None) as talks:
        end = time.monotonic() + 3 * IDLE
        while time.monotonic() < end:
            talks.send("hello")
            assert talks.recv(PATIENCE) == "HELLO"
            time.sleep(IDLE / 10)
        with pytest.raises(ConnectionClosed):
            silent.recv(PATIENCE)


def test_the_handshake_is_between_the_two_and_nothing_else_passes(own: Manager, page: str, person: Person) -> None:
    shown = {"Authorization": person("bob").headers["authorization"], "X-Own": "1"}
    address = f"ws://127.0.0.1:{own.port}{at(page, '/ws')}"
    with connect(address, additional_headers=shown) as client:
        client.send("headers")
        told = str(client.recv(PATIENCE)).lower()
    assert "authorization" not in told
    assert "x-own" not in told


def test_where_the_process_wants_none_there_is_none(own: Manager, page: str) -> None:
    answer = httpx.get(
        own.url + at(page, "/x"),
        headers={
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Key": b64encode(os.urandom(16)).decode(),
            "Sec-WebSocket-Version": "13",
        },
        trust_env=False,
        timeout=PATIENCE,
    )
    assert answer.status_code == 403
