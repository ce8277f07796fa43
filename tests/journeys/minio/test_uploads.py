"""MinIO tells the manager of an upload, and of whose it is. Nobody else can say so in its place."""

import threading
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.objects import store_of, upload
from journeys.waiting import all_jobs, ended_jobs, eventually
from real.manager import Manager

COPY = 'cp "$INPUT_FILE_PATH" "$TMP_OUTPUT_DIR/"'


def folders(bucket: str) -> dict[str, Any]:
    return {
        "input": [{"storage_provider": "minio.default", "path": f"{bucket}/in"}],
        "output": [{"storage_provider": "minio.default", "path": f"{bucket}/out"}],
    }


def own_bucket(owner: httpx.Client, fresh_name: FreshName) -> str:
    """One that goes with no service."""
    name = fresh_name("own")
    assert owner.post("/system/buckets", json={"bucket_name": name}).status_code == 201
    return name


def share(owner: httpx.Client, bucket: str, *people: str) -> None:
    body = {"bucket_name": bucket, "visibility": "restricted", "allowed_users": list(people)}
    assert owner.put("/system/buckets", json=body).status_code == 204


def test_an_upload_becomes_one_job_and_its_output_lies_beside_it(
    alice: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = fresh_name("works")
    name = make_service(alice, COPY, **folders(bucket))
    for key, content in (("in/a b+ñ.txt", b"one"), ("in/deep/er", b"two")):
        upload(alice, bucket, key, content)
    assert [job["status"] for job in ended_jobs(alice, name, 2).values()] == ["Succeeded"] * 2
    s3 = store_of(alice)
    assert s3.get_object(Bucket=bucket, Key="out/a b+ñ.txt")["Body"].read() == b"one"
    assert s3.get_object(Bucket=bucket, Key="out/er")["Body"].read() == b"two"
    upload(alice, bucket, "elsewhere", b"no input of anybody")
    upload(alice, bucket, "in/last", b"three")
    assert len(ended_jobs(alice, name, 3)) == 3


def test_who_uploads_sees_the_job_and_its_owner_pays(
    alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = own_bucket(alice, fresh_name)
    seen_by = {"visibility": "restricted", "allowed_users": ["dora@test", "bob@test"]}
    name = make_service(alice, "cat $INPUT_FILE_PATH", **seen_by, **folders(bucket))
    share(alice, bucket, "dora@test", "bob@test")
    store_of(dora).put_object(Bucket=bucket, Key="in/doras", Body=b"dora's own words")
    [job] = ended_jobs(alice, name, 1)
    assert list(all_jobs(dora, name)) == [job]
    assert "dora's own words" in dora.get(f"/system/logs/{name}/{job}").text
    assert all_jobs(bob, name) == {}
    assert bob.get(f"/system/logs/{name}/{job}").status_code in (403, 404)


def test_nobody_but_minio_says_whose_upload_it_was(
    alice: httpx.Client, bob: httpx.Client, manager: Manager, make_service: MakeService, fresh_name: FreshName
) -> None:
    """The service's token is in the hands of its scripts; it starts jobs, and names nobody. What MinIO calls opens to
    MinIO alone."""
    bucket = fresh_name("named")
    seen_by = {"visibility": "restricted", "allowed_users": ["bob@test"]}
    name = make_service(alice, "cat $INPUT_FILE_PATH", **seen_by, **folders(bucket))
    store_of(alice).put_object(Bucket=bucket, Key="not-in", Body=b"x")
    bobs_key = bob.get("/system/config").json()["minio_provider"]["access_key"]
    event = minio_event(bucket, "not-in")
    event["Records"][0]["requestParameters"] = {"principalId": bobs_key}
    event["Records"][0]["userIdentity"] = {"principalId": bobs_key}
    token = alice.get(f"/system/services/{name}").json()["token"]
    job = manager.bearer(token).post(f"/job/{name}", json=event).headers["x-hansa-job"]
    assert list(ended_jobs(alice, name, 1)) == [job]
    assert all_jobs(bob, name) == {}
    for client in (manager.bearer(token), manager.bearer("0" * 64), alice, manager.admin, manager.anonymous):
        event["Records"][0]["s3"]["object"]["key"] = "in/never"
        assert client.post("/v1/store/uploads", json=event).status_code == 401
    assert list(all_jobs(alice, name)) == [job]


def test_whoever_lost_the_bucket_starts_nothing_any_more(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = own_bucket(alice, fresh_name)
    name = make_service(alice, COPY, **folders(bucket))
    share(alice, bucket, "bob@test")
    theirs = store_of(bob)
    theirs.put_object(Bucket=bucket, Key="in/first", Body=b"x")
    ended_jobs(alice, name, 1)
    share(alice, bucket)

    def refused() -> bool:
        try:
            theirs.put_object(Bucket=bucket, Key="in/second", Body=b"x")
        except theirs.exceptions.ClientError as error:
            return bool(error.response["Error"]["Code"] == "AccessDenied")
        return False

    assert refused()
    upload(alice, bucket, "in/third", b"x")
    assert len(ended_jobs(alice, name, 2)) == 2


def test_services_come_and_go_and_minio_runs_on(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    """A restart of the store for each new service would let anybody stop everybody's uploads."""
    bucket = own_bucket(bob, fresh_name)
    theirs, failed, over = store_of(bob), list[Exception](), threading.Event()

    def use() -> None:
        while not over.is_set():
            try:
                theirs.put_object(Bucket=bucket, Key="x", Body=b"x")
            except Exception as error:
                failed.append(error)

    user = threading.Thread(target=use)
    user.start()
    try:
        for _ in range(4):
            make_service(alice, COPY, **folders(fresh_name("of-alice")))
    finally:
        over.set()
        user.join()
    assert failed == []


def test_a_folder_that_is_no_input_any_more_starts_nothing(
    alice: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    first, second = own_bucket(alice, fresh_name), own_bucket(alice, fresh_name)
    name = make_service(alice, COPY, **folders(first))
    definition = alice.get(f"/system/services/{name}").json()
    other = make_service(alice, COPY, **folders(first))
    assert alice.put("/system/services", json={**definition, **folders(second)}).status_code == 204
    upload(alice, first, "in/x", b"x")
    ended_jobs(alice, other, 1)
    assert all_jobs(alice, name) == {}
    upload(alice, second, "in/x", b"x")
    assert len(ended_jobs(alice, name, 1)) == 1
    assert alice.put("/system/services", json={**definition, "input": [], "output": []}).status_code == 204
    upload(alice, second, "in/y", b"y")
    upload(alice, first, "in/y", b"y")
    ended_jobs(alice, other, 2)
    assert len(all_jobs(alice, name)) == 1


def test_a_service_that_is_gone_hears_of_nothing(
    alice: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    bucket = own_bucket(alice, fresh_name)
    first = make_service(alice, COPY, **folders(bucket))
    second = make_service(alice, COPY, **folders(bucket))
    upload(alice, bucket, "in/one", b"x")
    eventually(lambda: len(all_jobs(alice, first)) == 1 and len(all_jobs(alice, second)) == 1)
    ended_jobs(alice, first, 1)
    assert alice.delete(f"/system/services/{first}").status_code == 204
    upload(alice, bucket, "in/two", b"x")
    assert len(ended_jobs(alice, second, 2)) == 2
    again = {"name": first, "image": "debian", "memory": "64Mi", "script": "true"}
    assert alice.post("/system/services", json=again).status_code == 201
    upload(alice, bucket, "in/three", b"x")
    assert len(ended_jobs(alice, second, 3)) == 3
    assert all_jobs(alice, first) == {}


@pytest.mark.parametrize("folder", ["in" + "*a" * 30 + "*b", "00-\uffff", "back\\slash?"])
def test_what_a_tenant_calls_a_folder_is_no_trouble_of_the_store(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName, folder: str
) -> None:
    """MinIO takes a prefix for a pattern, and looks at it for every upload of anybody; and it cannot write down all
    that a path may hold."""
    theirs, bucket = own_bucket(bob, fresh_name), own_bucket(alice, fresh_name)
    entry = {"storage_provider": "minio.default", "path": f"{theirs}/{folder}"}
    first = make_service(bob, "true", input=[entry])
    upload(bob, theirs, "in" + 240 * "a", b"x")
    second = make_service(alice, COPY, **folders(bucket))
    upload(alice, bucket, "in/x", b"x")
    ended_jobs(alice, second, 1)
    if "\uffff" not in folder:  # which no client can spell in the name of an object
        upload(bob, theirs, f"{folder}/x", b"x")
        ended_jobs(bob, first, 1)


def test_many_folders_in_a_bucket_hold_up_nobody(
    alice: httpx.Client, bob: httpx.Client, make_service: MakeService, fresh_name: FreshName
) -> None:
    theirs = own_bucket(bob, fresh_name)
    for number in range(4):
        entries = [{"storage_provider": "minio.default", "path": f"{theirs}/{number}-{one}"} for one in range(256)]
        last = make_service(bob, "true", input=entries)
    with httpx.Client(base_url=str(alice.base_url), headers=dict(alice.headers), timeout=10.0) as impatient:
        name = make_service(impatient, COPY, **folders(bucket := fresh_name("beside")))
    upload(alice, bucket, "in/x", b"x")
    ended_jobs(alice, name, 1)
    upload(bob, theirs, "3-255/x", b"x")
    ended_jobs(bob, last, 1)
