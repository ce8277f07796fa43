"""What is remembered of members: when each was last seen, and how it showed what we had just written there."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Shown:
    """How a member shows one definition where that is not how we would: its own defaults, its own order of things."""

    definition: str  # the fingerprint of what we had written
    parts: Mapping[str, str]  # a digest of each part of its answer (`replicas.likeness`)


class Sightings(Protocol):
    def note(self, service: str, member: str, now: float) -> None: ...
    def last(self, service: str, member: str) -> float | None:
        """When it last answered; None if it did not since this manager started."""
        ...

    def shown(self, service: str, member: str) -> Shown | None: ...
    async def keep(self, service: str, member: str, shown: Shown | None) -> None:
        """Durable when it returns; None forgets."""
        ...

    async def forget_others(self, members: Set[tuple[str, str]]) -> None:
        """Keeps what is known of these (service, member) only."""
        ...
