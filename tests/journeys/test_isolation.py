"""What can a user's script, event or key reach? Their own things, and nothing of the manager or of others."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import httpx
import pytest
from botocore.client import Config
from botocore.exceptions import ClientError

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.objects import make_bucket, store_of
from journeys.waiting import all_jobs, eventually, run_job
from real.manager import Manager

MARK = "a-neighbours-secret-5772"


def test_a_job_reads_nothing_of_the_manager(alice: httpx.Client, manager: Manager, make_service: MakeService) -> None:
    script = f"""
    for f in {manager.data}/vault.key {manager.data}/*.db {manager.data}/admin-password {manager.data} /root /etc/shadow
    do ls -la "$f" && cat "$f"; done 2>&1
    for p in /proc/[0-9]*; do tr '\\0' '\\n' <$p/environ; tr '\\0' ' ' <$p/cmdline; done 2>/dev/null
    id -u; ls -la / /tmp /job /run 2>&1; mount 2>&1
    """
    name = make_service(alice, script)
    log = run_job(alice, name)
    key = (manager.data / "vault.key").read_text().strip()
    assert len(key) > 20
    for secret in (key, manager.password, "HANSA_ADMIN", "HANSA_DATA", "hansa server", "vault.key\n", "root:"):
        assert secret not in log
    uids = [line for line in log.splitlines() if line.strip().isdigit()]
    assert "0" not in uids


def test_a_job_reaches_neither_the_manager_nor_the_store_nor_the_network(
    alice: httpx.Client, manager: Manager, make_service: MakeService
) -> None:
    store = alice.get("/system/config").json()["minio_provider"]["endpoint"]
    ports = [manager.port, int(store.rpartition(":")[2]), 22, 80]
    program = f"""
import socket
for port in {ports}:
    for address in ("127.0.0.1", "10.0.0.1"):
        try:
            socket.create_connection((address, port), 0.3).close()
            print("REACHED", address, port)
        except OSError as error:
            print("closed", address, port)
"""
    log = run_job(alice, make_service(alice, f"/usr/bin/python3 - <<'END'\n{program}\nEND"))
    assert log.count("closed") == 2 * len(ports)
    assert "REACHED" not in log


def test_jobs_do_not_see_each_other(alice: httpx.Client, bob: httpx.Client, make_service: MakeService) -> None:
    holder = make_service(
        bob,
        f"echo {MARK} >/tmp/mine; cp /tmp/mine /job/mine; touch /dev/shm/mine-too; exec sleep 1000",
        environment={"secrets": {"NEIGHBOUR": MARK}},
    )
    held = bob.post(f"/job/{holder}").headers["x-hansa-job"]
    eventually(lambda: all_jobs(bob, holder)[held]["status"] == "Running")
    script = """
    for p in /proc/[0-9]*; do cat $p/environ $p/cmdline; done 2>/dev/null | tr '\\0' '\\n'
    ls -laR /tmp /job /dev/shm /home /var/tmp 2>/dev/null; cat /tmp/* /job/* 2>/dev/null
    kill -9 -1 2>/dev/null; ps ax 2>/dev/null
    """
    log = run_job(alice, make_service(alice, script))
    assert MARK not in log
    assert "mine" not in log
    assert all_jobs(bob, holder)[held]["status"] == "Running"
    assert bob.delete(f"/system/logs/{holder}/{held}").status_code == 204


def test_what_a_job_leaves_behind_is_gone(alice: httpx.Client, make_service: MakeService) -> None:
    name = make_service(
        alice, "ls /tmp /dev/shm /job/output; (sleep 1000 &) ; touch /tmp/left /dev/shm/left $TMP_OUTPUT_DIR/left"
    )
    run_job(alice, name)
    assert "left" not in run_job(alice, name)


@pytest.fixture
def bobs_bucket(bob: httpx.Client, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("bobs")
    make_bucket(bob, name, "in/x", MARK.encode())
    yield name
    assert bob.delete(f"/system/buckets/{name}").status_code == 204


def test_an_event_cannot_name_another_users_bucket(
    alice: httpx.Client, bob: httpx.Client, manager: Manager, make_service: MakeService, bobs_bucket: str
) -> None:
    name = make_service(alice, "cat $INPUT_FILE_PATH", visibility="public")
    token = alice.get(f"/system/services/{name}").json()["token"]
    plain = minio_event(bobs_bucket, "in/x")
    wrapped = [
        {"storage_provider": provider, "event": json.dumps(plain)}
        for provider in ("minio.default", "default", "minio", "", "MinIO.default")
    ]
    forged = json.loads(json.dumps(plain))
    forged["Records"][0]["requestParameters"] = {"principalId": "bob@test"}
    aws = json.loads(json.dumps(plain).replace("minio:s3", "aws:s3"))
    for event in (plain, *wrapped, forged, aws):
        for client in (alice, manager.bearer(token)):
            for path in (f"/job/{name}", f"/run/{name}"):
                answer = client.post(path, json=event)
                assert answer.status_code == 403, (event, path, answer.text)
                assert MARK not in answer.text
    assert all_jobs(alice, name) == {}
    assert MARK in run_job(bob, name, json.dumps(plain).encode())  # his own bucket he may name


def test_an_input_or_output_cannot_name_another_users_bucket(
    alice: httpx.Client, bobs_bucket: str, fresh_name: FreshName
) -> None:
    for kind in ("input", "output"):
        definition = {
            "name": fresh_name("thief"),
            "image": "debian",
            "script": "true",
            kind: [{"storage_provider": "minio", "path": f"{bobs_bucket}/in"}],
        }
        assert alice.post("/system/services", json=definition).status_code == 403
    mounted = {**definition, kind: [], "mount": {"storage_provider": "minio", "path": bobs_bucket + "/in"}}
    assert alice.post("/system/services", json=mounted).status_code in (400, 403)


def refused(call: Any, **arguments: Any) -> bool:
    try:
        call(**arguments)
    except ClientError as error:
        return int(error.response["ResponseMetadata"]["HTTPStatusCode"]) == 403
    return False


def reach(s3: Any, bucket: str) -> bool:
    """Whether all of it works, or none of it: half-open would be a mistake."""
    told = {
        "list": refused(s3.list_objects_v2, Bucket=bucket),
        "get": refused(s3.get_object, Bucket=bucket, Key="in/x"),
        "put": refused(s3.put_object, Bucket=bucket, Key="in/by-hand", Body=b"y"),
        "copy": refused(s3.copy_object, Bucket=bucket, Key="in/z", CopySource=f"{bucket}/in/x"),
        "delete": refused(s3.delete_object, Bucket=bucket, Key="in/by-hand"),
    }
    assert len(set(told.values())) == 1, told
    return not told["list"]


def test_own_keys_open_own_buckets_only(
    alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, admin: httpx.Client, bobs_bucket: str
) -> None:
    stores = {"alice": store_of(alice), "bob": store_of(bob), "dora": store_of(dora), "admin": store_of(admin)}
    try:
        for visibility, allowed in (
            ("private", {"bob", "admin"}),
            ("restricted", {"bob", "admin", "dora"}),
            ("public", {"bob", "admin", "dora", "alice"}),
            ("private", {"bob", "admin"}),  # what was shared is closed again
        ):
            body = {"bucket_name": bobs_bucket, "visibility": visibility, "allowed_users": ["dora@test"]}
            assert bob.put("/system/buckets", json=body).status_code == 204
            for who, s3 in stores.items():
                assert reach(s3, bobs_bucket) is (who in allowed), f"{visibility}: {who}"
        assert refused(stores["alice"].create_bucket, Bucket="made-by-hand")
        assert refused(stores["alice"].delete_bucket, Bucket=bobs_bucket)
        stolen = {"Bucket": bobs_bucket, "Key": "in/stolen", "CopySource": f"{bobs_bucket}/in/x"}
        assert refused(stores["alice"].copy_object, **stolen)
    finally:
        for s3 in stores.values():
            s3.close()


def test_keys_made_up_open_nothing(alice: httpx.Client, bobs_bucket: str) -> None:
    provider = alice.get("/system/config").json()["minio_provider"]
    for access, secret in (("bob@test", provider["secret_key"]), ("nobody", "nothing-at-all")):
        s3 = boto3.client(
            "s3",
            endpoint_url=provider["endpoint"],
            region_name=provider["region"],
            aws_access_key_id=access,
            aws_secret_access_key=secret,
            config=Config(retries={"max_attempts": 1}, proxies={}),
        )
        assert refused(s3.list_objects_v2, Bucket=bobs_bucket)
        s3.close()
    assert httpx.get(f"{provider['endpoint']}/{bobs_bucket}", trust_env=False).status_code == 403
    assert httpx.get(f"{provider['endpoint']}/{bobs_bucket}/in/x", trust_env=False).status_code == 403
