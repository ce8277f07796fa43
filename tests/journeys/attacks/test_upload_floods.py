"""One tenant makes as much of each upload as a definition allows: it is one job for each service, and others go on."""

import httpx

from journeys.conftest import FreshName, MakeService
from journeys.objects import upload
from journeys.waiting import all_jobs, ended_jobs, eventually

SERVICES, UPLOADS = 3, 4


def folder(path: str) -> dict[str, str]:
    return {"storage_provider": "minio.default", "path": path}


def test_an_upload_is_one_job_however_often_a_service_names_its_folder(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket, deep = fresh_name("flood"), "/".join(["in"] * 8)
    nested = [folder(f"{bucket}/{deep[: 3 * depth - 1]}") for depth in range(1, 9)]
    hers = [make_service(alice, "true", cpu="0.1", input=nested * 32) for _ in range(SERVICES)]
    assert alice.get(f"/system/services/{hers[0]}").json()["input"] == nested
    his = make_service(bob, "true", input=[folder(f"{(bobs := fresh_name('quiet'))}/in")])
    for number in range(UPLOADS):
        upload(alice, bucket, f"{deep}/{number}", b"x")
    upload(bob, bobs, "in/x", b"x")
    ended_jobs(bob, his, 1)
    for name in hers:
        eventually(lambda name=name: len(all_jobs(alice, name)) >= UPLOADS)  # type: ignore[misc]
    # the last upload's jobs come after whatever the first ones could still start
    upload(alice, bucket, f"{deep}/last", b"x")
    for name in hers:
        ended_jobs(alice, name, UPLOADS + 1)
        assert len(all_jobs(alice, name)) == UPLOADS + 1
