"""How do we know our own objects? By labels and annotations, ours and those OSCAR's users look for."""

import re

JOB = "hansa/job"
WORKER = "hansa/worker"  # of a synchronous service, by its own name
EXPOSED = "hansa/exposed"  # the service a pod is an instance of
CLUSTER = "hansa/cluster"
OWNER = "hansa/owner"  # of a pod, by a hash: what keeps tenants apart who share a namespace
FOR_PULLING = "hansa/for-pulling"  # a copy of one of the manager's own namespace
MANAGED_BY = "app.kubernetes.io/managed-by"
OSCAR_SERVICE = "oscar_service"
JOB_OWNER = "oscar.grycap/job-owner"

_OUTSIDE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 63


def of_cluster(cluster: str) -> dict[str, str]:
    """What everything has that one manager made; managers of several clusters may share a Kubernetes."""
    return {MANAGED_BY: "hansa", CLUSTER: value(cluster)}


def volume(claim: str) -> str:
    """The label of pods that use a claim."""
    return f"volume.hansa/{claim}"


def value(text: str) -> str:
    """As much of a text as a label can carry."""
    return _OUTSIDE.sub("-", text)[:_LONGEST].strip("-._")
