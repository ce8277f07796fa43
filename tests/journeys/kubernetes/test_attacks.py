"""What a tenant cannot do on one machine cannot be done where pods do the work either: no mark opens somebody else's
bucket, no event uses up somebody else's quota, and no provider leads to the manager's own network."""

import itertools
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.objects import make_bucket
from journeys.waiting import all_jobs, eventually
from real.listener import listener
from real.manager import Manager

pytestmark = pytest.mark.deep

SECRET = "what-only-its-owner-may-read-2906"
OVER = {"Succeeded", "Failed"}
POD_SECONDS = 120.0


@pytest.fixture
def bobs(bob: httpx.Client, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("bobs")
    make_bucket(bob, name, "in/x", SECRET.encode())
    yield name
    assert bob.delete(f"/system/buckets/{name}").status_code == 204


def lures(bucket: str, cluster: str) -> Iterator[dict[str, Any]]:
    """Marks that only another cluster gives, and a store of which only another cluster tells, for each way to data."""
    marks: list[dict[str, str]] = [
        {"oscar.grycap/federation-worker": "true"},
        {"oscar.grycap/federation-worker": "true", "oscar.grycap/origin-cluster": cluster},
        {"oscar.grycap/origin-cluster": cluster, "oscar.grycap/origin-service": bucket},
    ]
    there = {"storage_provider": "minio.default", "path": f"{bucket}/in"}
    places: list[dict[str, Any]] = [{"input": [there]}, {"output": [there]}, {"mount": there}]
    for mark, place in itertools.product(marks, places):
        yield {"annotations": mark, **place}
    elsewhere = {"minio": {"default": {"endpoint": "http://elsewhere.example:9000"}}}
    member = {"type": "endpoint", "url": "https://example.org/x"}
    yield {
        "cluster_id": cluster,
        "federation": {"topology": "star", "members": [member]},
        "storage_providers": elsewhere,
        "output": [there],
    }
    yield {"annotations": {"oscar.grycap/origin-cluster": cluster}}  # nothing but what its event names


@pytest.mark.timeout(600)
def test_no_mark_opens_a_bucket_of_somebody_else(
    alice: httpx.Client, bob: httpx.Client, manager: Manager, fresh_name: FreshName, bobs: str
) -> None:
    event, made, jobs = json.dumps(minio_event(bobs, "in/x")).encode(), [], []
    for lure in lures(bobs, str(manager.settings["cluster.id"])):
        script = f'cat "$INPUT_FILE_PATH" /mnt/{bobs}/in/*; echo planted >"$TMP_OUTPUT_DIR/planted"'
        name = fresh_name("thief")
        definition = {"name": name, "image": "debian", "memory": "64Mi", "script": script, **lure}
        answer = alice.post("/system/services", json=definition)
        assert answer.status_code in (201, 400, 403), answer.text
        if answer.status_code == 201:
            made.append(name)
            for body in (b"", event):
                sent = alice.post(f"/job/{name}", content=body)
                assert sent.status_code in (201, 400, 403, 409), sent.text
                jobs += [(name, sent.headers["x-hansa-job"])] if sent.status_code == 201 else []
    assert made != []
    for name, job in jobs:
        eventually(lambda name=name, job=job: all_jobs(alice, name)[job]["status"] in OVER, POD_SECONDS)  # type: ignore[misc]
        assert SECRET not in alice.get(f"/system/logs/{name}/{job}").text
    listed = bob.get(f"/system/buckets/{bobs}").json()
    assert [one["object_name"] for one in listed["objects"]] == ["in/x"]
    for name in made:
        assert alice.delete(f"/system/services/{name}").status_code == 204


def test_whoever_an_event_names_the_job_is_the_submitters(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = fresh_name("alices")
    make_bucket(alice, bucket, "in/x", b"x")
    name = make_service(alice, "sleep 1000", cpu="0.1")
    event = minio_event(bucket, "in/x")
    event["Records"][0]["requestParameters"] = {"principalId": "bob@test", "sourceIPAddress": "10.0.0.1"}
    before = bob.get("/system/quotas/user").json()
    token = alice.get(f"/system/services/{name}").json()["token"]
    sent = alice.post(f"/job/{name}", json=event, headers={"Authorization": f"Bearer {token}"})
    job = sent.headers["x-hansa-job"]
    try:
        eventually(lambda: all_jobs(alice, name)[job]["status"] == "Running", POD_SECONDS)
        assert bob.get("/system/quotas/user").json() == before
        assert bob.get(f"/system/logs/{name}/{job}").status_code in (403, 404)
    finally:
        alice.delete(f"/system/logs/{name}/{job}")
        alice.delete(f"/system/buckets/{bucket}")


@pytest.mark.parametrize("kind", ["minio", "s3", "webdav"])
def test_no_provider_leads_to_the_managers_network(alice: httpx.Client, fresh_name: FreshName, kind: str) -> None:
    with listener() as web:
        port = web.url.rpartition(":")[2]
        for host in ("127.0.0.1", "127.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1"):
            url = f"http://{host}:{port}"
            far = {"hostname": url} if kind == "webdav" else {"endpoint": url, "access_key": "A", "secret_key": "S"}
            definition = {
                "name": fresh_name("lure"),
                "image": "debian",
                "script": "true",
                "output": [{"storage_provider": f"{kind}.far", "path": "bucket/out"}],
                "storage_providers": {kind: {"far": far}},
            }
            assert alice.post("/system/services", json=definition).status_code == 400, url
        assert web.visits == []
