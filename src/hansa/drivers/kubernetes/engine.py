"""What do the three hosts share in a Kubernetes cluster? The way to it, what it shows, how pods are made, and where.

`JobHost`, `SyncHost` and `ExposedHost` are given one `Engine`, as those of one machine are given theirs.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from lightkube.resources.core_v1 import Secret

from hansa import resources, services
from hansa.drivers.kubernetes import labels, pods
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.network_policies import NetworkPolicies
from hansa.drivers.kubernetes.pods import Shape
from hansa.kernel import errors

_OWN_STORE = "minio.default"


async def _nothing(_name: str) -> None:
    return


def _no_limits() -> resources.Admission:
    return resources.Admission(resources.Ledger(resources.NO_LIMIT, resources.NO_LIMIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    api: Connection
    board: Board
    shape: Shape
    homes: Namespaces
    """Where things run, and whose that is."""
    store_of: Callable[[services.RunOrder], Awaitable[Mapping[str, str]]]
    """Address and keys with which a pod reaches what this order may touch in the cluster's own store."""
    policies: NetworkPolicies | None = None
    """What keeps pods apart; None where somebody else does."""
    end_keys: Callable[[str], Awaitable[None]] = _nothing
    """Ends the keys of the run with this name; one that never had any is fine."""

    admission: resources.Admission = field(default_factory=_no_limits)
    """Holds calls and exposed services to their owner's share; Kubernetes finds the room for them."""

    def namespace_of(self, order: services.RunOrder) -> str:
        return self.homes.placed(order.service.namespace)

    async def prepare(self, order: services.RunOrder) -> None:
        """Pods of this order may be made: their namespace is there, and the walls around them."""
        namespace = self.namespace_of(order)
        await self.homes.ensure(namespace)
        if self.policies is not None:
            await self.policies.ensure(namespace, pods.owner_mark(order))

    async def left(self, label: str) -> dict[str, set[str]]:
        """Names, by this label of their Secrets, and in which namespaces they are. A Secret is made first of all, so
        it tells of what an earlier life of ours had only begun, or not taken away to the end."""
        wanted = {**labels.of_cluster(self.shape.cluster), label: None}
        found: dict[str, set[str]] = {}
        for namespace in self.homes.listed():
            for one in await self.api.list(Secret, namespace, wanted):
                found.setdefault(one.metadata.labels[label], set()).add(one.metadata.namespace)
        return found

    async def with_keys(self, order: services.RunOrder) -> services.RunOrder:
        """Those of the cluster's own store, if the order may touch anything there."""
        if not order.reach:
            return order
        lent = dict(await self.store_of(order))
        if not lent["access_key"]:
            raise errors.Conflict(
                "the object store lends no keys to pods", hint="use the embedded store or MinIO with Kubernetes"
            )
        return replace(order, providers={**order.providers, _OWN_STORE: lent}, lent=order.lent | {_OWN_STORE})
