"""`/system/volumes` in OSCAR's words."""

import httpx

from entrypoints.http.oscar.keeping import as_user

pytest_plugins = ("real.object_store",)

ALICE, BOB = as_user("alice"), as_user("bob")


async def test_the_life_of_a_volume(client: httpx.AsyncClient) -> None:
    assert (await client.get("/system/volumes", headers=ALICE)).text == "[]"
    made = await client.post("/system/volumes", headers=ALICE, json={"name": "models", "size": "1.5Gi"})
    assert made.status_code == 201
    expected = {
        "name": "models",
        "namespace": "oscar-svc-alice-52",
        "size": "1536Mi",
        "owner_user": "alice",
        "creation_mode": "api",
        "lifecycle_policy": "retain",
        "status": {"phase": "ready"},
    }
    assert made.json() == expected
    assert (await client.get("/system/volumes", headers=ALICE)).json() == [expected]
    assert (await client.get("/system/volumes/models", headers=ALICE)).json() == expected
    assert (await client.get("/system/volumes/models", headers=BOB)).status_code == 404
    again = await client.post("/system/volumes", headers=ALICE, json={"name": "models", "size": "1Gi"})
    assert again.status_code == 409
    assert (await client.delete("/system/volumes/models", headers=ALICE)).status_code == 204
    assert (await client.delete("/system/volumes/models", headers=ALICE)).status_code == 404


async def test_refusals(client: httpx.AsyncClient) -> None:
    too_large = await client.post("/system/volumes", headers=ALICE, json={"name": "models", "size": "6Gi"})
    assert too_large.status_code == 400
    assert "quota" in too_large.text
    odd: list[object] = [{"name": "models"}, {"name": "..", "size": "1Gi"}, {"name": "models", "size": "big"}, []]
    for body in odd:
        assert (await client.post("/system/volumes", headers=ALICE, json=body)).status_code == 400
    assert (await client.get("/system/volumes/%2e%2e%2fetc", headers=ALICE)).status_code in (400, 404)
