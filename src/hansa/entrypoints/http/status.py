"""`/system/status` in OSCAR's exact shape: every `*_cores` figure is millicores, zeros inside a node are left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from hansa.kernel import clock
from hansa.resources import Node
from hansa.services import Status


def cluster(nodes: Sequence[Node]) -> dict[str, Any]:
    """Free by use, schedulable by promises."""
    free_cpu = [max(0, node.cpu - node.cpu_used) for node in nodes]
    free_memory = [max(0, node.memory - node.memory_used) for node in nodes]
    open_cpu = [max(0, node.cpu - node.cpu_requested) for node in nodes]
    open_memory = [max(0, node.memory - node.memory_requested) for node in nodes]
    return {
        "nodes_count": len(nodes),
        "metrics": {
            "cpu": {
                "total_free_cores": sum(free_cpu),
                "max_free_on_node_cores": max(free_cpu, default=0),
                "total_schedulable_cores": sum(open_cpu),
                "total_schedulable_on_node_cores": max(open_cpu, default=0),
            },
            "memory": {
                "total_free_bytes": sum(free_memory),
                "max_free_on_node_bytes": max(free_memory, default=0),
                "total_schedulable_bytes": sum(open_memory),
                "max_schedulable_on_node_bytes": max(open_memory, default=0),
            },
            "gpu": {"total_gpu": sum(node.gpus for node in nodes)},
        },
        "nodes": [_node(node) for node in nodes],
    }


def _node(node: Node) -> dict[str, Any]:
    cpu = {"capacity_cores": node.cpu, "usage_cores": node.cpu_used, "request_cores": node.cpu_requested}
    memory = {
        "capacity_bytes": node.memory,
        "usage_bytes": node.memory_used,
        "request_bytes": node.memory_requested,
    }
    return {
        "name": node.name,
        "cpu": {key: value for key, value in cpu.items() if value},
        "memory": {key: value for key, value in memory.items() if value},
        "gpu": node.gpus,
        "is_interlink": False,
        "status": "Ready" if node.ready else "NotReady",
        "conditions": [{"type": "Ready", "status": node.ready}],
    }


def manager(
    *,
    name: str,
    started: float,
    counts: Mapping[Status, int] | None,
    issuers: Sequence[str],
    groups: Sequence[str],
) -> dict[str, Any]:
    """The `oscar` part; `counts` is None for callers without the admin's view."""
    states = {s.value: counts.get(s, 0) for s in Status} | {"Unknown": 0} if counts is not None else {}
    total = sum(counts.values()) if counts is not None else 0
    return {
        "deployment_name": name,
        "ready": True,
        "deployment": {
            "available_replicas": 1,
            "ready_replicas": 1,
            "replicas": 1,
            "creation_timestamp": clock.rfc3339(started),
            "strategy": "Recreate",
            "labels": {"app": name},
        },
        "jobs_count": total,
        "pods": {"total": total, "states": states},
        "oidc": {"enabled": bool(issuers), "issuers": list(issuers), "groups": list(groups)},
    }
