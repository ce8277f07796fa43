"""A tenant's process that answers or prints without end, in the smallest pieces: everybody else is served, its owner
can delete it, and the manager stops in order while it goes on."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from journeys.attacks.bystander import Bystander
from journeys.conftest import signing_in
from journeys.exposing import at, definition, ready
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, StartManager, trusting

PROGRAM = (Path(__file__).parent / "flooding_program.py").read_text()
FLOODS = f"cat >/tmp/program.py <<'END'\n{PROGRAM}\nEND\nexec /usr/bin/python3 -u /tmp/program.py 8080\n"
PRINTS = "yes '' & exec /usr/bin/python3 -m http.server 8080 >/dev/null 2>&1\n"
VISITORS = 30
PRINTING = 10
QUESTIONS = 60  # that others ask meanwhile; each took seconds
PATIENCE = 60.0


@pytest.fixture
def own(start_manager: StartManager, sign_in_provider: IdentityProvider) -> Manager:
    """Ends with the test, in order."""
    return start_manager(trusting(sign_in_provider))


@pytest.fixture
def alice(own: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return signing_in(own, sign_in_provider)("alice")


@pytest.fixture
def bob(own: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return signing_in(own, sign_in_provider)("bob")


def made(client: httpx.Client, name: str, script: str, **fields: Any) -> str:
    body = {"name": name, "image": "debian", "script": script, **definition(**fields)}
    assert (answer := client.post("/system/services", json=body)).status_code == 201, answer.text
    ready(client, name)
    return name


@contextlib.contextmanager
def visiting(own: Manager, path: str, count: int = VISITORS) -> Iterator[None]:
    """So many who take whatever they are told, come again when it was all, and leave at the end."""
    ends = threading.Event()

    def visit() -> None:
        while not ends.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", own.port), timeout=1) as visitor:
                visitor.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
                while not ends.is_set():
                    with contextlib.suppress(TimeoutError):
                        if not visitor.recv(2**20):
                            break
            ends.wait(0.05)

    threads = [threading.Thread(target=visit) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ends.set()
        for thread in threads:
            thread.join(PATIENCE)


@pytest.mark.parametrize("flood", ["tiny", "early", "lines"])
def test_answers_without_end_hold_up_nobody(own: Manager, alice: httpx.Client, bob: httpx.Client, flood: str) -> None:
    name = made(bob, "floods", FLOODS)
    with visiting(own, at(name, f"/{flood}")), Bystander(alice) as bystander:
        eventually(lambda: bystander.answered >= QUESTIONS, PATIENCE, what="answered")
    assert alice.get("/health").status_code == 200
    assert bob.delete(f"/system/services/{name}").status_code == 204


@pytest.mark.parametrize("flood", ["tiny", "early"])
def test_a_manager_stops_in_order_while_they_go_on(own: Manager, bob: httpx.Client, flood: str) -> None:
    name = made(bob, "floods", FLOODS)
    with visiting(own, at(name, f"/{flood}")):
        eventually(lambda: bob.get(at(name, "/spare")).text not in ("", "0"), PATIENCE, what="under way")
        assert own.stop() == 0


def test_who_is_kept_waiting_with_promises_is_told(own: Manager, bob: httpx.Client) -> None:
    name = made(bob, "floods", FLOODS)
    for flood in ("early", "lines"):
        told = bob.get(at(name, f"/{flood}"))
        assert (told.status_code, "did not answer" in told.text) == (502, True)


def test_an_answer_that_breaks_off_is_not_taken_for_whole(own: Manager, bob: httpx.Client) -> None:
    name = made(bob, "floods", FLOODS)
    with pytest.raises(httpx.RemoteProtocolError):
        bob.get(at(name, "/short"))
    eventually(lambda: "answer broken off" in own.log, PATIENCE, what="told in the log")
    assert "Traceback" not in own.log


def test_a_call_ends_when_its_visitor_leaves_before_the_answer(own: Manager, bob: httpx.Client) -> None:
    name = made(bob, "floods", FLOODS)

    def under_way(count: int) -> bool:
        return bob.get(at(name, "/spare")).text == str(count)

    with visiting(own, at(name, "/silent"), 3):
        eventually(lambda: under_way(3), PATIENCE, what="they wait")
    eventually(lambda: under_way(0), PATIENCE, what="nobody waits")


def test_nor_does_what_its_instances_print(own: Manager, alice: httpx.Client, bob: httpx.Client) -> None:
    name = made(bob, "prints", PRINTS, cpu="0.1", expose={"min_scale": PRINTING, "max_scale": PRINTING})
    with Bystander(alice) as bystander:
        eventually(lambda: bystander.answered >= QUESTIONS, PATIENCE, what="answered")
    entries = bob.get(f"/system/services/{name}/deployment/logs", params={"tailLines": "5"}).json()["entries"]
    assert len(entries) == 5
    assert bob.delete(f"/system/services/{name}").status_code == 204
