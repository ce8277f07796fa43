"""Answers that nobody reads do not fill a manager's memory, nor take the room of others."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from journeys.attacks.bystander import memory_within
from journeys.conftest import Person, signing_in
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

LARGE = 8 * 2**20  # more than the system takes in for a connection
MOST = 2 * LARGE
TRIES = 16
PATIENCE = 120.0


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"http.body_limit": 2**20, "http.bodies_limit": MOST}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


@pytest.fixture(scope="module")
def chatty(person: Person) -> str:
    """A public service that says a lot."""
    definition = {
        "name": "chatty", "image": "debian", "memory": "64Mi", "visibility": "public",
        "script": f"head -c {LARGE} /dev/zero | tr '\\0' x",
    }  # fmt: skip
    assert (made := person("alice").post("/system/services", json=definition)).status_code == 201, made.text
    return "chatty"


@pytest.fixture(scope="module")
def long_list(person: Person) -> None:
    """Alice's services fill a listing."""
    for number in range(LARGE // 2**20):
        definition = {"name": f"long-{number}", "image": "debian", "memory": "64Mi", "script": "#" + "x" * 1_040_000}
        assert (made := person("alice").post("/system/services", json=definition)).status_code == 201, made.text


def unread(manager: Manager, client: httpx.Client, asked: str) -> tuple[socket.socket, bytes]:
    """A connection of which only the first bytes of an answer were read."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(PATIENCE)
    made.connect(("127.0.0.1", manager.port))
    shown = client.headers["authorization"]
    made.sendall(f"{asked} HTTP/1.1\r\nHost: x\r\nAuthorization: {shown}\r\nContent-Length: 0\r\n\r\n".encode())
    return made, made.recv(64)


def run(client: httpx.Client, name: str) -> httpx.Response:
    return client.post(f"/run/{name}", timeout=PATIENCE)


def test_answers_nobody_reads_leave_room_for_others(small: Manager, person: Person, chatty: str) -> None:
    mallory, bob = person("quinn"), person("bob")
    with ExitStack() as held, memory_within(small, TRIES * LARGE // 2):
        for number in range(TRIES):
            made, told = unread(small, mallory, f"POST /run/{chatty}")
            held.enter_context(made)
            assert told.startswith(b"HTTP/1.1 200 " if number == 0 else b"HTTP/1.1 429 "), told
        refused = run(mallory, chatty)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert "left for others" in refused.text
        assert mallory.get("/system/services").status_code == 200
        assert len(run(bob, chatty).content) == LARGE
    eventually(lambda: run(mallory, chatty).status_code == 200, PATIENCE, what="she has room again")


def test_nor_do_listings_that_nobody_reads(small: Manager, person: Person, long_list: None) -> None:
    alice = person("alice")
    with ExitStack() as held, memory_within(small, TRIES * LARGE // 2):
        for number in range(TRIES):
            made, told = unread(small, alice, "GET /system/services")
            held.enter_context(made)
            assert told.startswith(b"HTTP/1.1 200 " if number == 0 else b"HTTP/1.1 429 "), told
    eventually(lambda: alice.get("/system/services").status_code == 200, PATIENCE, what="she has room again")


def test_an_answer_larger_than_all_the_room_is_given(person: Person) -> None:
    """It is in memory already; more than once at a time would be too much."""
    name, alice = "endless", person("alice")
    script = f"head -c {2 * MOST} /dev/zero | tr '\\0' x"
    definition = {"name": name, "image": "debian", "memory": "64Mi", "script": script}
    assert (made := alice.post("/system/services", json=definition)).status_code == 201, made.text
    eventually(lambda: len(run(alice, name).content) == 2 * MOST, PATIENCE, what="given")
