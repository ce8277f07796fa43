"""How many instances may an exposed service have in Kubernetes? As many as its owner's share allows.

Instances at the minimum scale are taken from the share before they are made. What the autoscaler adds is bounded by
what is left of it, and counts as soon as its pod is seen.
"""

from hansa import resources, services
from hansa.drivers.kubernetes import exposed_manifest


class InstanceShares:
    def __init__(self, admission: resources.Admission) -> None:
        self._admission = admission
        self._shares = admission.shares
        self._counted: dict[str, int] = {}  # instances that count, by service
        self._allowed: dict[str, int] = {}  # those of them that may run whatever is seen: some are only being made

    def settle(self, order: services.RunOrder, *, running: bool) -> int:
        """So many instances may run, of those at the minimum scale; what counted before counts no more."""
        name, needs = order.service.name, _needs(order)
        self._drop(name, 0)
        wanted = exposed_manifest.count(order) if running else 0
        allowed = 0
        while allowed < wanted and self._shares.take(_label(name, allowed), needs):
            allowed += 1
        self._counted[name] = self._allowed[name] = allowed
        self._admission.look_again()
        return allowed

    def grow(self, order: services.RunOrder, allowed: int) -> int:
        """The same, when there may be room for more now; nothing is given up for it."""
        name, needs = order.service.name, _needs(order)
        while allowed < exposed_manifest.count(order) and self._shares.take(_label(name, allowed), needs):
            allowed += 1
        self._allowed[name] = allowed
        self._counted[name] = max(allowed, self._counted.get(name, 0))
        return allowed

    def saw(self, order: services.RunOrder, pods: int) -> None:
        """So many pods are there: those beyond what is allowed count as long as they are."""
        name, needs = order.service.name, _needs(order)
        before, now = self._counted.get(name, 0), max(self._allowed.get(name, 0), pods)
        for number in range(before, now):
            self._shares.note(_label(name, number), needs)
        if now < before:
            self._drop(name, now)
            self._admission.look_again()
        self._counted[name] = now

    def most(self, order: services.RunOrder) -> int:
        """The largest scale that fits beside what else runs for the owner."""
        name, needs = order.service.name, _needs(order)
        share, counted = self._shares.share_of(needs.owner), self._counted.get(name, 0)
        others = self._shares.of(needs.owner).minus(needs.times(counted))
        return resources.how_many(needs, others, share, order.service.expose.max_scale)

    def why(self, order: services.RunOrder) -> str:
        """Why no further instance may run now, or ""."""
        return self._shares.over(_needs(order))

    def forget(self, name: str) -> None:
        self._drop(name, 0)
        self._counted.pop(name, None)
        self._allowed.pop(name, None)
        self._admission.look_again()

    def _drop(self, name: str, keep: int) -> None:
        for number in range(keep, self._counted.get(name, 0)):
            self._shares.give_back(_label(name, number))


def _label(service: str, number: int) -> str:
    return f"instance {number} of {service}"


def _needs(order: services.RunOrder) -> resources.Needs:
    return resources.Needs(order.cpu, order.memory, order.disk, order.service.owner)
