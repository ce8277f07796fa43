"""Several hubs by the chart: one database outside, one key in the Secret, no volume."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from lightkube.resources.policy_v1 import PodDisruptionBudget

from deploy.kubernetes.installation import Installation
from real.kubernetes import kubernetes_manager
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
        doors = await opened(release)
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
        again = await opened(release)
        assert {str(door.base_url) for door in again}.isdisjoint({str(door.base_url) for door in doors})
        assert made in (await again[0].get("/v1/cluster-tokens")).text
        for door in (*doors, *again):
            await door.aclose()
        await release.uninstall()
    assert await release.left() == set()


async def opened(release: Installation) -> list[httpx.AsyncClient]:
    """Each hub's own door."""
    signed = httpx.BasicAuth("admin", await release.password())
    found = [f"http://{pod.status.podIP}:7070" for pod in await release.pods()]
    assert len(found) == 2
    return [httpx.AsyncClient(base_url=one, auth=signed, trust_env=False, timeout=30) for one in found]
