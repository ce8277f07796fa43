"""Who does the work when several managers of one cluster run? Whoever holds the cluster's Lease, and renews it.

A lease is over when it was not renewed for its time as we saw it, by our own clock: clocks of machines differ. Whoever
cannot renew it in time has lost it before anybody else may take it, and must not go on.
"""

import asyncio
import time
from datetime import UTC, datetime
from typing import Any, cast

import structlog
from lightkube.resources.coordination_v1 import Lease

from hansa.drivers.kubernetes import labels
from hansa.drivers.kubernetes.connection import Connection
from hansa.drivers.kubernetes.errors import ApiUnreachable

_log = structlog.get_logger("hansa.kubernetes")
_ADDRESS = "hansa/address"


class WorkLease:
    """One for each process. `address` is where the others pass on what they are asked while we hold it."""

    def __init__(
        self, api: Connection, cluster: str, namespace: str, *, identity: str, address: str, seconds: float = 15.0
    ) -> None:
        self._api = api
        self._cluster = cluster
        self._namespace = namespace
        self._name = f"hansa-{labels.value(cluster).lower()}"
        self._identity = identity
        self._address = address
        self._seconds = seconds
        self._seen: tuple[str, float] = ("", 0.0)  # the version of the lease we saw, and when we first did
        self._renewed = 0.0
        self.leader = ""  # where who holds it answers, as far as we know; "" if nobody does

    @property
    def pause(self) -> float:
        """Seconds between two looks, and between two renewals."""
        return self._seconds / 5

    async def take(self) -> None:
        """Returns when we hold it."""
        while True:
            try:
                if await self._tried():
                    self.leader = self._address
                    return
            except ApiUnreachable as error:
                _log.info("the lease cannot be looked at", reason=error.message)
            await asyncio.sleep(self.pause)

    async def keep(self) -> None:
        """Returns when it is lost: somebody else has it, or we could not renew it for most of its time."""
        while time.monotonic() - self._renewed < self._seconds * 0.8:
            await asyncio.sleep(self.pause)
            asked = time.monotonic()
            try:
                async with asyncio.timeout(self._seconds * 0.4):
                    if not await self._tried():
                        return
                self._renewed = asked
            except (ApiUnreachable, TimeoutError) as error:
                _log.warning("the lease is not renewed", reason=str(error))

    async def release(self) -> None:
        """Another may take it at once."""
        found = await self._api.get(Lease, self._name, self._namespace)
        if found is not None and found.spec.holderIdentity == self._identity:
            found.spec.holderIdentity = ""
            found.spec.renewTime = _now()
            await self._api.replace(found)

    async def _tried(self) -> bool:
        """Whether it is ours now."""
        asked = time.monotonic()
        found = await self._api.get(Lease, self._name, self._namespace)
        if found is None:
            taken = await self._api.create(self._made()) is not None
        elif found.spec.holderIdentity == self._identity or self._is_over(found):
            self._fill(found)
            taken = await self._api.replace(found)
        else:
            self.leader = (found.metadata.annotations or {}).get(_ADDRESS, "")
            taken = False
        if taken:
            self._renewed = asked
        return taken

    def _is_over(self, found: Any) -> bool:
        if not found.spec.holderIdentity:
            return True
        version = found.metadata.resourceVersion
        if self._seen[0] != version:
            self._seen = version, time.monotonic()
        return time.monotonic() - self._seen[1] > (found.spec.leaseDurationSeconds or self._seconds)

    def _made(self) -> Lease:
        made = Lease.from_dict(
            {
                "metadata": {
                    "name": self._name,
                    "namespace": self._namespace,
                    "labels": labels.of_cluster(self._cluster),
                },
                "spec": {"leaseTransitions": 0},
            }
        )
        self._fill(made)
        return cast(Lease, made)

    def _fill(self, lease: Any) -> None:
        spec = lease.spec
        if spec.holderIdentity != self._identity:
            spec.leaseTransitions = (spec.leaseTransitions or 0) + 1
            spec.acquireTime = _now()
        spec.holderIdentity = self._identity
        spec.leaseDurationSeconds = round(self._seconds)
        spec.renewTime = _now()
        lease.metadata.annotations = {**(lease.metadata.annotations or {}), _ADDRESS: self._address}


def _now() -> datetime:
    """Never a whole second: then its fraction would not be written, and Kubernetes asks for one."""
    now = datetime.now(UTC)
    return now.replace(microsecond=max(1, now.microsecond))
