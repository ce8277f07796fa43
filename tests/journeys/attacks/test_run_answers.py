"""Answers of synchronous calls do not fill a manager's memory while their scripts run."""

import contextlib
import select
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from journeys.attacks.bystander import memory_within
from journeys.conftest import Person, signing_in
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

ANSWER = 24 * 2**20
MOST = 64 * 2**20
CALLS = 10
PATIENCE = 100.0


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"http.body_limit": 2**20, "http.bodies_limit": MOST}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


def test_many_large_answers_of_one_caller_are_refused_before_they_are_held(small: Manager, person: Person) -> None:
    """The scripts print at once, and go on for long."""
    alice, bob = person("alice"), person("bob")
    script = f"head -c {ANSWER} /dev/zero; sleep {PATIENCE:g}"
    definition = {"name": "flood", "image": "debian", "cpu": "0.01", "memory": "48Mi", "script": script}
    usual = {"name": "usual", "image": "debian", "cpu": "0.01", "memory": "48Mi", "script": "echo as usual"}
    for owner, made_of in ((bob, definition), (alice, usual)):
        assert (made := owner.post("/system/services", json=made_of)).status_code == 201, made.text
    try:
        with memory_within(small, 4 * MOST), contextlib.ExitStack() as opened:
            calls = [opened.enter_context(calling(small, bob, "flood")) for _ in range(CALLS)]
            refused = answers_of(calls, CALLS - 2)
            assert b"HTTP/1.1 429 " in {said[:13] for said in refused}, refused
            assert alice.post("/run/usual").text == "as usual\n"
    finally:
        assert bob.delete("/system/services/flood").status_code == 204
        assert alice.delete("/system/services/usual").status_code == 204


def calling(manager: Manager, caller: httpx.Client, service: str) -> socket.socket:
    """A call that ends with its connection."""
    made = socket.create_connection(("127.0.0.1", manager.port), PATIENCE)
    shown = caller.headers["authorization"]
    made.sendall(
        f"POST /run/{service} HTTP/1.1\r\nHost: x\r\nAuthorization: {shown}\r\nContent-Length: 0\r\n\r\n".encode()
    )
    return made


def answers_of(calls: list[socket.socket], count: int) -> list[bytes]:
    """How the first so many are answered."""
    found: list[bytes] = []
    waiting, end = set(calls), time.monotonic() + PATIENCE
    while len(found) < count:
        ready, _, _ = select.select(waiting, [], [], max(0.0, end - time.monotonic()))
        assert ready, f"only {len(found)} calls were answered: {found}"
        found += [one.recv(4096) for one in ready]
        waiting -= set(ready)
    return found
