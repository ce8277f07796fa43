"""Several managers of one cluster: one does the work, the others pass on what they are asked, and take over.

They share a PostgreSQL, an object store, and the Kubernetes that holds their lease. `turn` returns when it is ours to
work; until then callers of this process are answered by whoever works. One that loses its lease ends at once, as if it
had been killed: everything it does is made for that, and another may be at work already.
"""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from hansa.drivers import s3
from hansa.kernel.errors import HansaError
from hansa.settings import BadSetting, Settings

if TYPE_CHECKING:
    from hansa.drivers.kubernetes import WorkLease

_log = structlog.get_logger("hansa")
_LOST = 75  # exit code: whoever started us should start us again
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - to listen at, not to be called


@asynccontextmanager
async def turn(given: Settings, sockets: Sequence[socket.socket]) -> AsyncIterator[None]:
    """Until it is left the work is ours; a manager that works alone has it at once. `sockets` are its door's."""
    if not (given.driver == "kubernetes" and given.kubernetes.shared):
        yield
        return
    from hansa.drivers import kubernetes  # noqa: PLC0415 - large, and a machine alone needs none

    if not given.database.url or given.storage.kind == "embedded":
        raise BadSetting(
            "kubernetes.shared needs database.url, and storage.kind s3 or minio",
            hint="managers that share their work share a PostgreSQL and an object store",
        )
    asked = given.kubernetes
    api = kubernetes.Connection.open(asked.kubeconfig, asked.context)
    try:
        await kubernetes.Namespaces(
            api, given.cluster.id, default=given.cluster.services_namespace, allowed=asked.namespaces
        ).ensure(asked.namespace)
        lease = kubernetes.WorkLease(
            api,
            given.cluster.id,
            asked.namespace,
            identity=f"{socket.gethostname()}-{secrets.token_hex(4)}",
            address=f"{_own_host(given, api.server)}:{sockets[0].getsockname()[1]}",
            seconds=asked.lease_seconds,
        )
        await _taken(lease, sockets)
        keeping = asyncio.create_task(_kept(lease), name="keep the lease")
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            try:
                await lease.release()
            except HansaError as error:
                _log.warning("the lease is not given back; others wait for its end", error=error.message)
    finally:
        await api.close()


async def _taken(lease: "WorkLease", sockets: Sequence[socket.socket]) -> None:
    """Whoever calls us meanwhile is passed on; who calls in the moment of change waits in line."""

    def leader() -> tuple[str, int] | None:
        host, _, port = lease.leader.rpartition(":")
        return (host, int(port)) if port.isdigit() else None

    relay = await s3.Relay.over(sockets, leader)
    try:
        await lease.take()
    finally:
        await relay.close()
    _log.info("this manager does the work now", address=lease.leader)


async def _kept(lease: "WorkLease") -> None:
    await lease.keep()
    _log.error("the lease is lost: another manager may be at work, so this one ends")
    os._exit(_LOST)


def _own_host(given: Settings, server: str) -> str:
    """Where the other managers find us: where we listen, or the address with which we reach the API server."""
    if given.http.host not in _EVERYWHERE:
        return given.http.host
    there = urlsplit(server)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((there.hostname, there.port or 443))  # nothing is sent
        return str(probe.getsockname()[0])
