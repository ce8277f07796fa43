"""What do all our pods have in common? Who they run as, what they may do, where a script finds its files. Pure."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from lightkube.resources.core_v1 import Secret

from hansa import services
from hansa.drivers.kubernetes import labels
from hansa.drivers.runs import environment
from hansa.identity import owner_hash

PLACES = environment.Places(job="/job", config="/oscar/config")
SCRIPT = "script"  # the container of the user's image
DISK = "ephemeral-storage"
OURS_DISK, _OURS_MOST_DISK = "16Mi", "256Mi"  # of a container of ours: little more than its log
_RESTRICTED: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How pods of this cluster are made."""

    cluster: str
    stager_image: str
    pull_policy: str = ""
    """Of users' images."""
    pull_secrets: tuple[str, ...] = ()
    """For the registry of `stager_image`."""
    shared: bool = False
    """Whether several people's pods are in one namespace: then none names a Secret for a registry itself."""
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
    queue: str = ""
    """The LocalQueue through which users' jobs go, where Kueue admits them."""
    priority_class: str = ""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Mapping[str, Any], ...] = ()


def marks(order: services.RunOrder, shape: Shape, **ours: str) -> dict[str, str]:
    """The service's own labels, and over them those by which everybody finds it. Ours are nobody else's to give: a pod
    that says it is an instance of a service would be given that service's calls."""
    given = {name: labels.value(text) for name, text in order.service.labels.items() if "hansa/" not in name}
    own = {labels.OSCAR_SERVICE: order.service.name, **labels.of_cluster(shape.cluster), **ours}
    if order.service.owner:
        own[labels.JOB_OWNER] = labels.value(order.service.owner)
        own[labels.OWNER] = owner_mark(order)
    return given | own | {labels.volume(mount.source): "" for mount in order.mounts}


def owner_mark(order: services.RunOrder) -> str:
    """Whose it is, as its label says; "" if it is nobody's."""
    return owner_hash(order.service.owner) if order.service.owner else ""


def secret(name: str, namespace: str, marked: Mapping[str, str], data: Mapping[str, bytes]) -> Secret:
    made = Secret.from_dict(
        {
            "metadata": {"name": name, "namespace": namespace, "labels": dict(marked)},
            "type": "Opaque",
            "immutable": True,
            "data": {key: base64.b64encode(body).decode() for key, body in data.items()},
        }
    )
    return cast(Secret, made)


def config(order: services.RunOrder) -> dict[str, bytes]:
    """What stands in a script's folder of configuration."""
    return {
        "script.sh": order.service.script.encode(),
        "function_config.yaml": environment.definition_text(order.service).encode(),
    }


def owned_by(secret: Secret) -> list[dict[str, Any]]:
    """Whoever deletes the Secret deletes what it owns."""
    meta = secret.metadata
    assert meta is not None
    return [{"apiVersion": "v1", "kind": "Secret", "name": meta.name, "uid": meta.uid, "blockOwnerDeletion": False}]


def empty(order: services.RunOrder, *names: str) -> list[dict[str, Any]]:
    """Folders that the pod's containers share. Kubernetes ends a pod that writes more than its disk into one."""
    limit = {"sizeLimit": str(order.disk)} if order.disk else {}
    return [{"name": name, "emptyDir": dict(limit)} for name in names]


def work_mounts() -> list[dict[str, Any]]:
    """Where a script and our own program beside it meet."""
    return [{"name": "work", "mountPath": PLACES.job}, {"name": "output", "mountPath": PLACES.output}]


def config_volume(secret_name: str) -> dict[str, Any]:
    return secret_volume("config", secret_name, {name: name for name in ("function_config.yaml", "script.sh")})


def config_mount() -> dict[str, Any]:
    return {"name": "config", "mountPath": PLACES.config, "readOnly": True}


def secret_volume(name: str, secret_name: str, keys: Mapping[str, str]) -> dict[str, Any]:
    items = [{"key": key, "path": path} for key, path in keys.items()]
    return {"name": name, "secret": {"secretName": secret_name, "items": items, "defaultMode": 0o444}}


def _volumes(order: services.RunOrder) -> list[dict[str, Any]]:
    """Users' own, which outlive the pod."""
    return [
        {"name": f"volume-{number}", "persistentVolumeClaim": {"claimName": mount.source}}
        for number, mount in enumerate(order.mounts)
    ]


def _volume_mounts(order: services.RunOrder) -> list[dict[str, Any]]:
    return [{"name": f"volume-{number}", "mountPath": mount.target} for number, mount in enumerate(order.mounts)]


def _beside_others(order: services.RunOrder) -> dict[str, Any]:
    """Where others use a volume that can be in one place only. Kubernetes lets the first one go anywhere."""
    terms = [
        {
            "labelSelector": {"matchExpressions": [{"key": labels.volume(mount.source), "operator": "Exists"}]},
            "topologyKey": "kubernetes.io/hostname",
        }
        for mount in order.mounts
        if mount.one_node
    ]
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}} if terms else {}


def _resources(order: services.RunOrder, *, disk: bool) -> dict[str, Any]:
    limits = {"cpu": f"{order.cpu}m", "memory": str(order.memory)}
    if order.disk and disk:
        limits[DISK] = str(order.disk)
    if order.service.enable_gpu:
        limits["nvidia.com/gpu"] = "1"
    return {"limits": limits, "requests": limits}


def script(
    order: services.RunOrder, mounts: Sequence[Mapping[str, Any]], *, disk: bool = True, **more: Any
) -> dict[str, Any]:
    """The container of the user's image. Without `disk`, only the folders it shares are limited."""
    return {
        "name": SCRIPT,
        "image": order.service.image,
        "workingDir": PLACES.job,
        "resources": _resources(order, disk=disk),
        "securityContext": _RESTRICTED,
        "volumeMounts": [*mounts, *_volume_mounts(order)],
        **more,
    }


def ours(
    name: str,
    way: str,
    shape: Shape,
    mounts: Sequence[Mapping[str, Any]],
    memory: str,
    *,
    disk: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """A container of our own image beside it: see `stager`."""
    return {
        "name": name,
        "image": shape.stager_image,
        "command": ["python3", "-m", "hansa.drivers.kubernetes.stager", way],
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"} | ({DISK: OURS_DISK} if disk else {}),
            "limits": {"cpu": "1", "memory": memory} | ({DISK: _OURS_MOST_DISK} if disk else {}),
        },
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
        "volumeMounts": list(mounts),
        **more,
    }


def body(
    order: services.RunOrder, shape: Shape, *, containers: Sequence[Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """A pod's specification; `containers` are of the user's image, `parts` are what else is particular to it."""
    pulled = {"imagePullPolicy": shape.pull_policy} if shape.pull_policy else {}
    named = () if shape.shared else order.service.image_pull_secrets
    chosen = {
        "priorityClassName": shape.priority_class,
        "nodeSelector": dict(shape.node_selector),
        "affinity": _beside_others(order),
        "tolerations": [dict(one) for one in shape.tolerations],
        "imagePullSecrets": [{"name": name} for name in dict.fromkeys((*named, *shape.pull_secrets))],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": shape.user,
            "runAsGroup": shape.user,
            "fsGroup": shape.user,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **{name: value for name, value in chosen.items() if value},
        "containers": [{**one, **pulled} for one in containers],
        **parts,
        "volumes": [*parts.get("volumes", ()), *_volumes(order)],
    }
