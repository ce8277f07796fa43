"""How does a manager come to its rights in a namespace that it made? It binds one ClusterRole to its own account there.

It may bind that one role and no other, and an admission policy of the cluster (the Helm chart makes it) lets it do so
only in namespaces that bear its label. So it has rights in the namespaces of its users, and in no other.
"""

import asyncio
from typing import cast

import structlog
from lightkube.resources.rbac_authorization_v1 import RoleBinding

from hansa.drivers.kubernetes import labels, quota_manifest
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiUnreachable

_log = structlog.get_logger("hansa.kubernetes")
_RBAC = "rbac.authorization.k8s.io"
_ACCOUNTS = "system:serviceaccount:"
_WITHIN = 15.0  # seconds until the API server knows of it
_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class Binding:
    def __init__(self, api: Connection, cluster: str, role: str) -> None:
        self._api = api
        self._cluster = cluster
        self._role = role
        self._subject: dict[str, str] = {}

    async def bind(self, namespace: str) -> None:
        """The rights are ours there when this returns. Raises `ApiUnreachable` if they do not come."""
        name = quota_manifest.name_of(self._cluster)
        if await self._api.get(RoleBinding, name, namespace) is not None:
            return
        await self._api.create(await self._manifest(name, namespace))
        _log.info("the manager has its rights in a namespace now", namespace=namespace, role=self._role)
        pause = _PAUSE
        try:
            async with asyncio.timeout(_WITHIN):
                while not await self._effective(namespace):
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
        except TimeoutError:
            raise ApiUnreachable(
                f"the rights in namespace {namespace} did not come", hint=f"what does ClusterRole {self._role} say?"
            ) from None

    async def _manifest(self, name: str, namespace: str) -> RoleBinding:
        made = RoleBinding.from_dict(
            {
                "metadata": {"name": name, "namespace": namespace, "labels": labels.of_cluster(self._cluster)},
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": self._role},
                "subjects": [await self._ourselves()],
            }
        )
        return cast(RoleBinding, made)

    async def _ourselves(self) -> dict[str, str]:
        if not self._subject:
            who = await self._api.whoami()
            space, _, account = who.removeprefix(_ACCOUNTS).partition(":")
            if who.startswith(_ACCOUNTS):
                self._subject = {"kind": "ServiceAccount", "name": account, "namespace": space}
            else:
                self._subject = {"kind": "User", "apiGroup": _RBAC, "name": who}
        return self._subject

    async def _effective(self, namespace: str) -> bool:
        return await self._api.may({"verb": "create", "group": "", "resource": "secrets", "namespace": namespace})
