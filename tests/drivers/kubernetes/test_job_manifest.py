"""What a job looks like in Kubernetes: nothing secret in sight of others, no right it does not need."""

import base64
from dataclasses import replace
from typing import Any

import msgspec

from contracts.orders import MIB, order
from hansa.drivers.kubernetes import job_manifest, labels
from hansa.drivers.kubernetes.pods import Shape
from hansa.drivers.kubernetes.stager.paper import Links, Paper
from hansa.services import RunOrder, StorageIO, VolumeMount, events

SHAPE = Shape(cluster="visby", stager_image="hansa:1", node_selector={"disk": "fast"}, priority_class="low")
OUTPUT = (StorageIO(storage_provider="minio.default", path="bucket/out"),)
KEYS = {"minio.default": {"endpoint": "http://s3", "access_key": "AK", "secret_key": "SK"}}


def made(asked: RunOrder) -> tuple[dict[str, bytes], dict[str, Any], dict[str, Any]]:
    """The Secret's data, the Job's specification and its pod's."""
    secret = job_manifest.secret(asked, "people", SHAPE)
    assert secret.metadata is not None
    secret.metadata.uid = "1234"
    job = job_manifest.job(asked, "people", SHAPE, secret).to_dict()
    assert job["metadata"]["ownerReferences"][0]["uid"] == "1234"
    data = {name: base64.b64decode(body) for name, body in (secret.data or {}).items()}
    return data, job["spec"], job["spec"]["template"]["spec"]


def test_a_plain_job_is_one_container_and_has_no_rights() -> None:
    data, spec, pod = made(order("echo hi", event=b"aGVsbG8=", cpu=250, memory=32 * MIB, seconds=60))
    assert "initContainers" not in pod
    assert data.keys() == {"call", "script.sh", "function_config.yaml", "input"}
    assert data["input"] == b"hello"
    (script,) = pod["containers"]
    assert script["resources"]["limits"] == {"cpu": "250m", "memory": str(32 * MIB), "ephemeral-storage": str(64 * MIB)}
    assert script["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert (spec["backoffLimit"], spec["ttlSecondsAfterFinished"]) == (0, 86_400)
    assert spec["activeDeadlineSeconds"] > 60
    assert (pod["nodeSelector"], pod["priorityClassName"]) == ({"disk": "fast"}, "low")


def test_keys_of_stores_are_the_stagers_alone() -> None:
    asked = order(
        "true", event=events.minio_event("b", "in/x", size=1, etag="e", at=1.0), output=OUTPUT, providers=KEYS
    )
    data, _, pod = made(asked)
    bring, carry = pod["initContainers"]
    assert (bring["name"], carry["name"], carry["restartPolicy"]) == ("stage-in", "stage-out", "Always")
    (script,) = pod["containers"]
    assert "order" not in {mount["name"] for mount in script["volumeMounts"]}
    assert "order" in {mount["name"] for mount in carry["volumeMounts"]}
    assert b"SK" in data.pop("order.json")
    assert not [name for name, body in data.items() if b"SK" in body or b"AK" in body]
    assert "SK" not in repr(pod)


def test_what_the_stager_reads_is_what_was_ordered() -> None:
    event = events.minio_event("b", "in/x", size=1, etag="e", at=1.0)
    data, _, _ = made(order("true", event=event, output=OUTPUT, providers=KEYS, log_level="ERROR"))
    again = msgspec.json.decode(data["order.json"], type=Paper)
    plan = again.steps
    assert (again.log_level, again.input_name) == ("ERROR", "x")
    assert plan.input is not None
    assert (plan.input.bucket, plan.input.key) == ("b", "in/x")
    assert [(one.bucket, one.folder) for one in plan.outputs] == [("bucket", "out")]
    assert {one.secret_key for one in plan.stores} == {one["secret_key"] for one in KEYS.values()}


def test_a_large_event_is_no_part_of_the_secret() -> None:
    large = order("true", event=b"x" * (job_manifest.LARGEST_EVENT + 1))
    secret = job_manifest.secret(large, "people", SHAPE, Links("http://s3/link", "http://s3/gate"))
    assert sum(len(body) for body in (secret.data or {}).values()) < 10_000
    told = msgspec.json.decode(base64.b64decode((secret.data or {})["order.json"]), type=Paper)
    assert (told.input_url, told.gate_url) == ("http://s3/link", "http://s3/gate")


def test_labels_carry_what_they_can() -> None:
    found = job_manifest.secret(
        order("true", owner="ann@example.org/" + "x" * 80, labels={"vo": "a b"}), "people", SHAPE
    ).metadata
    assert found is not None
    assert found.labels is not None
    assert found.labels["vo"] == "a-b"
    assert found.labels[labels.JOB_OWNER].startswith("ann-example.org-xxx")
    assert max(len(value) for value in found.labels.values()) <= 63
    assert (found.labels[labels.OSCAR_SERVICE], found.labels[labels.CLUSTER]) == ("tool", "visby")


def test_a_volume_is_a_claim_beside_which_all_its_pods_run() -> None:
    mount = VolumeMount("models", "/data", 10001, one_node=True)
    _, spec, pod = made(order("true", mounts=(mount,)))
    assert {"name": "volume-0", "persistentVolumeClaim": {"claimName": "models"}} in pod["volumes"]
    assert {"name": "volume-0", "mountPath": "/data"} in pod["containers"][0]["volumeMounts"]
    (term,) = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (asked,) = term["labelSelector"]["matchExpressions"]
    assert asked["key"] in spec["template"]["metadata"]["labels"]
    _, _, pod = made(order("true", mounts=(replace(mount, one_node=False),)))
    assert "affinity" not in pod
