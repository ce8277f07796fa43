"""`/system/buckets` in OSCAR's words."""

import secrets

import httpx
import pytest

from entrypoints.http.oscar.keeping import Keeping, as_user

pytest_plugins = ("real.object_store",)

ALICE, BOB = as_user("alice@example.org"), as_user("bob@example.org")


@pytest.fixture
def name() -> str:
    return f"test-{secrets.token_hex(8)}"


async def test_the_life_of_a_bucket(client: httpx.AsyncClient, name: str) -> None:
    assert (await client.get("/system/buckets", headers=ALICE)).text == "null"
    body = {"bucket_name": name, "visibility": "restricted", "allowed_users": ["carol"]}
    made = await client.post("/system/buckets", headers=ALICE, json=body)
    assert (made.status_code, made.content) == (201, b"")
    listed = await client.get("/system/buckets", headers=ALICE)
    assert listed.text == (
        f'[{{"bucket_name":"{name}","visibility":"restricted","allowed_users":["carol"],'
        '"owner":"alice@example.org","metadata":{"owner_name":"Alice@Example.Org"}}]'
    )
    changed = await client.put("/system/buckets", headers=ALICE, content=f'{{"BUCKET_NAME":"{name}"}}')
    assert (changed.status_code, changed.content) == (204, b"")
    shown = (await client.get(f"/system/buckets/{name}", headers=ALICE)).json()
    assert list(shown) == [
        "bucket_name", "visibility", "allowed_users", "owner", "metadata",
        "storage_quota", "storage_usage", "is_truncated", "returned_items",
    ]  # fmt: skip
    assert (shown["visibility"], shown["allowed_users"]) == ("private", None)
    assert shown["storage_quota"] == {"max": "1Ki", "max_bytes": 1024, "source": "bucket"}
    assert shown["storage_usage"] == {"used": "0", "used_bytes": 0}
    assert (await client.get(f"/system/buckets/{name}", headers=BOB)).status_code == 403
    assert (await client.delete(f"/system/buckets/{name}", headers=BOB)).status_code == 403
    assert (await client.delete(f"/system/buckets/{name}", headers=ALICE)).status_code == 204
    assert (await client.get(f"/system/buckets/{name}", headers=ALICE)).status_code == 404


async def test_the_admins_buckets_carry_oscars_tag(client: httpx.AsyncClient, keeping: Keeping, name: str) -> None:
    await client.post("/system/buckets", json={"bucket_name": name})
    await keeping.open_store.store.put(name, "in/a.txt", b"hello")
    shown = (await client.get(f"/system/buckets/{name}")).json()
    assert (shown["visibility"], shown["owner"], shown["metadata"]["owner"]) == ("", "oscar", "oscar")
    assert shown["storage_quota"] == {"source": "unset"}
    (only,) = shown["objects"]
    assert (only["object_name"], only["size_bytes"]) == ("in/a.txt", 5)
    assert (shown["is_truncated"], shown["returned_items"]) == (False, 1)
    listed = {one["bucket_name"]: one for one in (await client.get("/system/buckets")).json()}
    assert "owner" not in listed[name]["metadata"]


async def test_links(client: httpx.AsyncClient, name: str) -> None:
    await client.post("/system/buckets", headers=ALICE, json={"bucket_name": name})
    # oscar-python's way: `expires` of 0, and null where there is nothing to say
    body = {
        "object_key": "in/a",
        "operation": "upload",
        "expires": 0,
        "content_type": "text/plain",
        "extra_headers": None,
    }
    up = (await client.post(f"/system/buckets/{name}/presign", headers=ALICE, json=body)).json()
    assert list(up) == ["object_key", "operation", "method", "url", "expires_at", "headers"]
    assert (up["method"], up["headers"]) == ("PUT", {"Content-Type": "text/plain"})
    async with httpx.AsyncClient(trust_env=False, timeout=10) as outside:
        (await outside.put(up["url"], content=b"hello", headers=up["headers"])).raise_for_status()
        down = await client.post(
            f"/system/buckets/{name}/presign", headers=ALICE, json={"object_key": "in/a", "operation": "download"}
        )
        assert "headers" not in down.json()
        assert (await outside.get(down.json()["url"])).text == "hello"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/system/buckets", {"bucket_name": "No"}, 400),
        ("POST", "/system/buckets", {"bucket_name": 5}, 400),
        ("POST", "/system/buckets", {}, 400),
        ("POST", "/system/buckets", {"bucket_name": "valid-name", "visibility": "odd"}, 400),
        ("POST", "/system/buckets", {"bucket_name": "valid-name", "allowed_users": "alice"}, 400),
        ("PUT", "/system/buckets", {"bucket_name": "not-there-at-all"}, 404),
        ("GET", "/system/buckets/%00", None, 400),
        ("GET", "/system/buckets/not-there-at-all", None, 404),
        ("DELETE", "/system/buckets/a..b", None, 400),
        ("POST", "/system/buckets/not-there-at-all/presign", {"object_key": "a", "operation": "upload"}, 404),
        ("POST", "/system/buckets/not-there-at-all/presign", {"object_key": "a", "operation": "eat"}, 400),
    ],
)
async def test_refusals_are_words(client: httpx.AsyncClient, method: str, path: str, body: object, status: int) -> None:
    answer = await client.request(method, path, json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text


async def test_the_quota_is_a_403(client: httpx.AsyncClient, name: str) -> None:
    for number in range(3):
        await client.post("/system/buckets", headers=ALICE, json={"bucket_name": f"{name}-{number}"})
    refused = await client.post("/system/buckets", headers=ALICE, json={"bucket_name": f"{name}-x"})
    assert refused.status_code == 403
    assert "quota" in refused.text
    again = await client.post("/system/buckets", headers=ALICE, json={"bucket_name": f"{name}-0"})
    assert again.status_code == 409
