"""Several of one kind by the chart, which hold nothing themselves: hubs that share, managers that take over."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import Pod
from lightkube.resources.policy_v1 import PodDisruptionBudget

from deploy.kubernetes.installation import Installation
from hansa.drivers.s3.relay import Relay
from real.kubernetes import kubernetes_manager
from real.object_store import RunningStore
from real.postgres import USER, Database

pytestmark = [pytest.mark.deep, pytest.mark.timeout(600)]
SECONDS = 60.0


@contextlib.asynccontextmanager
async def reachable(host: str, database: Database) -> AsyncIterator[str]:
    """Its address for pods: the server itself listens on a socket of this machine alone."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, server = await asyncio.open_unix_connection(database.folder / ".s.PGSQL.5432")
        await asyncio.gather(carry(reader, server), carry(answers, writer))

    async with await asyncio.start_server(serve, host, 0) as door:
        port = door.sockets[0].getsockname()[1]
        yield f"postgresql://{USER}@{host}:{port}/{database.name}"


async def test_several_hubs_share_what_they_know(release: Installation, postgres_database: Database) -> None:
    async with reachable(kubernetes_manager.near_end(release.access), postgres_database) as url:
        values: dict[str, Any] = {
            "role": "hub",
            "replicas": 2,
            "persistence": {"enabled": False, "keep": False},
            "database": {"kind": "postgresql", "url": url},
        }
        await release.upgrade(values)
        doors = await opened(release, 7070)
        made = (await doors[0].post("/v1/cluster-tokens", json={"cluster": "visby"})).json()["id"]
        async with asyncio.timeout(SECONDS):
            for door in doors:
                while made not in (await door.get("/v1/cluster-tokens")).text:
                    await asyncio.sleep(0.2)
        # What one sealed the other opens: both were given the same key.
        roots = [(await door.get("/v1/authority")).json() for door in doors]
        assert roots[0]["roots"] == roots[1]["roots"]
        budget = await release.api.get(PodDisruptionBudget, release.fullname, namespace=release.namespace)
        assert budget.status is not None
        assert budget.status.disruptionsAllowed == 1

        await release.upgrade({**values, "settings": {"hub": {"heartbeat_every": 7.0}}})
        again = await opened(release, 7070)
        assert {str(door.base_url) for door in again}.isdisjoint({str(door.base_url) for door in doors})
        assert made in (await again[0].get("/v1/cluster-tokens")).text
        for door in (*doors, *again):
            await door.aclose()
        await release.uninstall()
    assert await release.left() == set()


async def test_a_manager_takes_over_from_another(
    release: Installation, postgres_database: Database, object_store_server: RunningStore
) -> None:
    cluster, host = f"c-{secrets.token_hex(4)}", kubernetes_manager.near_end(release.access)
    store, keys = urlsplit(object_store_server.address.endpoint), object_store_server.keys
    async with contextlib.AsyncExitStack() as undo:
        undo.push_async_callback(kubernetes_manager.clear, release.access, cluster)
        url = await undo.enter_async_context(reachable(host, postgres_database))
        relay = await Relay.open(host, 0, (str(store.hostname), store.port or 80))
        undo.push_async_callback(relay.close)
        await release.upgrade(
            {
                "replicas": 2,
                "cluster": {"id": cluster},
                "persistence": {"enabled": False, "keep": False},
                "database": {"kind": "postgresql", "url": url},
                "storage": {
                    "kind": "s3",
                    "endpoint": f"http://{host}:{relay.port}",
                    "accessKey": keys.access_key,
                    "secretKey": keys.secret_key,
                },
                "settings": {
                    "cluster": {"services_namespace": f"svc-{cluster[2:]}"},
                    "kubernetes": {"lease_seconds": 5},
                },
            }
        )
        doors = await opened(release, 8080)
        made = {"name": "tide", "image": "debian", "script": "true", "cpu": "0.05", "memory": "64Mi"}
        answer = await doors[0].post("/system/services", json=made)
        assert answer.status_code == 201, answer.text
        for door in doors:
            assert (await door.get("/system/services/tide")).status_code == 200

        lease = await release.api.get(Lease, f"hansa-{cluster}", namespace=release.namespace)
        assert lease.spec is not None
        holder = str(lease.spec.holderIdentity)
        (working,) = [pod for pod in await release.pods() if holder.startswith(pod.metadata.name)]
        (waiting,) = [door for door in doors if working.status.podIP not in str(door.base_url)]
        await release.api.delete(Pod, working.metadata.name, namespace=release.namespace, grace_period=0)
        async with asyncio.timeout(SECONDS):
            while await holds(release, cluster) in ("", holder) or not await answers(waiting):
                await asyncio.sleep(0.2)
        for door in doors:
            await door.aclose()
        await release.uninstall()
        assert await release.left() == set()


async def holds(release: Installation, cluster: str) -> str:
    lease = await release.api.get(Lease, f"hansa-{cluster}", namespace=release.namespace)
    return str((lease.spec and lease.spec.holderIdentity) or "")


async def answers(door: httpx.AsyncClient) -> bool:
    try:
        return (await door.get("/system/services/tide")).status_code == 200
    except httpx.TransportError:
        return False


async def opened(release: Installation, port: int) -> list[httpx.AsyncClient]:
    """Each pod's own door."""
    signed = httpx.BasicAuth("admin", await release.password())
    found = [f"http://{pod.status.podIP}:{port}" for pod in await release.pods()]
    assert len(found) == 2
    return [httpx.AsyncClient(base_url=one, auth=signed, trust_env=False, timeout=30) for one in found]
