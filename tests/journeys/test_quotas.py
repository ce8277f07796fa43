"""How much a user may have: shown to them, changed by the admin, and held when they ask for more."""

import httpx
import pytest

from journeys.conftest import FreshName, MakeService, Person
from journeys.waiting import all_jobs, ended_jobs, eventually

QUINN = "/system/quotas/user/quinn@test"


@pytest.fixture
def quinn(person: Person) -> httpx.Client:
    """Whose quota the stories change."""
    return person("quinn")


def test_a_quota_has_oscars_shape_and_units(quinn: httpx.Client, admin: httpx.Client) -> None:
    answer = quinn.get("/system/quotas/user")
    shown = answer.json()
    assert list(shown) == ["user_id", "resources", "volumes", "minio"]
    assert shown["user_id"] == "quinn@test"
    assert list(shown["resources"]) == ["cpu", "memory", "ephemeral-storage", "gpu"]
    assert shown["resources"]["ephemeral-storage"]["max"] == 1000 * 2**30
    assert list(shown["volumes"]) == ["disk", "volumes", "max_disk_per_volume", "min_disk_per_volume"]
    assert (shown["volumes"]["max_disk_per_volume"], shown["volumes"]["min_disk_per_volume"]) == ("5Gi", "200Mi")
    assert shown["volumes"]["volumes"]["used"] == "0"
    assert list(shown["minio"]) == ["buckets", "storage_per_bucket", "storage_total"]
    assert shown["minio"]["storage_per_bucket"] == {"max": "5Gi"}
    assert admin.get(QUINN).text == answer.text


def test_only_the_admin_sees_and_changes_others(quinn: httpx.Client, admin: httpx.Client) -> None:
    assert quinn.get(QUINN).status_code == 403
    assert quinn.put(QUINN, json={"cpu": "64"}).status_code == 403
    assert admin.get("/system/quotas/user").status_code == 403  # the admin has none


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"gpu": "1"},
        {"cpu": 4},
        {"cpu": "many"},
        {"cpu": "-1"},
        {"memory": "1Xi"},
        {"volumes": {"volumes": "1.5"}},
        {"minio": {"buckets": "x"}},
    ],
)
def test_limits_that_make_no_sense_are_400(admin: httpx.Client, body: dict[str, object]) -> None:
    before = admin.get(QUINN).text
    assert admin.put(QUINN, json=body).status_code == 400
    assert admin.get(QUINN).text == before


def test_the_admin_changes_some_limits_and_the_others_stay(quinn: httpx.Client, admin: httpx.Client) -> None:
    before = quinn.get("/system/quotas/user").json()
    answer = admin.put(QUINN, json={"memory": "8Gi", "ephemeral-storage": "2Gi"})
    assert answer.status_code == 200
    after = answer.json()
    assert after["resources"]["memory"]["max"] == 8 * 2**30
    assert after["resources"]["ephemeral-storage"]["max"] == 2 * 2**30
    assert after["resources"]["cpu"] == before["resources"]["cpu"]
    assert quinn.get("/system/quotas/user").json() == after
    assert admin.put(QUINN, json={"ephemeral_storage": "1Gi"}).status_code == 200


def test_no_more_buckets_than_the_quota(quinn: httpx.Client, admin: httpx.Client, fresh_name: FreshName) -> None:
    assert admin.put(QUINN, json={"minio": {"buckets": "2"}}).status_code == 200
    names = [fresh_name("quota") for _ in range(3)]
    try:
        assert [quinn.post("/system/buckets", json={"bucket_name": name}).status_code for name in names] == [
            201,
            201,
            403,
        ]
        assert quinn.get("/system/quotas/user").json()["minio"]["buckets"] == {"max": 2, "used": 2}
        definition = {
            "name": fresh_name("over"),
            "image": "debian",
            "script": "true",
            "input": [{"storage_provider": "minio", "path": "in"}],
        }
        refused = quinn.post("/system/services", json=definition)
        assert refused.status_code == 403
        assert "quota" in refused.text
        assert quinn.get(f"/system/services/{definition['name']}").status_code == 404
    finally:
        for name in names[:2]:
            quinn.delete(f"/system/buckets/{name}")
        admin.put(QUINN, json={"minio": {"buckets": "100"}})


def test_no_more_volumes_than_the_quota(quinn: httpx.Client, admin: httpx.Client) -> None:
    assert admin.put(QUINN, json={"volumes": {"volumes": "2", "disk": "3Gi"}}).status_code == 200
    try:
        assert quinn.post("/system/volumes", json={"name": "q-1", "size": "2Gi"}).status_code == 201
        refused = quinn.post("/system/volumes", json={"name": "q-2", "size": "2Gi"})
        assert refused.status_code == 400
        assert "quota" in refused.text
        assert quinn.post("/system/volumes", json={"name": "q-2", "size": "1Gi"}).status_code == 201
        assert quinn.post("/system/volumes", json={"name": "q-3", "size": "200Mi"}).status_code == 400
        shown = quinn.get("/system/quotas/user").json()["volumes"]
        assert (shown["disk"], shown["volumes"]) == ({"max": "3Gi", "used": "3Gi"}, {"max": "2", "used": "2"})
    finally:
        for name in ("q-1", "q-2"):
            quinn.delete(f"/system/volumes/{name}")
        admin.put(QUINN, json={"volumes": {"volumes": "100", "disk": "100Gi"}})


def test_jobs_beyond_the_quota_wait_their_turn(
    make_service: MakeService, quinn: httpx.Client, alice: httpx.Client, admin: httpx.Client
) -> None:
    assert admin.put(QUINN, json={"cpu": "1"}).status_code == 200
    try:
        name = make_service(quinn, '[ "$(cat $INPUT_FILE_PATH)" = "the first" ] && exec sleep 1000 || true', cpu="1")
        first = quinn.post(f"/job/{name}", content="the first").headers["x-hansa-job"]
        eventually(lambda: all_jobs(quinn, name)[first]["status"] == "Running")
        assert quinn.get("/system/quotas/user").json()["resources"]["cpu"] == {"max": 1000, "used": 1000}
        second = quinn.post(f"/job/{name}", content="the second").headers["x-hansa-job"]
        other = make_service(alice, "true", cpu="1")  # another user's job does not wait behind it
        alice.post(f"/job/{other}")
        ended_jobs(alice, other, 1)
        assert all_jobs(quinn, name)[second]["status"] == "Pending"
        assert quinn.delete(f"/system/logs/{name}/{first}").status_code == 204
        assert ended_jobs(quinn, name, 1)[second]["status"] == "Succeeded"
    finally:
        admin.put(QUINN, json={"cpu": "64"})


def test_a_quota_of_somebody_unknown_is_kept_and_told(admin: httpx.Client, person: Person) -> None:
    uid = person("quinn").get("/system/config").json()["minio_provider"]["access_key"]
    known = admin.put(f"/system/quotas/user/{uid}", json={"cpu": "3"})
    assert (known.status_code, "x-hansa-warning" in known.headers) == (200, False)
    unknown = admin.put("/system/quotas/user/nobody-yet@test", json={"cpu": "3"})
    assert unknown.status_code == 200
    assert unknown.headers["x-hansa-warning"].startswith("nobody with the uid 'nobody-yet@test' was here yet")
