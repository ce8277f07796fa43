"""How many services may one owner have, and how long may their definitions be together? Each is kept in memory, looked
at by every loop, and listed, whole, to whoever may see it; so one owner must not have any number of them, and shows
others less than they may have for themselves. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec

from hansa.identity import access
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
        own = self._own(service.owner, kept)
        limits = self.enforced(service.owner)
        if limits is not None and len(own.keys() - {service.name}) >= limits.services:
            raise ServiceQuota(
                f"the quota of {limits.services} services is used up",
                hint="delete a service, or ask the cluster's operator for more (quotas.services)",
            )
        self._check_size(service, own)
        self._under_way.append(service)
        try:
            yield
        finally:
            self._under_way.remove(service)

    def check_size(self, service: Service, kept: Iterable[Record]) -> None:
        """As if it were there already, in place of what had its name."""
        self._check_size(service, self._own(service.owner, kept))

    def _own(self, owner: str, kept: Iterable[Record]) -> dict[str, Service]:
        there = (*self._under_way, *(one.service for one in kept))  # one that is nearly written down may be in both
        return {one.name: one for one in there if one.owner == owner}

    def _check_size(self, service: Service, own: Mapping[str, Service]) -> None:
        limits = self.enforced(service.owner)
        if limits is None:
            return
        after = {**own, service.name: service}.values()
        if sum(map(weight, after)) > limits.definitions:
            show = quantities.show_size(limits.definitions)
            raise ServiceQuota(
                f"the quota of {show} for the definitions of your services does not allow this one",
                hint="put programs and data into a bucket, or ask the cluster's operator for more (quotas.definitions)",
            )
        grows = _shown(service) > (_shown(own[service.name]) if service.name in own else 0)
        if grows and sum(map(_shown, after)) > limits.shared_definitions:
            show = quantities.show_size(limits.shared_definitions)
            raise ServiceQuota(
                f"the quota of {show} for definitions that others see in their lists does not allow this one",
                hint="make it private, put its program into a bucket, or ask the operator (quotas.shared_definitions)",
            )


def _shown(service: Service) -> int:
    """Bytes that it takes in lists of others."""
    return 0 if service.visibility == access.PRIVATE else weight(service)
