"""What do the three hosts share in a Kubernetes cluster? The way to it, what it shows, how pods are made, and where.

`JobHost`, `SyncHost` and `ExposedHost` are given one `Engine`, as those of one machine are given theirs.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

from lightkube.resources.core_v1 import Namespace

from hansa import services
from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.pods import Shape
from hansa.services import events

_OWN_STORE = "minio.default"
_SECURITY = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    api: Connection
    board: Board
    shape: Shape
    default_namespace: str
    store_of: Callable[[services.RunOrder], Awaitable[Mapping[str, str]]]
    """Address and keys with which a pod reaches the cluster's own store, for this order."""
    _made: set[str] = field(default_factory=set)

    def namespace_of(self, order: services.RunOrder) -> str:
        return order.service.namespace or self.default_namespace

    async def ensure_namespace(self, name: str) -> None:
        """Closed to pods that want more than ours do. One that somebody made before stays as it is."""
        if name in self._made:
            return
        if await self.api.get(Namespace, name) is None:
            marks = {**labels.of_cluster(self.shape.cluster), **_SECURITY}
            await self.api.create(Namespace.from_dict({"metadata": {"name": name, "labels": marks}}))
        self._made.add(name)

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
