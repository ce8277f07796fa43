"""Clusters as the registry knows them, made for tests in one line each, and by Hypothesis in any way."""

from typing import Any

import msgspec
from hypothesis import strategies as st

from hansa.federation import ClusterRecord, Registry, Sighting
from hansa.messages.clusters import Abilities, Cost, Facts
from hansa.messages.members import Totals

STATES = ("pending", "ready", "degraded", "unreachable", "draining", "leaving", "left")


def record(ident: str = "lubeck", **changes: Any) -> ClusterRecord:
    """`version` is the manager's as a text, and the record's as a number."""
    told = [name for name in Facts.__struct_fields__ if name in changes and not isinstance(changes[name], int)]
    facts = {name: changes.pop(name) for name in told}
    base: dict[str, Any] = {
        "id": ident,
        "kind": "hansa",
        "state": "ready",
        "since": 100.0,
        "reason": "it reports",
        "incarnation": 1,
        "joined": 50.0,
        "told": Facts(**{"name": ident.title(), **facts}),
        "endpoint": facts.get("endpoint", ""),
        "version": 1,
    }
    return ClusterRecord(**{**base, **changes})


def sighting(ident: str, number: int, *, incarnation: int = 1, seen: float | None = None, **sections: Any) -> Sighting:
    """Each section as an object that becomes JSON, or as bytes that already are."""
    bodies = {
        name: (number, body if isinstance(body, bytes) else msgspec.json.encode(body))
        for name, body in sections.items()
    }
    return Sighting(ident, incarnation, 1000.0 + number if seen is None else seen, number, bodies)


def filled(*records: ClusterRecord) -> Registry:
    registry = Registry()
    for one in records:
        registry.put(one)
    return registry


def nodes(count: int) -> list[dict[str, Any]]:
    return [
        {"name": f"node-{number}", "ready": True, "cpu": 8000, "cpu_used": 100 * number, "memory": 2**34}
        for number in range(count)
    ]


figures = st.integers(0, 2**40)
totals = st.builds(Totals, **dict.fromkeys(Totals.__struct_fields__, figures))
regions = st.sampled_from(["", "eu", "us", "asia"])
facts = st.builds(
    Facts,
    name=st.text(max_size=6),
    region=regions,
    zone=st.sampled_from(["", "a", "b"]),
    version=st.sampled_from(["", "1.2", "1.2.3", "1.10", "2.0-rc1", "odd"]),
    metadata=st.dictionaries(st.sampled_from(["tier", "team"]), st.sampled_from(["gold", "", "x y"])),
    speaks=st.lists(st.sampled_from(["links.v1", "sections.v1"]), max_size=2).map(tuple),
    abilities=st.builds(Abilities, live_migration=st.booleans(), gpus=st.sampled_from([(), ("A100", "T4")])),
    cost=st.builds(Cost, cpu_hour=st.sampled_from([0.0, 0.02])),
)
