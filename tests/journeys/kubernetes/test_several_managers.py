"""Two managers of one cluster on Kubernetes: one works, both answer, and when one dies the other goes on."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from journeys.federation.stories import eventually
from real.kubernetes import kubernetes_manager as managers
from real.kubernetes.access import Access
from real.manager import Manager, running_manager
from real.object_store import RunningStore
from real.postgres import Database

pytestmark = pytest.mark.deep
LEASE = 5


@pytest.fixture
def both(
    kubernetes: Access, object_store_server: RunningStore, postgres_database: Database
) -> Iterator[tuple[Manager, Manager]]:
    """The first is at work when the second comes."""
    managers.bring_images(kubernetes)
    managers.reach_pods(kubernetes)
    store, keys = object_store_server.store.address, object_store_server.keys
    shared = {
        **managers.settings_for(kubernetes),
        "kubernetes.shared": True,
        "kubernetes.lease_seconds": LEASE,
        "admin.password": "of-both",
        "storage.kind": "s3",
        "storage.endpoint": store.endpoint,
        "storage.access_key": keys.access_key,
        "storage.secret_key": keys.secret_key,
    }
    try:
        with contextlib.ExitStack() as undo:
            first, second = (
                undo.enter_context(running_manager(shared, database=postgres_database.url)) for _ in range(2)
            )
            yield first, second
    finally:
        asyncio.run(managers.clear(kubernetes, str(shared["cluster.id"])))


def test_one_dies_and_the_other_goes_on(both: tuple[Manager, Manager]) -> None:
    first, second = both
    for manager in both:
        manager.password = "of-both"
    definition = {"name": "long", "image": "debian", "cpu": "0.1", "memory": "64Mi", "script": "sleep 8; echo $JOB"}
    assert second.admin.post("/system/services", json=definition).status_code == 201  # passed on
    assert first.admin.get("/system/services/long").status_code == 200
    assert "this manager does the work now" in first.log
    assert "this manager does the work now" not in second.log
    token = second.admin.get("/system/services/long").json()["token"]
    jobs = []
    for _ in range(3):
        answer = second.bearer(token).post("/job/long", content=b"x")
        assert answer.status_code == 201, answer.text
        jobs.append(answer.headers["x-hansa-job"])
    eventually(lambda: any(_status(second, job) == "Running" for job in jobs), what="one runs")
    first.kill()
    eventually(lambda: "this manager does the work now" in second.log, what="the other works")
    eventually(lambda: all(_status(second, job) == "Succeeded" for job in jobs), 90, what="all ended")
    listed = second.admin.get("/system/logs/long").json()["jobs"]
    assert set(listed) == set(jobs)
    first.start()  # and now it is the one that waits
    assert first.admin.get(f"/v1/jobs/{jobs[0]}").json()["status"] == "Succeeded"
    second.stop()  # which gives the work back at once
    eventually(lambda: first.log.count("this manager does the work now") == 2, what="the first works again")
    eventually(lambda: first.anonymous.get("/ready").status_code == 200, what="ready")
    assert first.admin.delete("/system/services/long").status_code == 204


def _status(manager: Manager, job: str) -> str:
    with contextlib.suppress(Exception):
        return str(manager.admin.get(f"/v1/jobs/{job}").json()["status"])
    return ""
