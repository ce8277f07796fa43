"""Who may use how much, and how much of it do they? Limits in memory, changes durable, use measured on request.

Admission asks `cpu_limit` and `memory_limit`, storage asks `enforced`; both cost no I/O. The admin is never
limited, and with `quotas.enforce` off nobody is.
"""

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from hansa.identity import ADMIN_UID
from hansa.resources.limits import BadQuota, Limits, QuotaChange
from hansa.settings import QuotaSettings

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

    jobs: Gauge = nothing  # millicores and bytes of memory of jobs that run or wait
    volumes: Gauge = nothing
    buckets: Gauge = nothing


@dataclass(frozen=True, slots=True)
class QuotaReport:
    uid: str
    limits: Limits
    jobs: Used
    volumes: Used
    buckets: Used


class Quotas:
    def __init__(self, records: QuotaRecords, settings: QuotaSettings, gauges: Gauges | None = None) -> None:
        self._records = records
        self._enforce = settings.enforce
        self._default = Limits.of(settings)
        self._gauges = gauges or Gauges()
        self._own: dict[str, Limits] = {}

    async def load(self) -> None:
        self._own = {uid: self._default.changed(json.loads(text)) for uid, text in (await self._records.all()).items()}

    def adopt(self, settings: QuotaSettings) -> None:
        """Other defaults, at once, for everybody; what was set for one user stays as it was set."""
        former, fresh = self._default, Limits.of(settings)
        self._own = {uid: fresh.changed(limits.difference(former)) for uid, limits in self._own.items()}
        self._default, self._enforce = fresh, settings.enforce

    def limits(self, uid: str) -> Limits:
        return self._own.get(uid, self._default)

    def enforced(self, uid: str) -> Limits | None:
        """The limits this user must keep to; None for no limit."""
        if not self._enforce or uid in ("", ADMIN_UID):
            return None
        return self.limits(uid)

    def cpu_limit(self, uid: str) -> int | None:
        """Millicores of all their running jobs together; None for no limit."""
        limits = self.enforced(uid)
        return limits.cpu if limits is not None else None

    def memory_limit(self, uid: str) -> int | None:
        """Bytes of all their running jobs together; None for no limit."""
        limits = self.enforced(uid)
        return limits.memory if limits is not None else None

    async def change(self, uid: str, change: QuotaChange) -> None:
        """Takes effect at once for what comes next; what runs already is left alone."""
        after = change.applied_to(self.limits(check_uid(uid)))
        await self._records.put(uid, json.dumps(after.difference(self._default)))
        self._own[uid] = after

    async def report(self, uid: str) -> QuotaReport:
        gauges = self._gauges
        return QuotaReport(
            check_uid(uid),
            self.limits(uid),
            jobs=await gauges.jobs(uid),
            volumes=await gauges.volumes(uid),
            buckets=await gauges.buckets(uid),
        )


def check_uid(uid: str) -> str:
    if not _UID.fullmatch(uid):
        raise BadQuota("the user id is not valid", hint="give the user's full OIDC subject")
    return uid
