"""How much of an exposed service may one visitor hold, and how much all that are slow? Counted here, as they come.

A service has a bounded number of connections. Bodies on their way and answers nobody reads must not take them all. Of
what is counted for all services together, nobody gets more than is left for the others.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hansa.kernel import addresses
from hansa.kernel.errors import Kind, Temporary

CONNECTIONS = 100  # into one service; what follows leaves some for those who are quick


class TooManyVisits(Temporary):
    """One address holds too much of an exposed service at once."""

    code, kind = "exposed.too-many-visits", Kind.TOO_MANY


class ServiceCrowded(Temporary):
    """An exposed service is held by too many slow visitors."""

    code = "exposed.crowded"


class Slots:
    """So many at once: of one address, and of all together, for each service; and of all services, if it is said."""

    def __init__(self, what: str, *, per_address: int, per_service: int, in_all: int = sys.maxsize) -> None:
        self._what = what
        self.per_address, self.per_service, self.in_all = per_address, per_service, in_all
        self._taken = 0
        self._everywhere: Counter[str] = Counter()  # by address
        self._by_address: Counter[tuple[str, str]] = Counter()
        self._by_service: Counter[str] = Counter()

    @contextmanager
    def taken(self, service: str, address: str) -> Iterator[None]:
        address = addresses.counted_as(address)
        if self._by_address[service, address] >= self.per_address:
            raise TooManyVisits(
                f"your address has {self.per_address} {self._what} at service {service} already",
                hint="wait until one of them has ended",
            )
        if self._by_service[service] >= self.per_service:
            raise ServiceCrowded(f"service {service} has {self.per_service} {self._what} already")
        if self._everywhere[address] >= self.in_all - self._taken:
            raise ServiceCrowded(
                f"your address has {self._everywhere[address]} {self._what}; no more than that are left for all others"
            )
        self._taken += 1
        self._everywhere[address] += 1
        self._by_address[service, address] += 1
        self._by_service[service] += 1
        try:
            yield
        finally:
            _one_less(self._by_address, (service, address))
            _one_less(self._by_service, service)
            _one_less(self._everywhere, address)
            self._taken -= 1


def _one_less(counts: "Counter[Any]", key: Any) -> None:
    counts[key] -= 1
    if counts[key] <= 0:
        del counts[key]  # whoever is gone takes no memory


@dataclass(frozen=True, slots=True)
class Limits:
    """Of all exposed services of one manager."""

    arriving: Slots = field(default_factory=lambda: Slots("slow bodies", per_address=64, per_service=1024))
    uploads: Slots = field(default_factory=lambda: Slots("uploads", per_address=16, per_service=48))
    calls: Slots = field(default_factory=lambda: Slots("calls", per_address=64, per_service=10 * CONNECTIONS))
    sockets: Slots = field(default_factory=lambda: Slots("WebSockets", per_address=64, per_service=1024, in_all=2048))
