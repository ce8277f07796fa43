"""What does a pod say of itself? Pure: small questions to what Kubernetes shows, for all who read pods."""

from collections.abc import Iterable, Mapping
from typing import Any

from hansa.drivers.kubernetes import pods


def conditions(pod: Any) -> Mapping[str, Any]:
    """By their type."""
    return {one.type: one for one in (pod.status.conditions or ())} if pod.status is not None else {}


def containers(pod: Any) -> Iterable[Any]:
    """The statuses of all, those of ours that start before the script among them."""
    if pod.status is None:
        return ()
    return (*(pod.status.initContainerStatuses or ()), *(pod.status.containerStatuses or ()))


def container(pod: Any | None, name: str = pods.SCRIPT) -> Any | None:
    return next((one for one in containers(pod) if one.name == name), None) if pod is not None else None


def is_ready(pod: Any) -> bool:
    """Can it be called?"""
    ready = conditions(pod).get("Ready")
    return ready is not None and ready.status == "True" and bool(pod.status.podIP)


def no_room(pod: Any) -> str:
    """Why no node takes it; "" if one did."""
    placed = conditions(pod).get("PodScheduled")
    if placed is None or placed.status != "False":
        return ""
    said = placed.message or placed.reason or ""
    if "persistentvolumeclaim" in said.lower():
        return f"its volume cannot be used yet: {said}"
    return f"no node has room for it: {said}"


def waits(pod: Any) -> str:
    """Why its script has not begun, as far as it says."""
    status = container(pod)
    waiting = status.state.waiting if status is not None and status.state is not None else None
    if waiting is not None and waiting.message:
        return f"{waiting.reason}: {waiting.message}"
    return no_room(pod)
