"""How is an exposed service? Pure: from its Deployment and pods to a state with a reason."""

from collections.abc import Sequence
from typing import Any, Literal

from hansa import services
from hansa.drivers.kubernetes import pod_status
from hansa.drivers.runs import words

State = Literal["pending", "ready", "degraded", "failed", "stopped"]


def judged(running: bool, wanted: int, deployment: Any | None, found: Sequence[Any]) -> services.Deployment:
    """`found` are its pods, without those that are being taken away. `since` is the caller's to know."""
    if not running:
        return _as("stopped", "it was stopped", 0, 0)
    active = sum(pod_status.is_ready(pod) for pod in found)
    if active >= wanted and _is_up_to_date(deployment, wanted):
        return _as("ready", "", active, 0)
    missing = max(wanted - active, 0)
    crashed = next((why for pod in found if (why := _crash(pod))), "")
    if active:
        return _as("degraded" if missing else "ready", crashed or "an instance is not ready yet", active, missing)
    if crashed:
        return _as("failed", crashed, 0, missing)
    reason = next((why for pod in found if (why := pod_status.waits(pod))), "") or _refused(deployment)
    return _as("pending", reason or "it is starting", 0, missing)


def _refused(deployment: Any | None) -> str:
    """Why Kubernetes makes no pod for it."""
    for one in (deployment.status.conditions or ()) if deployment is not None and deployment.status is not None else ():
        if one.type == "ReplicaFailure" and one.status == "True":
            return f"Kubernetes makes no pod for it: {one.message or one.reason}"
    return ""


def _is_up_to_date(deployment: Any | None, wanted: int) -> bool:
    """Those that are ready are of the newest definition."""
    if deployment is None or deployment.status is None:
        return False
    seen = deployment.status.observedGeneration or 0
    return seen >= (deployment.metadata.generation or 0) and (deployment.status.updatedReplicas or 0) >= wanted


def _crash(pod: Any) -> str:
    status = pod_status.container(pod)
    for state in (status.state, status.lastState) if status is not None else ():
        ended = state.terminated if state is not None else None
        if ended is not None:
            return words.exit_code(ended.exitCode) if ended.reason != "OOMKilled" else "out of memory"
    return ""


def _as(state: State, reason: str, active: int, affected: int) -> services.Deployment:
    return services.Deployment(state, reason, None, active, affected, "exposed_service")
