"""Disk in Kubernetes: what pods are told, and that a real kubelet ends a pod that writes more than it may."""

from dataclasses import replace
from typing import Any

import pytest

from contracts.job_host import uploaded
from contracts.orders import MIB, order
from drivers.kubernetes.scene import Scene
from hansa.drivers.kubernetes import exposed_manifest, job_manifest, pods, quota_manifest, worker_manifest
from hansa.drivers.kubernetes.pods import Shape
from hansa.kernel.quota import QuotaSettings
from hansa.resources import Limits
from hansa.services import StorageIO
from hansa.services.service import Expose

pytest_plugins = ("real.object_store",)

SHAPE = Shape(cluster="visby", stager_image="hansa:1")
DISK = 32 * MIB
OUT = (StorageIO(storage_provider="minio.default", path="b/out"),)
KEYS = {"minio.default": {"endpoint": "http://store", "access_key": "lent", "secret_key": "lent"}}


def job_pod(shape: Shape, **fields: Any) -> dict[str, Any]:
    asked = order("true", disk=DISK, output=OUT, providers=KEYS, **fields)
    made = job_manifest.secret(asked, "ns", shape)
    made.metadata.uid = "1"  # type: ignore[union-attr]
    pod: dict[str, Any] = job_manifest.job(asked, "ns", shape, made).to_dict()["spec"]["template"]["spec"]
    return pod


def shared(pod: dict[str, Any]) -> dict[str, Any]:
    return {one["name"]: one["emptyDir"] for one in pod["volumes"] if "emptyDir" in one}


def test_a_job_has_a_limit_on_all_it_can_write() -> None:
    pod = job_pod(SHAPE)
    (script,) = pod["containers"]
    (stager,) = pod["initContainers"]
    assert script["resources"]["limits"]["ephemeral-storage"] == str(DISK)
    assert script["resources"]["requests"]["ephemeral-storage"] == str(DISK)
    assert stager["resources"]["requests"]["ephemeral-storage"] == "16Mi"
    assert set(shared(pod)) == {"work", "output", "notes"}
    assert all(one == {"sizeLimit": str(DISK)} for one in shared(pod).values())


def test_what_kueue_admits_requests_nothing_its_queues_do_not_count() -> None:
    pod = job_pod(replace(SHAPE, queue="hansa"))
    for one in (*pod["containers"], *pod["initContainers"]):
        assert "ephemeral-storage" not in str(one["resources"])
    assert all(one == {"sizeLimit": str(DISK)} for one in shared(pod).values())
    limits = Limits.of(QuotaSettings())
    assert "ephemeral" not in str(quota_manifest.resource_quota("ns", "visby", limits, disk=False).to_dict())
    assert "ephemeral" not in str(quota_manifest.limit_range("ns", "visby", limits, disk=False).to_dict())


def test_workers_and_exposed_services_have_one_too() -> None:
    asked = order("true", disk=DISK, expose=Expose(api_port=(8080,), min_scale=1, max_scale=1))
    owner = worker_manifest.secret(asked, "worker", "ns", SHAPE, "token")
    owner.metadata.uid = "1"  # type: ignore[union-attr]
    worker = worker_manifest.pod(asked, "worker", "ns", SHAPE, owner).to_dict()["spec"]
    exposed = exposed_manifest.deployment(asked, "ns", SHAPE, replicas=1).to_dict()["spec"]["template"]["spec"]
    for pod in (worker, exposed):
        script = next(one for one in pod["containers"] if one["name"] == pods.SCRIPT)
        assert script["resources"]["limits"]["ephemeral-storage"] == str(DISK)
        assert all(one == {"sizeLimit": str(DISK)} for one in shared(pod).values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "n=0; while [ $n -lt 100 ]; do head -c 4194304 /dev/zero > /job/f$n; n=$((n+1)); done; sleep 120",
        "head -c 419430400 /dev/zero > /tmp/big; sleep 120",
    ],
    ids=["files", "beside-the-folders"],
)
async def test_a_pod_that_writes_too_much_is_ended(scene: Scene, script: str) -> None:
    """Files that are deleted but open are not among these: a kubelet walks folders, and does not see them."""
    outcome = await scene.host.run(order(script, disk=DISK, seconds=110))
    assert not outcome.succeeded
    assert "evicted by Kubernetes" in outcome.reason, outcome
    assert "phemeral" in outcome.reason or "EmptyDir" in outcome.reason, outcome


async def test_an_input_that_does_not_fit(scene: Scene) -> None:
    await scene.store.put(scene.bucket, "in/big", bytes(48 * MIB))
    outcome = await scene.host.run(order("echo ran", event=uploaded(scene.bucket, "in/big"), disk=DISK, seconds=60))
    assert not outcome.succeeded
    assert f"the input needs {48 * MIB} bytes, the service's disk limit is {DISK} bytes" in outcome.reason
