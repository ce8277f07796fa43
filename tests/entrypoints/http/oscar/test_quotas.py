"""`/system/quotas` in OSCAR's words."""

import httpx
import pytest

from entrypoints.http.oscar.keeping import as_user

pytest_plugins = ("real.object_store",)

ALICE = as_user("alice")


async def test_a_users_own_quota(client: httpx.AsyncClient) -> None:
    await client.post("/system/volumes", headers=ALICE, json={"name": "models", "size": "1Gi"})
    assert (await client.get("/system/quotas/user", headers=ALICE)).json() == {
        "user_id": "alice",
        "resources": {
            "cpu": {"max": 2000, "used": 0},
            "memory": {"max": 2147483648, "used": 0},
            "ephemeral-storage": {"max": 10737418240, "used": 0},
            "gpu": {"max": 0, "used": 0},
        },
        "volumes": {
            "disk": {"max": "7Gi", "used": "1Gi"},
            "volumes": {"max": "5", "used": "1"},
            "max_disk_per_volume": "5Gi",
            "min_disk_per_volume": "200Mi",
        },
        "minio": {
            "buckets": {"max": 3, "used": 0},
            "storage_per_bucket": {"max": "1Ki"},
            "storage_total": {"used": "0"},
        },
    }
    assert (await client.get("/system/quotas/user")).status_code == 403


async def test_the_admin_changes_it(client: httpx.AsyncClient) -> None:
    body = {"cpu": "500m", "ephemeral-storage": "3Gi", "volumes": {"Disk": "10Gi"}, "minio": {"buckets": "9"}}
    changed = (await client.put("/system/quotas/user/alice", json=body)).json()
    assert changed["resources"]["cpu"]["max"] == 500
    assert changed["resources"]["ephemeral-storage"]["max"] == 3 * 2**30
    assert (changed["volumes"]["disk"]["max"], changed["minio"]["buckets"]["max"]) == ("10Gi", 9)
    assert (await client.get("/system/quotas/user", headers=ALICE)).json() == changed
    assert (await client.get("/system/quotas/user/alice")).json() == changed
    for method in ("GET", "PUT"):
        refused = await client.request(method, "/system/quotas/user/alice", headers=ALICE, json=body)
        assert refused.status_code == 403
        assert refused.text


@pytest.mark.parametrize("body", [{}, {"gpu": "1"}, {"cpu": 1}, {"cpu": "x"}, {"volumes": {}}, [], "x"])
async def test_odd_changes_are_refused(client: httpx.AsyncClient, body: object) -> None:
    assert (await client.put("/system/quotas/user/alice", json=body)).status_code == 400


async def test_odd_users_are_refused(client: httpx.AsyncClient) -> None:
    assert (await client.get("/system/quotas/user/a%00b")).status_code == 400
    assert (await client.put(f"/system/quotas/user/{'x' * 300}", json={"cpu": "1"})).status_code == 400
