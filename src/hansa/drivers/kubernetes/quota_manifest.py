"""How is a user's quota told to Kubernetes? Pure: a ResourceQuota and a LimitRange of the user's namespace, and where
Kueue admits jobs the queue they stand in.

The manager lets no job begin that is beyond a quota; Kubernetes holds whatever else comes into the namespace to it. It
counts what pods request, our own containers among them, so there is room for these beside what the user has.
"""

import hashlib
from typing import Any, cast

from lightkube.generic_resource import create_namespaced_resource
from lightkube.resources.core_v1 import LimitRange, ResourceQuota

from hansa import resources
from hansa.drivers.kubernetes import labels, pods
from hansa.kernel import quantities

LOCAL_QUEUE: Any = create_namespaced_resource("kueue.x-k8s.io", "v1beta1", "LocalQueue", "localqueues")
_OURS_CPU, _OURS_MEMORY = 10, 64 * 2**20  # what one container of ours requests: see `pods.ours`
_OURS_DISK = quantities.size(pods.OURS_DISK)
_SMALL_JOB = 100  # millicores: so many jobs of that size have room for ours
_FEWEST = 16


def name_of(cluster: str) -> str:
    """Managers of several clusters may have the same user in one namespace: each counts for itself."""
    return f"hansa-{hashlib.sha256(cluster.encode()).hexdigest()[:8]}"


def resource_quota(namespace: str, cluster: str, limits: resources.Limits, *, disk: bool = True) -> ResourceQuota:
    """`disk`: the disk that pods request is counted too; not where Kueue admits jobs, which request none then."""
    ours = max(limits.cpu // _SMALL_JOB, _FEWEST)
    hard = {
        "requests.cpu": f"{limits.cpu + ours * _OURS_CPU}m",
        "requests.memory": resources.exact_size(limits.memory + ours * _OURS_MEMORY),
        "requests.nvidia.com/gpu": str(limits.gpu),
        "persistentvolumeclaims": str(limits.volumes),
        "requests.storage": resources.exact_size(limits.disk),
    }
    if disk:
        hard[f"requests.{pods.DISK}"] = resources.exact_size(limits.ephemeral_storage + ours * _OURS_DISK)
    made = ResourceQuota.from_dict(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name_of(cluster), "namespace": namespace, "labels": labels.of_cluster(cluster)},
            "spec": {"hard": hard},
        }
    )
    return cast(ResourceQuota, made)


def local_queue(namespace: str, cluster: str, cluster_queue: str) -> Any:
    """Where the namespace's jobs stand in line for Kueue."""
    about = {"name": name_of(cluster), "namespace": namespace, "labels": labels.of_cluster(cluster)}
    return LOCAL_QUEUE(metadata=about, spec={"clusterQueue": cluster_queue})


def limit_range(namespace: str, cluster: str, limits: resources.Limits, *, disk: bool = True) -> LimitRange:
    """A container that says nothing of itself is counted as one of ours; none is given a limit, for one below what it
    requests would make it impossible."""
    least = {"cpu": f"{_OURS_CPU}m", "memory": resources.exact_size(_OURS_MEMORY)}
    if disk:
        least[pods.DISK] = pods.OURS_DISK
    made = LimitRange.from_dict(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": name_of(cluster), "namespace": namespace, "labels": labels.of_cluster(cluster)},
            "spec": {
                "limits": [
                    {"type": "Container", "defaultRequest": least},
                    {
                        "type": "PersistentVolumeClaim",
                        "min": {"storage": resources.exact_size(limits.min_disk_per_volume)},
                        "max": {"storage": resources.exact_size(limits.max_disk_per_volume)},
                    },
                ]
            },
        }
    )
    return cast(LimitRange, made)
