"""Who may use how much, and how much of it do they? Limits in memory, changes durable, use measured on request.

`shares` asks for each owner's `share`, storage asks `enforced`; both cost no I/O. The admin is never limited, and with
`quotas.enforce` off nobody is.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hansa.identity import ADMIN_UID
from hansa.kernel.quota import QuotaSettings
from hansa.resources.limits import BadQuota, Limits, QuotaChange
from hansa.resources.shares import NO_SHARE, Share

_UID = re.compile(r"[^\x00-\x1f\x7f-\x9f\ud800-\udfff]{1,255}")


class QuotaRecords(Protocol):
    """What differs from the defaults, by user."""

    async def all(self) -> Mapping[str, str]: ...
    async def put(self, uid: str, limits: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Used:
    """What a user has now, of one kind of thing: how many (or how much cpu), and how many bytes."""

    amount: int = 0
    size: int = 0


Gauge = Callable[[str], Awaitable[Used]]


async def nothing(_uid: str) -> Used:
    return Used()


@dataclass(frozen=True, slots=True)
class Gauges:
    """Where the figures come from; each takes a uid."""

    running: Gauge = nothing  # millicores and bytes of memory of all that runs
    disk: Gauge = nothing  # bytes that all runs hold, volumes left aside
    volumes: Gauge = nothing
    buckets: Gauge = nothing


@dataclass(frozen=True, slots=True)
class QuotaReport:
    uid: str
    limits: Limits
    running: Used
    disk: Used
    volumes: Used
    buckets: Used


class Quotas:
    def __init__(self, records: QuotaRecords, settings: QuotaSettings, gauges: Gauges | None = None) -> None:
        self._records = records
        self._enforce = settings.enforce
        self._default = Limits.of(settings)
        self._gauges = gauges or Gauges()
        self._own: dict[str, Limits] = {}
        self._on_change: list[Callable[[], None]] = []

    def on_change(self, listener: Callable[[], None]) -> None:
        """`listener` is called when somebody may have more or less than before, and must be quick."""
        self._on_change.append(listener)

    async def load(self) -> None:
        self._own = {uid: self._default.changed(json.loads(text)) for uid, text in (await self._records.all()).items()}

    def adopt(self, settings: QuotaSettings) -> None:
        """Other defaults, at once, for everybody; what was set for one user stays as it was set."""
        former, fresh = self._default, Limits.of(settings)
        self._own = {uid: fresh.changed(limits.difference(former)) for uid, limits in self._own.items()}
        self._default, self._enforce = fresh, settings.enforce
        self._tell()

    def limits(self, uid: str) -> Limits:
        return self._own.get(uid, self._default)

    def enforced(self, uid: str) -> Limits | None:
        """The limits this user must keep to; None for no limit."""
        if not self._enforce or uid in ("", ADMIN_UID):
            return None
        return self.limits(uid)

    def share(self, uid: str) -> Share:
        """What all that runs for them may hold together."""
        limits = self.enforced(uid)
        return Share(limits.cpu, limits.memory, limits.ephemeral_storage) if limits is not None else NO_SHARE

    def disk_limit(self, uid: str) -> int | None:
        """Bytes of disk of all their runs together, volumes left aside; None for no limit."""
        limits = self.enforced(uid)
        return limits.ephemeral_storage if limits is not None else None

    async def change(self, uid: str, change: QuotaChange) -> None:
        """Takes effect at once for what comes next; what runs already is left alone."""
        after = change.applied_to(self.limits(check_uid(uid)))
        await self._records.put(uid, json.dumps(after.difference(self._default)))
        self._own[uid] = after
        self._tell()

    def _tell(self) -> None:
        for listener in self._on_change:
            listener()

    async def report(self, uid: str) -> QuotaReport:
        gauges = self._gauges
        return QuotaReport(
            check_uid(uid),
            self.limits(uid),
            running=await gauges.running(uid),
            disk=await gauges.disk(uid),
            volumes=await gauges.volumes(uid),
            buckets=await gauges.buckets(uid),
        )


def check_uid(uid: str) -> str:
    if not _UID.fullmatch(uid):
        raise BadQuota("the user id is not valid", hint="give the user's full OIDC subject")
    return uid
