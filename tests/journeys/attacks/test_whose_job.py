"""An event that names somebody else as its sender changes nothing: the job is its submitter's, and so is its quota."""

import json
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.objects import make_bucket
from journeys.waiting import all_jobs, eventually
from real.manager import Manager


def used_cpu(client: httpx.Client) -> int:
    quota: dict[str, Any] = client.get("/system/quotas/user").json()
    return int(quota["resources"]["cpu"]["used"])


@pytest.mark.parametrize("principal", ["bob@test", "cluster_admin", "admin", "", "nobody@test"])
def test_whoever_an_event_names_the_job_is_the_submitters(
    alice: httpx.Client,
    bob: httpx.Client,
    manager: Manager,
    make_service: MakeService,
    fresh_name: FreshName,
    principal: str,
) -> None:
    bucket = fresh_name("alices")
    make_bucket(alice, bucket, "in/x", b"x")
    name = make_service(alice, "sleep 1000", cpu="1")
    token = alice.get(f"/system/services/{name}").json()["token"]
    event = minio_event(bucket, "in/x")
    event["Records"][0]["requestParameters"] = {"principalId": principal, "sourceIPAddress": "10.0.0.1"}
    event["Records"][0]["userIdentity"] = {"principalId": principal}
    before = used_cpu(bob), used_cpu(alice)
    wrapped = {"storage_provider": "minio.default", "event": json.dumps(event)}
    submitted = [manager.bearer(token).post(f"/job/{name}", json=body) for body in (event, wrapped)]
    jobs = [answer.headers["x-hansa-job"] for answer in submitted]
    try:
        eventually(lambda: all(all_jobs(alice, name)[job]["status"] == "Running" for job in jobs))
        assert used_cpu(bob) == before[0]
        assert used_cpu(alice) == before[1] + 2000
        assert all(bob.get(f"/system/logs/{name}/{job}").status_code in (403, 404) for job in jobs)
    finally:
        for job in jobs:
            alice.delete(f"/system/logs/{name}/{job}")
        alice.delete(f"/system/buckets/{bucket}")
