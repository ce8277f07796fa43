"""`hansa status` and `hansa version`: how a cluster is, and what runs."""

from typing import Any

import typer

from hansa import __version__
from hansa.entrypoints.cli import options, session
from hansa.entrypoints.cli.client import mapping
from hansa.entrypoints.cli.screen import Screen
from hansa.kernel import errors, quantities


def status(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Show how full and how healthy a cluster is."""
    screen = Screen(as_json=as_json)
    with session.opened(cluster) as manager:
        found = mapping(manager.read("/system/status"), manager.name)
    screen.data(found)
    screen.facts([("cluster", f"{manager.name} ({manager.url})"), *summary(found)])
    screen.table(["node", "status", "cpu free", "cpu", "memory free", "memory", "gpu"], nodes(found))


def summary(found: dict[str, Any]) -> list[tuple[str, Any]]:
    """The cluster in a few lines; version 3 managers give a flat document instead."""
    if "cluster" not in found:
        return [
            ("nodes", found.get("numberNodes")),
            ("cpu free", _cores(found.get("cpuFreeTotal"))),
            ("memory free", _bytes(found.get("memoryFreeTotal"))),
        ]
    figures = _at(found, "cluster", "metrics")
    manager = _at(found, "oscar")
    states = _at(manager, "pods", "states")
    return [
        ("ready", manager.get("ready")),
        ("nodes", _at(found, "cluster").get("nodes_count")),
        ("cpu free", _cores(_at(figures, "cpu").get("total_free_cores"))),
        ("memory free", _bytes(_at(figures, "memory").get("total_free_bytes"))),
        ("gpus", _at(figures, "gpu").get("total_gpu")),
        ("jobs", manager.get("jobs_count")),
        ("pods", ", ".join(f"{count} {state.lower()}" for state, count in states.items() if count)),
        ("buckets", _at(found, "minio").get("buckets_count")),
    ]


def nodes(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """One row a node. The wire's `cores` are millicores, and zeros are left out there."""
    rows: list[tuple[Any, ...]] = []
    for node in _at(found, "cluster").get("nodes") or []:
        cpu, memory = _at(node, "cpu"), _at(node, "memory")
        rows.append(
            (
                node.get("name"),
                node.get("status"),
                _cores(cpu.get("capacity_cores", 0) - cpu.get("usage_cores", 0)),
                _cores(cpu.get("capacity_cores", 0)),
                _bytes(memory.get("capacity_bytes", 0) - memory.get("usage_bytes", 0)),
                _bytes(memory.get("capacity_bytes", 0)),
                node.get("gpu"),
            )
        )
    return rows


def version(cluster: options.Cluster = None, as_json: options.Json = False) -> None:
    """Show the version of this program and of the cluster."""
    screen = Screen(as_json=as_json)
    found: dict[str, Any] = {}
    trouble = ""
    try:
        with session.opened(cluster) as manager:
            found = mapping(manager.read("/system/info"), manager.name)
    except session.NotSignedIn:
        pass  # the program has a version without any cluster
    except errors.HansaError as error:
        if cluster is not None:
            raise
        trouble = error.message
    screen.data({"hansa": __version__, "cluster": found or None})
    screen.facts([("hansa", __version__), *((key.replace("_", " "), _flat(value)) for key, value in found.items())])
    if trouble:
        screen.note(trouble)


def _at(tree: Any, *path: str) -> dict[str, Any]:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def _cores(millicores: Any) -> str:
    return f"{millicores / 1000:g}" if isinstance(millicores, (int, float)) else ""


def _bytes(count: Any) -> str:
    return quantities.show_size(max(0, count)) if isinstance(count, int) else ""


def _flat(value: Any) -> Any:
    return " ".join(str(item) for item in value.values()) if isinstance(value, dict) else value


def register(app: typer.Typer) -> None:
    app.command()(status)
    app.command()(version)
