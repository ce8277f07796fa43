"""How many services may one owner have, and how long may their definitions be together? Each is kept in memory, looked
at by every loop, and listed to whoever may see it; so one owner must not have any number of them. Pure."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from hansa.kernel import quantities
from hansa.resources import Limits
from hansa.services.errors import ServiceQuota
from hansa.services.ports import Record
from hansa.services.service import Service


def weight(service: Service) -> int:
    """Bytes of its definition."""
    return len(msgspec.json.encode(service))


@dataclass(slots=True)
class Allotment:
    enforced: Callable[[str], Limits | None] = lambda owner: None
    _under_way: list[Service] = field(default_factory=list)  # being written down just now

    @contextmanager
    def entering(self, service: Service, kept: Iterable[Record]) -> Iterator[None]:
        """Counted before it is written down: of many that come at once none is let in on an old count."""
        others = self._others(service, kept)
        limits = self.enforced(service.owner)
        if limits is not None and len(others) >= limits.services:
            raise ServiceQuota(
                f"the quota of {limits.services} services is used up",
                hint="delete a service, or ask the cluster's operator for more (quotas.services)",
            )
        self._check_size(service, others)
        self._under_way.append(service)
        try:
            yield
        finally:
            self._under_way.remove(service)

    def check_size(self, service: Service, kept: Iterable[Record]) -> None:
        """As if it were there already, in place of what had its name."""
        self._check_size(service, self._others(service, kept))

    def _others(self, service: Service, kept: Iterable[Record]) -> list[Service]:
        there = (*self._under_way, *(one.service for one in kept))  # one that is nearly written down may be in both
        own = {one.name: one for one in there if one.owner == service.owner}
        return [one for one in own.values() if one.name != service.name]

    def _check_size(self, service: Service, others: Iterable[Service]) -> None:
        limits = self.enforced(service.owner)
        if limits is not None and weight(service) + sum(map(weight, others)) > limits.definitions:
            show = quantities.show_size(limits.definitions)
            raise ServiceQuota(
                f"the quota of {show} for the definitions of your services does not allow this one",
                hint="put programs and data into a bucket, or ask the cluster's operator for more (quotas.definitions)",
            )
