"""One visitor who calls a public service as often as they can, or without anything left to run it with, keeps nobody
else from it: of those who wait for its workers each has their turn."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from journeys.conftest import Person, signing_in
from journeys.waiting import eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

SECONDS = 1.0  # that one call takes
CALLS = 30
RUN_LIMIT = 20


@pytest.fixture(scope="module")
def manager(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits = {"jobs.run_limit": RUN_LIMIT, "jobs.cpu": "4", "quotas.cpu": "1", "quotas.memory": "1Gi"}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(manager: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(manager, sign_in_provider)


@pytest.fixture(scope="module")
def narrow(person: Person) -> str:
    """Anybody may call it, one at a time."""
    body = {"name": "narrow", "script": f"sleep {SECONDS:g}; echo served", "image": "debian", "visibility": "public"}
    scale = {"cpu": "0.1", "memory": "32Mi", "synchronous": {"min_scale": 0, "max_scale": 1}}
    assert person("alice").post("/system/services", json=body | scale).status_code == 201
    return "narrow"


def require_served(client: httpx.Client, service: str) -> None:
    answer = client.post(f"/run/{service}", timeout=RUN_LIMIT + 30)
    assert (answer.status_code, answer.text) == (200, "served\n"), answer.text


def test_who_calls_without_end_waits_for_themselves(person: Person, narrow: str) -> None:
    quinn, bob = person("quinn"), person("bob")
    with ThreadPoolExecutor(CALLS) as many:
        calls = [many.submit(lambda: quinn.post(f"/run/{narrow}", timeout=60)) for _ in range(CALLS)]
        eventually(lambda: any(call.done() for call in calls))  # the others wait behind it
        require_served(bob, narrow)
        require_served(bob, narrow)
        assert sum(call.done() for call in calls) < CALLS / 2, "they were to wait all the time"
        assert {call.result().status_code for call in calls} <= {200, 502, 503}  # for some their time is over


def test_nor_does_one_hold_a_place_without_anything_to_run_it_with(person: Person, narrow: str) -> None:
    quinn, bob = person("quinn"), person("bob")
    usual = {"image": "debian", "memory": "32Mi"}
    assert (
        quinn.post("/system/services", json={"name": "hog", "script": "sleep 100", "cpu": "1", **usual}).status_code
        == 201
    )
    job = quinn.post("/job/hog").headers["x-hansa-job"]
    eventually(lambda: quinn.get(f"/v1/jobs/{job}").json()["status"] == "Running")
    with ThreadPoolExecutor(2) as many:
        calls = [many.submit(lambda: quinn.post(f"/run/{narrow}", timeout=60)) for _ in range(2)]
        for _ in range(3):  # nothing tells that they have come: they have by the second of these, which take a second
            require_served(bob, narrow)
        assert not any(call.done() for call in calls)
        assert quinn.delete("/system/services/hog").status_code == 204
        assert [call.result().text for call in calls] == ["served\n"] * 2
