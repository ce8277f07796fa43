"""What do the three hosts share in a Kubernetes cluster? The way to it, what it shows, how pods are made, and where.

`JobHost`, `SyncHost` and `ExposedHost` are given one `Engine`, as those of one machine are given theirs.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from lightkube.resources.core_v1 import Secret

from hansa import services
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.pods import Shape
from hansa.services import events

_OWN_STORE = "minio.default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    api: Connection
    board: Board
    shape: Shape
    homes: Namespaces
    """Where things run, and whose that is."""
    store_of: Callable[[services.RunOrder], Awaitable[Mapping[str, str]]]
    """Address and keys with which a pod reaches the cluster's own store, for this order."""

    def namespace_of(self, order: services.RunOrder) -> str:
        return self.homes.placed(order.service.namespace)

    async def ensure_namespace(self, name: str) -> None:
        await self.homes.ensure(name)

    async def left(self, label: str) -> dict[str, set[str]]:
        """Names, by this label of their Secrets, and in which namespaces they are. A Secret is made first of all, so
        it tells of what an earlier life of ours had only begun, or not taken away to the end."""
        wanted = {**labels.of_cluster(self.shape.cluster), label: None}
        found: dict[str, set[str]] = {}
        for namespace in self.homes.allowed or ("*",):
            for one in await self.api.list(Secret, namespace, wanted):
                found.setdefault(one.metadata.labels[label], set()).add(one.metadata.namespace)
        return found

    async def with_keys(self, order: services.RunOrder) -> services.RunOrder:
        """`minio.default` is the cluster's own store unless keys came with the order; one without files needs none."""
        if not _has_files(order):
            return order
        if order.providers.get(_OWN_STORE, {}).get("access_key", "") not in ("", "hidden"):
            return order
        return replace(order, providers={**order.providers, _OWN_STORE: dict(await self.store_of(order))})


def _has_files(order: services.RunOrder) -> bool:
    service = order.service
    named = service.input or service.output or service.mount.path
    return bool(named) or isinstance(events.interpret(order.event), events.ObjectInput)
