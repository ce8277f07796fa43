"""Volumes of a manager on Kubernetes: told as they are, and kept from job to job."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from lightkube import AsyncClient
from lightkube.resources.core_v1 import PersistentVolumeClaim

from journeys.conftest import FreshName, MakeService
from real.kubernetes import disks
from real.kubernetes.access import Access

pytestmark = pytest.mark.deep


async def until(ask: Callable[[], Any], right: Callable[[Any], bool], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not right(seen := await asyncio.to_thread(ask)):
        assert time.monotonic() < end, seen
        await asyncio.sleep(0.2)
    return seen


async def test_a_volume_waits_for_a_disk_is_used_and_goes(
    kubernetes: Access, alice: httpx.Client, make_service: MakeService, fresh_name: FreshName, tmp_path: Path
) -> None:
    name = fresh_name("volume")

    def volume() -> dict[str, Any]:
        return dict(alice.get(f"/system/volumes/{name}").json())

    def of_service(service: str) -> dict[str, Any]:
        return dict(alice.get(f"/system/services/{service}").json()["volume_status"])

    made = await asyncio.to_thread(alice.post, "/system/volumes", json={"name": name, "size": "1Gi"})
    assert made.status_code == 201, made.text
    namespace = made.json()["namespace"]
    writer = await asyncio.to_thread(
        make_service, alice, "cp $INPUT_FILE_PATH /data/kept", volume={"name": name, "mount_path": "/data"}
    )
    # The cluster has neither a class of volumes nor a disk.
    waiting = await until(volume, lambda seen: "no persistent volumes available" in seen["status"].get("reason", ""))
    assert (waiting["status"]["phase"], waiting["status"]["attachment_count"]) == ("pending", 1)
    told = await asyncio.to_thread(of_service, writer)
    assert (told["phase"], "no storage class is set" in told["error"]) == ("Pending", True)

    async with disks.offered(kubernetes, tmp_path / "disk", claim=(namespace, name)), kubernetes.client() as api:
        await until(volume, lambda seen: seen["status"] == {"phase": "in_use", "attachment_count": 1})
        assert (await asyncio.to_thread(of_service, writer)) == {"enabled": True, "name": name, "phase": "Bound"}
        reader = await asyncio.to_thread(
            make_service, alice, "cat /store/kept", volume={"name": name, "mount_path": "/store"}
        )
        answer = await asyncio.to_thread(alice.post, f"/run/{writer}", content="from run to run", timeout=120)
        assert answer.status_code == 200, answer.text
        assert (await asyncio.to_thread(alice.post, f"/run/{reader}", timeout=120)).text == "from run to run"
        for service in (writer, reader):
            assert (await asyncio.to_thread(alice.delete, f"/system/services/{service}")).status_code == 204
        assert (await asyncio.to_thread(alice.delete, f"/system/volumes/{name}")).status_code == 204
        async with asyncio.timeout(90):  # workers that use it still end
            while name in await claims(api, namespace):
                await asyncio.sleep(0.2)


async def claims(api: AsyncClient, namespace: str) -> list[str]:
    found = api.list(PersistentVolumeClaim, namespace=namespace)
    return [str(one.metadata.name) async for one in found if one.metadata is not None]
