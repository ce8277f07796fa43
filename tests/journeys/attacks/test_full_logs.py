"""One tenant prints as much as they can, in job after job: older logs of theirs go and say so; the others' stay."""

import subprocess
from collections.abc import Iterator

import httpx
import pytest

from journeys.conftest import signing_in
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

KIB = 1024
LIMITS = {"jobs.log_limit": 256 * KIB, "jobs.logs_per_owner": 1024 * KIB}
PRINT = "head -c 250000 /dev/zero | tr '\\0' x | fold -w 999; echo; echo END"


@pytest.fixture(scope="module")
def manager(sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    with running_manager({**trusting(sign_in_provider), **LIMITS}) as running:
        yield running


def service(client: httpx.Client, name: str, script: str) -> str:
    body = {"name": name, "script": script, "image": "debian", "memory": "64Mi", "cpu": "0.1"}
    answer = client.post("/system/services", json=body)
    assert answer.status_code == 201, answer.text
    return name


def started(client: httpx.Client, name: str) -> str:
    return client.post(f"/job/{name}").headers["x-hansa-job"]


def log(client: httpx.Client, name: str, job: str) -> str:
    return client.get(f"/system/logs/{name}/{job}").text


def taken(manager: Manager) -> int:
    found = subprocess.run(["du", "-s", "--block-size=1", manager.data / "logs"], check=False, capture_output=True)
    return int(found.stdout.split()[0])


def test_logs_of_one_owner_stay_within_their_share(manager: Manager, sign_in_provider: IdentityProvider) -> None:
    signed_in = signing_in(manager, sign_in_provider)
    alice, bob = signed_in("alice"), signed_in("bob")
    prints, his = service(alice, "prints", PRINT), service(bob, "his", PRINT)
    kept = started(bob, his)
    ended_jobs(bob, his, 1)
    before = taken(manager)
    jobs = []
    for number in range(12):
        jobs.append(started(alice, prints))
        ended_jobs(alice, prints, number + 1)
    eventually(lambda: taken(manager) - before < 1400 * KIB, what="older logs gone")
    assert "this log was dropped for newer ones" in log(alice, prints, jobs[0])
    for client, name, job in ((alice, prints, jobs[-1]), (bob, his, kept)):
        assert "END" in log(client, name, job)
    manager.restart()
    alice = signing_in(manager, sign_in_provider)("alice")
    again = started(alice, prints)
    eventually(lambda: all_jobs(alice, prints)[again]["status"] == "Succeeded")
    eventually(lambda: taken(manager) - before < 1400 * KIB, what="still so after a restart")
    assert "END" in log(alice, prints, again)
