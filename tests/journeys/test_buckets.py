"""Buckets as their owners, the people they are shared with, and the admin see them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService
from journeys.events import minio_event
from journeys.waiting import all_jobs, eventually

VISIBILITIES = ("private", "restricted", "public")


@pytest.fixture
def bucket(alice: httpx.Client, fresh_name: FreshName) -> Iterator[str]:
    name = fresh_name("bucket")
    answer = alice.post("/system/buckets", json={"bucket_name": name})
    assert (answer.status_code, answer.content) == (201, b"")
    yield name
    assert alice.delete(f"/system/buckets/{name}").status_code in (204, 404)


def put(client: httpx.Client, bucket: str, key: str, content: bytes = b"x", **more: Any) -> httpx.Response:
    body = {"object_key": key, "operation": "upload", **more}
    link = client.post(f"/system/buckets/{bucket}/presign", json=body)
    assert link.status_code == 200, link.text
    return httpx.put(link.json()["url"], content=content, headers=link.json().get("headers", {}), trust_env=False)


def test_a_new_bucket_is_private_and_empty(bucket: str, alice: httpx.Client, bob: httpx.Client) -> None:
    answer = alice.get(f"/system/buckets/{bucket}")
    assert answer.text.startswith(
        f'{{"bucket_name":"{bucket}","visibility":"private","allowed_users":null,"owner":"alice@test",'
    )
    shown = answer.json()
    assert list(shown) == [
        "bucket_name", "visibility", "allowed_users", "owner", "metadata", "storage_quota", "storage_usage",
        "is_truncated", "returned_items",
    ]  # fmt: skip
    assert shown["metadata"] == {"owner": "alice@test", "owner_name": "Alice"}
    assert shown["storage_quota"] == {"max": "5Gi", "max_bytes": 5 * 2**30, "source": "bucket"}
    assert (shown["is_truncated"], shown["returned_items"]) == (False, 0)
    listed = next(one for one in alice.get("/system/buckets").json() if one["bucket_name"] == bucket)
    assert list(listed) == ["bucket_name", "visibility", "allowed_users", "owner", "metadata"]
    assert listed["metadata"] == {"owner_name": "Alice"}
    assert f'"bucket_name":"{bucket}","visibility":"private"' in alice.get("/system/buckets").text
    assert bucket not in bob.get("/system/buckets").text


def test_a_user_without_buckets_gets_null(person: Any) -> None:
    assert person("quinn").get("/system/buckets").text == "null"


def test_the_admins_bucket_has_no_policy_unless_asked(admin: httpx.Client, fresh_name: FreshName) -> None:
    name = fresh_name("admins")
    assert admin.post("/system/buckets", content=json.dumps({"bucket_name": name})).status_code == 201
    shown = admin.get(f"/system/buckets/{name}").json()
    assert (shown["visibility"], shown["owner"]) == ("", "oscar")
    assert admin.delete(f"/system/buckets/{name}").status_code == 204


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"bucket_name": ""},
        {"bucket_name": "Upper"},
        {"bucket_name": "ab"},
        {"bucket_name": "1.2.3.4"},
        {"bucket_name": "a..b"},
        {"bucket_name": "fine", "visibility": "secret"},
        {"bucket_name": "fine", "allowed_users": "bob"},
        {"bucket_name": 7},
    ],
)
def test_what_cannot_be_a_bucket_is_400(alice: httpx.Client, body: dict[str, Any]) -> None:
    for method in ("POST", "PUT"):
        answer = alice.request(method, "/system/buckets", json=body)
        assert answer.status_code == 400, method


def test_a_name_is_taken_once(bucket: str, alice: httpx.Client, bob: httpx.Client) -> None:
    for client in (alice, bob):
        assert client.post("/system/buckets", json={"bucket_name": bucket}).status_code in (400, 409)
    assert alice.get(f"/system/buckets/{bucket}").json()["owner"] == "alice@test"


def test_objects_come_and_go_through_links(bucket: str, alice: httpx.Client) -> None:
    link = alice.post(
        f"/system/buckets/{bucket}/presign",
        json={"object_key": "in/photo 1.png", "operation": "upload", "expires_in": 60, "content_type": "image/png"},
    )
    assert list(link.json())[:5] == ["object_key", "operation", "method", "url", "expires_at"]
    assert link.json()["method"] == "PUT"
    sent = httpx.put(link.json()["url"], content=b"png", headers={"Content-Type": "image/png"}, trust_env=False)
    assert sent.status_code == 200
    shown = alice.get(f"/system/buckets/{bucket}").json()
    [found] = shown["objects"]
    assert (found["object_name"], found["size_bytes"]) == ("in/photo 1.png", 3)
    assert set(shown["storage_usage"]) >= {"used", "used_bytes"}  # counted now and then, so perhaps a moment old
    link = alice.post(
        f"/system/buckets/{bucket}/presign", json={"object_key": "in/photo 1.png", "operation": "download"}
    )
    got = httpx.get(link.json()["url"], trust_env=False)
    assert (got.status_code, got.content) == (200, b"png")
    forged = link.json()["url"].replace("photo", "other")
    assert httpx.get(forged, trust_env=False).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        {"operation": "upload"},
        {"object_key": "x"},
        {"object_key": "", "operation": "upload"},
        {"object_key": "../x", "operation": "upload"},
        {"object_key": "x", "operation": "delete"},
        {"object_key": "x", "operation": "upload", "expires_in": -1},
        {"object_key": "x", "operation": "upload", "expires_in": 604_801},
    ],
)
def test_links_that_cannot_be_made_are_400(bucket: str, alice: httpx.Client, body: dict[str, Any]) -> None:
    assert alice.post(f"/system/buckets/{bucket}/presign", json=body).status_code == 400


def test_zero_expires_means_a_quarter_of_an_hour(bucket: str, alice: httpx.Client) -> None:
    body = {"object_key": "x", "operation": "download", "expires": 0, "content_type": "", "extra_headers": {}}
    answer = alice.post(f"/system/buckets/{bucket}/presign", json=body)
    assert answer.status_code == 200
    assert "X-Amz-Expires=900" in answer.json()["url"]


def test_many_objects_come_in_pages(bucket: str, alice: httpx.Client) -> None:
    for number in range(3):
        assert put(alice, bucket, f"folder/{number}").status_code == 200
    shown = alice.get(f"/system/buckets/{bucket}").json()
    assert shown["returned_items"] == 3
    after_first = alice.get(f"/system/buckets/{bucket}", params={"page": shown.get("next_page", "")})
    assert after_first.status_code == 200
    assert [one["object_name"] for one in shown["objects"]] == [f"folder/{number}" for number in range(3)]


@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_sharing_changes_who_may_use_it(
    bucket: str, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, visibility: str
) -> None:
    body = {"bucket_name": bucket, "visibility": visibility, "allowed_users": ["dora@test"]}
    answer = alice.put("/system/buckets", json=body)
    assert (answer.status_code, answer.content) == (204, b"")
    assert alice.get(f"/system/buckets/{bucket}").json()["visibility"] == visibility
    assert put(alice, bucket, "shared.txt", b"shared").status_code == 200
    for client, may in ((dora, visibility != "private"), (bob, visibility == "public")):
        assert (bucket in client.get("/system/buckets").text) is may
        assert client.get(f"/system/buckets/{bucket}").status_code == (200 if may else 403)
        assert client.put("/system/buckets", json=body).status_code == 403
        assert client.delete(f"/system/buckets/{bucket}").status_code == 403
    if visibility == "restricted":
        assert dora.get(f"/system/buckets/{bucket}").json()["allowed_users"] == ["dora@test"]


def test_what_is_not_there(alice: httpx.Client) -> None:
    assert alice.get("/system/buckets/not-there").status_code in (403, 404)
    assert alice.delete("/system/buckets/not-there").status_code == 404
    assert alice.put("/system/buckets", json={"bucket_name": "not-there"}).status_code == 404
    body = {"object_key": "x", "operation": "upload"}
    assert alice.post("/system/buckets/not-there/presign", json=body).status_code == 404
    assert alice.get("/system/buckets/Not_A_Bucket").status_code == 400


def test_a_deleted_bucket_goes_with_its_objects(bucket: str, alice: httpx.Client) -> None:
    assert put(alice, bucket, "a/b").status_code == 200
    answer = alice.delete(f"/system/buckets/{bucket}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert alice.get(f"/system/buckets/{bucket}").status_code == 404
    assert alice.post("/system/buckets", json={"bucket_name": bucket}).status_code == 201
    assert alice.get(f"/system/buckets/{bucket}").json()["returned_items"] == 0


def test_a_services_bucket_is_changed_through_its_service(make_service: MakeService, alice: httpx.Client) -> None:
    name = make_service(alice, input=[{"storage_provider": "minio", "path": "in"}])
    assert alice.get(f"/system/buckets/{name}").json()["metadata"]["from_service"] == name
    assert alice.put("/system/buckets", json={"bucket_name": name, "visibility": "public"}).status_code == 403


def test_a_services_bucket_is_shared_like_its_service(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client
) -> None:
    name = make_service(
        alice,
        input=[{"storage_provider": "minio", "path": "in"}],
        visibility="restricted",
        allowed_users=["dora@test"],
    )
    shown = alice.get(f"/system/buckets/{name}").json()
    assert (shown["visibility"], shown["allowed_users"]) == ("restricted", ["dora@test"])
    assert dora.get(f"/system/buckets/{name}").status_code == 200
    assert bob.get(f"/system/buckets/{name}").status_code == 403
    changed = {**alice.get(f"/system/services/{name}").json(), "visibility": "private", "allowed_users": []}
    assert alice.put("/system/services", json=changed).status_code == 204
    assert alice.get(f"/system/buckets/{name}").json()["visibility"] == "private"
    assert dora.get(f"/system/buckets/{name}").status_code == 403


def test_user_isolation_gives_everybody_a_bucket_of_their_own(
    make_service: MakeService, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client, admin: httpx.Client
) -> None:
    name = make_service(
        alice,
        "tr a-z A-Z <$INPUT_FILE_PATH >$TMP_OUTPUT_DIR/out.txt",
        input=[{"storage_provider": "minio", "path": "in"}],
        output=[{"storage_provider": "minio", "path": "out"}],
        isolation_level="USER",
        visibility="restricted",
        allowed_users=["bob@test", "dora@test"],
    )
    service = alice.get(f"/system/services/{name}").json()
    bobs, doras = service["bucket_list"]
    assert (bobs, doras) == (f"{name}-bob-test", f"{name}-dora-test")
    assert put(bob, bobs, "in/words.txt", b"bob's words").status_code == 200
    assert dora.get(f"/system/buckets/{bobs}").status_code == 403
    assert bob.get(f"/system/buckets/{doras}").status_code == 403

    def result() -> bytes:
        link = bob.post(f"/system/buckets/{bobs}/presign", json={"object_key": "out/out.txt", "operation": "download"})
        answer = httpx.get(link.json()["url"], trust_env=False)
        return answer.content if answer.status_code == 200 else b""

    assert eventually(result) == b"BOB'S WORDS"
    assert len(all_jobs(bob, name)) == 1  # his upload, so his job
    assert all_jobs(dora, name) == {}
    for client, bucket, status in ((bob, bobs, 201), (dora, bobs, 403), (alice, bobs, 201)):
        assert client.post(f"/job/{name}", json=minio_event(bucket, "in/words.txt")).status_code == status
    assert alice.delete(f"/system/services/{name}").status_code == 204
    assert bobs not in admin.get("/system/buckets").text


def test_a_link_ends_with_the_right_of_who_asked_for_it(
    bucket: str, alice: httpx.Client, bob: httpx.Client, dora: httpx.Client
) -> None:
    shared = {"bucket_name": bucket, "visibility": "restricted", "allowed_users": ["bob@test", "dora@test"]}
    assert alice.put("/system/buckets", json=shared).status_code == 204
    assert put(alice, bucket, "secret", b"for friends").status_code == 200

    def link(client: httpx.Client, operation: str) -> str:
        asked = {"object_key": "secret", "operation": operation, "expires_in": 604_800}
        answer = client.post(f"/system/buckets/{bucket}/presign", json=asked)
        assert answer.status_code == 200, answer.text
        lasts = datetime.fromisoformat(answer.json()["expires_at"]) - datetime.now(UTC)
        assert timedelta(hours=23) < lasts <= timedelta(days=1)  # and not a week
        return str(answer.json()["url"])

    his, hers, upload = link(bob, "download"), link(dora, "download"), link(bob, "upload")
    assert httpx.get(his, trust_env=False).content == b"for friends"
    assert alice.put("/system/buckets", json={**shared, "allowed_users": ["dora@test"]}).status_code == 204
    assert httpx.get(his, trust_env=False).status_code == 403
    assert httpx.put(upload, content=b"mine now", trust_env=False).status_code == 403
    assert httpx.get(hers, trust_env=False).content == b"for friends"
    assert alice.put("/system/buckets", json={"bucket_name": bucket, "visibility": "private"}).status_code == 204
    assert httpx.get(hers, trust_env=False).status_code == 403
