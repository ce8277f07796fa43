"""A manager's services in its database and in a real Kubernetes; a cluster id and namespaces of their own for each."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightkube.resources.core_v1 import ConfigMap, Namespace

from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.kept_services import KeptServices
from hansa.drivers.kubernetes.namespaces import Namespaces
from hansa.drivers.kubernetes.service_drift import DriftBook
from hansa.drivers.kubernetes.service_maps import ServiceMaps
from hansa.identity import Vault
from hansa.kernel.clock import SystemClock
from hansa.services import Record, Service
from hansa.store import Database, ServiceStore, make_engine, schema, sqlite_url
from real.kubernetes.access import Access

PATIENCE = 60.0
SECRETS = {"environment.secrets.PASSWORD": "for-the-script", "environment.secrets.refresh_token": "r3fresh"}


@dataclass
class Keeping:
    """One manager; `again` is the next one, after a restart or with an empty database."""

    folder: Path
    api: Connection
    homes: Namespaces
    namespace: str
    private: str
    database: Database
    inner: ServiceStore
    maps: ServiceMaps
    kept: KeptServices
    vault: Vault

    def record(self, name: str = "gray", **fields: Any) -> Record:
        given: dict[str, Any] = {
            "name": name,
            "image": "debian",
            "script": "true",
            "owner": "alice",
            "namespace": self.namespace,
            "token": "t0ken",
        }
        return Record(Service(**given | fields), 1, "ready", False, (), 1.0, 1.0)

    async def config_map(self, name: str = "gray") -> Any | None:
        return await self.api.get(ConfigMap, name, self.namespace)

    async def script(self, name: str = "gray") -> str:
        found = await self.config_map(name)
        return "" if found is None else str(found.data["script.sh"])


async def until(looked: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await looked():
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def opened(
    access: Access,
    folder: Path,
    former: Keeping | None = None,
    *,
    config: Path | None = None,
    allowed: Sequence[str] = (),
    private: str = "",
    repairs: int = 5,
) -> AsyncIterator[Keeping]:
    """`former` is the manager before this one; another folder means another, empty database. With `allowed`, all of
    its namespaces are there already."""
    cluster = former.homes.cluster if former else f"c-{secrets.token_hex(5)}"
    namespace = former.namespace if former else f"ns-{secrets.token_hex(6)}"
    private = private or (former.private if former else f"own-{secrets.token_hex(6)}")
    async with contextlib.AsyncExitStack() as undo:
        folder.mkdir(exist_ok=True)
        engine = make_engine(sqlite_url(folder))
        schema.upgrade(engine)
        database = Database(engine)
        database.start()
        undo.push_async_callback(database.close)
        api = Connection.open(config or access.kubeconfig)
        undo.push_async_callback(api.close)
        if former is None and not allowed:
            for space in (namespace, private):
                undo.push_async_callback(api.delete, Namespace, space)
        homes = Namespaces(api, cluster, default="nobody", private=private, allowed=allowed)
        vault = former.vault if former else Vault([Vault.new_key()])
        inner = ServiceStore(database, vault)
        await inner.load()
        maps = ServiceMaps(api, homes)
        clock = SystemClock()
        kept = KeptServices(inner, maps, clock, DriftBook(clock, repairs=repairs))
        yield Keeping(folder, api, homes, namespace, private, database, inner, maps, kept, vault)


@contextlib.asynccontextmanager
async def working(keeping: Keeping) -> AsyncIterator[None]:
    task = asyncio.create_task(keeping.kept.work(), name="work")
    try:
        async with asyncio.timeout(PATIENCE):
            await keeping.maps.synced()
        yield
    finally:
        task.cancel()
        ended = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended[0], asyncio.CancelledError), ended
