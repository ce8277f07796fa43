"""A bucket that changed hands: what its name meant when a service was made, or a job began, gives no right today."""

from typing import Any

import httpx

from journeys.conftest import FreshName, MakeService, signing_in
from journeys.objects import make_bucket, store_of, upload
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.identity_provider import IdentityProvider
from real.manager import running_manager, trusting


def used_cpu(client: httpx.Client) -> int:
    quota: dict[str, Any] = client.get("/system/quotas/user").json()
    return int(quota["resources"]["cpu"]["used"])


def keys_in(client: httpx.Client, bucket: str) -> list[str]:
    return [one["Key"] for one in store_of(client).list_objects_v2(Bucket=bucket).get("Contents", [])]


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


def test_a_bucket_of_somebody_else_is_not_used_because_they_share_it(
    admin: httpx.Client, alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    """Bob takes the name of a bucket that alice deleted, and lets her in, so that her service goes on with it."""
    bucket = fresh_name("former")
    where = {
        "input": [{"storage_provider": "minio.default", "path": f"{bucket}/in"}],
        "output": [{"storage_provider": "minio.default", "path": f"{bucket}/out"}],
    }
    hers = make_service(alice, 'echo secret > "$TMP_OUTPUT_DIR/secret"', **where)
    definition = alice.get(f"/system/services/{hers}").json()
    assert alice.delete(f"/system/buckets/{bucket}").status_code == 204
    shared = {"bucket_name": bucket, "visibility": "restricted", "allowed_users": ["alice@test"]}
    assert bob.post("/system/buckets", json=shared).status_code == 201
    try:
        knowing = make_service(alice, "true", input=where["input"])  # made by one who can know whose it is
        upload(bob, bucket, "in/first", b"bob's")
        ended_jobs(alice, knowing, 1)
        assert all_jobs(admin, hers) == {}

        job = alice.post(f"/job/{hers}").headers["x-hansa-job"]
        assert ended_jobs(alice, hers, 1)[job]["status"] == "Failed"
        assert f"bucket {bucket} is somebody else's" in alice.get(f"/system/logs/{hers}/{job}").text
        assert not [key for key in keys_in(bob, bucket) if key.startswith("out/")]

        # the admin's change is not alice's word; hers is
        assert admin.put("/system/services", json=definition).status_code == 204
        job = alice.post(f"/job/{hers}").headers["x-hansa-job"]
        assert ended_jobs(alice, hers, 2)[job]["status"] == "Failed"
        answer = alice.put("/system/services", json=definition)
        assert answer.status_code == 204
        assert f"bucket {bucket} belongs to 'bob@test'" in answer.headers["x-hansa-warning"]
        job = alice.post(f"/job/{hers}").headers["x-hansa-job"]
        assert ended_jobs(alice, hers, 3)[job]["status"] == "Succeeded"
        assert "out/secret" in keys_in(bob, bucket)
    finally:
        bob.delete(f"/system/buckets/{bucket}")


def test_what_a_service_remembers_of_its_buckets_outlives_the_manager(sign_in_provider: IdentityProvider) -> None:
    bucket = "former"
    where = [{"storage_provider": "minio.default", "path": f"{bucket}/out"}]
    definition = {"name": "hers", "image": "debian", "memory": "64Mi", "script": "true", "output": where}
    with running_manager(trusting(sign_in_provider)) as manager:
        person = signing_in(manager, sign_in_provider)
        assert person("alice").post("/system/services", json=definition).status_code == 201
        assert person("alice").delete(f"/system/buckets/{bucket}").status_code == 204
        shared = {"bucket_name": bucket, "visibility": "public"}
        assert person("bob").post("/system/buckets", json=shared).status_code == 201
        manager.restart()
        job = person("alice").post("/job/hers").headers["x-hansa-job"]
        assert ended_jobs(person("alice"), "hers", 1)[job]["status"] == "Failed"


def test_whoever_would_write_to_a_bucket_of_somebody_else_is_told(
    alice: httpx.Client, bob: httpx.Client, fresh_name: FreshName
) -> None:
    """Bob takes a name that alice is likely to use, and opens it to everybody."""
    bucket, name = fresh_name("results"), fresh_name("innocent")
    assert bob.post("/system/buckets", json={"bucket_name": bucket, "visibility": "public"}).status_code == 201
    folder = {"storage_provider": "minio.default", "path": f"{bucket}/out"}
    definition = {"name": name, "image": "debian", "memory": "64Mi", "script": "true"}
    try:
        for field in ({"output": [folder, folder]}, {"mount": folder}):
            answer = alice.post("/system/services", json={**definition, **field})
            assert answer.status_code == 201
            [told] = answer.headers.get_list("x-hansa-warning")
            assert f"bucket {bucket} belongs to 'bob@test'" in told
            assert "everybody" in told
            assert alice.delete(f"/system/services/{name}").status_code == 204
        answer = alice.post("/system/services", json={**definition, "output": [{**folder, "path": f"{name}/out"}]})
        assert answer.status_code == 201
        assert "x-hansa-warning" not in answer.headers
        assert alice.delete(f"/system/services/{name}").status_code == 204
    finally:
        bob.delete(f"/system/buckets/{bucket}")
