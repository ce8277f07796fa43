"""Which clusters are not well, as their records tell? Looked through again only after a record changed: thousands of
clusters report all the time, and seldom does one of their records become another."""

from bisect import bisect_left

from hansa.federation.lifecycle import MEMBER
from hansa.federation.registry import Registry
from hansa.messages.inventory import Degraded

_STATES = ("degraded", "unreachable")


class Ailing:
    """Made once for a registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._edition: int | None = None
        self._found: tuple[Degraded, ...] = ()
        self._certificates: list[tuple[float, str]] = []  # until when, and whose

    def all(self) -> tuple[Degraded, ...]:
        """Degraded and unreachable ones, the longest first."""
        self._look()
        return self._found

    def ids(self, state: str) -> list[str]:
        return sorted(one.cluster for one in self.all() if one.state == state)

    def expiring(self, before: float) -> list[str]:
        """Members that can be reached, whose certificates end earlier than that."""
        self._look()
        end = bisect_left(self._certificates, (before, ""))
        return sorted(cluster for _, cluster in self._certificates[:end])

    def _look(self) -> None:
        if self._edition == self._registry.edition:
            return
        found, certificates = list[Degraded](), list[tuple[float, str]]()
        for known in self._registry:
            record = known.record
            if record.state in _STATES:
                found.append(Degraded(cluster=record.id, state=record.state, since=record.since, reason=record.reason))
            if record.certificate_until is not None and record.state in MEMBER and record.state != "unreachable":
                certificates.append((record.certificate_until, record.id))
        self._found = tuple(sorted(found, key=lambda one: (one.since, one.cluster)))
        self._certificates = sorted(certificates)
        self._edition = self._registry.edition
