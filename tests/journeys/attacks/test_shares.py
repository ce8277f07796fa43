"""One tenant asks for more processor and memory than their share by every way there is: jobs, `/run`, warm workers and
exposed services, one after the other and all at once. What is beyond waits or is refused, and says why."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from journeys import exposing
from journeys.conftest import signing_in
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

MIB = 2**20
SMALL: dict[str, Any] = {"quotas.cpu": "400m", "quotas.memory": "256Mi", "jobs.cpu": "4", "jobs.run_limit": 3}
Make = Callable[..., str]


@pytest.fixture(scope="module")
def manager(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    with running_manager({**trusting(sign_in_provider), **SMALL}) as running:
        yield running


@pytest.fixture
def quinn(manager: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return signing_in(manager, sign_in_provider)("quinn")


@pytest.fixture
def bob(manager: Manager, sign_in_provider: IdentityProvider) -> httpx.Client:
    return signing_in(manager, sign_in_provider)("bob")


def asked(client: httpx.Client, script: str, **fields: Any) -> tuple[str, httpx.Response]:
    name = f"share-{os.urandom(4).hex()}"
    usual = {"name": name, "script": script, "image": "debian", "memory": "32Mi", "cpu": "0.1"}
    return name, client.post("/system/services", json={**usual, **fields})


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[tuple[httpx.Client, str]] = []

    def service(owner: httpx.Client, script: str, **fields: Any) -> str:
        name, answer = asked(owner, script, **fields)
        assert answer.status_code == 201, answer.text
        made.append((owner, name))
        return name

    yield service
    for client, name in made:
        client.delete(f"/system/services/{name}")


def start(client: httpx.Client, service: str) -> str:
    return client.post(f"/job/{service}").headers["x-hansa-job"]


def reason(client: httpx.Client, job: str) -> str:
    return str(client.get(f"/v1/jobs/{job}").json()["reason"])


def used(client: httpx.Client) -> tuple[int, int]:
    shown = client.get("/system/quotas/user").json()["resources"]
    return shown["cpu"]["used"], shown["memory"]["used"]


def running(client: httpx.Client, service: str) -> list[str]:
    return [name for name, one in all_jobs(client, service).items() if one["status"] == "Running"]


def test_a_job_larger_than_the_quota_waits_says_so_and_holds_up_nothing(
    manager: Manager, quinn: httpx.Client, make: Make
) -> None:
    large, fat = make(quinn, "true", cpu="1.5"), make(quinn, "true", memory="1Gi")
    small = make(quinn, "true")
    too_large, too_fat = start(quinn, large), start(quinn, fat)
    start(quinn, small)
    ended_jobs(quinn, small, 1)  # it came later
    assert all_jobs(quinn, large)[too_large]["status"] == "Pending"
    assert "needs 1500m cpu, your quota is 400m" in reason(quinn, too_large)
    assert "needs 1Gi of memory, your quota is 256Mi" in reason(quinn, too_fat)
    assert used(quinn) == (0, 0)  # what waits uses nothing
    quota = f"/system/quotas/user/{quinn.get('/system/quotas/user').json()['user_id']}"
    try:
        manager.admin.put(quota, json={"cpu": "2"})
        assert ended_jobs(quinn, large, 1)[too_large]["status"] == "Succeeded"
    finally:
        manager.admin.put(quota, json={"cpu": "400m"})


def test_jobs_that_come_together_stay_within_the_share(
    manager: Manager, quinn: httpx.Client, bob: httpx.Client, make: Make
) -> None:
    service, others = make(quinn, "sleep 300", cpu="0.15"), make(bob, "true")
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(lambda _: start(quinn, service), range(8)))
    eventually(lambda: len(running(quinn, service)) == 2)
    assert used(quinn) == (300, 64 * MIB)
    start(bob, others)
    ended_jobs(bob, others, 1)
    assert len(running(quinn, service)) == 2
    waiting = next(one for one in jobs if one not in running(quinn, service))
    assert "it needs 150m cpu, and of your quota of 400m 100m are left" in reason(quinn, waiting)


def test_a_call_larger_than_the_quota_is_refused(quinn: httpx.Client, make: Make) -> None:
    answer = quinn.post(f"/run/{make(quinn, 'echo ran', cpu='1.5')}")
    assert answer.status_code == 400
    assert "needs 1500m cpu, your quota is 400m" in answer.text


def test_calls_and_jobs_share_what_there_is(quinn: httpx.Client, bob: httpx.Client, make: Make) -> None:
    job, call = make(quinn, "sleep 300", cpu="0.3"), make(quinn, "echo ran", cpu="0.2", visibility="public")
    start(quinn, job)
    eventually(lambda: running(quinn, job))
    refused = quinn.post(f"/run/{call}")
    assert refused.status_code == 503
    assert "of your quota of 400m 100m are left" in refused.text
    assert bob.post(f"/run/{call}").text.strip() == "ran"  # who calls has a share of their own
    assert used(quinn) == (300, 32 * MIB)


def test_warm_workers_count_and_stay_within_the_share(quinn: httpx.Client, make: Make) -> None:
    make(quinn, "echo ran", cpu="0.15", synchronous={"min_scale": 5, "max_scale": 5})
    eventually(lambda: used(quinn) == (300, 64 * MIB), what="two warm workers")
    waits = start(quinn, make(quinn, "true", cpu="0.2"))
    assert "100m are left" in eventually(lambda: reason(quinn, waits))


def test_an_exposed_service_beyond_the_quota_is_refused(quinn: httpx.Client, make: Make) -> None:
    _, answer = asked(quinn, exposing.script(8080), **exposing.definition(cpu="0.1", memory="1Gi"))
    assert answer.status_code == 400
    assert "1Gi of memory, your quota is 256Mi" in answer.text
    _, answer = asked(quinn, exposing.script(8080), **exposing.definition(cpu="0.1", expose={"min_scale": 5}))
    assert answer.status_code == 400
    assert "500m cpu" in answer.text


def test_exposed_services_that_come_together_stay_within_the_share(quinn: httpx.Client, make: Make) -> None:
    fields = exposing.definition(cpu="0.3", memory="32Mi")
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: asked(quinn, exposing.script(8080), **fields), range(4)))
    try:
        assert sorted(answer.status_code for _, answer in answers) == [201, 400, 400, 400]
        (name,) = [name for name, answer in answers if answer.status_code == 201]
        exposing.ready(quinn, name)
        assert used(quinn) == (300, 32 * MIB)
        grown = quinn.put("/system/services", json={**quinn.get(f"/system/services/{name}").json(), "cpu": "0.5"})
        assert grown.status_code == 400, grown.text
        assert quinn.post(f"/run/{make(quinn, 'echo ran', cpu='0.2')}").status_code == 503
    finally:
        for name, _ in answers:
            quinn.delete(f"/system/services/{name}")
    eventually(lambda: used(quinn) == (0, 0))
