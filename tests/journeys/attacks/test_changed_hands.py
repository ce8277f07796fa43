"""A bucket that changed hands: what its name meant when a service was made, or a job began, gives no right today."""

from typing import Any

import httpx

from journeys.conftest import FreshName, MakeService
from journeys.objects import make_bucket, store_of, upload
from journeys.waiting import all_jobs, ended_jobs, eventually


def used_cpu(client: httpx.Client) -> int:
    quota: dict[str, Any] = client.get("/system/quotas/user").json()
    return int(quota["resources"]["cpu"]["used"])


def test_a_service_gets_no_uploads_of_a_bucket_that_became_somebody_elses(
    admin: httpx.Client, alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = fresh_name("former")
    where = [{"storage_provider": "minio.default", "path": f"{bucket}/in"}]
    hers = make_service(alice, 'cat "$INPUT_FILE_PATH"', input=where)
    assert alice.delete(f"/system/buckets/{bucket}").status_code == 204
    make_bucket(bob, bucket, "in/before", b"bob's first secret")
    try:
        his = make_service(bob, input=where)
        upload(bob, bucket, "in/after", b"bob's second secret")
        ended_jobs(bob, his, 1)  # the same news starts the jobs of everybody who listens
        assert all_jobs(admin, hers) == {}  # whomever they belong to
    finally:
        bob.delete(f"/system/buckets/{bucket}")


def test_an_upload_spends_nobodys_quota_but_the_service_owners(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    """Alice names bob as a user of hers, and uploads to the bucket that isolation made for him."""
    bucket = fresh_name("isolated")
    where = [{"storage_provider": "minio.default", "path": f"{bucket}/in"}]
    user = {"isolation_level": "USER", "visibility": "restricted", "allowed_users": ["bob@test"]}
    name = make_service(alice, "sleep 1000", cpu="1", input=where, **user)
    [his] = alice.get(f"/system/services/{name}").json()["bucket_list"]
    before = used_cpu(bob), used_cpu(alice)
    upload(alice, his, "in/x", b"x")
    eventually(lambda: "Running" in [job["status"] for job in all_jobs(alice, name).values()])
    [job] = all_jobs(alice, name)
    assert (used_cpu(bob), used_cpu(alice)) == (before[0], before[1] + 1000)
    # it is of a file in his bucket, so he sees it, and may end it
    assert list(all_jobs(bob, name)) == [job]
    assert bob.delete(f"/system/logs/{name}/{job}").status_code == 204
    assert all_jobs(alice, name) == {}


def test_outputs_do_not_go_to_a_bucket_that_became_somebody_elses(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = fresh_name("former")
    make_bucket(alice, bucket, "mine", b"x")
    output = [{"storage_provider": "minio.default", "path": f"{bucket}/out"}]
    volume = {"name": fresh_name("gate"), "size": "1Gi", "mount_path": "/gate"}
    script = 'echo planted > "$TMP_OUTPUT_DIR/planted"; echo begun; while [ ! -e /gate/go ]; do sleep 0.1; done'
    name = make_service(alice, script, output=output, volume={**volume, "lifecycle_policy": "delete"})
    opener = make_service(alice, "touch /gate/go", volume={"name": volume["name"], "mount_path": "/gate"})
    try:
        job = alice.post(f"/job/{name}").headers["x-hansa-job"]
        eventually(lambda: "begun" in alice.get(f"/system/logs/{name}/{job}").text)
        assert alice.delete(f"/system/buckets/{bucket}").status_code == 204
        make_bucket(bob, bucket, "bobs", b"bob's")
        alice.post(f"/job/{opener}")
        assert ended_jobs(alice, name, 1)[job]["status"] == "Failed"
        assert f"may not write to bucket {bucket}" in alice.get(f"/system/logs/{name}/{job}").text
        listed = store_of(bob).list_objects_v2(Bucket=bucket)["Contents"]
        assert [one["Key"] for one in listed] == ["bobs"]
    finally:
        bob.delete(f"/system/buckets/{bucket}")
