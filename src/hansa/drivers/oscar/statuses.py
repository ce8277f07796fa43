"""What does a peer's `/system/status` say? The shape of today's managers, and the flat one of OSCAR 3.

Every `*_cores` figure is millicores. Peers may lie: a figure that cannot be is cut to what can, and an answer of
another shape is refused, so that whoever decides on it gets plain numbers.
"""

import math
from collections.abc import Mapping
from typing import Any

from hansa.drivers.oscar.calls import Answer
from hansa.services import node_front, peers

_LARGEST = 2**53  # exact in a float too
_MOST_NODES = 100_000
_AWAY = frozenset({"NotReady", "Unknown"})


def read(answer: Answer, seconds: float) -> peers.PeerStatus:
    """Raises `PeerRefused` when it is no status."""
    document = answer.document()
    try:
        if isinstance(document.get("cluster"), Mapping):
            return _current(document["cluster"], seconds)
        if "numberNodes" in document:
            return _flat(document, seconds)
    except (ValueError, TypeError, ArithmeticError):
        pass
    raise answer.nonsense("a status that cannot be read")


def _current(cluster: Mapping[str, Any], seconds: float) -> peers.PeerStatus:
    metrics = _part(cluster, "metrics")
    cpu, memory = _part(metrics, "cpu"), _part(metrics, "memory")
    nodes = [_checked(node) for node in _listed(cluster, "nodes")]
    rooms = [
        peers.NodeRoom(
            _room(_part(node, "cpu"), "capacity_cores", "request_cores"),
            _room(_part(node, "memory"), "capacity_bytes", "request_bytes"),
        )
        for node in nodes
        if node.get("status") not in _AWAY  # nothing starts on a node that is away
    ]
    return peers.PeerStatus(
        seconds=seconds,
        nodes=node_front.of(rooms),
        nodes_count=min(_figure(cluster, "nodes_count"), _MOST_NODES),
        free_cpu=_figure(cpu, "total_free_cores"),
        free_memory=_figure(memory, "total_free_bytes"),
        largest_free_cpu=_figure(cpu, "max_free_on_node_cores"),
        capacity_cpu=sum(_figure(_part(node, "cpu"), "capacity_cores") for node in nodes),
        capacity_memory=sum(_figure(_part(node, "memory"), "capacity_bytes") for node in nodes),
        nodes_ready=len(rooms),
    )


def _flat(status: Mapping[str, Any], seconds: float) -> peers.PeerStatus:
    """OSCAR 3 tells usage only, so what is free stands for what could be requested."""
    nodes = [_checked(node) for node in _listed(status, "detail")]
    largest = peers.NodeRoom(_figure(status, "cpuMaxFree"), _figure(status, "memoryMaxFree"))
    rooms = [
        peers.NodeRoom(_room(node, "cpuCapacity", "cpuUsage"), _room(node, "memoryCapacity", "memoryUsage"))
        for node in nodes
    ] or [largest]
    return peers.PeerStatus(
        seconds=seconds,
        nodes=node_front.of(rooms),
        nodes_count=min(_figure(status, "numberNodes"), _MOST_NODES),
        free_cpu=_figure(status, "cpuFreeTotal"),
        free_memory=_figure(status, "memoryFreeTotal"),
        largest_free_cpu=largest.cpu,
        capacity_cpu=sum(_figure(node, "cpuCapacity") for node in nodes),
        capacity_memory=sum(_figure(node, "memoryCapacity") for node in nodes),
        nodes_ready=len(rooms),
    )


def _room(part: Mapping[str, Any], capacity: str, taken: str) -> int:
    return max(0, _figure(part, capacity) - _figure(part, taken))


def _figure(part: Mapping[str, Any], key: str) -> int:
    """A whole number from 0 to what is believable; a missing one is 0, as OSCAR leaves zeros out."""
    value = part.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError(key)
    if isinstance(value, str):  # OSCAR 3 writes the figures of its nodes so
        value = float(value[:40])
    if isinstance(value, float):
        if math.isnan(value):
            raise ValueError(key)
        value = int(min(max(value, 0.0), float(_LARGEST)))
    return min(max(value, 0), _LARGEST)


def _part(whole: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return _checked(whole.get(key) or {})


def _listed(whole: Mapping[str, Any], key: str) -> list[Any]:
    found = whole.get(key) or []
    if not isinstance(found, list):
        raise TypeError(key)
    return found[:_MOST_NODES]


def _checked(part: Any) -> Mapping[str, Any]:
    if not isinstance(part, Mapping):
        raise TypeError("not an object")
    return part
