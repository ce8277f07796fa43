"""How do people read what a cluster has and uses? `1.5 of 8` cores, `3Gi of 16Gi`, and bars for a live view. Pure."""

from typing import Any

from hansa.kernel import quantities
from hansa.messages.members import Node, Totals

NODE_COLUMNS = ("cpu", "memory", "disk", "gpu")


def cores(millicores: int) -> str:
    return f"{millicores / 1000:g}" if millicores % 100 == 0 else f"{millicores / 1000:.2f}"


def size(count: int) -> str:
    return quantities.show_size(max(0, count))


def _of(used: str, all_of_it: str, there_is: int) -> str:
    return f"{used} of {all_of_it}" if there_is else ""


def cpu(one: Totals | Node) -> str:
    return _of(cores(one.cpu_used), cores(one.cpu), one.cpu)


def memory(one: Totals | Node) -> str:
    return _of(size(one.memory_used), size(one.memory), one.memory)


def disk(one: Totals | Node) -> str:
    return _of(size(one.disk_used), size(one.disk), one.disk)


def gpu(one: Totals | Node) -> str:
    return _of(str(one.gpu_used), str(one.gpu), one.gpu)


def node(one: Node) -> tuple[str, str, str, str]:
    return cpu(one), memory(one), disk(one), gpu(one)


def jobs(one: Totals) -> str:
    return f"{one.jobs_running} run, {one.jobs_waiting} wait"


def rows(totals: Totals) -> list[tuple[str, Any]]:
    """What there is, used and in all, in a few lines."""
    ready = totals.nodes_ready
    return [
        (
            "nodes",
            (f"{ready} of {totals.nodes} ready" if ready != totals.nodes else str(ready)) if totals.nodes else "",
        ),
        ("cpu used", cpu(totals)),
        ("memory used", memory(totals)),
        ("disk used", disk(totals)),
        ("gpus used", gpu(totals)),
        ("services", totals.services or ""),
        ("vms", totals.vms or ""),
        ("jobs", jobs(totals) if totals.nodes else ""),
    ]
