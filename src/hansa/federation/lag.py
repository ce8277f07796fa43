"""Which clusters have not taken what they should know, and since when? Being behind for some seconds is the rule after
every change, so what counts is for how long."""

from collections.abc import Callable

import msgspec

from hansa.federation import section_bodies
from hansa.federation.lifecycle import MEMBER
from hansa.federation.registry import Known, Registry
from hansa.messages.members import Applied

_APPLIED = msgspec.json.Decoder(Applied)


class Lag:
    """Made once for a registry, and told of its changes."""

    def __init__(self, registry: Registry, now: Callable[[], float]) -> None:
        self._registry = registry
        self._now = now
        self._since: dict[str, float] = {}
        for known in registry:
            self.refresh(known.id)
        registry.watch(self.refresh)

    def refresh(self, cluster: str) -> None:
        known = self._registry.get(cluster)
        if known is None or not _is_behind(known):
            self._since.pop(cluster, None)
        else:
            self._since.setdefault(cluster, self._now())

    def behind(self, seconds: float) -> list[str]:
        """Clusters that can be reached, and were behind all this time."""
        before = self._now() - seconds
        return sorted(
            cluster
            for cluster, since in self._since.items()
            if since <= before and (known := self._registry.get(cluster)) and known.record.state != "unreachable"
        )


def _is_behind(known: Known) -> bool:
    if known.record.kind == "oscar" or known.record.state not in MEMBER:
        return False  # nobody there takes anything from us
    said = known.sections.get("applied")
    if said is None:
        return known.record.desired > 0
    applied = section_bodies.read(said[1], _APPLIED, None)
    return applied is not None and applied.generation < known.record.desired
