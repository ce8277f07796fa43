"""What Kubernetes shows is followed, in more and more namespaces. Whoever stops leaves nothing open."""

import asyncio
import gc
import secrets
from pathlib import Path

import pytest
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.models.rbac_v1 import RoleRef, Subject
from lightkube.resources.core_v1 import ConfigMap, Namespace
from lightkube.resources.rbac_authorization_v1 import RoleBinding

from drivers.kubernetes import restricted
from hansa.drivers.kubernetes.board import Board
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.following import Follow
from real.kubernetes.access import Access
from real.kubernetes.cluster import KubernetesCluster

SECONDS = 60.0


@pytest.mark.parametrize("moment", [0.0, 0.005, 0.01, 0.02, 0.05, 0.2])
async def test_no_connection_is_left_open(kubernetes_api: KubernetesCluster, moment: float) -> None:
    """What is left is told by the garbage collector, and a warning is an error here."""
    for _ in range(3):
        api = Connection.open(kubernetes_api.access.kubeconfig)
        board = Board(api.client, "nobody")
        board.start()
        await asyncio.sleep(moment)
        await board.close()
        await api.close()
    gc.collect()


async def test_what_is_followed_grows_and_a_place_without_rights_is_empty(kubernetes: Access, tmp_path: Path) -> None:
    """As where our rights come with a namespace, and go with it."""
    first, second = (f"t{secrets.token_hex(4)}" for _ in range(2))
    async with kubernetes.client() as api:
        file = await restricted.account(api, kubernetes, tmp_path / "account", {first: ["configmaps"]})
        await api.create(Namespace(metadata=ObjectMeta(name=second)))
        connection, seen = Connection.open(file), asyncio.Event()
        follow = Follow(connection.client, ConfigMap, {}, lambda _: seen.set(), namespaces=[second], growing=True)
        following = asyncio.create_task(follow.run(), name="follow")
        try:
            async with asyncio.timeout(SECONDS):
                await follow.synced.wait()
                assert follow.all() == []
                follow.include(first)
                await api.create(ConfigMap(metadata=ObjectMeta(name="chart", namespace=first)))
                while follow.get((first, "chart")) is None:
                    seen.clear()
                    await seen.wait()
                # The account gets its rights in the other, too, and whoever gave them says so.
                whom = [Subject(kind="ServiceAccount", name="manager", namespace=first)]
                role = RoleRef(apiGroup="rbac.authorization.k8s.io", kind="ClusterRole", name="view")
                about = ObjectMeta(name="manager", namespace=second)
                await api.create(RoleBinding(metadata=about, roleRef=role, subjects=whom))
                await api.create(ConfigMap(metadata=ObjectMeta(name="tide", namespace=second)))
                asked = {"verb": "list", "resource": "configmaps", "namespace": second}
                while not await connection.may(asked):
                    await asyncio.sleep(0.05)
                follow.include(second)
                while follow.get((second, "tide")) is None:
                    seen.clear()
                    await seen.wait()
        finally:
            following.cancel()
            await asyncio.wait({following})
            await connection.close()
            for name in (first, second):
                await api.delete(Namespace, name)
