"""Where do a user's objects live? In a namespace that is made when it is first needed, closed to pods that want more
than ours do."""

from lightkube.resources.core_v1 import Namespace

from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.connection import Connection

_SECURITY = {
    "pod-security.kubernetes.io/enforce": "restricted",
    "pod-security.kubernetes.io/warn": "restricted",
}


class Namespaces:
    def __init__(self, connection: Connection, cluster: str) -> None:
        self._api = connection
        self._cluster = cluster
        self._known: set[str] = set()

    async def ensure(self, name: str) -> None:
        """One that somebody made before stays as it is."""
        if name in self._known:
            return
        if await self._api.get(Namespace, name) is None:
            marks = {**labels.of_cluster(self._cluster), **_SECURITY}
            await self._api.create(Namespace.from_dict({"metadata": {"name": name, "labels": marks}}))
        self._known.add(name)
