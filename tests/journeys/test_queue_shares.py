"""One tenant fills the queue: the others do not notice, nothing that was accepted or uploaded is lost."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from journeys.conftest import Person, signing_in
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

SHARE = 4
SIZE = 100_000
DEFINITION = {"image": "debian", "memory": "64Mi", "cpu": "0.1"}


@pytest.fixture(scope="module")
def small(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    limits: dict[str, Any] = {"jobs.queue_limit_per_owner": SHARE, "jobs.queue_size_per_owner": SIZE, "jobs.cpu": "1"}
    limits["federation.clusters"] = {"origin": {"endpoint": "http://127.0.0.1:9"}}
    with running_manager({**trusting(sign_in_provider), **limits}) as running:
        yield running


@pytest.fixture(scope="module")
def person(small: Manager, sign_in_provider: IdentityProvider) -> Person:
    return signing_in(small, sign_in_provider)


@pytest.fixture
def service(person: Person) -> Iterator[str]:
    """Everybody's; its jobs take as long as the test."""
    alice, name = person("alice"), "patient"
    definition = {**DEFINITION, "name": name, "script": "sleep 300", "visibility": "public"}
    assert (made := alice.post("/system/services", json=definition)).status_code == 201, made.text
    yield name
    assert alice.delete(f"/system/services/{name}").status_code == 204


def refused(answer: httpx.Response) -> bool:
    if answer.status_code == 201:
        return False
    assert answer.status_code == 503, answer.text
    assert "of yours" in answer.text or "of your open jobs" in answer.text
    assert "hansa job rm" in answer.text
    assert "retry-after" in answer.headers
    return True


def test_one_fills_their_share_and_the_others_go_on(small: Manager, person: Person, service: str) -> None:
    alice, bob = person("alice"), person("bob")
    with ThreadPoolExecutor(16) as many:  # all at once, so that no count is old
        answers = list(many.map(lambda _: refused(alice.post(f"/job/{service}", content=b"x")), range(32)))
    assert answers.count(False) == SHARE
    assert not refused(bob.post(f"/job/{service}", content=b"x"))

    small.restart()  # the count is not forgotten
    assert refused(alice.post(f"/job/{service}", content=b"x"))
    assert not refused(bob.post(f"/job/{service}", content=b"x"))

    [one, *_] = all_jobs(alice, service)
    assert alice.delete(f"/system/logs/{service}/{one}").status_code == 204
    assert not refused(alice.post(f"/job/{service}", content=b"x"))
    assert refused(alice.post(f"/job/{service}", content=b"x"))


def test_large_bodies_fill_it_too(person: Person, service: str) -> None:
    bob = person("bob")
    assert not refused(bob.post(f"/job/{service}", content=b"x" * (SIZE - 10)))
    assert refused(bob.post(f"/job/{service}", content=b"x" * 20))
    assert not refused(bob.post(f"/job/{service}", content=b"x" * 5))
    assert not refused(person("dora").post(f"/job/{service}", content=b"x" * (SIZE - 10)))


def test_what_another_cluster_hands_over_counts_as_well(small: Manager, person: Person, service: str) -> None:
    alice = person("alice")
    handing = small.bearer(alice.get(f"/system/services/{service}").json()["token"])

    def hand_over(number: int) -> httpx.Response:
        origin = {"X-Hansa-Origin": "origin", "X-Hansa-Permit": "p" * 64}
        return handing.post(
            f"/job/{service}", content=b"x", headers={**origin, "X-Delegated-Job-ID": f"from-far-{number}"}
        )

    assert [refused(hand_over(number)) for number in range(SHARE + 2)] == [False] * SHARE + [True] * 2
    assert not refused(hand_over(0))  # asked again whether we have it: that is no further job
    assert refused(alice.post(f"/job/{service}", content=b"x"))


def test_the_body_of_an_ended_job_is_not_kept(small: Manager, person: Person) -> None:
    alice, name = person("alice"), "short"
    assert alice.post("/system/services", json={**DEFINITION, "name": name, "script": "true"}).status_code == 201
    for count in range(1, SHARE + 3):  # each fills the share, and gives it back
        assert not refused(alice.post(f"/job/{name}", content=b"y" * (SIZE - 1)))
        ended_jobs(alice, name, count)
    with sqlite3.connect(f"file:{small.data}/hansa.db?mode=ro", uri=True) as database:
        kept = database.execute("select sum(length(event)) from jobs where service = ?", (name,)).fetchone()[0]
    assert kept == 0
    assert alice.delete(f"/system/services/{name}").status_code == 204


def test_uploads_beyond_it_wait_in_their_bucket_and_lose_nothing(person: Person) -> None:
    alice, name = person("alice"), "gate"
    definition = {
        **DEFINITION,
        "name": name,
        "script": "sleep 2",
        "input": [{"storage_provider": "minio.default", "path": f"{name}/in"}],
    }
    assert (made := alice.post("/system/services", json=definition)).status_code == 201, made.text
    waited = False
    for number in range(4 * SHARE):
        asked = {"object_key": f"in/{number}", "operation": "upload"}
        link = alice.post(f"/system/buckets/{name}/presign", json=asked).json()["url"]
        assert httpx.put(link, content=b"z", trust_env=False, timeout=30).status_code == 200

    def all_ended() -> bool:
        nonlocal waited
        status = alice.get(f"/system/services/{name}").json().get("uploads_status")
        waited = waited or bool(status and "of yours" in status["reason"])
        return len([job for job in all_jobs(alice, name).values() if job["status"] == "Succeeded"]) == 4 * SHARE

    eventually(all_ended, what="the end of all jobs")
    assert waited
    eventually(lambda: "uploads_status" not in alice.get(f"/system/services/{name}").json())
    assert alice.delete(f"/system/services/{name}").status_code == 204
