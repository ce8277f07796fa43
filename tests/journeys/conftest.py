"""The people of the stories, as HTTP clients of the session's manager, and services that go with their test."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from journeys.bad_input import Victim
from journeys.exposing import Expose, definition, ready, script
from journeys.waiting import ended_jobs
from real.identity_provider import IdentityProvider
from real.manager import Manager

Person = Callable[[str], httpx.Client]
MakeService = Callable[..., str]
FreshName = Callable[[str], str]
_numbers = itertools.count(1)


def signing_in(manager: Manager, provider: IdentityProvider) -> Person:
    """A user of the identity provider, signed in at this manager; everybody signs in once."""
    clients: dict[str, httpx.Client] = {}

    def signed_in(login: str) -> httpx.Client:
        if login not in clients:
            clients[login] = manager.bearer(provider.token(login))
            # the first visit makes the user known, so that others may share things with them
            assert clients[login].get("/system/config").status_code == 200
        return clients[login]

    return signed_in


@pytest.fixture(scope="session")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(manager, sign_in_provider)


@pytest.fixture
def alice(person: Person) -> httpx.Client:
    return person("alice")


@pytest.fixture
def bob(person: Person) -> httpx.Client:
    return person("bob")


@pytest.fixture
def dora(person: Person) -> httpx.Client:
    """Whom restricted things are shared with."""
    return person("dora")


@pytest.fixture
def admin(manager: Manager) -> httpx.Client:
    return manager.admin


@pytest.fixture
def nobody(manager: Manager) -> httpx.Client:
    return manager.anonymous


@pytest.fixture
def fresh_name() -> FreshName:
    return lambda stem: f"{stem}-{next(_numbers)}"


@pytest.fixture
def make_service(admin: httpx.Client, fresh_name: FreshName) -> Iterator[MakeService]:
    """Creates a service for a client and gives its name; it is deleted with the test."""
    made: list[str] = []

    def make(client: httpx.Client, script: str = "cat $INPUT_FILE_PATH", **fields: Any) -> str:
        definition = {"name": fresh_name("story"), "image": "debian", "memory": "64Mi", "script": script, **fields}
        answer = client.post("/system/services", json=definition)
        assert (answer.status_code, answer.content) == (201, b""), answer.text
        made.append(definition["name"])
        return str(definition["name"])

    yield make
    for name in made:
        assert admin.delete(f"/system/services/{name}").status_code in (204, 404)


@pytest.fixture
def expose(make_service: MakeService, alice: httpx.Client) -> Expose:
    """An exposed service of alice, once it is ready; everybody may visit it unless the fields say otherwise."""

    def make(port: int = 8080, **fields: Any) -> str:
        name = make_service(alice, script(port), **definition(port, **fields))
        ready(alice, name)
        return name

    return make


@pytest.fixture(scope="module")
def victim(manager: Manager, person: Person) -> Iterator[Victim]:
    """A service, a bucket, a volume and an ended job of alice's, for those who try to break them."""
    alice, number = person("alice"), next(_numbers)
    name = f"victim-{number}"
    definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "echo fine"}
    assert alice.post("/system/services", json=definition).status_code == 201
    assert alice.post("/system/buckets", json={"bucket_name": f"{name}-own"}).status_code == 201
    assert alice.post("/system/volumes", json={"name": name, "size": "1Gi"}).status_code == 201
    job = alice.post(f"/job/{name}").headers["x-hansa-job"]
    ended_jobs(alice, name, 1)
    yield Victim(service=name, bucket=f"{name}-own", volume=name, job=job)
    for path in (f"services/{name}", f"buckets/{name}-own", f"volumes/{name}"):
        assert alice.delete(f"/system/{path}").status_code == 204
