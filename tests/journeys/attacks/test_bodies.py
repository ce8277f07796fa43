"""One person's bodies do not stop a manager for the others, nor fill its memory, nor are read without a right."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import httpx
import pytest

from hansa.entrypoints.http.in_flight import FREE
from journeys.attacks.bystander import Bystander, memory_within
from journeys.conftest import MakeService, Person, signing_in
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

LARGEST = 16 * 2**20 - 1024
DEFINITION = b'{"name":"many","image":"debian","script":"x",'
LARGE = 2**20  # of the manager that takes little at once
PATIENCE = 30.0


def filled(begin: bytes, unit: bytes, end: bytes, size: int = LARGEST) -> bytes:
    return begin + b",".join([unit] * ((size - len(begin) - len(end)) // (len(unit) + 1))) + end


@pytest.mark.parametrize("verb", ["POST", "PUT"])
@pytest.mark.parametrize(
    "body",
    [
        filled(DEFINITION + b'"input":[', b"{}", b"]}", 4 * 2**20),
        filled(DEFINITION + b'"allowed_users":[', b'""', b"]}", 4 * 2**20),
        DEFINITION + b'"labels":{' + b",".join(b'"v%d":""' % one for one in range(300_000)) + b"}}",
        filled(DEFINITION + b'"storage_providers":{"s3":[', b"[]", b"]}}", 4 * 2**20),
    ],
    ids=["inputs", "users", "labels", "unknown"],
)
def test_a_definition_of_a_million_parts_is_refused(
    alice: httpx.Client, bob: httpx.Client, manager: Manager, body: bytes, verb: str
) -> None:
    with Bystander(bob), memory_within(manager, 200 * 2**20):
        answer = alice.request(verb, "/system/services", content=body)
        assert (answer.status_code, "more than 20000 parts" in answer.text) == (413, True), answer.text


def test_a_long_definition_is_refused_before_it_is_sent(alice: httpx.Client, manager: Manager) -> None:
    with asking(manager, alice, "/system/services", LARGEST) as client:
        assert client.recv(65536).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("route", ["job", "run"])
@pytest.mark.parametrize(
    "body",
    [
        filled(b'{"a":[', b"[]", b"]}"),
        filled(b"[", b"{}", b"]"),
        filled(b'{"event":{"a":[', b"[]", b"]}}"),
        filled(b'{"storage_provider":"minio.default","event":"[', b"[]", b']"}'),
        filled(b'{"Records":[', b"[]", b"]}"),
    ],
    ids=["object", "list", "wrapped", "wrapped text", "records"],
)
def test_a_job_of_a_million_parts_is_a_job_like_any_other(
    alice: httpx.Client, bob: httpx.Client, manager: Manager, make_service: MakeService, route: str, body: bytes
) -> None:
    name = make_service(alice, "wc -c < $INPUT_FILE_PATH")
    with Bystander(bob), memory_within(manager, 350 * 2**20):
        answer = alice.post(f"/{route}/{name}", content=body)
        assert answer.status_code == (201 if route == "job" else 200), answer.text
        if route == "job":
            [job] = ended_jobs(alice, name, 1)
            assert all_jobs(alice, name)[job]["status"] == "Succeeded"


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"http.body_limit": LARGE, "http.bodies_limit": 8 * LARGE}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def visitors(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


@pytest.fixture
def open_service(visitors: Person) -> Iterator[str]:
    alice, name = visitors("alice"), "for-all"
    definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "true", "visibility": "public"}
    assert (made := alice.post("/system/services", json=definition)).status_code == 201, made.text
    yield name
    assert alice.delete(f"/system/services/{name}").status_code == 204


def asking(manager: Manager, client: httpx.Client, path: str, told: int, sent: int = 0) -> socket.socket:
    """A connection with a body of which only so much has been sent."""
    shown = client.headers.get("authorization", "")
    head = [f"POST {path} HTTP/1.1", "Host: x", f"Authorization: {shown}", f"Content-Length: {told}", "", ""]
    made = socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE)
    made.sendall("\r\n".join(head).encode())
    made.sendall(b"x" * sent)
    return made


def use_up(manager: Manager, client: httpx.Client, path: str, held: ExitStack) -> None:
    """Of those that are on their way at the same time any may be refused; so it goes on until nothing more gets in."""

    def is_used_up() -> bool:
        held.enter_context(asking(manager, client, path, LARGE, LARGE - 1))
        return client.post(path, content=b"y" * LARGE).status_code == 429

    eventually(is_used_up, what="share used up")


def test_one_who_sends_all_they_can_leaves_room_for_others(small: Manager, visitors: Person, open_service: str) -> None:
    """Bodies that are nearly complete, and then nothing more."""
    mallory, bob, path = visitors("quinn"), visitors("bob"), f"/job/{open_service}"
    with ExitStack() as held:
        use_up(small, mallory, path, held)
        refused = mallory.post(path, content=b"y" * LARGE)
        assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
        assert "left for others" in refused.text
        assert mallory.post(path, content=b"short").status_code == 201
        for _ in range(3):
            assert (taken := bob.post(path, content=b"z" * LARGE)).status_code == 201, taken.text
    eventually(lambda: mallory.post(path, content=b"y" * LARGE).status_code == 201, what="she has room again")


def test_many_short_bodies_of_one_sender_are_too_much(small: Manager, visitors: Person, open_service: str) -> None:
    """Each of a length that is never refused alone."""
    mallory, bob, path = visitors("quinn"), visitors("bob"), f"/job/{open_service}"
    with ExitStack() as held:

        def is_used_up() -> bool:
            held.enter_context(asking(small, mallory, path, FREE, FREE - 1))
            return mallory.post(path, content=b"y" * FREE).status_code == 429

        eventually(is_used_up, 2 * PATIENCE, what="share used up")
        assert mallory.post(path, content=b"y" * LARGE).status_code == 429
        assert (taken := bob.post(path, content=b"z" * FREE)).status_code == 201, taken.text
    eventually(lambda: mallory.post(path, content=b"y" * FREE).status_code == 201, what="she has room again")


def test_what_is_under_way_is_counted_as_it_comes(small: Manager, visitors: Person, open_service: str) -> None:
    """Nobody tells the length of a chunked body."""
    mallory, path = visitors("quinn"), f"/job/{open_service}"

    def send(_: int) -> int:
        pieces = (b"x" * 65536 for _ in range(LARGE // 65536))
        with httpx.Client(base_url=small.url, headers=mallory.headers, timeout=PATIENCE, trust_env=False) as client:
            answer = client.post(path, content=pieces)
        assert answer.status_code == 201 or "retry-after" in answer.headers
        return answer.status_code

    with ExitStack() as held, ThreadPoolExecutor(8) as many:
        use_up(small, mallory, path, held)
        assert set(many.map(send, range(8))) <= {429, 503}
    assert eventually(lambda: send(0) == 201, what="she has room again")


@pytest.mark.parametrize(
    ("path", "status"),
    [("/job/nobody-has-it", 404), ("/run/nobody-has-it", 404), ("/system/federation/nobody-has-it", 404)],
)
def test_a_body_without_a_right_is_not_even_read(small: Manager, visitors: Person, path: str, status: int) -> None:
    with asking(small, visitors("bob"), path, LARGE) as client:
        assert client.recv(65536).startswith(f"HTTP/1.1 {status} ".encode())


def test_nor_is_one_of_somebody_with_a_made_up_key(small: Manager, open_service: str) -> None:
    head = [
        f"POST /v1/services/{open_service}/adopted/job-1?member=a HTTP/1.1",
        "Host: x",
        f"Authorization: ReplicaKey {'0' * 64}",
        f"X-Hansa-Permit: {'0' * 64}",
        f"Content-Length: {LARGE}",
    ]
    with socket.create_connection(("127.0.0.1", small.port), timeout=PATIENCE) as client:
        client.sendall("\r\n".join([*head, "", ""]).encode())
        assert client.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_a_body_in_pieces_of_a_byte_is_refused(bob: httpx.Client, alice: httpx.Client, manager: Manager) -> None:
    """Each piece has to be looked at, and all others wait meanwhile."""
    head = "POST /job/nobody-has-it HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Bystander(bob), socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE) as client:
        client.sendall(head.encode() + b"1\r\nx\r\n" * 10_000)
        assert b"HTTP/1.1 400 " in told(client)


def test_a_body_in_small_pieces_that_come_one_by_one_is_not(alice: httpx.Client, make_service: MakeService) -> None:
    name = make_service(alice, "wc -c < $INPUT_FILE_PATH")
    answer = alice.post(f"/run/{name}", content=(b"a line\n" for _ in range(300)))
    assert (answer.status_code, answer.text.strip()) == (200, "2100"), answer.text


def test_requests_nobody_waits_for_are_refused(bob: httpx.Client, manager: Manager) -> None:
    with Bystander(bob), socket.create_connection(("127.0.0.1", manager.port), timeout=PATIENCE) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
        answers = told(client)
    assert answers.count(b"HTTP/1.1 200 ") < 1000
    assert b"HTTP/1.1 400 " in answers


def told(client: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    heard = b""
    with suppress(ConnectionResetError):
        while piece := client.recv(65536):
            heard += piece
    return heard
