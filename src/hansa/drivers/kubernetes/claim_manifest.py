"""What does a volume look like in Kubernetes, and how is it? Pure: a PersistentVolumeClaim, and words for it."""

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, cast

from lightkube.resources.core_v1 import PersistentVolumeClaim

from hansa import resources, storage
from hansa.drivers.kubernetes import labels

OWNER = "oscar.grycap/owner-user"  # annotation, as OSCAR writes it
_VOLUME = "hansa/volume"
_LONGEST = 63
_LONG_AGO = datetime.fromtimestamp(0, UTC)
_TROUBLE = frozenset({"FailedBinding", "ProvisioningFailed", "ClaimLost", "ClaimMisbound"})  # not all are warnings


def name_of(namespace: str, volume: str, placed: str) -> str:
    """The volume's own name, and where several users' namespaces are `placed` in one, whose it is."""
    if placed == namespace:
        return volume
    mark = hashlib.sha256(namespace.encode()).hexdigest()[:8]
    return f"{volume[: _LONGEST - 9].rstrip('-')}-{mark}"


def claim(
    volume: storage.Volume, namespace: str, name: str, cluster: str, *, storage_class: str, many_nodes: bool
) -> PersistentVolumeClaim:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteMany" if many_nodes else "ReadWriteOnce"],
        "resources": {"requests": {"storage": resources.exact_size(volume.size)}},
    }
    if storage_class:  # an empty one would mean "none at all", not the default
        spec["storageClassName"] = storage_class
    made = PersistentVolumeClaim.from_dict(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {**labels.of_cluster(cluster), _VOLUME: volume.name},
                "annotations": {OWNER: volume.owner},
            },
            "spec": spec,
        }
    )
    return cast(PersistentVolumeClaim, made)


def is_ours(found: Any, cluster: str) -> bool:
    marked = found.metadata.labels or {}
    return _VOLUME in marked and all(marked.get(key) == text for key, text in labels.of_cluster(cluster).items())


def phase(found: Any) -> str:
    return str(found.status.phase) if found.status is not None and found.status.phase else "Pending"


def judged(found: Any, last: Any | None) -> storage.Standing:
    """`last` is the newest of the claim's events."""
    if found.metadata.deletionTimestamp is not None:
        return storage.Standing("Lost", "its claim is being deleted in Kubernetes", trouble=True)
    match phase(found):
        case "Bound":
            return storage.Standing()
        case "Lost":
            return storage.Standing("Lost", "its PersistentVolume is gone, and what was kept in it", trouble=True)
    if last is None:
        return storage.Standing("Pending", "Kubernetes has not bound its claim yet")
    if last.reason == "WaitForFirstConsumer":
        return storage.Standing("Pending", "it is made when the first job uses it")
    trouble = last.type == "Warning" or last.reason in _TROUBLE
    return storage.Standing("Pending", f"Kubernetes has not bound its claim yet: {last.message}", trouble)


def newest(events: Iterable[Any], uid: str) -> Any | None:
    """Of those of this very claim, not of an earlier one of its name."""
    own = [event for event in events if event.involvedObject.uid == uid]
    return max(own, key=lambda event: event.lastTimestamp or event.eventTime or _LONG_AGO, default=None)
