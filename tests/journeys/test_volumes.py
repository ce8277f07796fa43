"""Volumes: folders that outlive the jobs using them."""

from typing import Any

import httpx
import pytest

from journeys.conftest import FreshName, MakeService


@pytest.fixture
def volume(alice: httpx.Client, fresh_name: FreshName) -> Any:
    name = fresh_name("volume")
    answer = alice.post("/system/volumes", json={"name": name, "size": "1Gi"})
    assert answer.status_code == 201
    yield name
    assert alice.delete(f"/system/volumes/{name}").status_code in (204, 404)


def test_a_new_volume_is_ready(volume: str, alice: httpx.Client) -> None:
    shown = alice.get(f"/system/volumes/{volume}").json()
    assert list(shown) == ["name", "namespace", "size", "owner_user", "creation_mode", "lifecycle_policy", "status"]
    assert shown == {
        "name": volume,
        "namespace": "oscar-svc-alice-te",
        "size": "1Gi",
        "owner_user": "alice@test",
        "creation_mode": "api",
        "lifecycle_policy": shown["lifecycle_policy"],
        "status": {"phase": "ready"},
    }
    assert shown in alice.get("/system/volumes").json()


def test_volumes_belong_to_one_user(volume: str, alice: httpx.Client, bob: httpx.Client) -> None:
    assert volume not in bob.get("/system/volumes").text
    assert bob.get("/system/volumes").status_code == 200
    assert bob.get(f"/system/volumes/{volume}").status_code == 404
    assert bob.delete(f"/system/volumes/{volume}").status_code == 404
    # the name is free in another's namespace
    assert bob.post("/system/volumes", json={"name": volume, "size": "1Gi"}).status_code == 201
    assert bob.delete(f"/system/volumes/{volume}").status_code == 204
    assert alice.get(f"/system/volumes/{volume}").status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "v"},
        {"size": "1Gi"},
        {"name": "Upper", "size": "1Gi"},
        {"name": "../v", "size": "1Gi"},
        {"name": "v", "size": "much"},
        {"name": "v", "size": "0"},
        {"name": "v", "size": "100Gi"},
        {"name": "v", "size": "1Mi"},
        {"name": "v", "size": 1},
    ],
)
def test_what_cannot_be_a_volume_is_400(alice: httpx.Client, body: dict[str, Any]) -> None:
    assert alice.post("/system/volumes", json=body).status_code == 400


def test_a_name_is_taken_once(volume: str, alice: httpx.Client) -> None:
    assert alice.post("/system/volumes", json={"name": volume, "size": "1Gi"}).status_code == 409


def test_jobs_share_an_attached_volume(make_service: MakeService, volume: str, alice: httpx.Client) -> None:
    writer = make_service(alice, "cp $INPUT_FILE_PATH /data/kept", volume={"name": volume, "mount_path": "/data"})
    reader = make_service(alice, "cat /store/kept", volume={"name": volume, "mount_path": "/store"})
    assert alice.post(f"/run/{writer}", content="from run to run").status_code == 200
    assert alice.post(f"/run/{reader}").text == "from run to run"
    shown = alice.get(f"/system/volumes/{volume}").json()
    assert shown["status"] == {"phase": "in_use", "attachment_count": 2}
    assert {one["service_name"]: one["mount_path"] for one in shown["attachments"]} == {
        writer: "/data",
        reader: "/store",
    }
    assert alice.get(f"/system/services/{writer}").json()["volume_status"] == {
        "enabled": True,
        "name": volume,
        "phase": "Bound",
    }
    refused = alice.delete(f"/system/volumes/{volume}")
    assert refused.status_code == 400
    for name in (writer, reader):
        assert alice.delete(f"/system/services/{name}").status_code == 204
    assert alice.get(f"/system/volumes/{volume}").json()["status"] == {"phase": "ready"}


def test_a_service_may_bring_its_volume(make_service: MakeService, alice: httpx.Client) -> None:
    gone = make_service(alice, "true", volume={"size": "1Gi", "mount_path": "/data"})
    stays = make_service(alice, "true", volume={"size": "1Gi", "mount_path": "/data", "lifecycle_policy": "retain"})
    shown = alice.get(f"/system/volumes/{gone}").json()
    assert (shown["creation_mode"], shown["created_by_service"], shown["lifecycle_policy"]) == (
        "service",
        gone,
        "delete",
    )
    for name in (gone, stays):
        assert alice.delete(f"/system/services/{name}").status_code == 204
    assert alice.get(f"/system/volumes/{gone}").status_code == 404
    assert alice.get(f"/system/volumes/{stays}").json()["status"] == {"phase": "ready"}
    assert alice.delete(f"/system/volumes/{stays}").status_code == 204


def test_a_volume_that_is_not_there_or_not_yours_cannot_be_attached(
    volume: str, alice: httpx.Client, bob: httpx.Client
) -> None:
    definition = {"name": "attach", "image": "debian", "script": "true"}
    for client, name in ((alice, "not-there"), (bob, volume)):
        body = {**definition, "volume": {"name": name, "mount_path": "/data"}}
        assert client.post("/system/services", json=body).status_code == 400
        assert client.get("/system/services/attach").status_code == 404
