"""One tenant writes as much as they can: their own runs and volumes end or wait, with words; the machine's disk and the
other tenants' runs do not notice. A manager that is root has hard limits, one that is not has soft ones."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from drivers.local import nesting
from drivers.local.sandbox.conftest import ORDINARY_USER
from hansa.drivers.local.disks import mounted_below, trouble
from journeys.conftest import signing_in
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import Manager, running_manager, trusting

MIB = 2**20
FILL = "n=0; while [ $n -lt 3000 ]; do head -c 1M /dev/zero > {where}/f$n || exit 7; n=$((n+1)); done"
BOUND = 1024 * MIB  # where limits are soft: two disks, and what is written before somebody looks
LIMITS: dict[str, Any] = {
    "jobs.disk_per_run": "32Mi",
    "quotas.ephemeral_storage": "100Mi",
    "quotas.min_disk_per_volume": "16Mi",
}
Make = Callable[..., str]


@pytest.fixture(scope="module", params=["root", "user"])
def manager(request: pytest.FixtureRequest, sign_in_provider: IdentityProvider) -> Iterator[Manager]:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    user = ORDINARY_USER if request.param == "user" else None
    with running_manager({**trusting(sign_in_provider), **LIMITS}, user=user) as running:
        yield running
    assert mounted_below(running.folder) == []


@pytest.fixture
def people(manager: Manager, sign_in_provider: IdentityProvider) -> dict[str, httpx.Client]:
    signed_in = signing_in(manager, sign_in_provider)
    return {name: signed_in(name) for name in ("alice", "bob")}


@pytest.fixture
def make(people: dict[str, httpx.Client]) -> Iterator[Make]:
    made: list[tuple[httpx.Client, str]] = []

    def service(owner: str, script: str, **fields: Any) -> str:
        name = f"disk-{os.urandom(4).hex()}"
        usual = {"name": name, "script": script, "image": "debian", "memory": "64Mi", "cpu": "0.1"}
        answer = people[owner].post("/system/services", json={**usual, **fields})
        assert answer.status_code == 201, answer.text
        made.append((people[owner], name))
        return name

    yield service
    for client, name in made:
        client.delete(f"/system/services/{name}")


def taken(folder: Path) -> int:
    """A file may go away while one looks."""
    found = subprocess.run(["du", "-s", "--block-size=1", folder], check=False, capture_output=True)
    return int(found.stdout.split()[0])


def is_hard(manager: Manager) -> bool:
    return bool(manager.admin.get("/v1/node").json()["isolation"]["disk"] == "image")


def reason(client: httpx.Client, job: str) -> str:
    return str(client.get(f"/v1/jobs/{job}").json()["reason"])


def start(client: httpx.Client, service: str) -> str:
    return client.post(f"/job/{service}").headers["x-hansa-job"]


def test_the_level_is_told(manager: Manager) -> None:
    assert is_hard(manager) == (manager.user is None and not trouble())
    assert is_hard(manager) or "disk limits are soft" in manager.log


def test_a_small_job_cannot_write_gigabytes(manager: Manager, people: dict[str, httpx.Client], make: Make) -> None:
    alice, bob = people["alice"], people["bob"]
    before = taken(manager.folder)
    fills = make("alice", FILL.format(where="$TMP_OUTPUT_DIR"))
    works = make("bob", "head -c 8M /dev/zero > f; sleep 1; cat f | wc -c")
    for _ in range(3):
        start(alice, fills)
        start(bob, works)
    most = 0

    def over() -> bool:
        nonlocal most
        most = max(most, taken(manager.folder) - before)
        states = [one["status"] for one in (*all_jobs(alice, fills).values(), *all_jobs(bob, works).values())]
        return len(states) == 6 and set(states) <= {"Succeeded", "Failed"}

    eventually(over, 90)
    assert {one["status"] for one in all_jobs(bob, works).values()} == {"Succeeded"}
    for job, shown in all_jobs(alice, fills).items():
        assert shown["status"] == "Failed"
        assert "disk" in reason(alice, job)
        assert "disk" in alice.get(f"/system/logs/{fills}/{job}").text
    assert most < (320 * MIB if is_hard(manager) else BOUND)
    eventually(lambda: taken(manager.folder) - before < 160 * MIB, what="cleared")


def test_an_owner_has_a_share_and_the_others_start(
    manager: Manager, people: dict[str, httpx.Client], make: Make
) -> None:
    alice, bob = people["alice"], people["bob"]
    sleeps, works = make("alice", "sleep 300"), make("bob", "true")
    jobs = [start(alice, sleeps) for _ in range(5)]
    eventually(lambda: [one["status"] for one in all_jobs(alice, sleeps).values()].count("Running") == 3)
    start(bob, works)
    assert {one["status"] for one in ended_jobs(bob, works, 1).values()} == {"Succeeded"}
    waiting = [job for job in jobs if all_jobs(alice, sleeps)[job]["status"] == "Pending"]
    assert len(waiting) == 2
    assert "it needs 32Mi of disk, and of the 100Mi that all runs of its owner may hold 4Mi are left" in reason(
        alice, waiting[0]
    )
    shown = alice.get("/system/quotas/user").json()["resources"]["ephemeral-storage"]
    assert shown == {"max": 100 * MIB, "used": 96 * MIB}
    running = next(job for job in jobs if job not in waiting)
    assert alice.delete(f"/system/logs/{sleeps}/{running}").status_code == 204
    eventually(lambda: all_jobs(alice, sleeps)[waiting[0]]["status"] == "Running")


def test_a_service_may_ask_for_more_within_its_owners_share(people: dict[str, httpx.Client], make: Make) -> None:
    alice = people["alice"]
    larger = make("alice", "head -c 48M /dev/zero > f", ephemeral_storage_request="64Mi")
    start(alice, larger)
    assert {one["status"] for one in ended_jobs(alice, larger, 1).values()} == {"Succeeded"}
    definition = {"name": "much", "script": "true", "image": "debian", "ephemeral_storage_request": "200Mi"}
    answer = alice.post("/system/services", json=definition)
    assert answer.status_code == 400
    assert "all runs of its owner may hold" in answer.text


def test_a_synchronous_call(manager: Manager, people: dict[str, httpx.Client], make: Make) -> None:
    alice = people["alice"]
    fills = make("alice", FILL.format(where="."))
    answer = alice.post(f"/run/{fills}")
    assert answer.status_code == 502
    assert "disk" in answer.text or "No space left" in answer.text


def test_a_volume_holds_its_size(manager: Manager, people: dict[str, httpx.Client], make: Make) -> None:
    alice = people["alice"]
    before = taken(manager.folder)
    assert alice.post("/system/volumes", json={"name": "models", "size": "48Mi"}).status_code == 201
    volume = {"name": "models", "mount_path": "/data"}
    fills = make("alice", FILL.format(where="/data"), volume=volume)
    start(alice, fills)
    assert {one["status"] for one in ended_jobs(alice, fills, 1).values()} == {"Failed"}
    assert taken(manager.folder) - before < (320 * MIB if is_hard(manager) else BOUND)
    clears = make("alice", "rm /data/f* && echo fine > /data/word && cat /data/word", volume=volume)
    job = start(alice, clears)
    assert ended_jobs(alice, clears, 1)[job]["status"] == "Succeeded"
    manager.restart()
    reads = make("alice", "cat /data/word", volume=volume)
    job = start(alice, reads)
    assert ended_jobs(alice, reads, 1)[job]["status"] == "Succeeded"
    assert "fine" in alice.get(f"/system/logs/{reads}/{job}").text


@pytest.mark.parametrize("last", ["true", "chmod 0 /data"])
def test_a_volume_goes_whatever_is_in_it(
    manager: Manager, people: dict[str, httpx.Client], make: Make, last: str
) -> None:
    alice = people["alice"]
    volume = {"name": "nested", "size": "48Mi", "mount_path": "/data", "lifecycle_policy": "delete"}
    nests = make("alice", f"python3 - /data <<'P'\n{nesting.SCRIPT}P\n{last}", volume=volume, memory="256Mi")
    job = start(alice, nests)
    ended_jobs(alice, nests, 1)
    nested = list((manager.data / "volumes").glob("*/nested"))
    assert nested, alice.get(f"/system/logs/{nests}/{job}").text
    assert alice.delete(f"/system/services/{nests}").status_code == 204
    assert not list((manager.data / "volumes").glob("*/nested"))
    assert not list((manager.data / "volumes").glob(".removed/*"))
    manager.restart()
    assert "nested" not in alice.get("/system/volumes").text
