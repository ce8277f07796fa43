"""What does a job look like in Kubernetes? Pure: from an order to a Secret and a Job.

The Secret carries the call (variables, event, script) and, for the stager alone, the keys of the stores. It owns the
Job: whoever deletes the Secret deletes all of it. The user's image needs a shell and nothing of ours. Inputs are
brought by an init container, outputs carried by a sidecar, both of Hansa's own image, and only where there are any.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Secret

from hansa import services
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.stager import paper
from hansa.drivers.runs import environment
from hansa.services import events

SCRIPT, STAGE_IN, STAGE_OUT = "script", "stage-in", "stage-out"
LARGEST_EVENT = 512 * 1024  # a Secret holds 1 MiB
_PLACES = environment.Places(job="/job", config="/oscar/config")
_CALL = "/hansa/call"
_NO_LINKS = paper.Links()

# The script's end is written down for the sidecar; its processor time for us, in the container's last message.
_COMMAND = f"""
. {_CALL}/call || exit 126
/bin/sh {_PLACES.config}/script.sh &
script=$!
trap 'kill -TERM $script 2>/dev/null' TERM
wait $script; code=$?
while kill -0 $script 2>/dev/null; do wait $script; code=$?; done
times > /dev/termination-log 2>/dev/null
echo $code > {paper.END} 2>/dev/null
exit $code
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How pods of this cluster are made."""

    cluster: str
    stager_image: str
    user: int = 10001
    """Scripts run as this user: never as root."""
    node: str = "kubernetes"
    """What scripts see as RESOURCE_ID."""
    keep: int = 86_400
    """Seconds after which Kubernetes removes an ended Job that nobody discarded."""
    start_within: int = 3600
    """Seconds a job may wait for a node and its image."""
    carry_within: int = 3600
    """Seconds the outputs may take."""
    priority_class: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()


def stages_in(order: services.RunOrder) -> bool:
    given = events.interpret(order.event)
    if order.service.mount.path or len(order.event) > LARGEST_EVENT:
        return True
    return isinstance(given, events.ObjectInput) and not order.service.file_stage_in


def stages_out(order: services.RunOrder) -> bool:
    return bool(order.service.output or order.service.mount.path)


def secret(order: services.RunOrder, namespace: str, shape: Shape, links: paper.Links = _NO_LINKS) -> Secret:
    """An event that a Secret cannot carry is behind a link."""
    given = events.interpret(order.event)
    variables = environment.service_variables(order, _PLACES, shape.node)
    variables |= environment.call_variables(order, given, _PLACES)
    data = {
        "call": environment.call_file(variables)[1].encode(),
        "script.sh": order.service.script.encode(),
        "function_config.yaml": environment.definition_text(order.service).encode(),
    }
    if not stages_in(order):
        data["input"] = given.data if isinstance(given, events.BytesInput) else b""
    if stages_in(order) or stages_out(order):
        data["order.json"] = msgspec.json.encode(paper.Paper.of(order, links))
    made = Secret.from_dict(
        {
            "metadata": {"name": order.name, "namespace": namespace, "labels": _labels(order, shape)},
            "type": "Opaque",
            "immutable": True,
            "data": {name: base64.b64encode(body).decode() for name, body in data.items()},
        }
    )
    return cast(Secret, made)


def job(order: services.RunOrder, namespace: str, shape: Shape, owner: Secret) -> Job:
    marks = _labels(order, shape)
    made = Job.from_dict(
        {
            "metadata": {
                "name": order.name,
                "namespace": namespace,
                "labels": marks,
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "Secret",
                        "name": owner.metadata.name,  # type: ignore[union-attr]
                        "uid": owner.metadata.uid,  # type: ignore[union-attr]
                        "blockOwnerDeletion": False,
                    }
                ],
            },
            "spec": {
                "backoffLimit": 0,
                "completions": 1,
                "parallelism": 1,
                "activeDeadlineSeconds": int(order.seconds) + shape.start_within + shape.carry_within,
                "ttlSecondsAfterFinished": shape.keep,
                # A pod that Kubernetes itself takes away (drained, evicted, its node lost) is replaced.
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
                },
                "template": {
                    "metadata": {"labels": marks},
                    "spec": _pod(order, shape),
                },
            },
        }
    )
    return cast(Job, made)


def _labels(order: services.RunOrder, shape: Shape) -> dict[str, str]:
    given = {name: labels.value(text) for name, text in order.service.labels.items()}
    ours = {labels.JOB: order.name, labels.OSCAR_SERVICE: order.service.name, **labels.of_cluster(shape.cluster)}
    if order.service.owner:
        ours[labels.JOB_OWNER] = labels.value(order.service.owner)
    return given | ours


def _pod(order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    service = order.service
    staged = []
    if stages_in(order):
        staged.append(_stager(STAGE_IN, "in", order, shape))
    if stages_out(order):
        staged.append({**_stager(STAGE_OUT, "out", order, shape), "restartPolicy": "Always"})
    chosen = {
        "priorityClassName": shape.priority_class,
        "nodeSelector": dict(shape.node_selector),
        "tolerations": [dict(one) for one in shape.tolerations],
        "imagePullSecrets": [{"name": name} for name in service.image_pull_secrets],
        "initContainers": staged,
    }
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": shape.carry_within if stages_out(order) else 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": shape.user,
            "runAsGroup": shape.user,
            "fsGroup": shape.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_script(order)],
        "volumes": _volumes(order),
        **{name: value for name, value in chosen.items() if value},
    }


def _script(order: services.RunOrder) -> dict[str, Any]:
    service = order.service
    limits = {"cpu": f"{order.cpu}m", "memory": str(order.memory)}
    if service.enable_gpu:
        limits["nvidia.com/gpu"] = "1"
    mounts = [
        {"name": "work", "mountPath": _PLACES.job},
        {"name": "output", "mountPath": _PLACES.output},
        {"name": "call", "mountPath": _CALL, "readOnly": True},
        {"name": "config", "mountPath": _PLACES.config, "readOnly": True},
    ]
    if not stages_in(order):
        mounts.append({"name": "input", "mountPath": _PLACES.input, "readOnly": True})
    if service.mount.path:
        mounts.append({"name": "mount", "mountPath": f"/mnt/{service.mount.path}"})
    return {
        "name": SCRIPT,
        "image": service.image,
        "command": ["/bin/sh", "-c", _COMMAND],
        "workingDir": _PLACES.job,
        "resources": {"limits": limits, "requests": limits},
        "securityContext": _RESTRICTED,
        "volumeMounts": mounts,
    }


_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _stager(name: str, way: str, order: services.RunOrder, shape: Shape) -> dict[str, Any]:
    mounts = [
        {"name": "work", "mountPath": _PLACES.job},
        {"name": "output", "mountPath": _PLACES.output},
        {"name": "order", "mountPath": paper.ORDER_FOLDER, "readOnly": True},
    ]
    if order.service.mount.path:
        mounts.append({"name": "mount", "mountPath": paper.MOUNT})
    return {
        "name": name,
        "image": shape.stager_image,
        "command": ["python3", "-m", "hansa.drivers.kubernetes.stager", way],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    }


def _volumes(order: services.RunOrder) -> list[dict[str, Any]]:
    def secret_volume(name: str, keys: Mapping[str, str]) -> dict[str, Any]:
        items = [{"key": key, "path": path} for key, path in keys.items()]
        return {"name": name, "secret": {"secretName": order.name, "items": items, "defaultMode": 0o444}}

    config = {"function_config.yaml": "function_config.yaml", "script.sh": "script.sh"}
    volumes: list[dict[str, Any]] = [
        {"name": "work", "emptyDir": {}},
        {"name": "output", "emptyDir": {}},
        secret_volume("call", {"call": "call"}),
        secret_volume("config", config),
    ]
    if not stages_in(order):
        given = events.interpret(order.event)
        volumes.append(secret_volume("input", {"input": environment.input_name(given)}))
    if stages_in(order) or stages_out(order):
        volumes.append(secret_volume("order", {"order.json": "order.json"}))
    if order.service.mount.path:
        volumes.append({"name": "mount", "emptyDir": {}})
    return volumes
